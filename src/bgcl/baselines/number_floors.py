"""Floors for numbers: simple predictions of a number that a trained model has to beat."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.baselines.propagated import PropagatedFeatures
from bgcl.data.pyg import check_graph
from bgcl.downstream.evaluation import summary
from bgcl.downstream.number_head import NumberHead, attribute_columns
from bgcl.downstream.number_results import NumberResult
from bgcl.downstream.splits import Split, numbers_of
from bgcl.measures.normal_mixtures import mixture_cdf

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

SCORES = ("rmse", "r2", "crps", "coverage")


@dataclass(frozen=True)
class NumberFloor:
    """The mean scores of a simple prediction, or of the model next to it, over the same splits."""

    name: str
    rmse: float
    r2: float
    crps: float
    coverage: float  # of 90 % intervals

    @classmethod
    def of(cls, name: str, results: Sequence[NumberResult]) -> "NumberFloor":
        """The mean scores of some results."""
        scores = summary([results])  # type: ignore[list-item]
        return cls(name, *(scores[score]["mean"] for score in SCORES))


def number_floors(data: "Data", chosen: Sequence[Split]) -> list[NumberFloor]:
    """The floors of a graph whose labels are numbers, on some splits.

    Args:
        data: a graph with numbers as labels.
        chosen: the splits.

    Returns:
        The mean of the training nodes, a ridge regression on the attributes, and one on the attributes propagated along
        the edges. Penalty, noise and intervals are found by cross-validation, as for a model's head.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> data.y = data.x.to_dense().sum(1)
    >>> [floor.name for floor in number_floors(data, bgcl.splits(data, "half", count=1))]
    ['mean', 'ridge on the attributes', 'ridge on propagated attributes, no training']
    """
    data = check_graph(data)
    y, attributes = numbers_of(data), attribute_columns(data)
    features = np.hstack([attributes, PropagatedFeatures().fit(data)])
    return [
        NumberFloor.of("mean", [_mean(y, split) for split in chosen]),
        NumberFloor.of("ridge on the attributes", [_ridge(attributes, y, split) for split in chosen]),
        NumberFloor.of("ridge on propagated attributes, no training", [_ridge(features, y, split) for split in chosen]),
    ]


def _mean(y: Array, split: Split) -> NumberResult:
    train = y[split.train]
    noise, middle = float(train.std()) or 1.0, float(train.mean())
    levels = np.sort(mixture_cdf(np.full((1, len(train)), middle), noise, train))
    return NumberResult(split.test, y[split.test], np.full((1, len(split.test)), middle), noise, levels)


def _ridge(columns: Array, y: Array, split: Split) -> NumberResult:
    head = NumberHead.fit(columns[None, split.train], y[split.train], kernel=False)
    return NumberResult(split.test, y[split.test], head.mean(columns[split.test])[None], head.noise, head.levels)


def number_verdict(model: NumberFloor, found: Sequence[NumberFloor]) -> str:
    """Whether a model pays, in a sentence: by the CRPS, which judges the whole distribution."""
    best = min(found, key=lambda floor: floor.crps)
    share = 100 * (model.crps / best.crps - 1) if best.crps else 0.0
    if share > 0:
        return (
            f"The model does not pay: its CRPS is {share:.1f} % above that of '{best.name}', which needs no training. "
            "Train longer, or use the simpler prediction."
        )
    return f"The CRPS of the model is {-share:.1f} % below that of the best of them ({best.name})."
