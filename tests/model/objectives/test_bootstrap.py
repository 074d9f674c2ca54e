"""The loss of BGRL against plain loops, the slow copy against the closed form, and what learns and what is saved."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Augmentation
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.encoders.base import Encoder
from bgcl.model.encoders.gcn import GCNEncoder
from bgcl.model.encoders.hops import HopsEncoder
from bgcl.model.objectives.base import Step
from bgcl.model.objectives.bootstrap import Bootstrap, cosine
from small import random_graph, seeded

ENCODERS = {
    "relu": lambda: GCNEncoder((5, 4, 3)),
    "prelu and norms": lambda: GCNEncoder((5, 4, 3), activation="prelu", norm="batch", skip=True),
    "a list of parameters": lambda: HopsEncoder((5, 4, 3), hops=2),
}


def make(encoder: Encoder, *, momentum: float = 0.99, seed: int = 0) -> Bootstrap:
    """An objective that is ready for the first step, with the encoder's first weights."""
    objective = Bootstrap(encoder.width, encoder, momentum=momentum)
    encoder.reset_parameters(generator := seeded(seed))
    objective.reset_parameters(generator)
    objective.start(encoder)
    return objective


def make_step(graph: PreparedGraph, encoder: Encoder, generator: torch.Generator, most: int | None = None) -> Step:
    augmentation = Augmentation([parse_mask("connections at 0.2/0.4"), parse_mask("features at 0.2")], 2)

    def draw(view: str) -> list:
        masks = augmentation.draw(view, graph, encoder.inputs(graph), NoiseStream(generator))
        if isinstance(graph.features, Tensor) and graph.features.dtype == torch.float64:
            for mask in masks:
                mask.connections = mask.connections.double()
                mask.columns = None if mask.columns is None else mask.columns.double()
        return masks

    return Step(graph, encoder, draw, lambda view: None, generator, most=most)


def move(encoder: Encoder, seed: int) -> None:
    """Change all weights of an encoder, as an optimizer does."""
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))


def loop_cosine(x: np.ndarray, y: np.ndarray) -> float:
    dot, xx, yy = (sum(a * b for a, b in zip(*pair, strict=True)) for pair in ((x, y), (x, x), (y, y)))
    return dot / math.sqrt(xx * yy)


def loop_predict(objective: Bootstrap, h: np.ndarray) -> np.ndarray:
    """The predictor for one node."""
    state = {name: value.numpy() for name, value in objective.predictor.state_dict().items()}
    hidden = state["first.weight"] @ h + state["first.bias"]
    hidden = np.where(hidden > 0, hidden, state["activation.weight"] * hidden)
    return state["second.weight"] @ hidden + state["second.bias"]


def authors_loss(objective: Bootstrap, step: Step, nodes: Tensor) -> Tensor:
    """`2 - mean cos - mean cos` of some nodes."""
    q_o, q_t = (objective.predictor(step.encode(view)[nodes]) for view in ("o", "t"))
    y_o, y_t = (step.encode(view, encoder=objective.slow)[nodes] for view in ("o", "t"))
    return 2 - torch.cosine_similarity(q_o, y_t).mean() - torch.cosine_similarity(q_t, y_o).mean()


def double_case() -> tuple[PreparedGraph, Encoder, Bootstrap]:
    """A graph, an encoder and an objective in double precision, with a slow copy that differs from the encoder."""
    encoder = GCNEncoder((5, 4, 3), activation="prelu").double()
    objective = make(encoder).double()
    move(encoder, 1)
    move(objective.predictor, 2)
    return random_graph(8), encoder, objective


def test_loss_is_the_loop_over_nodes_and_directions() -> None:
    graph, encoder, objective = double_case()
    step = make_step(graph, encoder, seeded(3))
    with torch.no_grad():
        found = objective(step)
        o, t = step.encode("o").numpy(), step.encode("t").numpy()
        slow_o, slow_t = (step.encode(view, encoder=objective.slow).numpy() for view in ("o", "t"))
    loss = cosines = 0.0
    for n in range(8):
        for online, target in ((o, slow_t), (t, slow_o)):
            similarity = loop_cosine(loop_predict(objective, online[n]), target[n])
            loss += (2 - 2 * similarity) / 16
            cosines += similarity / 16
    assert found.loss.item() == pytest.approx(loss)
    assert found.shared.item() == pytest.approx(cosines)
    np.testing.assert_array_equal(found.embeddings, o)


