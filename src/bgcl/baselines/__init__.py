"""The methods that the paper compares with, each behind one interface; a class is imported when it is first asked for.

An embedding method is a frozen dataclass of settings; its `fit(data)` returns the `(N, d)` embeddings of a graph. A
classifier is fitted to the labels of a split, and returns class probabilities of S draws, `(S, N, C)`.
"""

import dataclasses
import importlib
from typing import Any

from bgcl.errors import BGCLError, nearest

# Where each method lives: module and class.
EMBEDDINGS: dict[str, str] = {
    "raw-features": "raw:RawFeatures",
    "node2vec": "word2vec:Node2Vec",
    "deepwalk": "word2vec:DeepWalk",
    "deepwalk-features": "word2vec:DeepWalkFeatures",
    "gae": "autoencoders:GAE",
    "vgae": "autoencoders:VGAE",
    "dgi": "infomax:DGI",
    "grace": "grace:GRACE",
    "bgrl": "bootstrap:BGRL",
}
CLASSIFIERS: dict[str, str] = {
    "gcn": "supervised:GCN",
    "mc-dropout-gcn": "supervised:MCDropoutGCN",
    "ensemble-gcn": "supervised:EnsembleGCN",
    "gdc-gcn": "gdc:GDCGCN",
}

__all__ = ["CLASSIFIERS", "EMBEDDINGS", "baseline", "published"]


def baseline(name: str, **settings: Any) -> Any:
    """A method by name, with its own defaults where `settings` say nothing else.

    >>> baseline("node2vec", walks=5, seed=1).walks
    5
    """
    method = _find(name)
    known = [field.name for field in dataclasses.fields(method)]
    for setting in settings:
        if setting not in known:
            raise BGCLError(f"The method '{name}' has no setting '{setting}'. {nearest(setting, known)}")
    return method(**settings)


def published(name: str, dataset: str, seed: int = 0) -> Any:
    """A method with the settings that were published for a data set, or its defaults where they do not depend on it."""
    method = _find(name)
    made = method.published(dataset) if hasattr(method, "published") else method()
    return dataclasses.replace(made, seed=seed)


def _find(name: str) -> Any:
    homes = EMBEDDINGS | CLASSIFIERS
    if name not in homes:
        raise BGCLError(f"Unknown method '{name}'. {nearest(name, homes)}")
    module, method = homes[name].split(":")
    return getattr(importlib.import_module(f"bgcl.baselines.{module}"), method)
