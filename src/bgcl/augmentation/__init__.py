"""Augmentation: drop rates and their posterior, masks, the language of masks, and the masks of a view."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
