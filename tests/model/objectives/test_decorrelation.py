"""The loss of CCA-SSG against plain loops and closed forms, and columns without spread."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Augmentation
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.objectives.base import Outcome, Step
from bgcl.model.objectives.decorrelation import Decorrelation, decorrelation_loss, standardize
from small import random_graph, seeded


class Given(Step):
    """A step whose vectors are given."""

    def __init__(self, o: Tensor, t: Tensor, most: int | None = None) -> None:
        self.vectors, self.generator, self.most = {"o": o, "t": t}, seeded(0), most
        self.graph = random_graph(2)  # all its nodes are in the loss

    def encode(self, view: str, **options: object) -> Tensor:
        return self.vectors[view]


def two_views(nodes: int, width: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    o, t = torch.randn(2, nodes, width, dtype=torch.float64, generator=seeded(seed))
    return o, o + t


def outcome_of(o: Tensor, t: Tensor, weight: float = 1e-3) -> Outcome:
    return Decorrelation(o.shape[1], weight=weight)(Given(o, t))


def loop_standardize(x: np.ndarray) -> np.ndarray:
    result = np.zeros_like(x)
    for k in range(x.shape[1]):
        mean = sum(x[:, k]) / len(x)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in x[:, k]) / len(x))
        for n in range(len(x)):
            result[n, k] = (x[n, k] - mean) / deviation
    return result


def loop_loss(o: np.ndarray, t: np.ndarray, weight: float) -> float:
    """The loss, node by node and pair of columns by pair of columns."""
    u, v = loop_standardize(o), loop_standardize(t)
    nodes, width = u.shape
    loss = sum((u[n, k] - v[n, k]) ** 2 for n in range(nodes) for k in range(width)) / nodes
    for view in (u, v):
        for k in range(width):
            for m in range(width):
                covariance = sum(view[n, k] * view[n, m] for n in range(nodes)) / nodes
                loss += weight * (covariance - (k == m)) ** 2
    return float(loss)


def hadamard(nodes: int) -> Tensor:
    """A matrix of +1 and -1 with orthogonal columns, the first of them constant."""
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < nodes:
        matrix = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), matrix)
    return matrix


@settings(max_examples=25, deadline=None)
@given(
    nodes=st.integers(2, 9), width=st.integers(1, 5), weight=st.sampled_from([0, 1e-3, 2.0]), seed=st.integers(0, 99)
)
def test_loss_is_the_loop_over_nodes_and_pairs_of_columns(nodes: int, width: int, weight: float, seed: int) -> None:
    o, t = two_views(nodes, width, seed)
    found = outcome_of(o, t, weight)
    assert found.loss.item() == pytest.approx(loop_loss(o.numpy(), t.numpy(), weight), rel=1e-9, abs=1e-9)
    correlations = [np.corrcoef(o[:, k], t[:, k])[0, 1] for k in range(width)]
    assert found.shared.item() == pytest.approx(np.mean(correlations), abs=1e-9)
    assert found.embeddings is o


def test_loss_is_twice_that_of_the_authors_code_and_a_constant() -> None:
    o, t = two_views(4000, 3)
    z1, z2 = (o - o.mean(0)) / o.std(0), (t - t.mean(0)) / t.std(0)
    identity = torch.eye(3, dtype=torch.float64)
    penalty = sum((identity - z.t() @ z / 4000).square().sum() for z in (z1, z2))
    theirs = -(z1.t() @ z2 / 4000).diagonal().sum() + 0.05 * penalty
    assert outcome_of(o, t, 0.1).loss.item() == pytest.approx(2 * 3 + 2 * theirs.item(), abs=1e-2)
    assert outcome_of(o, t, 0.1).loss.item() != pytest.approx(2 * theirs.item(), abs=1)


def test_equal_views_share_everything_and_only_pay_for_correlated_columns() -> None:
    o, _ = two_views(30, 4)
    found = outcome_of(o, o, 0.0)
    assert found.loss.item() == pytest.approx(0, abs=1e-12)  # a difference of sums, which rounding leaves
    assert found.shared.item() == pytest.approx(1)
    correlation = np.corrcoef(o.numpy().T)
    expected = 2 * 0.7 * np.square(correlation - np.eye(4)).sum()
    assert outcome_of(o, o, 0.7).loss.item() == pytest.approx(expected)


def test_equal_views_with_orthogonal_columns_have_a_loss_of_zero() -> None:
    o = 3 * hadamard(8)[:, 1:5] + 7
    assert outcome_of(o, o, 5.0).loss.item() == pytest.approx(0, abs=1e-20)


def test_opposite_views_have_a_shared_information_of_minus_one_and_unrelated_ones_of_zero() -> None:
    columns = hadamard(8)
    assert outcome_of(columns[:, 1:4], -columns[:, 1:4]).shared.item() == pytest.approx(-1)
    unrelated = outcome_of(columns[:, 1:4], columns[:, 4:7])
    assert unrelated.shared.item() == pytest.approx(0, abs=1e-12)
    assert unrelated.loss.item() == pytest.approx(2 * 3)


def test_loss_ignores_the_order_of_nodes_and_the_place_and_size_of_columns() -> None:
    o, t = two_views(20, 4)
    expected = outcome_of(o, t, 0.3)
    order = torch.randperm(20, generator=seeded(1))
    scale = torch.tensor([1e-4, 0.5, 3.0, 1e5], dtype=torch.float64)
    for changed in (outcome_of(o[order], t[order], 0.3), outcome_of(o * scale + 5 * scale, t / scale - 2 / scale, 0.3)):
        torch.testing.assert_close(changed.loss, expected.loss)
        torch.testing.assert_close(changed.shared, expected.shared)
    # All columns may also swap places, the same in both views.
    torch.testing.assert_close(outcome_of(o.flip(1), t.flip(1), 0.3).loss, expected.loss)
    assert abs(outcome_of(o[order], t, 0.3).loss.item() - expected.loss.item()) > 0.1


@pytest.mark.parametrize("tile", [1, 3, 7, 50])
def test_tiles_change_neither_the_loss_nor_its_gradient(tile: int) -> None:
    views = [view.requires_grad_() for view in two_views(7, 3)]
    expected = decorrelation_loss(*views, 0.5)
    for found, whole in zip(decorrelation_loss(*views, 0.5, tile=tile), expected, strict=True):
        torch.testing.assert_close(found, whole)
    assert torch.autograd.gradcheck(lambda o, t: decorrelation_loss(o, t, 0.5, tile=tile), views)


def test_gradients_agree_with_finite_differences() -> None:
    o, t = two_views(7, 3)
    o.requires_grad_(), t.requires_grad_()
    assert torch.autograd.gradcheck(lambda o, t: outcome_of(o, t, 0.5).loss, (o, t))
    assert torch.autograd.gradcheck(lambda o, t: outcome_of(o, t, 0.5).shared, (o, t))
    assert torch.autograd.gradcheck(lambda o, t: Decorrelation(3).log_likelihood(o, t), (o, t))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e-30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_column_without_spread_becomes_zero_and_has_finite_gradients(value: float, dtype: torch.dtype) -> None:
    o, t = (view.to(dtype) for view in two_views(1000, 3))
    o[:, 1] = value
    t[:, 1:] = value
    o.requires_grad_(), t.requires_grad_()
    assert standardize(o)[:, 1].abs().max() == 0
    found = outcome_of(o, t, 0.5)
    found.loss.backward()
    assert torch.isfinite(found.loss)
    assert all(torch.isfinite(view.grad).all() for view in (o, t))
    # Column 0 correlates, column 1 is flat in both views and column 2 in one: 0 + 1 for the invariance.
    correlation = np.corrcoef(o[:, 0].detach(), t[:, 0].detach())[0, 1]
    assert found.shared.item() == pytest.approx(correlation / 3, abs=1e-5)
    within = np.corrcoef(o[:, 0].detach(), o[:, 2].detach())[0, 1]
    expected = 2 - 2 * correlation + 1 + 0.5 * (2 * within**2 + 1 + 2)
    assert found.loss.item() == pytest.approx(expected, abs=1e-4)


def test_a_single_node_and_equal_nodes_have_finite_gradients() -> None:
    for nodes in (1, 5):
        o = torch.ones(nodes, 3, requires_grad=True)
        found = outcome_of(o, o, 0.5)
        found.loss.backward()
        assert found.loss.item() == pytest.approx(2 * 0.5 * 3)
        assert found.shared.item() == 0
        assert torch.isfinite(o.grad).all()


def test_a_value_that_is_not_a_number_is_not_hidden() -> None:
    o, t = two_views(5, 3)
    o[2, 1] = torch.nan
    assert outcome_of(o, t).loss.isnan()


def test_the_penalty_of_uncorrelated_columns_in_a_batch_is_the_one_that_the_documentation_says() -> None:
    nodes, width = 12, 4
    penalties = []
    for seed in range(400):
        o = torch.randn(nodes, width, generator=seeded(seed))
        penalties.append(outcome_of(o, o, 0.5).loss.item())
    error = np.std(penalties) / math.sqrt(len(penalties))
    assert abs(np.mean(penalties) - width * (width - 1) / (nodes - 1)) < 4 * error


def test_log_likelihood_sums_to_the_invariance() -> None:
    o, t = two_views(11, 3)
    found = Decorrelation(3).log_likelihood(o, t)
    u, v = loop_standardize(o.numpy()), loop_standardize(t.numpy())
    np.testing.assert_allclose(found, [-sum((u[n] - v[n]) ** 2) / 2 for n in range(11)])
    torch.testing.assert_close(-2 * found.mean(), outcome_of(o, t, 0.0).loss)


def test_a_part_of_the_nodes_has_the_loss_of_those_nodes() -> None:
    o, t = two_views(50, 3)
    found = Decorrelation(3)(Given(o, t, most=10))
    chosen = torch.randperm(50, generator=seeded(0))[:10]
    torch.testing.assert_close(found.loss, decorrelation_loss(o[chosen], t[chosen], 1e-3)[0])
    assert found.embeddings.shape == (50, 3)
    assert found.nodes == 10


def test_it_has_no_parameters_and_no_state() -> None:
    assert list(Decorrelation(4).parameters()) == []
    assert Decorrelation(4).state_dict() == {}


def test_training_lowers_the_loss() -> None:
    graph, encoder, generator = random_graph(40, 12, double=False), GCNEncoder((12, 8, 6)), seeded(0)
    encoder.reset_parameters(generator)
    objective = Decorrelation(6, weight=0.05)
    augmentation = Augmentation([parse_mask("connections at 0.3")], 2)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)

    def step(generator: torch.Generator) -> Step:
        def draw(view: str) -> list:
            return augmentation.draw(view, graph, encoder.inputs(graph), NoiseStream(generator))

        return Step(graph, encoder, draw, lambda view: None, generator)

    def mean_loss() -> float:
        with torch.no_grad():
            return sum(objective(step(seeded(seed))).loss.item() for seed in range(10)) / 10

    before = mean_loss()
    for _ in range(60):
        optimizer.zero_grad()
        objective(step(generator)).loss.backward()
        optimizer.step()
        objective.after_step(encoder)
    assert mean_loss() < 0.8 * before
