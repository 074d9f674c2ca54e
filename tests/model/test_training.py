"""Training: what each step changes, seeds, resuming, and the errors that stop a run."""

import json
import logging
import math
from dataclasses import replace
from itertools import combinations

import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, checkpoint
from bgcl.data.pyg import check_graph
from bgcl.graph.clusters import Batches
from bgcl.graph.prepared import prepare
from bgcl.model.network import Network
from bgcl.model.training import Record, Training, TrainingError, embedding_spread
from bgcl.settings import Settings

SMALL = {"widths": (8, 4), "epochs": 4, "lr_rates": 0.05, "drop": ("connections in 2 blocks", "features")}


@pytest.fixture
def graph() -> Data:
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(30, (2, 80), generator=generator)
    x = (torch.rand(30, 12, generator=generator) < 0.4).float() + torch.eye(30, 12)
    return Data(x=x, edge_index=edges, num_nodes=30)


def fit(graph: Data, **settings) -> BGCL:
    return BGCL(**SMALL | settings).fit(graph, progress=False)


def begin(graph: Data, **settings) -> Training:
    """A training before its first step."""
    chosen = Settings(**SMALL | settings)
    return Training(Network(12, chosen), Batches(prepare(check_graph(graph), row_norm="sum")), chosen)


def parameters(model: BGCL) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.network_.state_dict().items()}


def assert_equal(one: BGCL, other: BGCL) -> None:
    a, b = parameters(one), parameters(other)
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_same_seed_same_model(graph):
    assert_equal(fit(graph, seed=1), fit(graph, seed=1))


def test_other_seed_other_model(graph):
    a, b = parameters(fit(graph, seed=1)), parameters(fit(graph, seed=2))
    assert not torch.equal(a["encoder.layers.0.weight"], b["encoder.layers.0.weight"])


@pytest.mark.parametrize(
    "change",
    [
        {"mask_values": "relaxed", "rate_draw": "sample"},
        {"mask_values": "hard"},
        {"rate_nodes": 7, "loss_nodes": 11},
        {"batches": 3, "clusters_per_batch": 1},
        {"batches": 3, "clusters_per_batch": 4, "rate_nodes": 7},
    ],
    ids=str,
)
def test_resume_equals_an_uninterrupted_run(graph, tmp_path, change):
    uninterrupted = fit(graph, epochs=6, **change)
    BGCL(**SMALL | change | {"epochs": 3}).fit(graph, out=tmp_path, progress=False)
    resumed = BGCL(**SMALL | change | {"epochs": 6}).fit(graph, out=tmp_path, resume=True, progress=False)
    assert_equal(uninterrupted, resumed)
    without_time = [[replace(record, seconds=0.0) for record in m.history_] for m in (uninterrupted, resumed)]
    assert without_time[0] == without_time[1]
    lines = (tmp_path / checkpoint.HISTORY).read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4, 5, 6]


class KilledError(Exception):
    pass


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_run_that_is_killed_loses_no_finished_epoch(graph, tmp_path, epoch):
    def kill(record):
        if record.epoch == epoch:
            raise KilledError

    with pytest.raises(KilledError):
        BGCL(**SMALL).fit(graph, out=tmp_path, progress=kill)
    assert int(checkpoint.read(tmp_path).training["epoch"]) == epoch
    resumed = BGCL(**SMALL).fit(graph, out=tmp_path, resume=True, progress=False)
    assert_equal(fit(graph), resumed)


def test_history_after_the_last_complete_epoch_is_cut_off_on_resuming(graph, tmp_path):
    model = BGCL(**SMALL | {"epochs": 2}).fit(graph, out=tmp_path, progress=False)
    unfinished = json.dumps(replace(model.history_[-1], epoch=3).to_dict())
    with (tmp_path / checkpoint.HISTORY).open("a") as history:
        history.write(unfinished + '\n{"epoch": 4, "lo')
    resumed = BGCL(**SMALL).fit(graph, out=tmp_path, resume=True, progress=False)
    assert [record.epoch for record in resumed.history_] == [1, 2, 3, 4]
    assert checkpoint.read(tmp_path).history == resumed.history_


