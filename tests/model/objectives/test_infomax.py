"""The loss of DGI against plain loops and PyTorch Geometric's, and shuffled attributes."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn.models import DeepGraphInfomax

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Augmentation
from bgcl.graph.clusters import feature_rows
from bgcl.graph.prepared import PreparedGraph, SparseFeatures
from bgcl.model.encoders.base import Encoder
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.objectives.base import Outcome, Step
from bgcl.model.objectives.infomax import Infomax, shuffled, summary
from small import dense_features, random_graph, seeded


class Given(Step):
    """A step whose vectors are given."""

    def __init__(self, o: Tensor, t: Tensor, wrong_o: Tensor, wrong_t: Tensor) -> None:
        self.graph, self.generator, self.most = random_graph(len(o)), seeded(0), 1
        self.right, self.wrong = {"o": o, "t": t}, {"o": wrong_o, "t": wrong_t}

    def encode(self, view: str, *, graph: PreparedGraph | None = None, **options: object) -> Tensor:
        return self.right[view] if graph is None else self.wrong[view]


def vectors(nodes: int = 6, width: int = 3, seed: int = 0) -> list[Tensor]:
    """Vectors of both views, right and wrong."""
    return list(torch.randn(4, nodes, width, dtype=torch.float64, generator=seeded(seed)))


def make(width: int = 3, seed: int = 0) -> Infomax:
    objective = Infomax(width)
    objective.reset_parameters(seeded(seed))
    return objective


def outcome_of(objective: Infomax, given: list[Tensor]) -> Outcome:
    return objective(Given(*given))


def sigmoid(x: np.ndarray | float) -> np.ndarray | float:
    return 1 / (1 + np.exp(-x))


def loop_probability(h: np.ndarray, W: np.ndarray, other: np.ndarray) -> float:
    """What the discriminator says of one vector, entry by entry."""
    s = [sigmoid(sum(row[k] for row in other) / len(other)) for k in range(len(h))]
    return float(sigmoid(sum(h[i] * W[i, j] * s[j] for i in range(len(h)) for j in range(len(h)))))


def loop_loss(W: np.ndarray, o: np.ndarray, t: np.ndarray, wrong_o: np.ndarray, wrong_t: np.ndarray) -> float:
    total = 0.0
    for right, wrong, other in ((o, wrong_o, t), (t, wrong_t, o)):
        for n in range(len(o)):
            total -= math.log(loop_probability(right[n], W, other))
            total -= math.log(1 - loop_probability(wrong[n], W, other))
    return total / (4 * len(o))


@pytest.mark.parametrize("seed", range(5))
def test_loss_is_the_loop_over_vectors_and_directions(seed: int) -> None:
    given, objective = vectors(seed=seed), make(seed=seed).double()
    with torch.no_grad():
        found = outcome_of(objective, given)
    expected = loop_loss(objective.weight.detach().numpy(), *(part.numpy() for part in given))
    assert found.loss.item() == pytest.approx(expected)
    assert found.shared.item() == pytest.approx(1 - expected / math.log(2))
    assert found.embeddings is given[0]
    assert found.nodes == 6


def test_with_one_view_the_loss_is_half_of_pytorch_geometrics() -> None:
    o, _, wrong, _ = (part.float() for part in vectors(8))
    objective = make()
    theirs = DeepGraphInfomax(3, nn.Identity(), summary, lambda x: x)
    with torch.no_grad():
        theirs.weight.copy_(objective.weight)
        expected = theirs.loss(o, wrong, summary(o)) / 2
        torch.testing.assert_close(outcome_of(objective, [o, o, wrong, wrong]).loss, expected)


def test_a_discriminator_that_guesses_shares_nothing() -> None:
    objective = make().double()
    nn.init.zeros_(objective.weight)
    found = outcome_of(objective, vectors())
    assert found.loss.item() == pytest.approx(math.log(2))
    assert found.shared.item() == pytest.approx(0, abs=1e-12)


def test_a_discriminator_that_is_right_shares_everything() -> None:
    objective = make().double()
    nn.init.constant_(objective.weight, 100.0)
    ones = torch.ones(6, 3, dtype=torch.float64)
    found = outcome_of(objective, [ones, ones, -ones, -ones])
    assert found.loss.item() == pytest.approx(0, abs=1e-12)
    assert found.shared.item() == pytest.approx(1)


def test_shared_information_is_at_most_that_of_the_best_discriminator() -> None:
    """Vectors are 1 for a share p of the nodes and else 0; for those with shuffled attributes the share is q."""
    p, q = 0.8, 0.3
    right = (torch.arange(10) < 8).double()[:, None]
    wrong = (torch.arange(10) < 3).double()[:, None]
    middle = (p + q) / 2

    def kl(a: float, b: float) -> float:
        return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))

    divergence = (kl(p, middle) + kl(q, middle)) / 2  # Jensen-Shannon
    objective = Infomax(1).double()
    for weight in torch.linspace(-8, 8, 200):
        nn.init.constant_(objective.weight, float(weight))
        found = outcome_of(objective, [right, right, wrong, wrong])
        assert found.shared.item() <= divergence / math.log(2)


def test_loss_ignores_the_order_of_nodes() -> None:
    given, objective = vectors(), make().double()
    order = torch.randperm(6, generator=seeded(1))
    with torch.no_grad():
        expected = outcome_of(objective, given)
        torch.testing.assert_close(outcome_of(objective, [part[order] for part in given]).loss, expected.loss)
        o, t, *_ = given
        torch.testing.assert_close(objective.log_likelihood(o[order], t[order]), objective.log_likelihood(o, t)[order])


def test_swapping_the_views_changes_nothing() -> None:
    (o, t, wrong_o, wrong_t), objective = vectors(), make().double()
    with torch.no_grad():
        expected = outcome_of(objective, [o, t, wrong_o, wrong_t]).loss
        torch.testing.assert_close(outcome_of(objective, [t, o, wrong_t, wrong_o]).loss, expected)


def test_gradients_agree_with_finite_differences() -> None:
    objective = make().double()
    given = tuple(part.requires_grad_() for part in vectors(4))

    def loss(weight: Tensor, *given: Tensor) -> Tensor:
        return torch.func.functional_call(objective, {"weight": weight}, (Given(*given),)).loss

    assert torch.autograd.gradcheck(loss, (objective.weight.detach().requires_grad_(), *given))
    assert torch.autograd.gradcheck(objective.log_likelihood, given[:2])


def test_large_scores_have_finite_losses_and_gradients() -> None:
    given = [1e4 * part.float() for part in vectors()]
    objective = make()
    found = outcome_of(objective, given)
    found.loss.backward()
    assert torch.isfinite(found.loss)
    assert torch.isfinite(objective.weight.grad).all()


def test_log_likelihood_is_the_mean_log_probability_of_either_draw() -> None:
    (o, t, *_), objective = vectors(), make().double()
    with torch.no_grad():
        found = objective.log_likelihood(o, t)
    W = objective.weight.detach().numpy()
    for n in range(6):
        forth = math.log(loop_probability(o[n].numpy(), W, t.numpy()))
        back = math.log(loop_probability(t[n].numpy(), W, o.numpy()))
        assert found[n].item() == pytest.approx((forth + back) / 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_shuffled_attributes_are_whole_rows_and_connections_stay(sparse: bool) -> None:
    graph = random_graph(9, 5, sparse=sparse)
    found = shuffled(graph, seeded(0))
    assert found.connections is graph.connections
    before, after = dense_features(graph), dense_features(found)
    order = torch.randperm(9, generator=seeded(0))
    np.testing.assert_array_equal(after, before[order.numpy()])
    assert sorted(map(tuple, before)) == sorted(map(tuple, after))
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(dense_features(shuffled(graph, seeded(0))), after)
    if sparse:
        assert isinstance(found.features, SparseFeatures)
        assert found.features.values.shape == graph.features.values.shape


def test_rows_without_entries_can_be_permuted() -> None:
    graph = random_graph(6, 4, sparse=True)
    features = graph.features
    some = torch.isin(features.pattern.row, torch.tensor([1, 4]))
    counts = torch.bincount(features.pattern.row[some], minlength=6)
    pattern = type(features.pattern)(
        torch.cat([counts.new_zeros(1), counts.cumsum(0)]), features.pattern.column[some], 4
    )
    graph = PreparedGraph(graph.connections, SparseFeatures(pattern, features.values[some]))
    order = torch.tensor([4, 0, 1, 5, 3, 2])
    moved = PreparedGraph(graph.connections, feature_rows(graph.features, order))
    np.testing.assert_array_equal(dense_features(moved), dense_features(graph)[order.numpy()])


def make_step(graph: PreparedGraph, encoder: Encoder, generator: torch.Generator, sentence: str) -> Step:
    augmentation = Augmentation([parse_mask(sentence)], 2)

    def draw(view: str) -> list:
        return augmentation.draw(view, graph, encoder.inputs(graph), NoiseStream(generator))

    return Step(graph, encoder, draw, lambda view: None, generator)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("sentence", ["connections at 0.3", "features at 0.3", "entries at 0.3", "nodes at 0.3"])
def test_the_wrong_vectors_are_those_of_the_shuffled_graph_under_the_same_masks(sparse: bool, sentence: str) -> None:
    graph, encoder = random_graph(8, 5, sparse=sparse, double=False), GCNEncoder((5, 4, 3))
    encoder.reset_parameters(seeded(0))
    objective, step = make(), make_step(graph, encoder, seeded(1), sentence)
    with torch.no_grad():
        o, t = step.encode("o"), step.encode("t")  # draw the masks
        state = step.generator.get_state()
        found = objective(step)
        step.generator.set_state(state)
        other = shuffled(graph, step.generator)
        wrong = [step.encode(view, graph=other) for view in ("o", "t")]
        torch.testing.assert_close(found.loss, outcome_of(objective, [o, t, *wrong]).loss)


def test_training_lowers_the_loss() -> None:
    graph, encoder, generator = random_graph(40, 12, double=False), GCNEncoder((12, 16, 16)), seeded(0)
    encoder.reset_parameters(generator)
    objective = make(16)
    optimizer = torch.optim.Adam([*encoder.parameters(), *objective.parameters()], lr=0.01)

    def step(generator: torch.Generator) -> Step:
        return make_step(graph, encoder, generator, "connections at 0.2")

    def mean_loss() -> float:
        with torch.no_grad():
            return sum(objective(step(seeded(seed))).loss.item() for seed in range(10)) / 10

    before = mean_loss()
    for _ in range(100):
        optimizer.zero_grad()
        objective(step(generator)).loss.backward()
        optimizer.step()
        objective.after_step(encoder)
    assert mean_loss() < min(before, math.log(2)) - 0.02
