"""Training: what each step changes, seeds, resuming, and the errors that stop a run."""

import dataclasses
import json
import logging
import math
from itertools import combinations

import pytest
import torch
from torch_geometric.data import Data

from bgcl.augmentation.noise import NoiseStream
from bgcl.data.pyg import check_graph
from bgcl.graph.clusters import Batches
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import prepare
from bgcl.model.network import Network
from bgcl.model.objectives.infonce import contrastive_loss
from bgcl.model.training import Record, Training, TrainingError, embedding_spread
from training import DEFAULT, PAPER, assert_equal, begin, both, fit, make, parameters, tiny_graph, whole


@pytest.fixture
def graph() -> Data:
    return tiny_graph()


@both
def test_same_seed_same_model(graph, kind):
    assert_equal(fit(graph, kind, seed=1), fit(graph, kind, seed=1))


@both
def test_other_seed_other_model(graph, kind):
    a, b = parameters(fit(graph, kind, seed=1)), parameters(fit(graph, kind, seed=2))
    first = next(name for name in a if name.startswith("encoder."))
    assert not torch.equal(a[first], b[first])


@both
def test_the_encoder_step_changes_only_the_weights_and_the_augmentation_step_only_the_rates(graph, kind):
    training = begin(graph, kind)
    groups = {"w": training.theta_w, "a": training.theta_a}

    def changed(step) -> set[str]:
        before = {name: [p.detach().clone() for p in group] for name, group in groups.items()}
        step()
        return {
            n
            for n, group in groups.items()
            if any(not torch.equal(p, q) for p, q in zip(group, before[n], strict=True))
        }

    assert changed(lambda: training._encoder_step(whole(training))) == {"w"}
    for parameter in training.theta_w:
        parameter.grad = None
    assert changed(lambda: training._augmentation_step(whole(training), training.rates)) == {"a"}
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


@both
@pytest.mark.parametrize("setting", ["rate_nodes", "loss_nodes"])
def test_a_step_uses_all_nodes_if_the_setting_allows_as_many(graph, setting, kind):
    """Bit for bit, including the state of the generator: no nodes are chosen at random. None allows all nodes."""
    states = []
    for most in (30, 31, 10_000, None):
        training = begin(graph, kind, **{setting: most})
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
        noise = NoiseStream(torch.Generator().set_state(training.generator.get_state()))
        with torch.no_grad():
            views = [network.objective.head(network.encode(view, prepared, noise)) for view in ("o", "t")]
            subsets = {
                s: float(contrastive_loss(*(view[list(s)] for view in views), 0.4)) for s in combinations(range(8), 5)
            }
            kl = float(network.augmentation.kl())
        if setting == "rate_nodes":
            seen = training._augmentation_step(whole(training), training.rates) + 0.5 * kl
        else:
            seen, _ = training._encoder_step(whole(training))
        matches = [s for s, loss in subsets.items() if loss == pytest.approx(seen, abs=1e-5)]
        assert len(matches) == 1
        chosen.add(matches[0])
    assert len(chosen) > 1


@pytest.mark.parametrize(
    ("kind", "drop"),
    [(PAPER, ("edges at 0.2/0.4", "features at 0.3")), (DEFAULT, ("neighbors at 0.2/0.4", "entries at 0.3"))],
    ids=["paper", "default"],
)
def test_fixed_rates_make_no_augmentation_step(graph, kind, drop):
    model = fit(graph, kind, drop=drop)
    assert all(record.objective is None for record in model.history_)
    assert model.drop_rates_["o"][0].mean == ((pytest.approx(0.2),),)
    assert model.drop_rates_["t"][0].mean == ((pytest.approx(0.4),),)


def test_a_large_kl_weight_holds_the_posterior_at_the_prior(graph):
    model = fit(graph, epochs=200, kl_weight=1000.0, prior=(2.0, 1.0), rate_start=(1.0, 1.5), lr_rates=0.05)
    rate = model.drop_rates_["o"][0]
    assert rate.a[0][0] == pytest.approx(2.0, abs=0.1)  # Kumaraswamy(2, 1) is Beta(2, 1)
    assert rate.b[0][0] == pytest.approx(1.0, abs=0.1)