def test_the_encoder_step_changes_only_the_weights_and_the_augmentation_step_only_the_rates(graph):
    training = begin(graph)
    prepared = training.batches.graph
    groups = {"w": training.theta_w, "a": training.theta_a}

    def changed(step) -> set[str]:
        before = {name: [p.detach().clone() for p in group] for name, group in groups.items()}
        step()
        return {
            n
            for n, group in groups.items()
            if any(not torch.equal(p, q) for p, q in zip(group, before[n], strict=True))
        }

    assert changed(lambda: training._encoder_step(prepared)) == {"w"}
    for parameter in training.theta_w:
        parameter.grad = None
    assert changed(lambda: training._augmentation_step(prepared, training.rates)) == {"a"}
    assert all(parameter.grad is None for parameter in training.theta_w), "a gradient of the encoder was computed"


@pytest.mark.parametrize("mask_values", ["relaxed", "hard"])
def test_the_augmentation_step_raises_the_loss_and_the_encoder_step_lowers_it(graph, mask_values):
    """With no KL and no ceiling, the rates rise to make the views differ, whatever the encoder does."""
    wide = {"widths": (32, 16), "activation": "prelu", "drop": ("connections in 2 blocks",), "mask_values": mask_values}
    model = fit(graph, epochs=60, kl_weight=0.0, shared_information=0.0, lr_rates=0.02, lr_weights=0.001, **wide)
    first, last = (model.history_[i].rates["o"][0].mean[0][0] for i in (0, -1))
    assert last > first + 0.05
    fixed = fit(graph, epochs=60, lr_weights=0.01, **wide | {"drop": ("connections at 0.2",)})
    losses = [record.loss for record in fixed.history_]
    assert sum(losses[-10:]) < sum(losses[:10])


def test_a_strong_augmentation_stops_at_the_ceiling_and_without_one_the_views_share_nothing(graph):
    """The loss of views that share nothing is `log(2N - 1)`. Without a ceiling the rates drive the loss to it."""
    strong = {"widths": (32, 16), "activation": "prelu", "drop": ("connections in 2 blocks",), "tau": 0.4}
    strong |= {"epochs": 80, "kl_weight": 0.0, "lr_rates": 0.05, "lr_weights": 0.005}
    nothing, late = math.log(2 * 30 - 1), {}
    for share in (0.0, 0.2, 0.4):
        losses = [record.loss for record in fit(graph, shared_information=share, **strong).history_]
        late[share] = sum(losses[-40:]) / 40
    assert late[0.0] == pytest.approx(nothing, abs=0.05)
    for share in (0.2, 0.4):
        assert late[share] == pytest.approx(nothing - share / 0.4, abs=0.25)


@pytest.mark.parametrize("mask_values", ["relaxed", "hard"])
def test_the_masks_of_both_steps_have_the_values_that_the_setting_names(graph, mask_values):
    training = begin(graph, drop=("connections in 2 blocks", "features"), mask_values=mask_values)
    seen = []

    def look(layer, inputs):
        mask = inputs[2]
        seen.extend(keep.detach().flatten() for keep in (mask.connections, mask.columns) if keep is not None)

    for layer in training.network.encoder.layers:
        layer.register_forward_pre_hook(look)
    training.step()
    assert len(seen) == 2 * 2 * 3  # two steps of two views, each with the connections of two layers and the columns
    for keep in seen:
        strictly_between = (keep > 0) & (keep < 1)
        assert bool(strictly_between.any()) == (mask_values == "relaxed")
        assert ((keep >= 0) & (keep <= 1)).all()
    assert all(torch.isfinite(p.grad).all() and (p.grad != 0).all() for p in training.theta_a)


@pytest.mark.parametrize("setting", ["rate_nodes", "loss_nodes"])
def test_a_step_uses_all_nodes_if_the_setting_allows_as_many(graph, setting):
    """Bit for bit, including the state of the generator: no nodes are chosen at random. None allows all nodes."""
    states = []
    for most in (30, 31, 10_000, None):
        training = begin(graph, **{setting: most})
        objectives = [training.step().objective for _ in range(2)]
        states.append((objectives, [p.detach() for p in training.theta_a + training.theta_w], training.state()))
    for objectives, parameters_, state in states[1:]:
        assert objectives == states[0][0]
        assert all(torch.equal(p, q) for p, q in zip(parameters_, states[0][1], strict=True))
        assert torch.equal(state["generator"], states[0][2]["generator"])


