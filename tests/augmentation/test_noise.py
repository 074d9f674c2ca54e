"""Counted noise: against whole numbers of Python, its distribution, and parts of a graph against the whole graph."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bgcl.augmentation.noise import CountedNoise, Noise
from bgcl.graph.clusters import induced
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.network import Network
from bgcl.settings import make_settings
from small import dense_connections, random_graph, seeded, with_relations, with_weights

WORD = 2**64


def plain_mixed(number: int, key: int) -> int:
    """The finalizer of SplitMix64, in whole numbers without signs."""
    x = (number * 0x9E3779B97F4A7C15 + key) % WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x >> 32


def plain_noise(*hashed: int) -> float:
    """The noise of some hashes that are added, in whole numbers without signs."""
    x = sum(hashed) % 2**32
    x = (x ^ x >> 16) * 0x7FEB352D % 2**32
    x = (x ^ x >> 15) * 0x846CA68B % 2**32
    x ^= x >> 16
    return (x % 2**23 + 0.5) / 2**23


@pytest.mark.parametrize("seed", [0, 2**63])
def test_noise_is_the_formula_in_whole_numbers(seed: int) -> None:
    rows = torch.tensor([0, 5, 2**40, 7, 2**62, 1, 2, 3])  # a node may have any row of a whole graph
    graph = replace(random_graph(8, 5, sparse=True), numbers=rows)
    noise = CountedNoise.of_draw(seed, 3).of("mask", 1, 0)
    row, column, block = noise.keys()
    of_row = [plain_mixed(int(v), row) for v in rows]
    of_column = [plain_mixed(int(v), column) for v in rows]
    of_attribute = [plain_mixed(f, column) for f in range(5)]
    of_block = [plain_mixed(b, block) for b in range(3)]
    where = list(zip(graph.connections.row.tolist(), graph.connections.column.tolist(), strict=True))
    edges = [[plain_noise(of_row[v], of_column[u], b) for b in of_block] for v, u in where]
    assert noise.edges(graph, 3).tolist() == edges
    assert noise.nodes(graph)[:, 0].tolist() == [plain_noise(v) for v in of_row]
    assert noise.columns(graph, 5).tolist() == [plain_noise(f) for f in of_attribute]
    assert noise.entries(graph, (8, 5)).tolist() == [[plain_noise(v, f) for f in of_attribute] for v in of_row]
    pattern = graph.features.pattern
    places = zip(pattern.row.tolist(), pattern.column.tolist(), strict=True)
    entries = [plain_noise(of_row[v], of_attribute[f]) for v, f in places]
    assert noise.entries(graph, (len(pattern),)).tolist() == entries
    assert noise.rates((1, 3), torch.device("cpu")).tolist() == [[plain_noise(b) for b in of_block]]
    assert 0 <= noise.seed() < 2**31


def test_tiles_do_not_change_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, noise = random_graph(8, 5, sparse=True), CountedNoise.of_draw(0, 0)
    size = len(graph.features.pattern)
    made: list[Callable[[], torch.Tensor]] = [
        lambda: noise.edges(graph, 3), lambda: noise.entries(graph, (8, 5)), lambda: noise.entries(graph, (size,))
    ]  # fmt: skip
    whole = [make() for make in made]
    monkeypatch.setattr("bgcl.augmentation.noise._TILE", 7)
    for before, make in zip(whole, made, strict=True):
        assert torch.equal(before, make())


def bits(noise: Noise) -> np.ndarray:
    """The noise of dense entries as whole numbers of 23 bits, `(300, 200)`."""
    graph = random_graph(300, 1, double=False)
    return (noise.entries(graph, (300, 200)).double().numpy() * 2**23 - 0.5).astype(np.int64)


def test_noise_is_uniform_in_every_bit_and_in_its_order() -> None:
    found = bits(CountedNoise.of_draw(0, 0)).ravel()
    assert stats.kstest((found + 0.5) / 2**23, "uniform").pvalue > 1e-3
    for bit in range(23):
        assert stats.binomtest(int((found >> bit & 1).sum()), len(found)).pvalue > 1e-4, bit
    low = np.bincount(found & 255, minlength=256)
    assert stats.chisquare(low).pvalue > 1e-3


@pytest.mark.parametrize(
    "pair",
    [
        lambda: (bits(CountedNoise.of_draw(0, 0)), bits(CountedNoise.of_draw(0, 1))),
        lambda: (bits(CountedNoise.of_draw(0, 0)), bits(CountedNoise.of_draw(1, 0))),
        lambda: (bits(CountedNoise.of_draw(0, 10)), bits(CountedNoise.of_draw(1, 0))),
        lambda: (bits(CountedNoise((0, 0, "mask", 0))), bits(CountedNoise((0, 0, "mask", 1)))),
        lambda: (bits(CountedNoise.of_draw(2, 0))[1:], bits(CountedNoise.of_draw(2, 0))[:-1]),
        lambda: (bits(CountedNoise.of_draw(2, 0))[:, 1:], bits(CountedNoise.of_draw(2, 0))[:, :-1]),
        lambda: (bits(CountedNoise.of_draw(2, 0))[1:, 1:], bits(CountedNoise.of_draw(2, 0))[:-1, :-1]),
    ],
    ids=["draws", "seeds", "seed and draw", "masks", "rows", "columns", "diagonals"],
)
def test_noise_for_one_thing_says_nothing_about_noise_for_another(
    pair: Callable[[], tuple[np.ndarray, np.ndarray]],
) -> None:
    one, other = (each.ravel() for each in pair())
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / len(one) ** 0.5
    together = np.bincount((one >> 19) * 16 + (other >> 19), minlength=256)  # 16 by 16 squares
    assert stats.chisquare(together).pvalue > 1e-3
    different = np.array([int(((one ^ other) >> bit & 1).sum()) for bit in range(23)])
    assert (abs(different - len(one) / 2) < 4.5 * len(one) ** 0.5 / 2).all()


def test_both_directions_of_an_edge_and_the_blocks_of_a_connection_have_noise_of_their_own() -> None:
    graph = random_graph(80, 1)
    found = CountedNoise.of_draw(0, 0).edges(graph, 4).numpy()
    back = found[graph.connections.transposed[1].numpy()]
    other = ~graph.is_self[:, 0].numpy()
    assert abs(np.corrcoef(found[other, 0], back[other, 0])[0, 1]) < 4 / other.sum() ** 0.5
    off = np.corrcoef(found.T) - np.eye(4)
    assert abs(off).max() < 4 / len(found) ** 0.5
    assert len(np.unique(found)) > 0.99 * found.size


@given(st.integers(2, 30), st.integers(0, 2**32), st.data())
def test_a_part_of_a_graph_in_any_order_has_the_noise_of_the_whole_graph(
    nodes: int, seed: int, data: st.DataObject
) -> None:
    graph = random_graph(nodes, 6, sparse=True, seed=seed)
    some = torch.tensor(data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, unique=True)))
    part, noise = induced(graph, some), CountedNoise.of_draw(seed, 1)
    again = induced(part, torch.arange(len(some)).flip(0))  # a part of a part

    def on_pairs(of: PreparedGraph) -> dict[tuple[int, int], float]:
        numbers = torch.arange(nodes) if of.numbers is None else of.numbers
        ends = numbers[of.connections.row].tolist(), numbers[of.connections.column].tolist()
        return dict(zip(zip(*ends, strict=True), noise.edges(of)[:, 0].tolist(), strict=True))

    whole = on_pairs(graph)
    assert on_pairs(part).items() <= whole.items()
    assert on_pairs(again).items() <= whole.items()
    assert torch.equal(noise.nodes(part), noise.nodes(graph)[some])
    assert torch.equal(noise.entries(part, (len(some), 4)), noise.entries(graph, (nodes, 4))[some])
    assert torch.equal(noise.columns(part, 4), noise.columns(graph, 4))


NETWORKS = {
    "the paper's": {
        "encoder": "gcn", "widths": (6, 4), "drop": ("connections in 2 blocks", "edges", "entries"),
        "rate_draw": "sample",
    },
    "nodes and columns": {"encoder": "sage", "widths": (6, 4), "drop": ("nodes", "features")},
    "the default's parts that are local": {
        "widths": (6, 4), "drop": ("entries at 0.5", "neighbors at 0.4"), "part_width": 3, "draw_scale": 0.9,
        "parts": ("attributes hop 2", "structure hop 1", "encoder", "encoder hop 1"),
    },
}  # fmt: skip


def make_network(name: str, graph: PreparedGraph, relations: int) -> tuple[Network, PreparedGraph]:
    values = dict(NETWORKS[name])
    if relations and name == "the paper's":
        values["drop"] = ("edges per relation", "entries")
    network = Network(6, make_settings(**values), relations=relations)
    scaled = network.fit_graph(graph, seeded(0))
    network.reset_parameters(seeded(1))
    return network, scaled


@pytest.mark.parametrize("name", NETWORKS)
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), weighted=st.booleans(), relations=st.sampled_from([0, 2]), sparse=st.booleans())
def test_a_draw_of_a_neighborhood_is_that_of_the_whole_graph(
    name: str, seed: int, weighted: bool, relations: int, sparse: bool
) -> None:
    """Two steps of propagation need the nodes that are two steps away, and their degrees: three steps."""
    graph = random_graph(40, 6, sparse=sparse, double=False, seed=seed, density=0.05)
    graph = with_weights(graph, seed) if weighted else graph
    graph = with_relations(graph, relations, seed) if relations else graph
    network, scaled = make_network(name, graph, relations)
    distance = np.linalg.matrix_power(dense_connections(graph), 3)
    chosen = seed % 40
    near = torch.as_tensor(np.flatnonzero(distance[chosen]))
    part = induced(scaled, near.flip(0))
    for draw, view in enumerate("ot"):
        noise = CountedNoise.of_draw(seed, draw)
        with torch.no_grad():
            whole, found = (network.draw(view, of, noise, scale=0.7) for of in (scaled, part))
        torch.testing.assert_close(found[near.flip(0) == chosen][0], whole[chosen], rtol=1e-6, atol=1e-6)
        assert (whole - network.embed(scaled)).abs().max() > 1e-4