@both
def test_a_rate_step_follows_every_nth_step(graph, kind):
    """The steps are counted over the epochs: an epoch of three steps has one or two drop-rate steps if n is 2."""
    how = {"batch_nodes": 10, "batches": 1} if kind is DEFAULT else {"batches": 3, "clusters_per_batch": 1}
    chosen = make(kind, **how, rate_every=2).settings_for(graph)
    prepared = prepare(check_graph(graph), row_norm="sum")
    batches = NodeBatches(prepared, 10) if kind is DEFAULT else Batches(prepared, 3, 1)
    training = Training(Network(12, chosen), batches, chosen)
    counts = []
    for _ in range(4):
        before = int(training.rates.state[training.theta_a[0]]["step"]) if training.rates.state else 0
        training.step()
        counts.append(int(training.rates.state[training.theta_a[0]]["step"]) - before)
    assert counts == [1, 2, 1, 2]


def test_an_epoch_without_a_rate_step_has_no_objective(graph):
    records = fit(graph, rate_every=3).history_
    assert [record.objective is None for record in records] == [True, True, False, True]


@pytest.mark.parametrize("mask_values", ["relaxed", "hard"])
def test_the_augmentation_of_the_default_drops_entries_and_keeps_neighbors(graph, mask_values):
    """Both raise the loss: views differ more without some entries, and neighbors are harder positives than oneself.

    The encoder learns slowly, so that it is the augmentation that moves.
    """
    free = {"kl_weight": 0.0, "shared_information": 0.0, "lr_rates": 0.02, "mask_values": mask_values}
    model = fit(graph, DEFAULT, epochs=40, lr_weights=0.001, **free)
    entries, neighbors = ([model.history_[i].rates["o"][mask].mean[0][0] for i in (0, -1)] for mask in (0, 1))
    assert entries[1] > entries[0] + 0.05
    assert neighbors[1] < neighbors[0] - 0.05


def test_the_encoder_step_of_the_default_lowers_the_loss(graph):
    fixed = fit(graph, DEFAULT, epochs=40, drop=("entries at 0.2", "neighbors at 0.2"))
    losses = [record.loss for record in fixed.history_]
    assert sum(losses[-10:]) < sum(losses[:10])


def test_the_objective_learns_with_the_encoder(graph):
    for objective in ("infonce", "bootstrap", "infomax"):
        training = begin(graph, objective=objective)
        before = [parameter.detach().clone() for parameter in training.network.objective.parameters()]
        training.step()
        after = list(training.network.objective.parameters())
        assert before
        assert any(not torch.equal(p, q) for p, q in zip(before, after, strict=True)), objective


def test_training_stops_when_the_loss_is_not_finite(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("bgcl.model.network.LARGE", math.inf)  # otherwise such attributes are refused before
    graph.x = torch.full((30, 200), 3e38)
    with pytest.raises(TrainingError, match=r"The loss is (nan|inf).* in epoch 1.*'lr_weights'.*'tau'"):
        make(row_norm="none").fit(graph, out=tmp_path, progress=False)


def test_a_collapse_gives_one_warning(graph, caplog):
    graph.x = torch.ones(30, 12)
    graph.edge_index = torch.combinations(torch.arange(30)).t()
    with caplog.at_level(logging.WARNING, "bgcl"):
        fit(graph, drop=("connections at 0",))
    assert [record.message.split(":")[0] for record in caplog.records] == ["The embeddings have collapsed"]
    assert "All nodes have the same attributes" in caplog.text


def test_a_collapse_of_nodes_that_differ_has_another_advice(graph, caplog):
    training = begin(graph)
    training._warn_of_collapse(dataclasses.replace(training.step(), spread=0.0))
    assert "Lower the drop rates" in caplog.text


def test_spread_is_zero_when_all_nodes_point_the_same_way_and_one_when_they_cancel():
    direction = torch.randn(1, 5)
    assert embedding_spread(direction * torch.rand(7, 1).add(0.1)) == pytest.approx(0, abs=1e-6)
    assert embedding_spread(torch.cat([torch.eye(4), -torch.eye(4)])) == pytest.approx(1)


@pytest.mark.parametrize("kind", [PAPER, DEFAULT | {"batch_nodes": None}], ids=["paper", "default"])
@pytest.mark.parametrize("clusters", [1, 4, 20])
def test_cluster_batches_train_on_every_part(graph, clusters, kind):
    model = fit(graph, kind, batches=3, clusters_per_batch=clusters)
    assert all(record.loss > 0 for record in model.history_)
    assert_equal(model, fit(graph, kind, batches=3, clusters_per_batch=clusters))


@both
@pytest.mark.parametrize("change", [{}, {"drop": ("entries at 0.2",)}], ids=["learned", "fixed"])
def test_a_record_is_the_same_after_json(graph, change, kind):
    for record in fit(graph, kind, **change).history_:
        assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record
        assert list(record.to_dict()) == [
            "epoch",
            "loss",
            "objective",
            "kl",
            "spread",
            "seconds",
            "rates",
            "recognized",
        ]
