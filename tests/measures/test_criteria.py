"""Criteria without labels, each against a plain way to the same number."""

import math

import numpy as np
import pytest
import torch

from bgcl.measures.criteria import agreement, edge_likelihood, effective_rank


@pytest.fixture
def vectors() -> torch.Tensor:
    return torch.randn(12, 5, generator=torch.Generator().manual_seed(0))


def test_the_effective_rank_is_the_entropy_of_the_singular_values(vectors: torch.Tensor) -> None:
    values = np.linalg.svd(vectors.numpy(), compute_uv=False)
    share = values / values.sum()
    assert effective_rank(vectors) == pytest.approx(math.exp(-sum(p * math.log(p) for p in share)), rel=1e-4)


@pytest.mark.parametrize("scale", [0.1, 7.0])
def test_the_effective_rank_does_not_depend_on_scale_and_rotation(vectors: torch.Tensor, scale: float) -> None:
    turn = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(1))).Q
    assert effective_rank(scale * vectors @ turn) == pytest.approx(effective_rank(vectors), rel=1e-4)


@pytest.mark.parametrize("draws", [1, 3])
def test_the_likelihood_of_edges_equals_a_plain_loop(draws: int) -> None:
    generator, tau = torch.Generator().manual_seed(2), 0.3
    every = [torch.randn(9, 4, generator=generator) for _ in range(draws)]
    edges, among = torch.tensor([[0, 3, 5], [1, 8, 2]]), torch.tensor([1, 2, 4, 7])
    plain = []
    for i, j in edges.T.tolist():
        picked = []
        for draw in every:
            unit = (draw / draw.norm(dim=1, keepdim=True)).double()
            others = [k for k in among.tolist() if k not in (i, j)]
            total = sum(math.exp(unit[i] @ unit[k] / tau) for k in [j, *others])
            picked.append(math.exp(unit[i] @ unit[j] / tau) / total)
        plain.append(math.log(sum(picked) / draws))
    assert edge_likelihood(every, edges, among, tau) == pytest.approx(sum(plain) / len(plain), rel=1e-5)


def test_the_likelihood_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch, vectors: torch.Tensor) -> None:
    edges, among = torch.tensor([[0, 3, 5, 7], [1, 8, 2, 4]]), torch.arange(12)
    whole = edge_likelihood([vectors], edges, among, 0.2)
    monkeypatch.setattr("bgcl.measures.criteria._ROWS", 3)
    assert edge_likelihood([vectors], edges, among, 0.2) == pytest.approx(whole, rel=1e-6)


def test_agreement_equals_a_plain_loop(vectors: torch.Tensor) -> None:
    other = torch.randn(12, 5, generator=torch.Generator().manual_seed(3))
    x, y = (v / v.norm(dim=1, keepdim=True) for v in (vectors, other))
    same = sum(float(x[i] @ y[i]) for i in range(12)) / 12
    different = sum(float(x[i] @ y[j]) for i in range(12) for j in range(12) if i != j) / (12 * 11)
    assert agreement(vectors, other) == pytest.approx((same - different) / (1 - different), rel=1e-4)
    assert agreement(vectors, 3 * vectors) == pytest.approx(1, abs=1e-5)
