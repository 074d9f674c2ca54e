"""Products in bfloat16: what is multiplied is rounded, and nothing else is."""

import pytest
import torch

from bgcl import BGCL, BGCLError, MixtureClassifier, example_graph
from bgcl.data.pyg import check_graph
from bgcl.graph.prepared import prepare
from bgcl.graph.sparse import Pattern, spmm
from bgcl.model.network import Network
from bgcl.model.objectives.infonce import contrastive_loss
from bgcl.settings import Settings
from small import seeded
from training import tiny_graph

LOW = torch.bfloat16
KINDS = {
    "the default": {"widths": (32, 16), "drop": ("entries at 0.2", "neighbors at 0.2")},
    "both views": {"encoder": "gcn"},
    "two blocks": {"encoder": "gcn", "drop": ("connections in 2 blocks", "features")},
    "hops": {"encoder": "hops"},
    "sage": {"encoder": "sage"},
    "gin": {"encoder": "gin"},
    "gat": {"encoder": "gat"},
    "pyg": {"encoder": "pyg:GraphConv"},
    "decorrelation": {"encoder": "gcn", "objective": "decorrelation"},
    "bootstrap": {"encoder": "gcn", "objective": "bootstrap"},
    "infomax": {"encoder": "gcn", "objective": "infomax"},
}


def outcome_of(settings: dict, precision: str | None) -> tuple[float, torch.Tensor, set]:
    """The loss of a step, its gradient as one vector, and the types of vectors, weights and gradients."""
    chosen = Settings(**settings, precision=precision)
    network = Network(12, chosen)
    network.reset_parameters(seeded(0))
    graph = tiny_graph()
    graph.x = torch.rand(30, 12, generator=seeded(4))  # a node without attributes would have no direction
    found = network.outcome(prepare(check_graph(graph), row_norm="sum"), seeded(1))
    found.loss.backward()
    learned = [p for p in [*network.encoder.parameters(), *network.objective.parameters()] if p.grad is not None]
    types = {found.loss.dtype, found.embeddings.dtype, *(p.dtype for p in learned), *(p.grad.dtype for p in learned)}
    return found.loss.item(), torch.cat([p.grad.flatten() for p in learned]), types


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_has_nearly_the_loss_and_the_direction_of_32_bits(kind):
    loss, gradient, _ = outcome_of(KINDS[kind], None)
    low, of_low, types = outcome_of(KINDS[kind], "bfloat16")
    assert types == {torch.float32}
    assert low != loss, "nothing was rounded"
    assert low == pytest.approx(loss, rel=0.02, abs=0.005)
    assert torch.cosine_similarity(gradient, of_low, dim=0) > 0.98


@pytest.mark.parametrize("tile", [3, 100])
@pytest.mark.parametrize("budget", [0, 1 << 30])
@pytest.mark.parametrize("negatives", ["both views", "other view"])
def test_the_loss_is_that_of_rounded_similarities(negatives, budget, tile):
    """A similarity is a product of rounded vectors, which is rounded. Exponentials and their sums have 32 bits."""
    o, t = torch.randn(2, 10, 6, generator=seeded(2))
    found = contrastive_loss(o, t, 0.3, negatives, tile=tile, budget=budget, products=LOW)
    x, y = (torch.nn.functional.normalize(each, dim=1) * 0.3**-0.5 for each in (o, t))

    def exponentials(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        rounded = torch.tensor([[float((u.float() @ v.float()).to(LOW)) for v in b.to(LOW)] for u in a.to(LOW)])
        return rounded.exp()

    of_x, of_y = exponentials(x, y).sum(1), exponentials(x, y).sum(0)
    if negatives == "both views":
        of_x = of_x + exponentials(x, x).fill_diagonal_(0).sum(1)
        of_y = of_y + exponentials(y, y).fill_diagonal_(0).sum(1)
    expected = (of_x.log() + of_y.log()).mean() / 2 - (x * y).sum(1).mean()
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    assert found.item() != contrastive_loss(o, t, 0.3, negatives).item()


@pytest.mark.parametrize("negatives", ["both views", "other view"])
def test_the_gradient_of_the_loss_is_as_exact_as_its_products(negatives):
    o, t = (each.requires_grad_() for each in torch.randn(2, 50, 8, generator=seeded(3)))
    exact = torch.autograd.grad(contrastive_loss(o, t, 0.3, negatives), (o, t))
    found = torch.autograd.grad(contrastive_loss(o, t, 0.3, negatives, products=LOW), (o, t))
    for one, other in zip(exact, found, strict=True):
        assert other.dtype == torch.float32
        assert 0 < (one - other).norm() / one.norm() < 0.03


def test_sums_over_neighbors_have_32_bits():
    """In bfloat16, 1 + 1/256 is 1: a sum over 300 neighbors would be wrong in its second digit."""
    count = 300
    star = Pattern(torch.tensor([0, count]), torch.arange(count), count)
    vectors = torch.full((count, 1), 1.0, dtype=LOW)
    assert spmm(star, torch.ones(count), vectors).item() == count


def test_a_model_is_as_good_and_everything_after_training_has_32_bits():
    data = example_graph()
    train = torch.arange(0, data.num_nodes, 4)
    test = torch.ones(data.num_nodes, dtype=torch.bool).index_fill(0, train, False)
    accuracy = {}
    for precision in (None, "bfloat16"):
        model = BGCL(widths=(64, 32), seed=0, epochs=20, precision=precision).fit(data, progress=False)
        assert all(tensor.dtype != LOW for tensor in model.network_.state_dict().values())
        draws = model.sample(data, 6)
        assert draws.dtype == model.embed(data).dtype == torch.float32
        head = MixtureClassifier(parts=model.parts_).fit(draws[:2, train].numpy(), data.y[train].numpy())
        predicted = head.predict_proba(draws[2:].numpy()).argmax(1)
        accuracy[precision] = (torch.from_numpy(predicted) == data.y)[test].float().mean().item()
    assert accuracy["bfloat16"] > accuracy[None] - 0.03
    assert accuracy["bfloat16"] > 0.8


def test_the_same_seed_has_the_same_model():
    models = [
        BGCL(encoder="gcn", widths=(8, 4), epochs=3, precision="bfloat16").fit(example_graph(), progress=False)
        for _ in range(2)
    ]
    for one, other in zip(*(model.network_.state_dict().values() for model in models), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("wrong", ["float16", "bf16", 16])
def test_other_precisions_are_refused(wrong):
    with pytest.raises(BGCLError, match="The setting 'precision' must be 'bfloat16', or None"):
        Settings(precision=wrong)
