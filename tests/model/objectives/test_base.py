"""What a step gives to an objective, and what an objective does by default."""

import pytest
import torch

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.noise import NoiseStream
from bgcl.augmentation.views import Augmentation
from bgcl.model.objectives.base import Objective, Outcome, Step
from small import random_encoder, random_graph, seeded


def make_step(most: int | None = None, *, drop: str = "edges at 0.5") -> Step:
    graph, encoder = random_graph(9, 5, double=False), random_encoder((5, 4, 3), double=False)
    generator = seeded(0)
    augmentation = Augmentation([parse_mask(drop)], 2)
    return Step(
        graph,
        encoder,
        lambda view: augmentation.draw(view, graph, encoder.inputs(graph), NoiseStream(generator)),
        lambda view: augmentation.draw_positives(view, graph, NoiseStream(generator)),
        generator,
        most,
    )


def test_all_calls_in_a_step_see_the_same_masks_of_a_view():
    step = make_step()
    o, t = step.encode("o"), step.encode("t")
    assert torch.equal(step.encode("o"), o)
    assert torch.equal(step.encode("t"), t)
    assert not torch.equal(o, t)
    assert not torch.equal(make_step().encode("o"), step.encode("t"))


def test_another_encoder_sees_the_same_masks():
    step = make_step()
    step.encode("o")
    other = random_encoder((5, 4, 3), double=False, seed=7)
    torch.testing.assert_close(step.encode("o", encoder=other), other(step.graph, step._masks["o"]))
    assert not torch.equal(step.encode("o", encoder=other), step.encode("o"))


def test_other_attributes_are_seen_under_the_same_masks():
    step = make_step()
    o = step.encode("o")
    other = random_graph(9, 5, double=False)
    assert torch.equal(step.encode("o", graph=other), o)  # the same graph
    other.features.mul_(2.0)
    torch.testing.assert_close(step.encode("o", graph=other), step.encoder(other, step._masks["o"]))


@pytest.mark.parametrize("most", [None, 9, 12])
def test_all_rows_are_taken_if_there_are_few(most):
    step = make_step(most)
    state = step.generator.get_state()
    x, y = torch.randn(9, 2), torch.randn(9, 3)
    found = step.some(x, y)
    assert found[0] is x
    assert found[1] is y
    assert torch.equal(step.generator.get_state(), state)


def test_some_rows_are_the_same_in_each_view_and_none_is_taken_twice():
    step = make_step(4)
    numbers = torch.arange(9.0)[:, None]
    x, y, z = step.some(numbers, numbers + 100, numbers * 2)
    assert x.shape == (4, 1)
    assert torch.equal(x + 100, y)
    assert torch.equal(x * 2, z)
    assert len(set(x[:, 0].tolist())) == 4


def test_every_row_is_taken_equally_often():
    step, counts = make_step(3), torch.zeros(9)
    for _ in range(600):
        (chosen,) = step.some(torch.arange(9))
        counts[chosen] += 1
    assert ((counts - 200).abs() < 4 * (600 * 1 / 3 * 2 / 3) ** 0.5).all()


def test_the_positives_of_a_step_are_those_of_its_masks():
    assert make_step().draw_positives("o") is None
    positives = make_step(drop="neighbors at 0.5").draw_positives("o")
    assert len(positives.weights) == len(random_graph(9, 5).connections)


@pytest.mark.parametrize(("shared", "slope"), [(0.9, -1.0), (0.1, 1.0)])
def test_by_default_the_views_share_less_until_they_share_as_much_as_is_asked_for(shared, slope):
    value = torch.tensor(shared, requires_grad=True)
    gain = Objective().adversary(Outcome(-value, value, torch.zeros(3, 2), 3), 0.3)
    assert float(gain) == pytest.approx(-abs(shared - 0.3))
    gain.backward()
    assert float(value.grad) == slope


def test_an_objective_without_a_loss_is_refused():
    with pytest.raises(NotImplementedError):
        Objective()(make_step())
    with pytest.raises(NotImplementedError):
        Objective().log_likelihood(torch.zeros(2, 2), torch.zeros(2, 2))
