"""Encoders, one file each: they turn a graph and masks into embeddings."""
