"""`Novelty`: the share of known nodes that are at least as strange as a node, without seeing an unknown node."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from bgcl.arguments import check_model, node_numbers, seed_or, shown, whole
from bgcl.downstream.node_predictions import NodePredictions
from bgcl.errors import BGCLError, nearest
from bgcl.novelty.found import NodeNovelty
from bgcl.novelty.measured import LABELED, MEASURED, Measures
from bgcl.novelty.predicted import Predicted, scores_of
from bgcl.novelty.propagation import propagated
from bgcl.novelty.tails import Tail, strangeness, summed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]

PROPAGATED = " propagated"
TWO_SIDED = ("count",)
GROUPS = (
    ("residual", "spread", "count"),
    ("encoded", "edges by encoder"),
    ("edges by encoder propagated", "edges by position propagated"),
)
OF_PREDICTIONS = ("predictive_entropy",)
WEIGHT = 0.2  # of a group that sees no labels next to that of predictions; chosen on development halves


class Novelty:
    """How unlike the known nodes each node is: a calibrated share of the known nodes that are at least as strange.

    Without predictions, a node is compared with all nodes of the known graph: by its attributes, and by how it fits its
    neighbors. With predictions, it is also compared with the labeled nodes: by the uncertainty of its prediction, and
    by the distance of its embedding from theirs. A node of a class that no labeled node has is strange in this way
    alone. How shares are made of scores and joined is in `bgcl.novelty.tails`.

    Nothing is fitted on unknown nodes: `fit` takes known nodes alone, and `score` does not look at labels.

    Args:
        model: a fitted model.
        groups: the scores, in groups. Default: what is said above. A score is one of "residual", "spread" and "count"
            (of the attributes), "encoded" (the encoder's output among known ones), "edges by encoder" and "edges by
            position", "nearest", "mahalanobis" and "mixture" (the density of the mean embedding among known nodes),
            "astd", "disagreement" and "likelihood" (of the draws), "nearest labeled", or the name of a score of the
            predictions, such as "predictive_entropy". With " propagated" after its name, a score is propagated along
            the edges.
        samples: how many embeddings to draw, if a score needs draws.
        seed: seed of the draws. Default: the seed of the model.

    Attributes:
        n_known_: the number of known nodes that calibrate.
        groups_: the groups of scores that are used.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> bgcl.Novelty(model).fit(data).score(data).novelty.shape
    (240,)
    >>> predictions = bgcl.predict(model, data, samples=6)
    >>> novelty = bgcl.Novelty(model).fit(data, predictions)
    >>> list(novelty.score(data, predictions).columns())[:3]
    ['node', 'novelty', 'reason']
    """

    def __init__(
        self, model: "BGCL", groups: Sequence[Sequence[str]] | None = None, *, samples: int = 20,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        check_model(model)
        self.model, self.groups = model, groups
        self.samples = whole("The number of samples", samples, 4)
        self.seed = seed_or(seed, model.settings_.seed)

    def fit(
        self, data: "Data", predicted: Predicted | None = None, *, known: object = None, labeled: object = None
    ) -> Self:
        """Learn what is usual among known nodes.

        Args:
            data: the graph of the known nodes, such as the training graph.
            predicted: predictions for its nodes: what `bgcl.predict` or `bgcl.uncertainty` returns, or scores by name,
                `(N,)` each. No head may have been trained on the label of a node of `known`.
            known: numbers of the nodes that calibrate. Default: all nodes, or with predictions the labeled ones.
            labeled: numbers of the labeled nodes to which distances are measured. Default: with predictions `known`.

        Returns:
            The fitted object.

        Raises:
            BGCLError: a score is unknown, is NaN, or needs what is not there; or a node of `known` has no label, or
                one that trained the head which predicts it.
        """
        of_head = scores_of(predicted, data.num_nodes)
        every = np.arange(data.num_nodes)
        chosen = self._known(data, predicted, known)
        near = chosen if predicted is not None else None
        near = near if labeled is None else node_numbers("labeled", labeled, len(every))
        self.groups_ = self._groups(of_head, has_labels=near is not None)
        names = {_base(score) for group in self.groups_ for score in group}
        free = every if predicted is not None or chosen is None else chosen
        self._known_nodes = every if chosen is None else chosen
        self._measures, self._own = Measures.fit(
            self.model, data, names - set(of_head), known=free, labeled=near, samples=self.samples, seed=self.seed
        )
        self._fingerprint = self.model._ready_graph(data).facts.fingerprint
        found = self._scores(*self._own, of_head)
        self._free = {score: _base(score) not in {*of_head, LABELED} for group in self.groups_ for score in group}
        among = {score: free if self._free[score] else self._known_nodes for score in found}
        self._tails = {
            score: Tail.of(values[among[score]], two_sided=_base(score) in TWO_SIDED) for score, values in found.items()
        }
        self._members = {score: _mask(among[score], len(every)) for score in found}
        self._group_tails, self._whole = list[Tail](), Tail(np.empty(0))
        shares = self._shares(found, same=True)
        for group, sums in zip(self.groups_, self._sums(shares), strict=True):
            self._group_tails.append(Tail.of(sums[among[group[0]]]))
        self._whole = Tail.of(self._joined(shares, same=True)[self._known_nodes])
        self.n_known_ = len(self._known_nodes)
        return self

    def score(self, data: "Data", predicted: Predicted | None = None) -> NodeNovelty:
        """The novelty of all nodes of a graph. Its labels are not used.

        Args:
            data: the graph, which may be the known one.
            predicted: predictions for its nodes, if `fit` had some.

        Returns:
            Novelty, and what it is made of.

        Raises:
            BGCLError: there are no predictions but `fit` had some, or a score is NaN.
        """
        if not hasattr(self, "n_known_"):
            raise BGCLError("This Novelty is not fitted yet: call fit(data) with the graph of the known nodes first.")
        of_head = scores_of(predicted, data.num_nodes)
        needed = {_base(score) for group in self.groups_ for score in group} - {*MEASURED, *of_head}
        if needed:
            raise BGCLError(f"'fit' had the score '{min(needed)}' of predictions: give predictions of this graph too.")
        same = self.model._ready_graph(data).facts.fingerprint == self._fingerprint
        measured = self._own if same else self._measures.scores(data)
        found = self._scores(*measured, of_head)
        shares = self._shares(found, same=same)
        joined = self._joined(shares, same=same)
        among = _mask(self._known_nodes, len(joined)) if same else None
        return NodeNovelty(self._whole.shares(joined, among), joined, shares, found, getattr(data, "ids", None))

    def _known(self, data: "Data", predicted: Predicted | None, known: object) -> Array | None:
        """The nodes that calibrate; None: all. With predictions, they must have a label."""
        chosen = None if known is None else node_numbers("known", known, data.num_nodes)
        if chosen is not None and not len(chosen):
            raise BGCLError("'known' names no node. Name one or more, or leave it out.")
        labels = predicted.label if isinstance(predicted, NodePredictions) else getattr(data, "y", None)
        if predicted is None or labels is None or getattr(labels, "dtype", None) is None or labels.ndim != 1:
            if predicted is not None and chosen is None:
                raise BGCLError("The graph has no labels, so name the known nodes with 'known'.")
            return chosen
        labels = np.asarray(labels)
        has_label = ~np.isnan(labels) if labels.dtype.kind == "f" else labels >= 0
        if chosen is None and isinstance(predicted, NodePredictions):
            chosen = predicted.calibrates
        chosen = np.flatnonzero(has_label) if chosen is None else chosen
        if not len(chosen):
            raise BGCLError("No node is labeled, so none is known. Label some nodes, or leave out 'predicted'.")
        strange = chosen[~has_label[chosen]]
        if len(strange):
            raise BGCLError(
                f"Node {strange[0]} has no label, so it cannot be one of the known nodes: its class may be unknown. "
                "Leave it out of 'known'."
            )
        if isinstance(predicted, NodePredictions) and len(seen := np.setdiff1d(chosen, predicted.calibrates)):
            raise BGCLError(
                f"The head that predicts node {seen[0]} has seen its label, so it cannot be one of the known nodes: it "
                "would look surer than new ones. Leave it out of 'known'."
            )
        return chosen

    def _groups(self, of_head: dict[str, Array], *, has_labels: bool) -> list[list[str]]:
        if self.groups is not None:
            found = [[group] if isinstance(group, str) else list(group) for group in self.groups]
            if not found or not all(found):
                raise BGCLError(f"'groups' must hold groups of one score or more. Got {shown(self.groups)} instead.")
        else:
            found = [list(group) for group in GROUPS]
            own = [name for name in OF_PREDICTIONS if name in of_head] or list(of_head)
            own += [LABELED] if has_labels else []
            found += [[name + PROPAGATED for name in own]] if own else []
        for score in (score for group in found for score in group):
            if not isinstance(score, str) or _base(score) not in {*MEASURED, *of_head}:
                name = _base(score) if isinstance(score, str) else shown(score)
                raise BGCLError(f"Unknown score '{name}'. {nearest(name, [*MEASURED, *of_head])}")
            if _base(score) == LABELED and not has_labels:
                raise BGCLError(f"The score '{LABELED}' needs labeled nodes: name them with 'labeled'.")
        return found

    def _scores(self, measured: dict[str, Array], mean: "csr_matrix", of_head: dict[str, Array]) -> dict[str, Array]:
        """The scores of the groups, propagated where they should be."""
        every = measured | of_head
        return {
            score: propagated(mean, every[_base(score)]) if score.endswith(PROPAGATED) else every[score]
            for group in self.groups_
            for score in group
        }

    def _shares(self, scores: dict[str, Array], *, same: bool) -> dict[str, Array]:
        return {
            score: self._tails[score].shares(values, self._members[score] if same else None)
            for score, values in scores.items()
        }

    def _sums(self, shares: dict[str, Array]) -> list[Array]:
        return [summed([shares[score] for score in group]) for group in self.groups_]

    def _joined(self, shares: dict[str, Array], *, same: bool) -> Array:
        sums = self._sums(shares)
        of_groups = [
            tail.shares(total, self._members[group[0]] if same else None)
            for tail, total, group in zip(self._group_tails, sums, self.groups_, strict=True)
        ]
        free = [all(self._free[score] for score in group) for group in self.groups_]
        weights = [WEIGHT if sees_none and not all(free) else 1.0 for sees_none in free]
        return strangeness(of_groups, sums, weights)


def _base(score: str) -> str:
    return score.removesuffix(PROPAGATED)


def _mask(nodes: Array, count: int) -> Array:
    found = np.zeros(count, dtype=bool)
    found[nodes] = True
    return found
