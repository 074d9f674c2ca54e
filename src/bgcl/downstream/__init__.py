"""From embeddings to predictions: heads, splits, evaluation, and the prediction of every node."""
