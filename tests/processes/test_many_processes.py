"""Two processes and one have the same gradients and the same model, and what does not fit together stops all."""

import numpy as np
import pytest
import torch
import works

from bgcl import BGCL, BGCLError
from bgcl.model.seeding import generator_of
from training import DEFAULT, PAPER, fit, make, parameters, tiny_graph

TWO = {"batches_per_step": 2}
CLUSTERS = {"batches": 4, "clusters_per_batch": 2}
SAMPLED = {"batch_nodes": 8, "neighbors": (3, 2)}
KINDS = {
    "whole": (PAPER, TWO),
    "whole relaxed": (
        PAPER,
        TWO | {"mask_values": "relaxed", "rate_draw": "sample", "rate_nodes": 9, "loss_nodes": 11},
    ),
    "clusters": (PAPER, TWO | CLUSTERS),
    "neighbors": (PAPER, TWO | SAMPLED | {"objective": "bootstrap", "drop": ("edges", "entries")}),
    "random nodes": (DEFAULT, TWO),
    "uneven": (DEFAULT, TWO | {"batch_nodes": 10}),  # three batches: the last step has one
    "decorrelation": (DEFAULT, TWO | {"objective": "decorrelation", "drop": "entries"}),
    "infomax": (PAPER, TWO | {"objective": "infomax", "drop": "entries"}),
    "weight decay": (PAPER, TWO | {"weight_decay": 0.1}),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def mean_by_a_loop(kind: dict, change: dict, which: str) -> list[np.ndarray]:
    """The mean gradient over the batches of the first step, from `autograd.grad` of one batch after the other."""
    training = works.begun(kind, change)
    network, settings = training.network, training.settings
    sources = works.first_step(training)
    learning = training.theta_w if which == "w" else training.theta_a
    total = [np.zeros(tuple(p.shape)) for p in learning]
    name, most = ("weights", settings.loss_nodes) if which == "w" else ("rates", settings.rate_nodes)
    for place, source in enumerate(sources):
        own = generator_of("cpu", settings.seed, 0, place, name)
        of_rates = generator_of("cpu", settings.seed, 0, name, "rates")
        found = network.outcome(source.graph, own, most, of_rates)
        if which == "w":
            loss = found.loss + network.weight_decay()
        else:
            loss = network.kl() - network.objective.adversary(found, settings.shared_information)
        for sum_, grad in zip(total, torch.autograd.grad(loss, learning, allow_unused=True), strict=True):
            sum_ += 0 if grad is None else grad.double().numpy() / len(sources)
    return total


@kinds
def test_the_gradients_of_both_steps_are_the_mean_of_those_of_the_batches(pair, kind):
    alone, together = works.gradients(*KINDS[kind]), pair.run(works.gradients, *KINDS[kind])
    assert alone.keys() == {"w", "a"}
    for which in alone:
        expected = mean_by_a_loop(*KINDS[kind], which)
        assert any(each.any() for each in expected)
        for found in (alone, *together):
            for one, other in zip(found[which], expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@kinds
def test_two_processes_train_the_model_of_one_bit_for_bit(pair, kind):
    tensors, history, _ = works.fit(*KINDS[kind])
    for others, of_other, _ in pair.run(works.fit, *KINDS[kind]):
        assert of_other == history
        assert tensors.keys() == others.keys()
        for name in tensors:
            assert np.array_equal(tensors[name], others[name]), name


def test_three_batches_in_two_processes_differ_by_rounding_alone(pair):
    change = {"batches_per_step": 3, "batch_nodes": 6}
    tensors, history, _ = works.fit(DEFAULT, change)
    for others, of_other, _ in pair.run(works.fit, DEFAULT, change):
        assert of_other[0]["loss"] == pytest.approx(history[0]["loss"], abs=1e-5)
        for name in tensors:
            np.testing.assert_allclose(others[name], tensors[name], atol=1e-4)


@pytest.mark.parametrize("first", ["one", "two"])
def test_a_run_of_one_number_of_processes_goes_on_with_another(pair, tmp_path, first):
    kind, change = KINDS["random nodes"]
    uninterrupted, history, _ = works.fit(kind, change | {"epochs": 5})
    begin, go_on = (kind, change | {"epochs": 2}, str(tmp_path)), (kind, change | {"epochs": 5}, str(tmp_path), True)
    if first == "one":
        works.fit(*begin)
        ended = pair.run(works.fit, *go_on)
    else:
        pair.run(works.fit, *begin)
        ended = [works.fit(*go_on)]
    for tensors, of_run, _ in ended:
        assert of_run == history
        assert all(np.array_equal(tensors[name], uninterrupted[name]) for name in uninterrupted)
    saved = BGCL.load(tmp_path)
    assert all(torch.equal(tensor, torch.from_numpy(uninterrupted[name])) for name, tensor in parameters(saved).items())
    assert not list(tmp_path.glob(".*")), "a process left something behind"


def test_training_that_settles_ends_at_the_same_epoch(pair):
    change = TWO | {"epochs": None, "until_settled": True, "batch_nodes": 6}
    _, history, epochs = works.fit(DEFAULT, change)
    assert 1 < epochs < 300
    assert [found[1] for found in pair.run(works.fit, DEFAULT, change)] == [history] * 2


def both_refuse(found: list, text: str) -> None:
    assert [kind for kind, _ in found] == ["BGCLError", "SaidElsewhereError"], found
    assert all(text in said for _, said in found), found


def test_processes_that_disagree_about_settings_stop(pair):
    other = [TWO | {"tau": 0.2, "seed": 1}, TWO | {"tau": 0.3, "seed": 2}]
    both_refuse(
        pair.run(works.fit_other, other, False), "Process 1 does not agree with process 0 about 'tau' and 'seed'"
    )
    free = [TWO | {"memory_budget": 5}, TWO | {"memory_budget": 6}]
    assert pair.run(works.fit_other, free, False) == [4, 4]


def test_processes_that_disagree_about_the_graph_stop(pair):
    both_refuse(pair.run(works.fit_other, [TWO, TWO], True), "about the graph, so all have stopped")


def test_more_processes_than_batches_in_a_step_are_refused(pair):
    both_refuse(pair.run(works.fit_other, [{}, {}], False), "There are 2 processes, but a step has 1 batch to share")


def test_a_setting_that_is_wrong_in_one_process_stops_all(pair):
    wrong = [TWO, TWO | {"batches": 31}]
    both_refuse(pair.run(works.fit_other, wrong, False), "Process 1: The setting 'batches' is 31, more than")


def test_a_loss_that_is_not_finite_stops_all(pair):
    wide = {"batch_nodes": 12, "lr_weights": 1.0, "tau": 0.02, "row_norm": "none", "norm": "none", "epochs": 300}
    found = pair.run(works.explode, DEFAULT, TWO | wide)
    assert [kind for kind, _ in found] == ["TrainingError", "SaidElsewhereError"]
    assert all("The loss is" in text or "A gradient was not finite" in text for _, text in found)


def test_more_batches_in_a_step_than_in_an_epoch_are_refused():
    with pytest.raises(BGCLError, match="'batches_per_step' is 4, but an epoch of this graph has 3 batches"):
        fit(tiny_graph(), DEFAULT, batch_nodes=10, batches_per_step=4)


def test_a_step_of_several_batches_counts_once():
    """So the default's 300 steps are as many steps, and a step of the drop rates follows every n-th."""
    settings = make(DEFAULT, epochs=None, until_settled=False, batch_nodes=10, batches_per_step=3).settings_for(
        tiny_graph()
    )
    assert settings.epochs == 300
    training = works.begun(DEFAULT, {"batch_nodes": 5, "batches_per_step": 3, "rate_every": 2})
    assert training.steps == 2
    training.step()
    assert int(training.rates.state[training.theta_a[0]]["step"]) == 1
    assert int(training.weights.state[training.theta_w[0]]["step"]) == 2


def test_the_whole_graph_several_times_in_a_step_has_other_masks_each_time():
    training = works.begun(PAPER, {"batches_per_step": 3, "epochs": 1})
    sources = works.first_step(training)
    losses = set()
    for source in sources:
        assert source.graph is training.batches.graph
        own, of_rates = source.generators("weights")
        losses.add(training.network.outcome(source.graph, own, None, of_rates).loss.item())
    assert len(losses) == 3


def test_all_batches_of_a_step_are_masked_at_the_same_rates():
    training = works.begun(DEFAULT, {"batches_per_step": 3, "batch_nodes": 10, "rate_draw": "sample"})
    sources = works.first_step(training)
    drawn = [torch.rand(4, generator=source.generators("weights")[1]).tolist() for source in sources]
    own = [torch.rand(4, generator=source.generators("weights")[0]).tolist() for source in sources]
    assert drawn[0] == drawn[1] == drawn[2]
    assert len({tuple(numbers) for numbers in own}) == 3


def test_an_encoder_with_running_statistics_is_refused(pair):
    both_refuse(pair.run(works.fit_with_running_statistics), "keeps running statistics")
