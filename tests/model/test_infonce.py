"""The tiled loss against the paper's formula as loops, and the weight decay by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import Augmentation
from bgcl.model.network import Network
from bgcl.model.objectives.infonce import contrastive_loss
from bgcl.model.weight_decay import weight_decay
from bgcl.settings import make_settings
from small import random_encoder, random_graph, seeded

BUDGETS = [0, 100, 1000, 1 << 30]


def paper_loss(o: np.ndarray, t: np.ndarray, tau: float) -> float:
    """Equation (1) of the paper, term by term."""

    def g(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.sqrt(x @ x) / np.sqrt(y @ y))

    def ell(x: np.ndarray, y: np.ndarray, i: int) -> float:
        positive = math.exp(g(x[i], y[i]) / tau)
        B_1 = sum(math.exp(g(x[i], y[k]) / tau) for k in range(len(x)) if k != i)
        B_2 = sum(math.exp(g(x[i], x[k]) / tau) for k in range(len(x)) if k != i)
        return math.log(positive / (positive + B_1 + B_2))

    return -sum(ell(o, t, i) + ell(t, o, i) for i in range(len(o))) / (2 * len(o))


def dense_loss(o: Tensor, t: Tensor, tau: float) -> Tensor:
    """The same loss from dense matrices, which autograd can differentiate."""
    x, y = o / o.norm(dim=1, keepdim=True), t / t.norm(dim=1, keepdim=True)
    between, within_o, within_t = (x @ y.t() / tau).exp(), (x @ x.t() / tau).exp(), (y @ y.t() / tau).exp()
    itself = torch.eye(len(o), dtype=torch.bool)
    D_o = between.sum(1) + within_o.masked_fill(itself, 0).sum(1)
    D_t = between.sum(0) + within_t.masked_fill(itself, 0).sum(1)
    positive = between.diagonal()
    return -((positive / D_o).log() + (positive / D_t).log()).mean() / 2


def two_views(nodes: int, width: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    o, t = torch.randn(2, nodes, width, dtype=torch.float64, generator=seeded(seed))
    return o.requires_grad_(), t.requires_grad_()


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 40),
    tile=st.integers(1, 50),
    tau=st.sampled_from([0.05, 0.4, 1.0, 7.0]),
    budget=st.sampled_from(BUDGETS),
    seed=st.integers(0, 99),
)
def test_tiled_loss_equals_the_papers_for_any_tile_size(
    nodes: int, tile: int, tau: float, budget: int, seed: int
) -> None:
    o, t = two_views(nodes, seed=seed)
    tiled = contrastive_loss(o, t, tau, tile=tile, budget=budget)
    expected = paper_loss(o.detach().numpy(), t.detach().numpy(), tau)
    assert tiled.item() == pytest.approx(expected, rel=1e-10, abs=1e-12)
    tiled.backward()
    grads = o.grad, t.grad
    o.grad = t.grad = None
    dense_loss(o, t, tau).backward()
    torch.testing.assert_close(grads[0], o.grad, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(grads[1], t.grad, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("budget", [0, 100, 1 << 30])
@pytest.mark.parametrize(("nodes", "tile"), [(1, 1), (6, 1), (6, 3), (7, 4), (7, 50)])
def test_tiled_loss_has_the_right_gradient(nodes: int, tile: int, budget: int) -> None:
    views = two_views(nodes)
    assert torch.autograd.gradcheck(lambda o, t: contrastive_loss(o, t, 0.4, tile=tile, budget=budget), views)


def test_one_view_can_have_a_gradient_without_the_other() -> None:
    o, t = two_views(7)
    assert torch.autograd.gradcheck(lambda o: contrastive_loss(o, t.detach(), 0.4, tile=3), (o,))
    assert torch.autograd.gradcheck(lambda t: contrastive_loss(o.detach(), t, 0.4, tile=3), (t,))


def test_a_second_backward_pass_gives_the_same_gradient() -> None:
    o, t = two_views(9)
    loss = contrastive_loss(o, t, 0.4, tile=4)
    (first,) = torch.autograd.grad(loss, o, retain_graph=True)
    (second,) = torch.autograd.grad(loss, o)
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("budget", [0, 71, 72, 300, 1 << 30])
def test_no_more_tiles_are_kept_than_the_budget_allows(budget: int) -> None:
    x, y = two_views(9)  # tiles of 3 x 3 doubles: 72 bytes, 9 between the views and 6 within each
    kept = contrastive_loss(x, y, 0.4, tile=3, budget=budget).grad_fn.kept
    assert len(kept) == min(budget // 72, 21)


def test_the_loss_has_no_gradient_if_the_views_have_none() -> None:
    o, t = (view.detach() for view in two_views(9))
    assert not contrastive_loss(o, t, 0.4).requires_grad


def test_loss_is_symmetric_in_the_views() -> None:
    o, t = two_views(11)
    torch.testing.assert_close(contrastive_loss(o, t, 0.3, tile=4), contrastive_loss(t, o, 0.3, tile=4))


def test_loss_depends_only_on_directions() -> None:
    o, t = two_views(11)
    scale = torch.rand(2, 11, 1, dtype=torch.float64, generator=seeded(1)) * 50 + 0.01
    torch.testing.assert_close(contrastive_loss(o, t, 0.3, tile=4), contrastive_loss(o * scale[0], t * scale[1], 0.3))


def test_loss_is_the_same_for_any_numbering_of_the_nodes() -> None:
    o, t = two_views(11)
    order = torch.randperm(11, generator=seeded(0))
    torch.testing.assert_close(contrastive_loss(o, t, 0.3, tile=4), contrastive_loss(o[order], t[order], 0.3, tile=4))


@pytest.mark.parametrize("tau", [0.02, 0.4])
def test_loss_and_gradient_are_finite_in_float32_for_collapsed_and_empty_rows(tau: float) -> None:
    for rows in (torch.ones(50, 4), torch.zeros(50, 4)):
        o, t = rows.clone().requires_grad_(), rows.clone().requires_grad_()
        loss = contrastive_loss(o, t, tau, tile=20)
        loss.backward()
        # All similarities are equal, so each D is 2N - 1 times the positive.
        assert loss.item() == pytest.approx(math.log(99), rel=1e-5)
        assert torch.isfinite(o.grad).all()


def test_the_networks_loss_is_the_papers_loss_of_its_projections() -> None:
    network = Network(5, make_settings(widths=(6, 4), tau=0.7)).double()
    network.reset_parameters(seeded(0))
    o, t = two_views(8, 4)
    expected = paper_loss(network.head(o).detach().numpy(), network.head(t).detach().numpy(), 0.7)
    assert network.loss(o, t).item() == pytest.approx(expected)


# Weight decay


def squares(encoder: torch.nn.Module) -> list[float]:
    return [float((layer.weight.detach().double().numpy() ** 2).sum()) for layer in encoder.layers]


def test_weight_decay_with_fixed_rates_is_the_sum_of_squares() -> None:
    encoder = random_encoder((5, 4, 3))
    masks = [parse_mask("connections in 3 blocks at 0.3"), parse_mask("features at 0.9")]
    assert weight_decay(encoder, Augmentation(masks, 2)).item() == pytest.approx(sum(squares(encoder)))


def test_weight_decay_with_learned_rates_weighs_each_layer_by_the_kept_share() -> None:
    encoder = random_encoder((5, 4, 3))
    # E[pi] of Kumaraswamy(a, 1) is a / (a + 1).
    augmentation = Augmentation([parse_mask("connections")], 2, start=(3.0, 1.0))
    assert weight_decay(encoder, augmentation).item() == pytest.approx(0.25 * sum(squares(encoder)))


def test_weight_decay_takes_the_product_over_masks_and_the_mean_over_views_and_blocks() -> None:
    encoder = random_encoder((5, 4, 3))
    masks = [parse_mask(s) for s in ("connections in 2 blocks per block", "features", "edges at 0.2/0.4")]
    augmentation = Augmentation(masks, 2)
    mean = {
        "o": (np.array([[0.1, 0.3], [0.5, 0.6]]), 0.25),
        "t": (np.array([[0.2, 0.4], [0.7, 0.3]]), 0.75),
    }
    with torch.no_grad():
        for view, (connections, features) in mean.items():
            of_view = augmentation.of(view)
            of_view[0][1].log_a.copy_(torch.as_tensor(np.log(connections / (1 - connections))))
            of_view[1][1].log_a.fill_(math.log(features / (1 - features)))
    first, second = squares(encoder)
    kept_first = ((1 - 0.2) * (1 - 0.25) * (1 - 0.2) + (1 - 0.3) * (1 - 0.75) * (1 - 0.4)) / 2
    kept_second = ((1 - 0.55) * (1 - 0.2) + (1 - 0.5) * (1 - 0.4)) / 2  # features are masked only in layer 1
    expected = kept_first * first + kept_second * second
    assert weight_decay(encoder, augmentation).item() == pytest.approx(expected, rel=1e-5)


def test_weight_decay_has_a_gradient_for_the_weights_and_none_for_the_rates() -> None:
    network = Network(5, make_settings(drop="connections", widths=(4,), weight_decay=0.5))
    network.reset_parameters(seeded(0))
    network.weight_decay().backward()
    # E[pi] = 1/2 at the start, so the gradient of 0.5 * 0.5 |W|^2 is 0.5 W.
    torch.testing.assert_close(network.encoder.layers[0].weight.grad, 0.5 * network.encoder.layers[0].weight.detach())
    assert all(rate.grad is None for rate in network.augmentation.parameters())


def test_the_networks_kl_is_multiplied_by_kl_weight() -> None:
    network = Network(5, make_settings(drop="connections", widths=(4, 3), rate_start=(2.0, 1.0), kl_weight=0.1))
    assert network.kl().item() == pytest.approx(0.1 * 2 * (math.log(2) - 0.5), rel=1e-5)


def test_a_network_that_drops_nothing_has_equal_views() -> None:
    network = Network(5, make_settings(drop="connections at 0", widths=(6, 4)))
    network.reset_parameters(seeded(0))
    o, t = network.views(random_graph(8, double=False), seeded(1))
    torch.testing.assert_close(o, t)
