r"""The posterior of a drop rate under evidence: the Kumaraswamy distribution that is closest to it.

`q(pi) = Kumaraswamy(a, b)` maximizes the evidence lower bound `E_q[log p(items | pi)] - KL(q || Beta(alpha, beta))`.
The expectation is a sum over quantiles of q at Gauss-Legendre nodes. The likelihood is concave in `pi`, so every start
leads to the same posterior.

A view that drops everything says nothing, and one that drops nothing has no uncertainty. So a share beyond `LEAST` and
`MOST` counts as one at these bounds.
"""

import logging
import math
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from bgcl.augmentation.drop_rates import kumaraswamy_beta_kl, quantile_nodes
from bgcl.augmentation.evidence import Witnesses
from bgcl.augmentation.explanations import Evidence, noise_and_repetition
from bgcl.augmentation.masks import Mask
from bgcl.augmentation.views import VIEWS, Augmentation

log = logging.getLogger("bgcl")

LEAST, MOST = 0.02, 0.8  # the least and the greatest rate that is learned
RANDOM, ENOUGH = 0.02, 100  # so many items that explanations tell less about, in nats, look random
Kind = Literal["edges", "attributes"]
Pair = tuple[float, float]


def evidence_lower_bound(a: Tensor, b: Tensor, evidence: Evidence, prior: Pair) -> Tensor:
    """`E_q[log p(items | pi)] - KL(q || Beta(alpha, beta))` of one posterior; a and b are scalars in float64."""
    rates, weights = quantile_nodes(a, b)
    return (weights * evidence.log_likelihood(rates)).sum() - kumaraswamy_beta_kl(a, b, *prior)


def fit_kumaraswamy(evidence: Evidence, start: Pair = (1.0, 1.0), prior: Pair = (1.0, 1.0)) -> Pair:
    """`(a, b)` of the posterior that maximizes the evidence lower bound.

    It is searched by the median and `log a`, because a and b of a narrow posterior depend strongly on each other. If
    the search from `start` fails, it begins at the rate with the greatest likelihood.
    """
    a, b = (torch.tensor(value, dtype=torch.float64) for value in start)
    median = (-torch.expm1(math.log(0.5) / b)) ** (1 / a)
    near = torch.tensor(evidence.share(), dtype=torch.float64)
    for first, width in ((median, a.log()), (near, torch.tensor(2.0))):
        found = _search(torch.stack([torch.logit(first.clamp(0.01, 0.99)), width.clamp(-2, 3)]), evidence, prior)
        if all(map(math.isfinite, found)):
            return found
    return start


def _search(place: Tensor, evidence: Evidence, prior: Pair) -> Pair:
    place = place.to(torch.float64).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [place], max_iter=200, tolerance_grad=1e-6, tolerance_change=1e-10, line_search_fn="strong_wolfe"
    )
    items = max(len(evidence.background) if evidence.weight is None else float(evidence.weight.sum()), 1.0)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = -evidence_lower_bound(*_from_median(place), evidence, prior) / items
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    a, b = _from_median(place.detach())
    return float(a), float(b)


def _from_median(place: Tensor) -> tuple[Tensor, Tensor]:
    """a and b from `(logit(median), log a)`: b solves `1 - (1 - median^a)^b = 1/2`."""
    a = place[1].clamp(-5, 7).exp()
    log_share = a * torch.nn.functional.logsigmoid(place[0].clamp(-12, 12))  # log median^a
    tiny = log_share < -30
    complement = torch.where(tiny, torch.exp(log_share), -torch.log1p(-torch.exp(torch.where(tiny, -1.0, log_share))))
    return a, math.log(2) / complement.clamp(min=1e-300)


def bounded(evidence: Evidence) -> Evidence:
    """The evidence, or as much evidence for the bound if its share is beyond one."""
    share = evidence.share()
    if LEAST <= share <= MOST:
        return evidence
    items = len(evidence.background) if evidence.weight is None else float(evidence.weight.sum())
    return Evidence.counted(min(max(share, LEAST), MOST), items)


def learn_rates(augmentation: Augmentation, witnesses: Witnesses, start: Pair, prior: Pair) -> None:
    """Give every learned drop rate its posteriors under the evidence of the graph: for training, and for draws.

    A wrong edge makes a wrong positive or propagates a wrong attribute, so edges that are noise are dropped. From the
    attributes, a view also leaves out what the others tell, so that it has to be restored.

    Without evidence, because the graph has no edges or no attributes, a rate keeps its prior.
    """
    found: set[tuple[Kind, int | None]] = set()
    fitted: dict[tuple[Kind, int | None], tuple[Pair, Pair]] = {}
    for kind, relation in _wanted(augmentation, witnesses.relations):
        if (kind, relation) in found:
            continue
        found.add((kind, relation))
        every = witnesses.of_edges(relation) if kind == "edges" else witnesses.of_attributes()
        if every is None:
            continue
        share = Evidence.share if kind == "edges" else noise_and_repetition
        training, drawing = every.over_resamples(share, witnesses.random), every.by_all()
        fitted[kind, relation] = _fit(training, start, prior), _fit(drawing, start, prior)
        if relation is None and drawing.told() < RANDOM and len(every.background) >= ENOUGH:
            log.warning(
                "The %s of this graph look random: neither alike nodes nor neighbors explain them. Check that they "
                "belong to the right nodes.",
                kind,
            )
    for view in VIEWS:
        for i, is_drawing in enumerate((False, True)):
            for mask, rate in augmentation.of(view, drawing=is_drawing):
                for kind, relation in _evidence_for(mask, witnesses.relations) if rate.learned else ():
                    if (kind, relation) in fitted:
                        a, b = fitted[kind, relation][i]
                        rate.set_posterior(a, b, slice(None) if relation is None else relation)


def _wanted(augmentation: Augmentation, relations: int) -> Iterator[tuple[Kind, int | None]]:
    """The evidence that the learned rates need."""
    for mask in augmentation.masks:
        if mask.rate is None:
            yield from _evidence_for(mask, relations)


def _evidence_for(mask: Mask, relations: int) -> list[tuple[Kind, int | None]]:
    """The kind and the relation of what explains what a mask drops, for each of its rates."""
    each = range(relations) if mask.per == "relation" else (None,)
    return [(evidence_of(mask), relation) for relation in each]


def _fit(evidence: Evidence, start: Pair, prior: Pair) -> Pair:
    return fit_kumaraswamy(bounded(evidence), start, prior)


def evidence_of(mask: Mask) -> Kind:
    """What explains what a mask drops."""
    return "edges" if mask.on in ("connections", "positives") else "attributes"
