"""Bayesian graph contrastive learning: node embeddings that know what they do not know.

The public names are listed in `__init__.pyi`. Each is imported when it is first used, so that `import bgcl` does not
import torch.
"""

import lazy_loader

_import_name, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*_names, "__version__"]


def __getattr__(name: str) -> object:
    if name == "__version__":  # from the git tag, through the metadata of the installed package
        from importlib.metadata import version

        return version("bgcl")
    return _import_name(name)
