"""Uncertainty in numbers: measures for each node, metrics of their quality, and which nodes to label next."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
