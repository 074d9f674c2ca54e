r"""Scores of predictions: how little a head knows which class a node has.

They are the measures of `bgcl.measures.uncertainty`, such as `predictive_entropy`, `mutual_information` and
`least_confidence`, and any other score that a user has, by name. One more is the energy of logits l,

    E = -log sum_c exp(l_c)

(Liu et al., 2020), which also sees that all logits are small.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import shown
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import Uncertainty

Array = npt.NDArray[Any]
Predicted = NodePredictions | Uncertainty | Mapping[str, Any]


def energy(logits: Array) -> Array:
    """The energy of logits `(..., C)`; greater is stranger.

    >>> energy(np.log(np.array([[1.0, 1.0], [4.0, 4.0]]))).round(3).tolist()
    [-0.693, -2.079]
    """
    greatest = logits.max(-1)
    return np.asarray(-greatest - np.log(np.exp(logits - greatest[..., None]).sum(-1)))


def scores_of(predicted: Predicted | None, nodes: int) -> dict[str, Array]:
    """The scores of all nodes by name, `(N,)` each.

    Raises:
        BGCLError: a score has another number of nodes, or holds NaN.
    """
    if predicted is None:
        return {}
    if isinstance(predicted, NodePredictions):
        predicted = predicted.uncertainty
    if isinstance(predicted, Uncertainty):
        predicted = predicted.measures()
    if not isinstance(predicted, Mapping):
        raise BGCLError(
            "'predicted' must be what bgcl.predict or bgcl.uncertainty returns, or scores by name. "
            f"Got {shown(predicted)} instead."
        )
    found = {}
    for name, values in predicted.items():
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != (nodes,):
            raise BGCLError(f"The score '{name}' must have one number for each of the {nodes} nodes of the graph.")
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise BGCLError(
                f"The score '{name}' of node {bad[0]} is NaN or infinite, so it cannot be compared. Check head and "
                "draws."
            )
        found[str(name)] = array
    return found
