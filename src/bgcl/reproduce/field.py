"""The cells of the experiment `field`: BGCL and other methods on eleven graphs, on the same splits, with the same head.

It answers what a user of the library asks: is the default of this library better than what others offer, and than no
training at all? Every method has one configuration for each graph, as its authors published it, or its defaults.
"""

import math
from typing import Any

from bgcl.reproduce.cells import Cell

METHODS = (
    "propagated-features", "raw-features", "neighbor-vote", "dgi", "grace", "bgrl", "cca-ssg", "signa", "bgcl",
    "bgcl-default",
)  # fmt: skip
DATASETS = (
    "cora", "citeseer", "pubmed", "amazon-photo", "amazon-computers", "coauthor-cs", "coauthor-physics", "blogcatalog",
    "actor", "tolokers", "lastfm",
)  # fmt: skip
TITLES = {"bgcl": "BGCL, the paper's", "bgcl-default": "BGCL, default"}  # where they differ from other tables

FEW, MORE, HALF = "", "20 % of the labels", "50 % of the labels"  # labels of the cells, by share of training nodes
WITHOUT_MASKS = "without masks"  # and labels not spread
EMBEDDINGS_ALONE = "labels not spread"  # of the default: its head does not use the labels of near nodes
LINEAR_HEAD = "linear head"  # of the default, without masks: the head that the others have
POOLED_HEAD = "pooled head"  # of the others: the head that the default has
SAMPLES, PAPER_SAMPLES = 16, 100  # draws of the default, and of the paper's BGCL
SPLITS = 20
CITATIONS = ("cora", "citeseer")
NO_SEED = ("propagated-features", "raw-features", "neighbor-vote")  # the seed has little or no effect
# Batches of about 4,000 nodes, for graphs without a preset of the paper. A model has 300 steps.
BATCHES = {
    "pubmed": 5, "coauthor-physics": 9, "blogcatalog": 2, "actor": 2, "tolokers": 3, "lastfm": 2,
}  # fmt: skip
STEPS = 300
# GRACE has no configuration for these graphs, or one of 1,500 steps on all nodes, which takes hours.
GRACE_IN_BATCHES = ("pubmed", "blogcatalog", "actor", "tolokers", "lastfm")


def protocols(dataset: str) -> dict[str, str]:
    """The protocol of each share of training nodes. Some classes of lastfm are too small for 10 %."""
    if dataset == "lastfm":
        return {HALF: "half"}
    return {FEW: "grace" if dataset in CITATIONS else "bgrl", MORE: "bgrl-20"}


def labeled(variant: str, share: str) -> str:
    """The label of a cell, from the name of the variant and the share of training nodes."""
    return ", ".join(filter(None, (variant, share)))


def field_cells(
    method: str, dataset: str, preset: dict[str, Any], *, seeds: int | None, splits: int | None,
    quick: dict[str, Any] | None,
) -> list[Cell]:  # fmt: skip
    """The cells of a method on a data set.

    Args:
        method: name of the method.
        dataset: name of the data set.
        preset: the paper's settings of BGCL for the data set.
        seeds: number of training seeds. Default: 3 for the default of BGCL, 5 on the citation graphs, 1 for others.
        splits: number of splits. Default: 20.
        quick: settings for a test of the program; None for the experiment.
    """
    ours = method == "bgcl-default"
    many = seeds or ((5 if dataset in CITATIONS else 3) if ours else 1)
    settings = _settings(method, dataset, preset) | (quick or {})
    shares = protocols(dataset)
    if quick is not None and not ours:
        shares = dict([*shares.items()][:1])
    return [
        Cell(
            method, dataset, seed, protocol, splits or (SPLITS if quick is None else 3), settings, how,
            label=labeled(variant, share),
        )
        for seed in range(1 if quick is not None or method in NO_SEED else many)
        for share, protocol in shares.items()
        for variant, how in _variants(method, quick is not None).items()
        if seed == 0 or (share != MORE and not variant)  # one seed is enough to see what labels, masks, heads change
        if variant in ("", EMBEDDINGS_ALONE) or share != MORE  # and one share to see what masks and heads change
    ]  # fmt: skip


def _variants(method: str, quick: bool) -> dict[str, dict[str, Any]]:
    """How a method is evaluated, by name. For a test of the program, few processes measure what training costs."""
    if method == "neighbor-vote":
        return {"": {}}
    if method == "bgcl":
        return {"": {"samples": 24 if quick else PAPER_SAMPLES} | ({} if quick else {"measure": True})}
    if method == "bgcl-default":
        points = {"masks": False, "measure": True}
        return {
            "": {"samples": SAMPLES, "measure": True, "spread_labels": True},
            EMBEDDINGS_ALONE: {"samples": SAMPLES, "measure": True},
            WITHOUT_MASKS: points,
            LINEAR_HEAD: points | {"head": "mixture"},
        }
    measure = {} if quick else {"measure": True}
    return {"": measure, POOLED_HEAD: measure | {"head": "pool"}}


def _settings(method: str, dataset: str, preset: dict[str, Any]) -> dict[str, Any]:
    if dataset in BATCHES and (method == "bgcl" or (method == "grace" and dataset in GRACE_IN_BATCHES)):
        batches = {"batches": BATCHES[dataset], "epochs": math.ceil(STEPS / BATCHES[dataset])}
        return preset | batches if method == "bgcl" else batches
    return dict(preset) if method == "bgcl" else {}
