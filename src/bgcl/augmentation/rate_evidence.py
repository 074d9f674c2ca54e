r"""The posterior of a drop rate under evidence: the Kumaraswamy distribution that is closest to it.

`q(pi) = Kumaraswamy(a, b)` maximizes the evidence lower bound `E_q[log p(items | pi)] - KL(q || Beta(alpha, beta))`.
The expectation is a sum over quantiles of q at Gauss-Legendre nodes. The likelihood is concave in `pi`, so every start
leads to the same posterior.

A view that drops everything says nothing. So if more than `MOST` of the items are not explained, the posterior is
that of as many items of which the share `MOST` is not explained.
"""

import logging
import math
from typing import Literal

import torch
from torch import Tensor

from bgcl.augmentation.drop_rates import kumaraswamy_beta_kl, quantile_nodes
from bgcl.augmentation.evidence import Evidence, Witnesses
from bgcl.augmentation.masks import Mask
from bgcl.augmentation.views import VIEWS, Augmentation

log = logging.getLogger("bgcl")

MOST = 0.8  # the greatest rate that is learned
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
    near = torch.tensor(unexplained(evidence), dtype=torch.float64)
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
    items = max(len(evidence.background), 1)

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


def bounded(evidence: Evidence) -> tuple[Evidence, float]:
    """The evidence that a rate is learned from, and the share of the items that is not explained."""
    share = unexplained(evidence)
    if share <= MOST:
        return evidence, share
    items = len(evidence.background)
    dropped = (torch.arange(items) < MOST * items).double()
    return Evidence(dropped, 1 - dropped), share


def unexplained(evidence: Evidence) -> float:
    """The share of the items that is not explained: the rate with the greatest likelihood, by bisection."""
    greater = torch.maximum(evidence.background, evidence.explained)
    b, e = evidence.background / greater, evidence.explained / greater
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        slope = ((b - e) / (middle * b + (1 - middle) * e)).sum()
        low, high = (middle, high) if slope > 0 else (low, middle)
    return (low + high) / 2


def learn_rates(augmentation: Augmentation, witnesses: Witnesses, start: Pair, prior: Pair) -> None:
    """Give every learned drop rate its posterior under the evidence of the graph.

    Masks of connections and of positive pairs have the evidence for edges, masks of attributes that for attributes.
    Without evidence, because the graph has no edges or no attributes, a rate keeps its prior.
    """
    found: dict[Kind, tuple[Evidence, Evidence] | None] = {}
    fitted: dict[tuple[Kind, int], Pair] = {}
    for mask in augmentation.masks:
        kind = evidence_of(mask)
        if mask.rate is not None or kind in found:
            continue
        both = found[kind] = witnesses.of_edges() if kind == "edges" else witnesses.of_attributes()
        if both is None:
            continue
        shares = []
        for i, evidence in enumerate(both):
            evidence, share = bounded(evidence)
            shares.append(share)
            fitted[kind, i] = fit_kumaraswamy(evidence, start, prior)
        if min(shares) > MOST:
            log.warning(
                "The %s of this graph look random: neither alike nodes nor neighbors explain them (shares that are not "
                "explained: %.2f and %.2f). Drop rates stay at %g. Check that %s belong to the right nodes.",
                kind, *shares, MOST, kind,
            )  # fmt: skip
    for i, view in enumerate(VIEWS):
        for mask, rate in augmentation.of(view):
            if rate.learned and (evidence_of(mask), i) in fitted:
                rate.set_posterior(*fitted[evidence_of(mask), i])


def evidence_of(mask: Mask) -> Kind:
    """What explains what a mask drops."""
    return "edges" if mask.on in ("connections", "positives") else "attributes"
