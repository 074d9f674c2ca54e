"""The whole model: its views, draws and embeddings, with and without parts, and what it learns from a graph."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from bgcl import BGCLError
from bgcl.graph.prepared import PreparedGraph, to_dense
from bgcl.model.network import Network
from bgcl.model.objectives.base import Outcome
from bgcl.model.propagation import Propagation
from bgcl.settings import make_settings
from small import in_turn, make_graph, random_adjacency, random_features, random_graph, seeded

OBJECTIVES = ["infonce", "decorrelation", "bootstrap", "infomax"]


def ready(graph: PreparedGraph, *, dense: bool = False, **settings: object) -> tuple[Network, PreparedGraph]:
    """A network with random weights that knows the graph, and the scaled graph."""
    small = {"widths": (8, 4), "part_width": 3} | settings
    network = Network(to_dense(graph.features).shape[1], make_settings(**small), dense=dense)
    scaled = network.fit_graph(graph, seeded(0))
    network.reset_parameters(seeded(1))
    return network, scaled


def words(nodes: int = 12, *, sparse: bool = False) -> PreparedGraph:
    counts = (np.random.default_rng(0).random((nodes, 5)) < 0.5).astype(float)
    counts[:, 0] = 1
    return make_graph(random_adjacency(nodes), counts, sparse=sparse, double=False)


def test_the_networks_kl_is_multiplied_by_kl_weight():
    for encoder in ("gcn", "mlp"):
        settings = make_settings(
            encoder=encoder,
            rate_rule="adversary",
            drop="connections",
            widths=(4, 3),
            rate_start=(2.0, 1.0),
            kl_weight=0.1,
        )
        assert Network(5, settings).kl().item() == pytest.approx(0.1 * 2 * (math.log(2) - 0.5), rel=1e-5)


@pytest.mark.parametrize("encoder", ["gcn", "mlp", "hops", "sage", "gin", "gat", "pyg:GraphConv"])
def test_a_network_that_drops_nothing_has_equal_views(encoder):
    network, graph = ready(words(), encoder=encoder, drop=["connections at 0", "features at 0"])
    o, t = (network.encode(view, graph, in_turn(2)) for view in ("o", "t"))
    torch.testing.assert_close(o, t)
    torch.testing.assert_close(o, network.encoder(graph))
    for view in ("o", "t"):
        torch.testing.assert_close(network.draw(view, graph, in_turn(2)), network.embed(graph))


def test_infomax_is_refused_with_an_encoder_that_cannot_notice_shuffled_attributes():
    with pytest.raises(BGCLError, match=r"does not notice\. Choose another encoder, such as 'gcn'"):
        ready(words(), encoder="mlp", objective="infomax", drop="entries")


@pytest.mark.parametrize("encoder", ["mlp", "hops", "sage", "gin", "gat"])
def test_a_normalization_that_the_encoder_does_not_have_is_refused(encoder):
    with pytest.raises(BGCLError, match=f"The encoder '{encoder}' normalizes after masking"):
        ready(words(), encoder=encoder, normalize="before")


@pytest.mark.parametrize(
    ("encoder", "objective"), [(e, o) for e in ("mlp", "gcn") for o in OBJECTIVES if (e, o) != ("mlp", "infomax")]
)
def test_every_objective_has_an_outcome_with_gradients_for_weights_and_rates(encoder, objective):
    network, graph = ready(words(), encoder=encoder, objective=objective, drop="entries", rate_rule="adversary")
    found = network.outcome(graph, seeded(2))
    assert isinstance(found, Outcome)
    assert found.embeddings.shape == (12, network.encoder.width)
    assert found.nodes == 12
    weights, rates = list(network.encoder.parameters()), list(network.augmentation.parameters())
    of_weights = torch.autograd.grad(found.loss, weights, retain_graph=True)
    of_rates = torch.autograd.grad(network.objective.adversary(found, 0.3), rates)
    for gradient in (*of_weights, *of_rates):
        assert torch.isfinite(gradient).all()
        assert gradient.abs().max() > 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_may_have_fewer_nodes(objective):
    network, graph = ready(
        words(), encoder="gcn" if objective == "infomax" else "mlp", objective=objective, drop="entries"
    )
    assert network.outcome(graph, seeded(2), 5).nodes == (12 if objective == "infomax" else 5)  # whose loss is cheap
    assert network.outcome(graph, seeded(2), 12).nodes == 12
    assert network.outcome(graph, seeded(2), 99).loss.item() == network.outcome(graph, seeded(2)).loss.item()


def test_the_embedding_of_the_papers_encoder_is_its_output_as_it_is():
    network, graph = ready(random_graph(9, 5, double=False), encoder="gcn")
    assert network.parts.widths == (4,)
    torch.testing.assert_close(network.embed(graph), network.encoder(graph), rtol=0, atol=0)
    for view in ("o", "t"):
        draw, encoded = (f(view, graph, in_turn(3), scale=0.5) for f in (network.draw, network.encode))
        assert torch.equal(draw, encoded)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_embedding_of_the_default_has_parts_of_the_attributes_the_structure_and_the_encoder(sparse):
    network, graph = ready(words(sparse=sparse))
    sources = [sentence.split()[0] for sentence in network.settings.parts]
    assert set(sources) == {"attributes", "structure", "encoder"}
    assert network.parts.widths == tuple(8 if source == "encoder" else 3 for source in sources)  # two members
    embedded = network.embed(graph)
    parts = dict(zip(network.settings.parts, embedded.split(network.parts.widths, dim=1), strict=True))
    encoded = network.encoder(graph)
    members = [F.normalize(member, dim=1) for member in encoded.chunk(2, 1)]
    torch.testing.assert_close(parts["encoder"], torch.cat(members, 1) / 2**0.5)
    among = {name: Propagation(alike) for name, alike in network.parts.alike(graph, encoded).items()}
    torch.testing.assert_close(embedded, network.parts(graph, encoded, None, None, among))


def test_a_draw_of_the_default_has_the_masks_of_the_encoder_in_its_other_parts():
    """By hand: the encoder's masks, then the neighbors that are kept, both from the same generator."""
    network, graph = ready(words(), drop=["entries at 0.4", "neighbors at 0.5"])
    drawn, noise = network.draw("o", graph, in_turn(3)), in_turn(3)
    masks = network.augmentation.draw("o", graph, network.encoder.inputs(graph), noise)

    def neighbors(of: PreparedGraph) -> torch.Tensor:
        uniform = noise.edges(of)
        return ((uniform > 0.5) | of.is_self).float()

    kept, encoded = neighbors(graph), network.encoder(graph, masks)
    alike = network.parts.alike(graph, network.encoder(graph))  # by the encoder without masks
    among = {name: Propagation(of, neighbors(of)) for name, of in alike.items()}
    torch.testing.assert_close(drawn, network.parts(graph, encoded, masks, kept, among))
    assert 0 < kept.mean() < 1
    whole = {name: Propagation(of) for name, of in alike.items()}
    assert not torch.allclose(drawn, network.parts(graph, encoded, masks, None, among))
    assert not torch.allclose(drawn, network.parts(graph, encoded, masks, kept, whole))


