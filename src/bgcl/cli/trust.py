"""What `bgcl predict` and `bgcl rank` say beside a prediction: novelty, sets, and when to give no answer."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bgcl.cli.known_nodes import Known, novelty_columns, novelty_of
from bgcl.cli.printing import visible
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data

    from bgcl.conformal.exchangeability import Drift
    from bgcl.downstream.known_labels import KnownLabels
    from bgcl.downstream.node_predictions import NodePredictions
    from bgcl.downstream.number_results import PredictedNumbers
    from bgcl.estimator import BGCL
    from bgcl.novelty.found import NodeNovelty

    Array = np.ndarray[Any, Any]

INTERVALS = 0.9  # the level of intervals of numbers, if the user names none
BY_SETS = "sets"  # what --abstain says if there is an answer where a set has one class


@dataclass(frozen=True)
class Promises:
    """`--level`, `--by-class` and `--abstain`, as the user gave them."""

    level: float | None = None
    by_class: bool = False
    abstain: str | None = None

    def check(self) -> None:
        """Refuse what does not fit, before anything is computed."""
        if self.by_class and self.level is None:
            raise BGCLError("--by-class is about the sets of --level: give a level, or leave it out.")
        if self.abstain == BY_SETS and self.level is None:
            raise BGCLError(f"--abstain {BY_SETS} needs sets: give a --level too.")
        if self.abstain not in (None, BY_SETS):
            _ = self.risk

    def check_labels(self, known: "KnownLabels", elsewhere: "Data | None", novelty: bool | None) -> None:
        """Refuse what too few labels cannot keep, before anything is drawn.

        Args:
            known: the labels of the graph that is predicted.
            elsewhere: the training graph, if its labels may calibrate too.
            novelty: what `--novelty` says.
        """
        import numpy as np

        from bgcl.conformal.abstention import refuse_too_few_for
        from bgcl.conformal.thresholds import refuse_too_few

        if elsewhere is not None and novelty is not False:
            return
        count = int((known.node >= 0).sum())
        try:
            if self.risk is not None:
                refuse_too_few_for(self.risk, count)
            if self.level is not None:
                refuse_too_few(count, self.level)
        except BGCLError as error:
            if elsewhere is None:
                raise
            raise BGCLError(
                f"{error} With --no-novelty the labels of the training graph do not count: leave it out to use them."
            ) from None
        if self.level is not None and self.by_class and elsewhere is None:
            for number, of_class in zip(*np.unique(known.labels, return_counts=True), strict=True):
                name = number if known.names is None else known.names[number]
                refuse_too_few(int(of_class), self.level, f" of class {name}")

    def refuse_for_numbers(self) -> None:
        """Refuse what is for classes."""
        for name, given in (("--by-class", self.by_class), ("--abstain", self.abstain)):
            if given:
                raise BGCLError(f"{name} is for classes, and the labels are numbers: leave it out.")

    def refuse_for_label_sets(self) -> None:
        """Refuse what is for one label per node."""
        from bgcl.cli.label_sets import refuse_for_label_sets

        refuse_for_label_sets({
            "--level": self.level is not None, "--by-class": self.by_class, "--abstain": self.abstain is not None,
        })  # fmt: skip

    @property
    def share(self) -> float:
        """The level of intervals."""
        return INTERVALS if self.level is None else self.level

    @property
    def risk(self) -> float | None:
        """The risk of `--abstain`; None if sets decide, or nothing."""
        from bgcl.conformal.abstention import check_risk

        if self.abstain in (None, BY_SETS):
            return None
        try:
            risk = float(self.abstain)
        except ValueError:
            raise BGCLError(
                f"--abstain must be '{BY_SETS}', or the share of answers that may be wrong, such as 0.05. Got "
                f"'{self.abstain}' instead."
            ) from None
        return check_risk(risk)

    def __bool__(self) -> bool:
        return self.level is not None or self.abstain is not None


@dataclass
class Trust:
    """Columns for the table, facts for JSON and sentences for the terminal."""

    columns: "dict[str, Array]" = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)


def trust_in_classes(
    model: "BGCL", data: "Data", found: "NodePredictions", promises: Promises, *, known: Known | None,
    seed: int | None, quiet: bool,
) -> Trust:  # fmt: skip
    """Novelty, sets and answers, and a warning if the nodes are not like those that calibrate."""
    import numpy as np

    from bgcl.conformal.node_sets import node_sets

    trust, novelty, theirs = Trust(), None, None
    if known is not None:
        novelty, theirs = novelty_of(model, data, found, known, seed)
        trust.columns |= novelty_columns(novelty)
    if not promises:
        return trust
    source = _calibration(found, known, promises)
    answers = None
    if promises.level is not None:
        sets = node_sets(found, promises.level, by_class=promises.by_class, calibration=source)
        trust.columns |= sets.columns()
        quality = {"mean_size": float(sets.size.mean()), "one_class": int((sets.size == 1).sum()),
                   "empty": int((sets.size == 0).sum())}  # fmt: skip
        trust.facts["sets"] = {"level": promises.level, "by_class": promises.by_class,
                               "calibration_nodes": sets.n_calibration, **quality}  # fmt: skip
        whose = " of each class" if promises.by_class else ""
        trust.sentences.append(
            f"Sets with the true class for {100 * promises.level:g} % of the nodes{whose}, by "
            f"{sets.n_calibration:,} labeled nodes: {quality['mean_size']:.2f} classes on average, "
            f"{quality['one_class']:,} with one class, {quality['empty']:,} empty"
        )
        answers = sets.size == 1
    if promises.abstain is not None:
        answers = _answers(found, source or found, promises, answers, trust)
        predicted = found.columns()["predicted"].astype(object)
        predicted[~answers] = None
        trust.columns["answer"] = predicted
    nodes, new = (source or found).calibrates, np.flatnonzero(found.label < 0)
    doubt = (source or found).uncertainty.least_confidence[nodes], found.uncertainty.least_confidence[new]
    theirs = novelty if source is None else theirs
    trust.facts |= drift_facts(theirs, nodes, novelty, new, {"least confidence": doubt}, quiet)
    return trust


def trust_in_numbers(
    model: "BGCL", data: "Data", found: "PredictedNumbers", promises: Promises, *, known: Known | None,
    seed: int | None, quiet: bool,
) -> Trust:  # fmt: skip
    """Novelty, a note if there are too few numbers for the intervals, and a warning as for classes."""
    import numpy as np

    from bgcl.measures.levels import fewest

    trust, own = Trust(), np.flatnonzero(~np.isnan(found.label))
    labeled, needed = own, fewest((1 + promises.share) / 2)
    novelty = theirs = None
    if known is not None:
        novelty, theirs = novelty_of(model, data, None, known, seed)
        trust.columns |= novelty_columns(novelty)
    if known is not None and known.data is not data and known.data.y is not None:
        labeled = np.flatnonzero(~known.data.y.isnan().numpy())
    else:
        theirs = novelty
    count = max(len(labeled), len(own))
    if count < needed and not quiet:
        note = f"Note: intervals of {100 * promises.share:g} % need {needed} nodes with a number or more, and {count}"
        print(f"{note} have one: more or fewer numbers may be in them.", file=sys.stderr)
    if promises.level is not None:
        trust.facts |= drift_facts(theirs, labeled, novelty, np.flatnonzero(np.isnan(found.label)), {}, quiet)
    return trust


def drift_facts(
    theirs: "NodeNovelty | None", nodes: "Array", ours: "NodeNovelty | None", new: "Array",
    doubt: "dict[str, tuple[Array, Array]]", quiet: bool,
) -> dict[str, Any]:  # fmt: skip
    """Compare calibration nodes with nodes without a label, and warn on stderr if they differ.

    Args:
        theirs: the novelty in the graph of the calibration nodes.
        nodes: the calibration nodes.
        ours: the novelty in the graph of the new nodes.
        new: the new nodes.
        doubt: other scores of calibration nodes and of new nodes, by name.
        quiet: whether to print no warning.

    Returns:
        Facts for JSON; empty if there is nothing to compare.
    """
    from bgcl.conformal.exchangeability import Drift
    from bgcl.novelty.measured import LABELED, MEASURED

    known, changed = {n: pair[0] for n, pair in doubt.items()}, {n: pair[1] for n, pair in doubt.items()}
    if theirs is not None and ours is not None:
        free = [n for n in ours.shares if n.removesuffix(" propagated") in MEASURED and not n.startswith(LABELED)]
        known |= {name: theirs.shares[name][nodes] for name in free}
        changed |= {name: ours.shares[name][new] for name in free}
    if not known or not len(nodes) or not len(new):
        return {}
    drift = Drift.between(known, changed)
    if drift.warns and not quiet:
        print(visible(warning(drift)), file=sys.stderr)
    return {"drift": {"distance": drift.distance[drift.worst], "by": drift.worst,
                      "at_least": drift.surely[drift.worst], "warns": drift.warns}}  # fmt: skip


def warning(drift: "Drift") -> str:
    """What a user should know if new nodes are not like calibration nodes."""
    return (
        f"Warning: nodes without a label are not like those with one: by '{drift.worst}' their distributions differ by "
        f"{100 * drift.distance[drift.worst]:.0f} points. What is promised by --level and --abstain may not hold for "
        "them. Label some of them at random."
    )


def _calibration(found: "NodePredictions", known: Known | None, promises: Promises) -> "NodePredictions | None":
    """Predictions of the training graph, if the labeled nodes of the predicted one are too few; otherwise None."""
    from bgcl.conformal.abstention import fewest_for
    from bgcl.measures.levels import fewest

    if known is None or known.found is None or known.found is found:
        return None
    needed = [fewest(promises.level)] if promises.level is not None else []
    needed += [fewest_for(promises.risk)] if promises.risk is not None else []
    return known.found if len(found.calibrates) < max(needed, default=0) else None


def _answers(
    found: "NodePredictions", source: "NodePredictions", promises: Promises, single: "Array | None", trust: Trust
) -> "Array":
    """Which nodes have an answer."""
    import numpy as np

    from bgcl.conformal.abstention import CERTAINTY, Abstention

    facts: dict[str, Any]
    if promises.risk is None:
        assert single is not None
        answers, facts = single, {"by": BY_SETS}
        words = "whose set has one class"
    else:
        nodes = source.calibrates
        wrong = source.predicted[nodes] != source.label[nodes]
        doubt = source.uncertainty.least_confidence[nodes]
        abstention = Abstention.at_risk(doubt, wrong, promises.risk)
        answers = ~abstention.abstains(found.uncertainty.least_confidence)
        facts = {"by": "risk", "risk": promises.risk, "certainty": CERTAINTY, "threshold": abstention.threshold,
                 "bound": abstention.bound, "calibration_nodes": len(nodes)}  # fmt: skip
        facts["threshold"] = facts["threshold"] if np.isfinite(abstention.threshold) else None
        words = (
            f"with a least confidence of {abstention.threshold:.4g} or less: {100 * abstention.wrong:.1f} % of "
            f"{round(abstention.answered * len(nodes)):,} such labeled nodes are wrong, so at most "
            f"{100 * promises.risk:g} % with {100 * CERTAINTY:.0f} % certainty"
            if abstention.answered
            else f"at a risk of {100 * promises.risk:g} %"
        )
    trust.facts["abstention"] = facts | {"answered": int(answers.sum())}
    trust.sentences.append(f"Answers for {int(answers.sum()):,} of {len(answers):,} nodes, {words}")
    return answers
