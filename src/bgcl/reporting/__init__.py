"""What people look at: plots, the notebook card, progress, TensorBoard, the report page."""
