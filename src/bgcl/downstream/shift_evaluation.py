"""Evaluate a model on graphs and nodes that differ more and more from those that it knows.

Heads are trained on the usual graph. Changes of attributes and of edges (`graph_changes`) come after: the same test
nodes are predicted in graphs of which a growing share has changed. Shifts of structure (`property_splits`) change no
graph: heads are trained on nodes of one kind, and tested on nodes that are less and less of this kind.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bgcl.arguments import check_model, whole
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import SplitResult, default_training_draws, head_for
from bgcl.downstream.graph_changes import CHANGES, changed
from bgcl.downstream.head_stack import predict_all
from bgcl.downstream.label_spreading import LabelSpreading, fit_head
from bgcl.downstream.property_splits import PROPERTIES, property_splits
from bgcl.downstream.small_classes import with_pairs
from bgcl.downstream.splits import Split, labels_of, splits
from bgcl.errors import BGCLError, nearest
from bgcl.measures.uncertainty import Uncertainty
from bgcl.model.structure import same_numbers

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

SHIFTS = (*PROPERTIES, *CHANGES)
SHARES = (0.0, 0.1, 0.25, 0.5)  # of the nodes, columns or edges that change
QUARTERS = 4  # groups of nodes of the unknown kind, of about the same size
SAMPLES, SPLITS = 20, 5


def evaluate_shift(
    model: "BGCL", data: "Data", shift: str, *, protocol: str | None = None, count: int = SPLITS,
    samples: int = SAMPLES, seed: int | None = None,
) -> dict[str, list[SplitResult]]:  # fmt: skip
    """Evaluate a model at each level of a shift.

    Args:
        model: a fitted model.
        data: the graph that it was trained on, with labels.
        shift: "popularity", "locality" or "density" of the test nodes; "bernoulli" or "normal" noise in the attributes,
            missing "columns"; "dropped" or "rewired" edges.
        protocol: the protocol of the splits, see `bgcl.splits`; shifts of structure have splits of their own. Default:
            "grace".
        count: number of splits.
        samples: number of draws at each level.
        seed: seed of the draws and the changes. Default: the seed of the model.

    Returns:
        For each level, from none to the greatest shift, a result for each split. Names of levels are the share that has
        changed, or "known kind" and the quarters of the nodes of the unknown kind.

    Raises:
        BGCLError: the shift is unknown, there are too few samples or labels, or the shift does not fit the graph.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> list(evaluate_shift(model, data, "dropped", count=2, samples=6))
    ['0 %', '10 %', '25 %', '50 %']
    """
    check_model(model)
    if not isinstance(shift, str) or shift not in SHIFTS:
        raise BGCLError(f"Unknown shift '{shift}'. {nearest(str(shift), SHIFTS)}")
    if whole("The number of samples", samples) < 2:
        raise BGCLError(f"A shift needs 2 samples or more: some train the heads, the others predict. Got {samples}.")
    count = whole("The number of splits", count, 1)
    if shift in PROPERTIES:
        if protocol is not None:
            raise BGCLError(f"The shift '{shift}' has splits of its own: leave out the protocol.")
        return _by_property(model, data, shift, count, samples, seed)
    return _by_change(model, data, shift, protocol or "grace", count, samples, seed)


class SplitHeads:
    """Heads that were trained on some splits of a graph, and predict in any graph with the same nodes.

    Args:
        model: a fitted model.
        data: the graph, with labels.
        chosen: the splits.
        samples: number of draws: some train the heads, and `left` predict.
        seed: seed of the draws. Default: the seed of the model.
    """

    def __init__(
        self, model: "BGCL", data: "Data", chosen: Sequence[Split], samples: int, seed: int | None = None
    ) -> None:  # fmt: skip
        self.model, self.labels, self.seed = model, labels_of(data), seed
        training_draws = default_training_draws(samples, model.parts_)
        self.left = samples - training_draws
        first = np.stack([draw.cpu().numpy() for draw in model.draws(data, training_draws, seed=seed)])
        self.training = [with_pairs(split.train, self.labels) for split in chosen]
        spreading = self._spreading(data)
        make: Callable[[], MixtureClassifier] = head_for(model.parts_)
        self.heads = [
            fit_head(make(), first[:, train], self.labels[train], train, train[:0], spreading)[0]
            for train in self.training
        ]

    def _spreading(self, data: "Data") -> LabelSpreading | None:
        return LabelSpreading.of(self.model, data) if len(self.model.parts_) > 1 else None

    def predict(self, data: "Data", nodes: Sequence[Array]) -> list[Uncertainty]:
        """Class probabilities and measures of uncertainty of some nodes of a graph, for each head."""
        spreading, beside = self._spreading(data), []
        for train, predicted in zip(self.training, nodes, strict=True):
            if spreading is None:
                beside.append(np.empty((0, len(predicted), len(self.heads[0].classes_))))
            else:
                codes = np.unique(self.labels[train], return_inverse=True)[1]
                beside.append(spreading.logits(train, codes)[0][:, predicted])
        seed = self.model.settings_.seed if self.seed is None else self.seed
        stream = (draw.cpu().numpy() for draw in self.model.draws(data, self.left, seed=seed + 1))
        return predict_all(self.heads, stream, nodes, 1, beside)

    def test(self, data: "Data", tests: Sequence[Array]) -> list[SplitResult]:
        """Predict the test nodes of each split, whose classes the heads know."""
        return [
            SplitResult(test, head.classes_, np.searchsorted(head.classes_, self.labels[test]), uncertainty, head.C_)
            for test, head, uncertainty in zip(tests, self.heads, self.predict(data, tests), strict=True)
        ]


def _by_change(
    model: "BGCL", data: "Data", shift: str, protocol: str, count: int, samples: int, seed: int | None = None
) -> dict[str, list[SplitResult]]:
    chosen = splits(data, protocol, count)
    heads = SplitHeads(model, data, chosen, samples, seed)
    tests = [split.test for split in chosen]
    start = model.settings_.seed if seed is None else seed
    found = {}
    for level, share in enumerate(SHARES):
        graph = changed(data, shift, share, np.random.default_rng((start, level))) if share else data
        with same_numbers():
            found[f"{share:.0%}".replace("%", " %")] = heads.test(graph, tests)
    return found


def _by_property(
    model: "BGCL", data: "Data", shift: str, count: int, samples: int, seed: int | None = None
) -> dict[str, list[SplitResult]]:
    chosen = property_splits(data, shift, count)
    labels = labels_of(data)
    heads = SplitHeads(model, data, [one.split for one in chosen], samples, seed)
    classes = set.intersection(*({*head.classes_.tolist()} for head in heads.heads))
    groups = [
        [one.split.test for one in chosen],
        *([np.array_split(one.unknown, QUARTERS)[quarter] for one in chosen] for quarter in range(QUARTERS)),
    ]
    names = ["known kind", *(f"quarter {quarter + 1}" for quarter in range(QUARTERS))]
    kept = [[nodes[np.isin(labels[nodes], [*classes])] for nodes in tests] for tests in groups]
    if any(not len(nodes) for tests in kept for nodes in tests):
        raise BGCLError(
            f"The shift '{shift}' leaves a group of nodes without one of a class that the head knows. Label more nodes."
        )
    return {name: heads.test(data, tests) for name, tests in zip(names, kept, strict=True)}