def test_loss_is_the_one_of_the_authors_code() -> None:
    graph, encoder, objective = double_case()
    step = make_step(graph, encoder, seeded(3))
    with torch.no_grad():
        torch.testing.assert_close(objective(step).loss, authors_loss(objective, step, torch.arange(8)))


@pytest.mark.parametrize(("sign", "loss"), [(1, 0), (-1, 4)])
def test_a_perfect_prediction_has_loss_0_and_an_opposite_one_4(sign: int, loss: float) -> None:
    graph, encoder = random_graph(8, double=False), GCNEncoder((5, 4, 3), activation="prelu")
    objective = make(encoder)
    with torch.no_grad():  # the predictor multiplies by `sign`
        objective.predictor.first.weight.copy_(torch.cat([torch.eye(3), torch.zeros(3, 3)]))
        objective.predictor.second.weight.copy_(sign * torch.cat([torch.eye(3), torch.zeros(3, 3)], 1))
        objective.predictor.activation.weight.fill_(1)
        found = objective(Step(graph, encoder, lambda view: None, lambda view: None, seeded(0)))
    assert found.loss.item() == pytest.approx(loss, abs=1e-5)
    assert found.shared.item() == pytest.approx(sign)


def test_gradients_agree_with_finite_differences() -> None:
    _, _, objective = double_case()
    o, t = torch.randn(2, 6, 3, dtype=torch.float64, generator=seeded(0)).requires_grad_()
    assert torch.autograd.gradcheck(objective.log_likelihood, (o, t))
    assert torch.autograd.gradcheck(lambda o, t: objective._agreement(o, t, t + 1, o * 2), (o, t))


def test_cosine_is_pytorchs_and_a_vector_of_zeros_has_a_small_gradient() -> None:
    x, y = torch.randn(2, 6, 3, generator=seeded(0))
    torch.testing.assert_close(cosine(x, y), torch.cosine_similarity(x, y))
    x[2], y[4] = 0, 0
    x.requires_grad_(), y.requires_grad_()
    found = cosine(x, y)
    found.sum().backward()
    assert found[2] == found[4] == 0
    for grad in (x.grad, y.grad):
        assert grad.abs().max() < 10


def test_a_node_without_attributes_has_a_gradient_of_usual_size() -> None:
    graph, encoder = random_graph(8, double=False), GCNEncoder((5, 4, 3))
    graph.features.zero_()
    objective = make(encoder)  # all biases are zero, so all vectors and predictions are zero
    step = Step(graph, encoder, lambda view: None, lambda view: None, seeded(0))
    found = objective(step)
    found.loss.backward()
    assert found.shared.item() == 0
    assert all(
        parameter.grad is None or parameter.grad.abs().max() < 10
        for module in (encoder, objective)
        for parameter in module.parameters()
    )


def test_log_likelihood_is_the_mean_cosine_of_either_prediction() -> None:
    _, _, objective = double_case()
    o, t = torch.randn(2, 6, 3, dtype=torch.float64, generator=seeded(0))
    with torch.no_grad():
        found = objective.log_likelihood(o, t)
        torch.testing.assert_close(found, objective.log_likelihood(t, o))
    for n in range(6):
        forth = loop_cosine(loop_predict(objective, o[n].numpy()), t[n].numpy())
        back = loop_cosine(loop_predict(objective, t[n].numpy()), o[n].numpy())
        assert found[n].item() == pytest.approx((forth + back) / 2)


def test_log_likelihood_follows_the_order_of_nodes() -> None:
    _, _, objective = double_case()
    o, t = torch.randn(2, 6, 3, dtype=torch.float64, generator=seeded(0))
    order = torch.randperm(6, generator=seeded(1))
    with torch.no_grad():
        torch.testing.assert_close(objective.log_likelihood(o[order], t[order]), objective.log_likelihood(o, t)[order])


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_slow_copy_is_the_closed_form_of_the_moving_average(name: str, momentum: float) -> None:
    encoder = ENCODERS[name]().double()
    objective = make(encoder, momentum=momentum)
    history = [deepcopy(dict(encoder.named_parameters()))]
    for k in range(1, 6):
        move(encoder, k)
        objective.after_step(encoder)
        history.append(deepcopy(dict(encoder.named_parameters())))
    for key, start in history[0].items():
        later = sum(momentum ** (5 - k) * history[k][key].detach() for k in range(1, 6))
        expected = momentum**5 * start.detach() + (1 - momentum) * later
        torch.testing.assert_close(objective.slow.state_dict()[key], expected)


