"""`ConformalClassifier`: sets of classes that have the true class with a given probability."""

import logging
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from bgcl.arguments import flag, node_numbers, shown, whole
from bgcl.conformal.class_scores import check_probabilities, check_score, class_scores
from bgcl.conformal.diffusion import ScoreDiffusion
from bgcl.conformal.exchangeability import Drift
from bgcl.conformal.thresholds import sets_of, thresholds
from bgcl.downstream.node_draws import check_targets
from bgcl.errors import BGCLError
from bgcl.measures.levels import check_level

Array = npt.NDArray[Any]
log = logging.getLogger("bgcl")


class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict sets of classes that have the true class for a share `level` of the nodes.

    The set of a node is `{y : s(y) <= q}`. The score `s(y)` says how badly a class fits, and q is the score that the
    true classes of a share `level` of the calibration nodes do not exceed, see `bgcl.conformal.thresholds`.

    The promise is about a new node and calibration nodes that are exchangeable: as if all had been drawn at random from
    the same nodes, and none of them had trained the head. It is a promise on average over nodes, not for each node. An
    empty set says that no class fits as well as those of the calibration nodes. If the head is surer of new nodes than
    of calibration nodes, or less sure, by more than chance explains, `predict_set` warns (`bgcl.conformal.Drift`).

    Args:
        head: a fitted head, such as a `MixtureClassifier`. It is not fitted again.
        level: the share of nodes whose set has the true class.
        score: "lac", "aps" or "aps-randomized", see `bgcl.conformal.class_scores`.
        by_class: whether the level holds in each class, and not only over all nodes.
        diffusion: a `bgcl.conformal.ScoreDiffusion`, which also uses the scores of near nodes; None: each node alone.
            With it, draws are always those of all nodes of the graph.
        random_state: seed of "aps-randomized".

    Attributes:
        classes_: the classes in ascending order, `(C,)`.
        thresholds_: the greatest score of each class that is in a set, `(C,)`.
        n_calibration_: the number of calibration nodes of each class, `(C,)`.
        doubt_: one minus the greatest class probability of each calibration node, `(n,)`.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> draws, y = model.sample(data, samples=6).numpy(), data.y.numpy()
    >>> split = bgcl.splits(data, "bgrl-20", count=1)[0]
    >>> head = bgcl.MixtureClassifier(parts=model.parts_).fit(draws[:, split.train], y[split.train])
    >>> sets = bgcl.ConformalClassifier(head, level=0.9).fit(draws[:, split.validation], y[split.validation])
    >>> sets.predict_set(draws[:, split.test]).shape
    (168, 3)
    """

    def __init__(
        self, head: Any, level: float = 0.9, *, score: str = "lac", by_class: bool = False,
        diffusion: ScoreDiffusion | None = None, random_state: int = 0,
    ) -> None:  # fmt: skip
        self.head = head
        self.level = level
        self.score = score
        self.by_class = by_class
        self.diffusion = diffusion
        self.random_state = random_state

    def fit(self, draws: object, y: object, nodes: object = None) -> Self:
        """Calibrate on labeled nodes that did not train the head.

        Args:
            draws: embeddings, `(S, N, d)`, `(N, d)` or `NodeDraws`: of the calibration nodes, or of all nodes of the
                graph if `nodes` says which of them calibrate.
            y: the classes of the calibration nodes, `(n,)`.
            nodes: numbers of the calibration nodes, `(n,)`. Default: all nodes of the draws.

        Returns:
            The calibrated classifier.

        Raises:
            BGCLError: a parameter, the draws or the classes are not valid, or there are too few calibration nodes.
        """
        self._check_settings()
        if self.diffusion is not None and nodes is None:
            raise BGCLError("With a diffusion, give draws of all nodes, and say in 'nodes' which of them calibrate.")
        probability = self._probability(draws)
        scores = self._scores(probability, calibrates=True)
        chosen = np.arange(len(scores)) if nodes is None else node_numbers("nodes", nodes, len(scores))
        labels = check_targets(y, len(chosen), self, numeric=False)
        self.classes_ = np.asarray(self.head.classes_)
        codes = self._codes(labels)
        self.n_calibration_ = np.bincount(codes, minlength=len(self.classes_))
        self.doubt_ = 1 - probability[chosen].max(1)
        self.thresholds_ = thresholds(
            scores[chosen], codes, float(self.level), by_class=bool(self.by_class), names=self.classes_.tolist()
        )
        return self

    def predict_set(self, draws: object) -> Array:
        """Predict the set of each node.

        Args:
            draws: embeddings, `(S, N, d)`, `(N, d)` or `NodeDraws`; of all nodes of the graph if there is a diffusion.

        Returns:
            Whether each class, in the order of `classes_`, is in the set of each node, `(N, C)`.
        """
        check_is_fitted(self)
        probability = self._probability(draws)
        self._warn(1 - probability.max(1))
        return sets_of(self._scores(probability, calibrates=False), self.thresholds_)

    def predict_proba(self, draws: object) -> Array:
        """The class probabilities of the head, `(N, C)`."""
        return np.asarray(self.head.predict_proba(draws))

    def predict(self, draws: object) -> Array:
        """The most probable class of each node by the head, `(N,)`."""
        return np.asarray(self.head.predict(draws))

    def _probability(self, draws: object) -> Array:
        probability = self.predict_proba(draws)
        check_probabilities(probability)
        return probability

    def _warn(self, doubt: Array) -> None:
        """Warn if new nodes are not exchangeable with calibration nodes, as far as one can see without labels."""
        if len(doubt) and (drift := Drift.between({"doubt": self.doubt_}, {"doubt": doubt})).warns:
            log.warning(
                "These %d nodes are not like the %d calibration nodes: the distributions of their least confidence "
                "differ by %.0f points. The level of %g may not hold for them. Calibrate on nodes like these.",
                drift.new, drift.calibration, 100 * drift.distance["doubt"], self.level,
            )  # fmt: skip

    def _scores(self, probability: Array, *, calibrates: bool) -> Array:
        # With a diffusion both are scores of the same nodes, so they must be the same numbers. Otherwise the nodes are
        # others, and so are the random numbers.
        place = 0 if calibrates or self.diffusion is not None else 1
        scores = class_scores(probability, self.score, np.random.default_rng((self.random_state, place)))
        return scores if self.diffusion is None else self.diffusion(scores)

    def _check_settings(self) -> None:
        check_level(self.level)
        check_score(self.score)
        flag("by_class", self.by_class)
        whole("The 'random_state' of ConformalClassifier", self.random_state, 0)
        if not callable(getattr(self.head, "predict_proba", None)) or isinstance(self.head, type):
            raise BGCLError(f"'head' must be a fitted classifier with predict_proba. Got {shown(self.head)} instead.")
        check_is_fitted(self.head)
        if self.diffusion is not None and not isinstance(self.diffusion, ScoreDiffusion):
            raise BGCLError(f"'diffusion' must be a ScoreDiffusion or None. Got {shown(self.diffusion)} instead.")

    def _codes(self, labels: Array) -> Array:
        """Positions of labels among the classes of the head."""
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise BGCLError(
                f"A calibration node has the class {shown(labels[unknown][0].item())}, which the head has not seen. "
                "Leave out such nodes, or fit the head with this class."
            )
        return np.searchsorted(self.classes_, labels)
