"""Data sets by name, graphs of users from files and frames, and the checks that every graph must pass."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
