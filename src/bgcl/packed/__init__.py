"""A model on a packed graph: what is as wide as an embedding stays on disk, and is computed in blocks."""
