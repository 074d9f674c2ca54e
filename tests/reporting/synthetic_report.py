"""Synthetic contents of a report: groups of nodes, draws that vary, predictions that are mostly correct."""

import numpy as np

from bgcl.augmentation import RatePosterior
from bgcl.downstream.evaluation import SplitResult
from bgcl.measures.uncertainty import uncertainty
from bgcl.model import Record
from bgcl.reporting.report.contents import LIKELIEST, MEANINGS, Contents
from bgcl.reporting.report.node_map import NodeMap
from bgcl.reporting.report.trust import LEVELS, NEAR, SetLevels, UnknownNodes

NAMES = ["Neural nets", "Theory", "Genetic algorithms", "Probabilistic methods", "Case based", "Rule learning", "Other"]


def make_contents(
    nodes: int = 400, classes: int = 4, *, unlabeled: float = 0.1, labels: bool = True, ids: bool = True,
    epochs: int = 60, draws: int = 12, seed: int = 0,
) -> Contents:  # fmt: skip
    """Contents of a report that come from no model."""
    random = np.random.default_rng(seed)
    group = random.integers(classes, size=nodes)
    turn = 2 * np.pi * np.arange(classes) / classes
    position = 3 * np.stack([np.cos(turn), np.sin(turn)], 1)[group] + random.normal(scale=0.9, size=(nodes, 2))
    width = random.gamma(1.5, 0.4, size=nodes)
    cloud = position + width[None, :, None] * random.normal(size=(draws, nodes, 2))
    label = np.where(random.random(nodes) < unlabeled, -1, group) if labels else np.full(nodes, -1)
    measures = {"astd": width, "disagreement": (width / width.max()) ** 2}
    likeliest = probability = bins = None
    scores: dict[str, float] = {}
    if labels:
        likeliest, probability, scores, bins = _predictions(random, group, width, label, classes, measures)
    return Contents(
        title="synthetic",
        facts={"Nodes": f"{nodes:,}", "Edges": f"{3 * nodes:,}", "Attributes": "64", "Epochs": str(epochs)},
        ids=[f"paper-{i:05d}" for i in range(nodes)] if ids else None,
        classes=[NAMES[c] if c < len(NAMES) else f"class {c}" for c in range(classes)] if labels else [],
        label=label,
        map=NodeMap(position, cloud, "t-SNE"),
        measures={name: measures[name] for name in MEANINGS if name in measures},
        likeliest=likeliest,
        probability=probability,
        scores=scores,
        reliability=bins,
        history=make_history(epochs),
        unknown=make_unknown(random, nodes, label),
        sets=None if probability is None else make_sets(probability),
    )


def make_unknown(random, nodes: int, label: np.ndarray, listed: int = 30) -> UnknownNodes:
    """Some nodes that are said to be strange, with other nodes that are said to be near."""
    chosen = random.permutation(nodes)[:listed]
    near = np.stack([random.permutation(nodes)[:NEAR] for _ in chosen])
    near[0, -1] = -1
    return UnknownNodes(
        chosen, np.arange(1, len(chosen) + 1) / nodes, ["it does not fit its neighbors"] * len(chosen), near
    )


def make_sets(probability: np.ndarray) -> SetLevels:
    """Sets of the likeliest classes; the higher the level, the lower the probability that is needed."""
    needed = 1 - np.array(LEVELS)
    return SetLevels(np.array(LEVELS), (probability[None] >= needed[:, None, None]).sum(2), needed, 300)


def _predictions(random, group, width, label, classes, measures):
    logits = 3 * np.eye(classes)[group] + random.normal(size=(len(group), classes)) * (0.5 + width[:, None])
    noisy = logits + random.normal(size=(20, *logits.shape)) * width[:, None]
    samples = np.exp(noisy - noisy.max(-1, keepdims=True))
    found = uncertainty(samples / samples.sum(-1, keepdims=True))
    measures |= found.measures()
    order = np.argsort(-found.probability, axis=1, kind="stable")[:, :LIKELIEST]
    known = np.flatnonzero(label >= 0)
    result = SplitResult(known, np.arange(classes), label[known], found.of(known), float("nan"))
    return order, np.take_along_axis(found.probability, order, 1), result.scores(), result.reliability()


def make_history(epochs: int) -> list[Record]:
    """Records of a training with two masks: one with a learned rate, one with a fixed rate."""
    return [_record(epoch, epoch / epochs) for epoch in range(1, epochs + 1)]


def _record(epoch: int, share: float) -> Record:
    rates = {
        view: [
            RatePosterior(
                "connections in 8 blocks", mean=((0.5,),), std=((0.2,),), a=((1 + 2 * share,),), b=((1 + b * share,),)
            ),
            RatePosterior("features at 0.3/0.4", mean=((fixed,),), std=((0.0,),)),
        ]
        for view, b, fixed in (("o", 2, 0.3), ("t", 4, 0.4))
    }
    loss = 7 + float(np.exp(-5 * share))
    return Record(epoch, loss, objective=None, kl=0.3 * share, spread=0.2, seconds=0.01, rates=rates)