@pytest.mark.parametrize("name", ENCODERS)
def test_slow_copy_starts_as_the_encoder_and_does_not_share_its_memory(name: str) -> None:
    encoder, graph = ENCODERS[name](), random_graph(8, double=False)
    objective = make(encoder)
    with torch.no_grad():
        before = encoder(graph)
        torch.testing.assert_close(objective.slow(graph), before, rtol=0, atol=0)
        move(encoder, 0)
        torch.testing.assert_close(objective.slow(graph), before, rtol=0, atol=0)
        assert not torch.allclose(encoder(graph), before)


@pytest.mark.parametrize("name", ENCODERS)
def test_only_the_predictor_learns_but_the_state_has_the_slow_copy(name: str) -> None:
    encoder = ENCODERS[name]()
    objective = make(encoder)
    learning = [parameter_name for parameter_name, _ in objective.named_parameters()]
    assert learning
    assert all(parameter_name.startswith("predictor.") for parameter_name in learning)
    state = objective.state_dict()
    assert {key for key in state if key.startswith("slow.")} == {f"slow.{key}" for key in encoder.state_dict()}
    assert not any(value.requires_grad for value in objective.buffers())
    assert len(list(encoder.parameters())) == len(list(ENCODERS[name]().parameters()))  # the encoder is not changed
    # A new objective continues from the state, bit for bit.
    move(encoder, 0)
    objective.after_step(encoder)
    resumed = Bootstrap(encoder.width, encoder)
    resumed.load_state_dict(objective.state_dict())
    for key, value in objective.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], value)


def test_the_slow_copy_follows_to_another_precision() -> None:
    objective = make(GCNEncoder((5, 4, 3))).double()
    assert all(value.dtype == torch.float64 for value in objective.state_dict().values())


def test_masks_get_a_gradient_through_both_encoders_but_slow_weights_do_not() -> None:
    graph, encoder, objective = double_case()
    keep = torch.full((len(graph.connections), 1), 0.7, dtype=torch.float64, requires_grad=True)

    def shared(keep: Tensor) -> Tensor:
        def draw(view: str) -> list:
            masks = make_step(graph, encoder, seeded(0)).draw_masks(view)
            masks[0].connections = keep * masks[0].connections
            return masks

        return objective(Step(graph, encoder, draw, lambda view: None, seeded(0))).shared

    assert torch.autograd.gradcheck(shared, (keep,))
    shared(keep).backward()
    assert all(buffer.grad is None for buffer in objective.buffers())


def test_a_part_of_the_nodes_has_the_loss_of_those_nodes() -> None:
    graph, encoder, objective = double_case()
    step = make_step(graph, encoder, seeded(3), most=3)
    with torch.no_grad():
        step.encode("o"), step.encode("t")  # draw the masks
        state = step.generator.get_state()
        found = objective(step)
        step.generator.set_state(state)
        chosen = torch.randperm(8, generator=step.generator)[:3]
        torch.testing.assert_close(found.loss, authors_loss(objective, step, chosen))
    assert found.embeddings.shape == (8, 3)
    assert found.nodes == 3


@pytest.mark.parametrize(("activation", "norm"), [("prelu", "none"), ("prelu", "batch"), ("relu", "none")])
def test_training_lowers_the_loss_and_moves_the_slow_copy(activation: str, norm: str) -> None:
    graph, generator = random_graph(40, 12, double=False), seeded(0)
    encoder = GCNEncoder((12, 16, 16), activation=activation, norm=norm)
    objective = make(encoder)
    optimizer = torch.optim.Adam([*encoder.parameters(), *objective.parameters()], lr=0.01)
    start = deepcopy(objective.slow.state_dict())

    def mean_loss() -> float:
        with torch.no_grad():
            return sum(objective(make_step(graph, encoder, seeded(seed))).loss.item() for seed in range(10)) / 10

    before = mean_loss()
    for _ in range(60):
        optimizer.zero_grad()
        objective(make_step(graph, encoder, generator)).loss.backward()
        optimizer.step()
        objective.after_step(encoder)
    assert mean_loss() < 0.5 * before
    assert not any(torch.equal(value, start[key]) for key, value in objective.slow.state_dict().items())
