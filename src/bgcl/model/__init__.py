"""The model: encoders, objectives, the network that joins them, its training, and draws from its posterior."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
