"""From embeddings to predictions: classifier and regressor, splits, evaluation, predictions for every node."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
