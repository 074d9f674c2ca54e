"""Bayesian graph contrastive learning: node embeddings that know what they do not know.

Names are imported when they are first used: `import bgcl` alone does not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bgcl.errors import BGCLError

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bgcl.data import check_graph, load
    from bgcl.embeddings import Moments, astd
    from bgcl.estimator import BGCL
    from bgcl.masks import Mask
    from bgcl.sentences import parse_mask
    from bgcl.settings import Settings, presets

_HOME = {
    "BGCL": "bgcl.estimator",
    "Mask": "bgcl.masks",
    "Moments": "bgcl.embeddings",
    "Settings": "bgcl.settings",
    "astd": "bgcl.embeddings",
    "check_graph": "bgcl.data",
    "load": "bgcl.data",
    "parse_mask": "bgcl.sentences",
    "presets": "bgcl.settings",
}

__all__ = [
    "BGCL", "BGCLError", "Mask", "Moments", "Settings", "__version__", "astd", "check_graph", "load", "parse_mask",
    "presets",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bgcl' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