@pytest.mark.parametrize("setting", ["rate_nodes", "loss_nodes"])
def test_a_step_that_may_use_few_nodes_has_the_loss_of_a_random_subset(graph, setting):
    """The whole graph is encoded. A comparison with the losses of all subsets shows which nodes were chosen."""
    tiny = graph.subgraph(torch.arange(8))
    distinct = {"activation": "prelu", "mask_values": "relaxed"}  # no two nodes have the same embedding
    training = begin(tiny, **{setting: 5}, shared_information=0.0, kl_weight=0.5, **distinct)
    network, prepared, chosen = training.network, training.batches.graph, set()
    for _ in range(6):
        state = training.generator.get_state()
        with torch.no_grad():
            o, t = network.views(prepared, torch.Generator().set_state(state))
            subsets = {s: float(network.loss(o[list(s)], t[list(s)])) for s in combinations(range(8), 5)}
            kl = float(network.augmentation.kl())
        if setting == "rate_nodes":
            seen = training._augmentation_step(prepared, training.rates) + 0.5 * kl
        else:
            seen, _ = training._encoder_step(prepared)
        matches = [s for s, loss in subsets.items() if loss == pytest.approx(seen, abs=1e-5)]
        assert len(matches) == 1
        chosen.add(matches[0])
    assert len(chosen) > 1


def test_fixed_rates_make_no_augmentation_step(graph):
    model = fit(graph, drop=("edges at 0.2/0.4", "features at 0.3"))
    assert all(record.objective is None for record in model.history_)
    assert model.drop_rates_["o"][0].mean == ((pytest.approx(0.2),),)
    assert model.drop_rates_["t"][0].mean == ((pytest.approx(0.4),),)


def test_a_large_kl_weight_holds_the_posterior_at_the_prior(graph):
    model = fit(graph, epochs=200, kl_weight=1000.0, prior=(2.0, 1.0), rate_start=(1.0, 1.5), lr_rates=0.05)
    rate = model.drop_rates_["o"][0]
    assert rate.a[0][0] == pytest.approx(2.0, abs=0.1)  # Kumaraswamy(2, 1) is Beta(2, 1)
    assert rate.b[0][0] == pytest.approx(1.0, abs=0.1)


def test_training_stops_when_the_loss_is_not_finite(graph, tmp_path):
    graph.x = torch.full((30, 200), 3e38)
    with pytest.raises(TrainingError, match=r"The loss is (nan|inf).* in epoch 1.*'lr_weights'.*'tau'"):
        BGCL(**SMALL | {"row_norm": "none"}).fit(graph, out=tmp_path, progress=False)


def test_a_collapse_gives_one_warning(graph, caplog):
    graph.x = torch.ones(30, 12)
    graph.edge_index = torch.combinations(torch.arange(30)).t()
    with caplog.at_level(logging.WARNING, "bgcl"):
        fit(graph, drop=("connections at 0",))
    assert [record.message.split(":")[0] for record in caplog.records] == ["The embeddings have collapsed"]


def test_spread_is_zero_when_all_nodes_point_the_same_way_and_one_when_they_cancel():
    direction = torch.randn(1, 5)
    assert embedding_spread(direction * torch.rand(7, 1).add(0.1)) == pytest.approx(0, abs=1e-6)
    assert embedding_spread(torch.cat([torch.eye(4), -torch.eye(4)])) == pytest.approx(1)


@pytest.mark.parametrize("clusters", [1, 4, 20])
def test_cluster_batches_train_on_every_part(graph, clusters):
    model = fit(graph, batches=3, clusters_per_batch=clusters)
    assert all(record.loss > 0 for record in model.history_)
    assert_equal(model, fit(graph, batches=3, clusters_per_batch=clusters))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tau": 0.5}, "other settings \\(tau\\)"),
        ({"epochs": 1}, "is at epoch 2 already"),
    ],
)
def test_resuming_with_other_settings_is_refused(graph, tmp_path, change, message):
    BGCL(**SMALL | {"epochs": 2}).fit(graph, out=tmp_path, progress=False)
    with pytest.raises(BGCLError, match=message):
        BGCL(**SMALL | change).fit(graph, out=tmp_path, resume=True, progress=False)


def test_resuming_on_another_graph_is_refused(graph, tmp_path):
    BGCL(**SMALL).fit(graph, out=tmp_path, progress=False)
    graph.x = graph.x.flip(0)
    with pytest.raises(BGCLError, match="trained on another graph"):
        BGCL(**SMALL).fit(graph, out=tmp_path, resume=True, progress=False)


@pytest.mark.parametrize("change", [{}, {"drop": ("edges at 0.2",)}], ids=["learned", "fixed"])
def test_a_record_is_the_same_after_json(graph, change):
    for record in fit(graph, **change).history_:
        assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record
        assert list(record.to_dict()) == ["epoch", "loss", "objective", "kl", "spread", "seconds", "rates"]
