"""The tiled loss against the paper's formula as loops, neighbors as positives, and what the augmentation maximizes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Positives
from bgcl.graph.sparse import Pattern
from bgcl.model.network import Network
from bgcl.model.objectives.base import Outcome, Step
from bgcl.model.objectives.infonce import InfoNCE, contrastive_log_likelihood, contrastive_loss
from bgcl.settings import make_settings
from small import random_graph, seeded

BUDGETS = [0, 100, 1000, 1 << 30]
NEGATIVES = ["both views", "other view"]


def paper_loss(o: np.ndarray, t: np.ndarray, tau: float, negatives: str = "both views") -> float:
    """Equation (1) of the paper, term by term. Negatives of the other view alone leave out `B_2`."""

    def g(x: np.ndarray, y: np.ndarray) -> float:
        return float(x @ y / np.sqrt(x @ x) / np.sqrt(y @ y))

    def ell(x: np.ndarray, y: np.ndarray, i: int) -> float:
        positive = math.exp(g(x[i], y[i]) / tau)
        B_1 = sum(math.exp(g(x[i], y[k]) / tau) for k in range(len(x)) if k != i)
        B_2 = sum(math.exp(g(x[i], x[k]) / tau) for k in range(len(x)) if k != i)
        return math.log(positive / (positive + B_1 + (B_2 if negatives == "both views" else 0)))

    return -sum(ell(o, t, i) + ell(t, o, i) for i in range(len(o))) / (2 * len(o))


def dense_loss(o: Tensor, t: Tensor, tau: float, negatives: str = "both views") -> Tensor:
    """The same loss from dense matrices, which autograd can differentiate."""
    x, y = o / o.norm(dim=1, keepdim=True), t / t.norm(dim=1, keepdim=True)
    between, within_o, within_t = (x @ y.t() / tau).exp(), (x @ x.t() / tau).exp(), (y @ y.t() / tau).exp()
    itself = torch.eye(len(o), dtype=torch.bool)
    D_o, D_t = between.sum(1), between.sum(0)
    if negatives == "both views":
        D_o = D_o + within_o.masked_fill(itself, 0).sum(1)
        D_t = D_t + within_t.masked_fill(itself, 0).sum(1)
    positive = between.diagonal()
    return -((positive / D_o).log() + (positive / D_t).log()).mean() / 2


def two_views(nodes: int, width: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    o, t = torch.randn(2, nodes, width, dtype=torch.float64, generator=seeded(seed))
    return o.requires_grad_(), t.requires_grad_()


class Given(Step):
    """A step whose vectors and positives are given."""

    def __init__(self, o: Tensor, t: Tensor, positives: dict[str, Positives] | None = None, most: int | None = None):
        self.vectors, self.positives, self.generator, self.most = {"o": o, "t": t}, positives or {}, seeded(0), most
        self.draw_positives = self.positives.get
        self.graph = random_graph(2)  # all its nodes are in the loss

    def encode(self, view: str, **options: object) -> Tensor:
        return self.vectors[view]


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 40),
    tile=st.integers(1, 50),
    tau=st.sampled_from([0.05, 0.4, 1.0, 7.0]),
    budget=st.sampled_from(BUDGETS),
    negatives=st.sampled_from(NEGATIVES),
    seed=st.integers(0, 99),
)
def test_tiled_loss_equals_the_papers_for_any_tile_size(
    nodes: int, tile: int, tau: float, budget: int, negatives: str, seed: int
) -> None:
    o, t = two_views(nodes, seed=seed)
    tiled = contrastive_loss(o, t, tau, negatives, tile=tile, budget=budget)
    expected = paper_loss(o.detach().numpy(), t.detach().numpy(), tau, negatives)
    assert tiled.item() == pytest.approx(expected, rel=1e-10, abs=1e-12)
    tiled.backward()
    grads = o.grad, t.grad
    o.grad = t.grad = None
    dense_loss(o, t, tau, negatives).backward()
    torch.testing.assert_close(grads[0], o.grad, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(grads[1], t.grad, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("negatives", NEGATIVES)
@pytest.mark.parametrize("budget", [0, 100, 1 << 30])
@pytest.mark.parametrize(("nodes", "tile"), [(1, 1), (6, 1), (6, 3), (7, 4), (7, 50)])
def test_tiled_loss_has_the_right_gradient(nodes: int, tile: int, budget: int, negatives: str) -> None:
    def loss(o: Tensor, t: Tensor) -> Tensor:
        return contrastive_loss(o, t, 0.4, negatives, tile=tile, budget=budget)

    assert torch.autograd.gradcheck(loss, two_views(nodes))


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
    network = Network(5, make_settings(encoder="gcn", widths=(6, 4), tau=0.7)).double()
    network.reset_parameters(seeded(0))
    graph, head = random_graph(8), network.objective.head
    found = network.outcome(graph, seeded(1))
    generator = seeded(1)
    o, t = (network.encode(view, graph, NoiseStream(generator)) for view in ("o", "t"))
    assert not torch.equal(o, t)
    expected = paper_loss(head(o).detach().numpy(), head(t).detach().numpy(), 0.7)
    assert found.loss.item() == pytest.approx(expected)
    assert found.nodes == 8
    assert torch.equal(found.embeddings, o)
    assert found.shared.item() == pytest.approx((math.log(15) - expected) * 0.7)


def test_without_a_projection_head_the_loss_is_that_of_the_vectors_themselves() -> None:
    o, t = two_views(8, 4)
    objective = InfoNCE(4, tau=0.7, projection=False)
    assert list(objective.parameters()) == []
    expected = paper_loss(o.detach().numpy(), t.detach().numpy(), 0.7)
    assert objective(Given(o, t)).loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_the_log_likelihood_of_the_nodes_has_the_loss_as_its_mean(negatives: str) -> None:
    o, t = two_views(9, 4)
    objective = InfoNCE(4, tau=0.3, negatives=negatives).double()
    objective.reset_parameters(seeded(0))
    found = objective.log_likelihood(o, t)
    assert found.shape == (9,)
    assert -found.mean().item() == pytest.approx(objective(Given(o, t)).loss.item())
    torch.testing.assert_close(found, contrastive_log_likelihood(objective.head(o), objective.head(t), 0.3, negatives))


# Neighbors as positives


def random_weights(nodes: int, seed: int = 0) -> np.ndarray:
    """Weights of the positives of each node, itself among them, `(N, N)`: some are 0, and rows sum to 1."""
    random = np.random.default_rng(seed)
    weights = random.random((nodes, nodes)) * (random.random((nodes, nodes)) < 0.4) + np.eye(nodes)
    return weights / weights.sum(1, keepdims=True)


def as_positives(weights: np.ndarray) -> Positives:
    row, column = np.nonzero(weights)
    pointer = torch.as_tensor(np.searchsorted(row, np.arange(len(weights) + 1)))
    return Positives(Pattern(pointer, torch.as_tensor(column), len(weights)), torch.as_tensor(weights[row, column]))


def loop_loss(
    o: np.ndarray, t: np.ndarray, tau: float, of_o: np.ndarray, of_t: np.ndarray, nodes: list[int] | None = None,
    negatives: str = "both views",
) -> float:  # fmt: skip
    """The loss with positives, node by node and positive by positive. Only some `nodes` may be in the loss."""
    x, y = (view / np.maximum(np.sqrt((view**2).sum(1, keepdims=True)), 1e-12) for view in (o, t))
    nodes = list(range(len(x))) if nodes is None else nodes
    total = 0.0
    for first, second, weights in ((x, y, of_o), (y, x, of_t)):
        for i in nodes:
            D = 0.0
            for k in nodes:
                D += math.exp(first[i] @ second[k] / tau)
                if k != i and negatives == "both views":
                    D += math.exp(first[i] @ first[k] / tau)
            similarity = 0.0
            for j in range(len(x)):
                similarity += weights[i, j] * float(first[i] @ second[j]) / tau
            total += math.log(D) - similarity
    return total / (2 * len(nodes))


@settings(max_examples=25, deadline=None)
@given(
    nodes=st.integers(1, 12), tau=st.sampled_from([0.15, 0.4, 2.0]), negatives=st.sampled_from(NEGATIVES),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_the_loss_with_positives_is_the_loop_over_nodes_and_their_positives(
    nodes: int, tau: float, negatives: str, seed: int
) -> None:
    o, t = two_views(nodes, 4, seed)
    weights = random_weights(nodes, seed), random_weights(nodes, seed + 100)
    positives = {view: as_positives(each) for view, each in zip("ot", weights, strict=True)}
    found = InfoNCE(4, tau=tau, projection=False, negatives=negatives)(Given(o, t, positives))
    expected = loop_loss(o.detach().numpy(), t.detach().numpy(), tau, *weights, negatives=negatives)
    assert found.loss.item() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert found.nodes == nodes
    terms = 2 * nodes - 1 if negatives == "both views" else nodes
    assert found.shared.item() == pytest.approx((math.log(terms) - expected) * tau, abs=1e-9)


def test_the_loss_with_positives_is_that_of_projected_vectors() -> None:
    o, t = two_views(7, 4)
    objective = InfoNCE(4, tau=0.4).double()
    objective.reset_parameters(seeded(0))
    weights = random_weights(7), random_weights(7, 1)
    found = objective(Given(o, t, {"o": as_positives(weights[0]), "t": as_positives(weights[1])}))
    projected = (objective.head(view).detach().numpy() for view in (o, t))
    assert found.loss.item() == pytest.approx(loop_loss(*projected, 0.4, *weights))


def test_the_loss_of_some_nodes_has_their_positives_among_all_nodes() -> None:
    o, t = two_views(8, 4)
    weights = random_weights(8), random_weights(8, 1)
    positives = {"o": as_positives(weights[0]), "t": as_positives(weights[1])}
    found = InfoNCE(4, tau=0.4, projection=False)(Given(o, t, positives, most=5))
    chosen = torch.randperm(8, generator=seeded(0))[:5].tolist()
    expected = loop_loss(o.detach().numpy(), t.detach().numpy(), 0.4, *weights, chosen)
    assert found.loss.item() == pytest.approx(expected)
    assert found.nodes == 5
    assert found.embeddings is o


def test_the_loss_with_positives_has_the_right_gradient() -> None:
    o, t = two_views(6, 4)
    patterns = [as_positives(random_weights(6, seed)) for seed in (0, 1)]
    values = [each.weights.clone().requires_grad_() for each in patterns]
    objective = InfoNCE(4, tau=0.4, projection=False)

    def compute(o: Tensor, t: Tensor, first: Tensor, second: Tensor) -> Tensor:
        positives = {"o": Positives(patterns[0].pattern, first), "t": Positives(patterns[1].pattern, second)}
        return objective(Given(o, t, positives)).loss

    assert torch.autograd.gradcheck(compute, (o, t, *values))


@pytest.mark.parametrize("sparse", [False, True])
def test_without_kept_neighbors_the_loss_is_that_without_neighbors(sparse: bool) -> None:
    graph, found = random_graph(9, 5, sparse=sparse, double=False), []
    for drop in (["entries at 0.4", "neighbors at 1"], ["entries at 0.4"], ["entries at 0.4", "neighbors at 0.2"]):
        network = Network(5, make_settings(drop=drop, widths=(6, 4)))
        network.reset_parameters(seeded(0))
        found.append(network.outcome(graph, seeded(1)).loss.item())
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert found[2] != pytest.approx(found[1], rel=1e-3)


def test_the_networks_positives_are_the_kept_neighbors() -> None:
    graph = random_graph(9, 5, double=False)
    network = Network(5, make_settings(drop=["entries at 0.4", "neighbors at 0.5"], widths=(6, 4), members=1))
    network.reset_parameters(seeded(0))
    generator = seeded(1)
    o, t = (network.encode(view, graph, NoiseStream(generator)).detach().numpy() for view in ("o", "t"))
    weights = []
    for _ in range(2):
        noise = torch.rand(len(graph.connections), 1, generator=generator)[:, 0]
        kept = np.zeros((9, 9))
        kept[graph.connections.row, graph.connections.column] = noise > 0.5
        np.fill_diagonal(kept, 1)
        weights.append(kept / kept.sum(1, keepdims=True))
    found = network.outcome(graph, seeded(1)).loss.item()
    expected = loop_loss(o, t, network.settings.tau, *weights, negatives="other view")  # the default
    assert found == pytest.approx(expected, rel=1e-6)


# What the augmentation maximizes: the loss, up to a ceiling that `shared_information` sets


def gain(loss: Tensor, nodes: int, share: float) -> Tensor:
    outcome = Outcome(loss, torch.zeros(()), torch.zeros(nodes, 2), nodes)
    return InfoNCE(2, tau=0.4).adversary(outcome, share)


def test_the_loss_of_views_that_share_no_information_is_log_2n_minus_1() -> None:
    same = torch.ones(7, 3, dtype=torch.float64)  # all nodes are equal
    assert float(contrastive_loss(same, same, 0.4)) == pytest.approx(math.log(13), rel=1e-12)


def test_the_information_of_views_is_at_most_about_one_over_tau() -> None:
    nodes, tau = 50, 0.2
    apart = torch.eye(nodes, dtype=torch.float64)  # both views are equal, and all nodes are orthogonal
    loss = float(contrastive_loss(apart, apart, tau))
    assert loss == pytest.approx(math.log(math.exp(1 / tau) + 2 * nodes - 2) - 1 / tau, rel=1e-9)
    assert math.log(2 * nodes - 1) - loss < 1 / tau


@given(st.floats(0.01, 0.99), st.floats(0.0, 12.0), st.integers(2, 10_000))
def test_the_gain_is_the_loss_up_to_the_ceiling_and_its_mirror_image_beyond(
    share: float, loss: float, nodes: int
) -> None:
    ceiling = math.log(2 * nodes - 1) - share / 0.4
    found = float(gain(torch.tensor(loss, dtype=torch.float64), nodes, share))
    assert found == pytest.approx(loss if loss <= ceiling else 2 * ceiling - loss, abs=1e-9)
    assert found <= ceiling + 1e-9


def test_shared_information_of_zero_is_the_papers_objective() -> None:
    loss = torch.tensor(8.3)
    assert gain(loss, 100, 0.0) is loss


@pytest.mark.parametrize(("loss", "slope"), [(1.0, 1.0), (5.0, -1.0)])
def test_the_gain_rises_below_the_ceiling_and_falls_above_it(loss: float, slope: float) -> None:
    value = torch.tensor(loss, requires_grad=True)
    gain(value, 20, 0.5).backward()
    assert float(value.grad) == slope
