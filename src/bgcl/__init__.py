"""Bayesian graph contrastive learning: node embeddings that know what they do not know.

The public names are listed in `__init__.pyi`. Each is imported when it is first used, so that `import bgcl` does not
import torch.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]
