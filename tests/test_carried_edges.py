"""What edges carry is used: weights."""

import logging

import pytest
import torch

import bgcl
from bgcl import BGCL, BGCLError
from bgcl.data import check_graph
from carried import accuracy, weighted_graph
from trained import KINDS, small_data, small_model

SMALL = {"epochs": 2, "widths": (8, 4), "activation": "prelu"}
OTHERS = {name: {"encoder": name, **SMALL} for name in ("hops", "sage", "gin", "gat", "pyg:GraphConv")}
CLUSTERS = {"encoder": "gcn", "batches": 2, "clusters_per_batch": 2, **SMALL}
SEVERAL = {**KINDS, **OTHERS, "clusters": CLUSTERS}


@pytest.mark.parametrize("kind", SEVERAL)
def test_equal_weights_give_the_model_without_weights_bit_for_bit(kind):
    data = small_data()
    with_ones = data.clone()
    with_ones.edge_weight = torch.ones(60)
    models = [BGCL(**SEVERAL[kind]).fit(each, progress=False) for each in (data, with_ones)]
    assert torch.equal(models[0].embed(data), models[1].embed(with_ones))
    assert torch.equal(models[0].sample(data, 3), models[1].sample(with_ones, 3))
    assert models[0].graph_ == models[1].graph_


@pytest.mark.parametrize("kind", SEVERAL)
def test_every_encoder_uses_weights_and_their_unit_does_not_matter(kind):
    data = small_data()
    data.edge_weight = torch.arange(1.0, 61)
    model = BGCL(**SEVERAL[kind]).fit(data, progress=False)
    plain = data.clone()
    plain.edge_weight = torch.full((60,), 30.5)  # the mean
    assert not torch.allclose(model.embed(data), model.embed(plain))
    in_halves = data.clone()
    in_halves.edge_weight = data.edge_weight / 2
    other = BGCL(**SEVERAL[kind]).fit(in_halves, progress=False)
    assert torch.equal(model.embed(data), other.embed(in_halves))


def test_weights_carry_the_signal():
    data = weighted_graph()
    plain = data.clone()
    del plain.edge_weight
    assert accuracy(data) > accuracy(plain) + 0.3


@pytest.mark.parametrize("encoder", ["gcn", "hops", "sage", "gin", "gat"])
def test_weights_carry_the_signal_for_other_encoders(encoder):
    settings = {"encoder": encoder, "lr_weights": 0.01}
    data = weighted_graph()
    plain = data.clone()
    del plain.edge_weight
    assert accuracy(data, **settings) > accuracy(plain, **settings) + 0.1


def test_another_graph_is_measured_in_the_units_of_the_training_graph():
    data = small_data()
    data.edge_weight = torch.arange(1.0, 61)
    model = small_model(data, "default")
    heavy = data.clone()
    heavy.edge_weight = data.edge_weight * 7
    assert not torch.allclose(model.embed(data), model.embed(heavy))


def test_weights_that_only_one_of_two_graphs_has_are_not_dropped_in_silence(caplog):
    plain, weighted = small_data(), small_data()
    weighted.edge_weight = torch.arange(1.0, 61)
    with caplog.at_level(logging.WARNING, "bgcl"):
        model = small_model(plain, "default")
        assert torch.equal(model.embed(weighted), model.embed(plain))
        assert "trained on edges without weights, so the weights of this graph are not used" in caplog.text
        caplog.clear()
        model = small_model(weighted, "default")
        assert not caplog.text
        model.embed(plain)
        assert "trained on edges with weights, and this graph has none" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_embeds_with_weights_and_other_weights_cannot_resume(kind, tmp_path):
    data = small_data()
    data.edge_weight = torch.arange(1.0, 61)
    model = BGCL(**KINDS[kind]).fit(data, out=tmp_path, progress=False)
    loaded = BGCL.load(tmp_path)
    assert loaded.graph_.mean_weight == model.graph_.mean_weight > 0
    assert torch.equal(loaded.sample(data, 3), model.sample(data, 3))
    longer = KINDS[kind] | {"epochs": 3}
    other = data.clone()
    other.edge_weight = data.edge_weight.flip(0)
    with pytest.raises(BGCLError, match="trained on another graph"):
        BGCL(**longer).fit(other, out=tmp_path, resume=True, progress=False)
    resumed = BGCL(**longer).fit(data, out=tmp_path, resume=True, progress=False)
    assert torch.equal(resumed.embed(data), BGCL(**longer).fit(data, progress=False).embed(data))


def test_inspect_says_what_edges_weigh():
    data = small_data()
    data.edge_weight = torch.arange(1.0, 61)
    weights = check_graph(data).edge_weight
    found = bgcl.inspect(data).weights
    assert found["least"] == float(weights.min())
    assert found["greatest"] == float(weights.max())
