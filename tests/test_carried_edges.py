"""What edges carry is used: weights, directions and types."""

import logging

import numpy as np
import pytest
import torch
from torch_geometric.nn import GraphConv

import bgcl
from bgcl import BGCL, BGCLError
from bgcl.data import check_graph
from bgcl.data.facts import GraphFacts
from bgcl.data.options import make_options
from bgcl.data.own import read_files
from carried import accuracy, directed_graph, graph_of_two_kinds, typed_graph, weighted_graph, write_tables
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
    assert accuracy(data) > accuracy(plain) + 0.1


def test_directions_carry_the_signal():
    data = directed_graph()
    assert accuracy(bgcl.graph_from(data, directed=True)) > accuracy(data) + 0.1


def test_types_carry_the_signal():
    data = typed_graph()
    plain = data.clone()
    del plain.edge_type
    assert accuracy(data) > accuracy(plain) + 0.1


def test_types_of_nodes_carry_the_signal():
    data = graph_of_two_kinds()
    plain = data.clone()
    del plain.node_type
    assert check_graph(data).relations == ["film - film", "film - user", "user - user"]
    assert accuracy(data) > accuracy(plain) + 0.1


@pytest.mark.parametrize("carried", ["edge_weight", "edge_type", "directions"])
@pytest.mark.parametrize("encoder", ["gcn", "hops", "sage", "gin", "gat"])
def test_they_carry_the_signal_for_other_encoders(encoder, carried):
    settings = {"encoder": encoder, "lr_weights": 0.01}
    if carried == "directions":
        plain = directed_graph()
        data = bgcl.graph_from(plain, directed=True)
    else:
        data = weighted_graph() if carried == "edge_weight" else typed_graph()
        plain = data.clone()
        delattr(plain, carried)
    assert accuracy(data, **settings) > accuracy(plain, **settings) + 0.05


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
        found = model.embed(plain)
        assert "trained on edges with weights, and this graph has none" in caplog.text
        plain.edge_weight = torch.ones(60)
        assert torch.equal(model.embed(plain), found)


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


@pytest.mark.parametrize("kind", SEVERAL)
def test_one_type_of_edges_gives_the_model_without_types_bit_for_bit(kind):
    data = small_data()
    typed = data.clone()
    typed.edge_type, typed.edge_weight = torch.full((60,), 4), torch.ones(60)
    models = [BGCL(**SEVERAL[kind]).fit(each, progress=False) for each in (data, typed)]
    assert torch.equal(models[0].embed(data), models[1].embed(typed))
    assert torch.equal(models[0].sample(data, 3), models[1].sample(typed, 3))
    assert models[0].graph_ == models[1].graph_


def small_typed() -> torch.Tensor:
    data = small_data()
    data.edge_type, data.edge_weight = torch.arange(60) % 2, torch.arange(1.0, 61)
    return data


@pytest.mark.parametrize("kind", SEVERAL)
def test_a_model_of_types_is_saved_resumes_and_refuses_other_types(kind, tmp_path):
    data = small_typed()
    model = BGCL(**SEVERAL[kind]).fit(data, out=tmp_path, progress=False)
    loaded = BGCL.load(tmp_path)
    assert loaded.graph_.relations == model.graph_.relations == ("0", "1")
    assert torch.equal(loaded.sample(data, 3), model.sample(data, 3))
    longer = SEVERAL[kind] | {"epochs": 3}
    other = data.clone()
    other.edge_type = 1 - data.edge_type
    with pytest.raises(BGCLError, match="trained on another graph"):
        BGCL(**longer).fit(other, out=tmp_path, resume=True, progress=False)
    resumed = BGCL(**longer).fit(data, out=tmp_path, resume=True, progress=False)
    assert torch.equal(resumed.embed(data), BGCL(**longer).fit(data, progress=False).embed(data))


def test_the_relations_of_another_graph_are_found_by_their_names(caplog):
    data = small_typed()
    data.edge_type_names = ["cites", "writes"]
    model = small_model(data, "default")
    other = data.clone()
    other.edge_type, other.edge_type_names = 1 - data.edge_type, ["writes", "cites"]
    assert torch.equal(model.embed(other), model.embed(data))
    other.edge_type, other.edge_type_names = torch.arange(60) % 3, ["cites", "writes", "reads"]
    with caplog.at_level(logging.WARNING, "bgcl"):
        model.embed(other)
    assert "not trained on the relations reads" in caplog.text
    with pytest.raises(BGCLError, match="trained on edges of 2 relations"):
        model.embed(small_data())
    plain = small_model(small_data(), "default")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "bgcl"):
        plain.embed(data)
    assert "not trained on the relations cites, writes" in caplog.text


def test_each_relation_has_parts_and_drop_rates_of_its_own():
    model = small_model(small_typed(), "default")
    parts = BGCL(epochs=1, part_width=3, widths=(8, 4)).fit(small_typed(), progress=False)
    assert model.settings_.drop == ("entries", "neighbors")  # given, so it stays
    assert parts.settings_.drop == ("entries", "neighbors per relation")
    assert [np.shape(rate.mean) for rate in parts.drop_rates_["o"]] == [(1, 1), (1, 2)]
    assert len(parts.parts_) == 9 + 2 * 3


def test_a_setting_for_relations_needs_some():
    for settings in ({"drop": ["neighbors per relation"]}, {"parts": ["encoder", "encoder hop 1 of each relation"]}):
        with pytest.raises(BGCLError, match="The graph has one kind of edges"):
            BGCL(epochs=1, **settings).fit(small_data(), progress=False)


def test_an_encoder_of_ones_own_gets_weights_and_all_relations_as_one_which_is_said(caplog):
    data = small_typed()
    untyped = data.clone()
    del untyped.edge_type
    embeddings = []
    for graph in (data, untyped):
        with caplog.at_level(logging.WARNING, "bgcl"):
            model = BGCL(encoder=GraphConv(10, 4), drop=["edges"], epochs=1).fit(graph, progress=False)
        embeddings.append(model.embed(graph))
    assert torch.equal(*embeddings)
    assert caplog.text.count("does not use their types and directions") == 1


def test_a_relation_of_noise_is_dropped_more_often():
    """Alike nodes explain edges within a class. Edges that lead anywhere are noise."""
    data = typed_graph(600)
    random = data.edge_type == 1
    data.edge_index[1, random] = torch.randint(600, (int(random.sum()),), generator=torch.Generator().manual_seed(0))
    model = BGCL(epochs=1, part_width=8, widths=(8, 4)).fit(data, progress=False)
    within, noise = model.draw_rates_["o"][1].mean[0]
    assert within < noise - 0.1


@pytest.mark.parametrize(
    ("graph", "column", "options"),
    [
        (weighted_graph, "edge_weight", {"weight": "carried"}),
        (typed_graph, "edge_type", {"edge_type": "carried"}),
        (directed_graph, None, {"directed": True}),
    ],
)
def test_tables_carry_the_same_as_data(tmp_path, graph, column, options):
    data = graph(60)
    write_tables(data, tmp_path, column)
    reading = read_files(tmp_path, options=make_options(**options))
    expected = bgcl.graph_from(data, directed=options.get("directed", False))
    for field in ("edge_index", "edge_weight", "edge_relations"):
        assert (field in reading.data) == (field in expected)
        assert field not in expected or torch.allclose(reading.data[field], expected[field])
    assert reading.data.get("relations") == expected.get("relations")
    again = read_files(tmp_path, recipe=reading.recipe)
    assert GraphFacts.of(again.data) == GraphFacts.of(reading.data)
