"""The methods that the paper compares with, and some that came after it.

An embedding method is a class of settings with a method `fit(data)`, which returns embeddings `(N, d)`. A classifier is
a class of settings with a method `fit(data, split)`, which returns the class probabilities of S draws, `(S, N, C)`. A
class is imported when it is first used.
"""

import importlib
from typing import Any

from bgcl.errors import BGCLError, nearest

# Module and class of each method.
EMBEDDINGS: dict[str, str] = {
    "raw-features": "raw:RawFeatures",
    "propagated-features": "propagated:PropagatedFeatures",
    "random-encoder": "random_encoder:RandomEncoder",
    "node2vec": "word2vec:Node2Vec",
    "deepwalk": "word2vec:DeepWalk",
    "deepwalk-features": "word2vec:DeepWalkFeatures",
    "gae": "autoencoders:GAE",
    "vgae": "autoencoders:VGAE",
    "dgi": "infomax:DGI",
    "grace": "grace:GRACE",
    "bgrl": "bootstrap:BGRL",
    "cca-ssg": "cca_ssg:CCASSG",
    "signa": "signa:SIGNA",
}
CLASSIFIERS: dict[str, str] = {
    "majority-class": "votes:MajorityClass",
    "neighbor-vote": "votes:NeighborVote",
    "gcn": "supervised:GCN",
    "mc-dropout-gcn": "supervised:MCDropoutGCN",
    "ensemble-gcn": "supervised:EnsembleGCN",
    "gdc-gcn": "gdc:GDCGCN",
    "gnnsafe": "gnnsafe:GNNSafe",
    "gpn": "gpn:GPN",
}

__all__ = ["CLASSIFIERS", "EMBEDDINGS", "baseline", "published"]


def baseline(name: str, **settings: Any) -> Any:
    """Make a method.

    Args:
        name: a name from `EMBEDDINGS` or `CLASSIFIERS`.
        **settings: settings of the method. Settings that are not given have the method's defaults.

    Returns:
        The method, with checked settings.

    Raises:
        BGCLError: the method or a setting is unknown, or a value is out of range.

    >>> baseline("node2vec", walks=5, seed=1).walks
    5
    """
    return _find(name)(**settings)


def published(name: str, dataset: str, seed: int = 0) -> Any:
    """Make a method with the settings that were published for a data set, or with its defaults if there are none.

    >>> published("grace", "citeseer").tau
    0.9
    """
    method = _find(name)
    made = method.published(dataset) if hasattr(method, "published") else method()
    return made.with_changes(seed=seed)


def _find(name: str) -> Any:
    methods = EMBEDDINGS | CLASSIFIERS
    if name not in methods:
        raise BGCLError(f"Unknown method '{name}'. {nearest(name, methods)}")
    module, method = methods[name].split(":")
    return getattr(importlib.import_module(f"bgcl.baselines.{module}"), method)
