"""Show what a model learned: plots, the notebook card, progress, TensorBoard and the report page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
