"""Graphs as the model computes with them: sparse products, the prepared graph, clusters."""