@pytest.mark.parametrize("encoder", ["mlp", "gcn"])
def test_dropped_connections_are_left_out_of_the_parts(encoder):
    """All blocks of the last layer's mask together, and kept neighbors if there are such masks too."""
    drop = ["connections in 2 blocks at 0.4"] + (["neighbors at 0.3"] if encoder == "mlp" else [])
    parts = ("encoder hop 1", "attributes hop 1")
    network, graph = ready(words(), encoder=encoder, drop=drop, parts=parts, row_norm="length")
    drawn, noise = network.draw("t", graph, in_turn(3)), in_turn(3)
    masks = network.augmentation.draw("t", graph, network.encoder.inputs(graph), noise)
    kept = masks[-1].connections.mean(1, keepdim=True)
    if encoder == "mlp":
        uniform = noise.edges(graph)
        kept = kept * ((uniform > 0.3) | graph.is_self)
    torch.testing.assert_close(drawn, network.parts(graph, network.encoder(graph, masks), masks, kept))


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_neighbors_are_dropped_at_a_fraction_of_their_rate_in_draws(scale):
    """On a graph with many edges, the share of dropped neighbors of a draw is `scale` times the rate."""
    nodes = 80
    graph = make_graph(1 - np.eye(nodes), np.ones((nodes, 1)), double=False)
    network, graph = ready(graph, drop="neighbors at 0.6/0.9")
    for view, rate in (("o", 0.6), ("t", 0.9)):
        positives = network.augmentation.draw_positives(view, graph, in_turn(0), hard=True, scale=scale)
        dropped = float((positives.weights[~graph.is_self[:, 0]] == 0).double().mean())
        assert dropped == pytest.approx(scale * rate, abs=0.02)


def test_a_network_learns_scales_and_directions_from_a_graph():
    graph = words()
    network, scaled = ready(graph)
    assert (network.scaling.weight != 1).any()
    np.testing.assert_allclose(to_dense(scaled.features).norm(dim=1), 1, atol=1e-5)
    assert scaled.connections is graph.connections
    assert network.parts.directions_0.abs().max() > 0
    assert torch.equal(to_dense(network.scaling(graph).features), to_dense(scaled.features))


def test_dense_numbers_have_more_inputs_of_the_neighborhood_and_the_papers_encoder_has_not():
    graph = make_graph(random_adjacency(12), random_features(12, 5) - 1, double=False)
    network, scaled = ready(graph, dense=True, members=1)
    assert to_dense(scaled.features).shape == (12, network.scaling.width) == (12, 18)
    assert network.encoder.layers[0].weight.shape == (18, 8)
    assert network.embed(scaled).shape == (12, sum(network.parts.widths))
    paper, scaled = ready(graph, dense=True, encoder="gcn")
    assert to_dense(scaled.features).shape == (12, 5)
    assert paper.encoder.layers[0].weight.shape == (5, 8)


def test_the_slow_copy_of_the_bootstrap_starts_as_the_encoder():
    network, graph = ready(words(), objective="bootstrap", members=1)
    slow = [module for module in network.objective.modules() if type(module) is type(network.encoder)]
    assert len(slow) == 1
    torch.testing.assert_close(slow[0](graph), network.encoder(graph))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_same_generator_gives_the_same_parameters(objective):
    states = []
    for seed in (0, 0, 1):
        network = Network(5, make_settings(encoder="gcn", objective=objective, widths=(6, 4)))
        network.reset_parameters(seeded(seed))
        states.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


@pytest.mark.parametrize("scale", [1e19, 1e36])
def test_signed_attributes_that_stay_too_great_are_refused_with_a_remedy(scale):
    graph = words()
    signed = replace(graph, features=to_dense(graph.features) * -scale)
    with pytest.raises(BGCLError, match=r"too great to be trained on as it is\. Divide the attributes"):
        ready(signed, encoder="gcn", row_norm="none")
    ready(signed, encoder="gcn", row_norm="length")
