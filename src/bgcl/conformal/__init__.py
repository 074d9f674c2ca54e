"""Prediction sets that hold their level, abstention at a bounded risk, and a test of what both assume."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
