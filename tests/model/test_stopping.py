"""When training ends: the rule on curves with a known answer, and what a run does with it."""

import numpy as np
import pytest
import torch

import bgcl
from bgcl.augmentation.noise import NoiseStream
from bgcl.model.objectives.infonce import contrastive_log_likelihood
from bgcl.model.stopping import GAIN, LEAST, Watch, is_settled


def first_end(curve, steps: int, most: int = 1000) -> int:
    """The first epoch at which the rule ends a training whose criterion is `curve(step)`; `most` if it does not."""
    values = [curve(0)]
    for epoch in range(1, most):
        values.append(curve(epoch * steps))
        if is_settled(values, steps):
            return epoch
    return most


def test_a_curve_that_approaches_its_limit_ends_where_the_closed_form_says() -> None:
    """`1 - exp(-s / c)`: `exp(-s / 2c) - exp(-s / c) < GAIN (1 - exp(-s / c))` means `x / (1 + x) < GAIN`."""
    c = 200.0
    expected = -2 * c * np.log(GAIN / (1 - GAIN))
    assert first_end(lambda s: 1 - np.exp(-s / c), 1, 5000) == pytest.approx(expected, abs=2)


def test_a_curve_that_grows_evenly_never_ends() -> None:
    assert first_end(lambda s: s, 10) == 1000


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_a_flat_curve_ends_as_soon_as_it_may(steps: int) -> None:
    epochs = first_end(lambda s: float(s > 0), steps)
    assert epochs * steps >= LEAST
    assert epochs <= max(2, -(-LEAST // steps) + 1)


@pytest.mark.parametrize("shift", [-100.0, 0.0, 3.0])
def test_neither_offset_nor_unit_of_the_criterion_matter(shift: float) -> None:
    curve = lambda s: np.log1p(s / 30) ** 0.5  # noqa: E731
    assert first_end(lambda s: 7 * curve(s) + shift, 6) == first_end(curve, 6)


@pytest.fixture(scope="module")
def graph():
    return bgcl.example_graph()


SMALL = {"widths": (16, 8), "part_width": 8, "batch_nodes": 32}


def test_training_ends_when_it_settles_and_not_before(graph) -> None:
    model = bgcl.BGCL(**SMALL).fit(graph, progress=False)
    values = [record.recognized for record in model.history_]
    steps = -(-graph.num_nodes // 32)
    assert len(values) < model.settings_.epochs
    whole = bgcl.BGCL(**SMALL, epochs=len(values)).fit(graph, progress=False)
    assert all(record.recognized is None for record in whole.history_)
    assert torch.equal(whole.embed(graph), model.embed(graph))  # to watch a training does not change it
    assert not any(is_settled(values[:1] + values[:i], steps) for i in range(len(values) - 2))


def test_a_run_that_ended_by_itself_stays_as_it_is_when_resumed(graph, tmp_path) -> None:
    model = bgcl.BGCL(**SMALL).fit(graph, out=tmp_path / "run", progress=False)
    again = bgcl.BGCL(**SMALL).fit(graph, out=tmp_path / "run", resume=True, progress=False)
    assert [r.epoch for r in again.history_] == [r.epoch for r in model.history_]
    assert torch.equal(again.embed(graph), model.embed(graph))


def test_an_interrupted_run_ends_at_the_same_epoch(graph, tmp_path) -> None:
    whole = bgcl.BGCL(**SMALL).fit(graph, progress=False)

    def stop(record) -> None:
        if record.epoch == len(whole.history_) - 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bgcl.BGCL(**SMALL).fit(graph, out=tmp_path / "run", progress=stop)
    resumed = bgcl.BGCL(**SMALL).fit(graph, out=tmp_path / "run", resume=True, progress=False)
    assert [r.recognized for r in resumed.history_] == [r.recognized for r in whole.history_]
    assert torch.equal(resumed.embed(graph), whole.embed(graph))


def test_the_criterion_is_the_likelihood_of_two_views_of_each_node(graph) -> None:
    model = bgcl.BGCL(**SMALL, members=1, epochs=1).fit(graph, progress=False)
    from bgcl.graph.node_batches import NodeBatches

    network, ready = model._ready(graph)
    watch = Watch(network, NodeBatches(ready, 32), seed=3)
    assert watch.recognized() == watch.recognized()
    generator = torch.Generator().manual_seed(3)
    batch = watch.batches.batch(watch.nodes, generator)
    with torch.no_grad():
        o, t = (network.encode(view, batch, NoiseStream(generator))[: graph.num_nodes] for view in ("o", "t"))
    expected = contrastive_log_likelihood(o, t, 0.15, "other view").mean()
    assert watch.recognized() == pytest.approx(float(expected))


def test_without_batches_of_random_nodes_training_cannot_settle() -> None:
    with pytest.raises(bgcl.BGCLError, match="'until_settled' needs batches of random nodes"):
        bgcl.Settings(encoder="gcn", until_settled=True)
    assert not bgcl.Settings(encoder="gcn").until_settled
    assert not bgcl.Settings(epochs=5).until_settled
    assert bgcl.Settings().until_settled
