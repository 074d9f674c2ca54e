"""Uncertainty in numbers: its measures, how good they are, and which nodes to look at next."""
