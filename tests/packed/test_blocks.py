"""A model on a pack computes in blocks what it computes in memory."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import bgcl
from bgcl.data.generator import GraphGenerator, GraphPlan
from bgcl.data.pack import open_pack
from bgcl.data.packing import pack_data
from bgcl.data.pyg import check_graph
from bgcl.downstream.blocks import LinearHeads, classify, fewer
from bgcl.downstream.splits import Split
from bgcl.model.network import Network
from bgcl.model.posterior import draws
from bgcl.packed import slabs
from bgcl.packed.moments import write_embeddings
from bgcl.packed.ready import PackedReady, works_in_blocks
from bgcl.ready_graph import ReadyGraph
from bgcl.settings import Settings

SMALL = {"widths": (12, 10), "part_width": 9}


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> bgcl.data.pack.Pack:
    """A packed graph of 500 nodes with dense numbers."""
    (piece,) = GraphGenerator(GraphPlan(nodes=500, attributes=7, classes=3, noise=1.0)).pieces()
    order = np.argsort(piece.ids)
    x, y = torch.from_numpy(piece.attributes[order]), torch.from_numpy(piece.labels[order])
    data = check_graph(Data(x=x, y=y, edge_index=torch.from_numpy(piece.edges)))
    return pack_data(data, tmp_path_factory.mktemp("pack") / "pack", parts=8)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 rows, so that a small graph has several."""
    monkeypatch.setattr(slabs, "ROWS", 64)


def both(pack: bgcl.data.pack.Pack, **more: object) -> tuple[tuple[Network, ReadyGraph], tuple[Network, PackedReady]]:
    """A network that was fitted in memory, and one that was fitted in blocks."""
    data = pack.data()
    settings = Settings(**{**SMALL, **more})
    first = Network(data.x.shape[1], settings, dense=True)
    first.reset_parameters(torch.Generator().manual_seed(1))
    second = copy.deepcopy(first)
    in_memory, in_blocks = ReadyGraph(check_graph(data), "cpu"), PackedReady(data, "cpu")
    in_memory.scaled = first.fit_graph(in_memory.prepared, torch.Generator().manual_seed(3))
    in_blocks.fit(second, torch.Generator().manual_seed(3))
    return (first.eval(), in_memory), (second.eval(), in_blocks)


def test_what_is_found_before_training_is_the_same_in_blocks(pack):
    (first, in_memory), (second, in_blocks) = both(pack)
    assert works_in_blocks(in_blocks.checked, first.settings)
    torch.testing.assert_close(in_blocks.scaled.features, in_memory.scaled.features)
    for name, value in first.state_dict().items():
        if value.is_floating_point() and "structure" not in name:
            torch.testing.assert_close(second.state_dict()[name], value, atol=1e-3, rtol=1e-3, msg=name)


def test_positions_span_the_same_space_in_blocks(pack):
    (first, _), (second, _) = both(pack)
    a, b = (network.parts.structure.known[:, :4] for network in (first, second))
    torch.testing.assert_close((a.T @ b).abs().diagonal(), torch.ones(4), atol=1e-3, rtol=0)


def test_draws_in_blocks_are_those_of_the_whole_graph_in_memory(pack):
    (network, in_memory), (_, in_blocks) = both(pack)
    whole = list(draws(network, in_memory.scaled, range(3), 7, scale=None, hard=False))
    pieces = list(in_blocks.draws(network, range(3), 7, scale=None, hard=False))
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(other, one, atol=1e-6, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(in_blocks.embed(network), network.embed(in_memory.scaled), atol=1e-6, rtol=0)


def test_a_trained_model_of_a_pack_is_saved_and_draws_the_same(pack, tmp_path: Path):
    data = pack.data()
    model = bgcl.BGCL(**SMALL, epochs=2, until_settled=False, batch_nodes=100)
    model.fit(data, progress=False, out=tmp_path / "run")
    again = bgcl.BGCL.load(tmp_path / "run")
    again.check_trained_on(open_pack(pack.folder).data())
    assert torch.equal(again.sample(data, 2), model.sample(data, 2))


def test_draws_of_a_pack_go_on_while_the_model_is_used_on_another_graph(pack):
    """What they need is in a folder on the disk, which must not go when the model prepares the other graph."""
    model = bgcl.BGCL(**SMALL, epochs=1, until_settled=False).fit(pack.data(), progress=False)
    expected = model.sample(pack.data(), 3)
    found = model.draws(pack.data(), 3)
    data, drawn = pack.data(), [next(found)]
    other = Data(x=data.x[:50].clone(), edge_index=torch.tensor([[0, 1, 2], [3, 4, 5]]))
    for _ in range(2):
        model.embed(other)
        drawn.append(next(found))
    assert torch.equal(torch.stack(drawn), expected)
    del found
    model.embed(other)
    assert not list(pack.folder.glob(".blocks-*"))


def test_a_linear_head_predicts_in_slabs_as_it_does_with_whole_rows():
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    rows = [torch.from_numpy(random.normal(size=(90, 8)).astype(np.float32)) for _ in range(5)]
    for matrix in rows:
        matrix[:, 0] += 3 * torch.from_numpy(labels)
        matrix[:, 5] -= 2 * torch.from_numpy(labels)

    def in_slabs(matrix):
        def draw(consume):
            for first in range(0, 8, 3):
                consume(first, matrix[:, first : first + 3])

        return draw

    nodes = np.arange(90)
    split = Split(nodes[:60], nodes[:0], nodes[60:])
    (head,), (found,) = classify(
        [in_slabs(matrix) for matrix in rows], 8, labels, [split], training_draws=2, parts=(5, 3)
    )
    expected = head.predict_samples(np.stack([matrix.numpy()[60:] for matrix in rows[2:]])).mean(0)
    np.testing.assert_allclose(found.probability, expected, atol=1e-5)


def test_heads_predict_their_own_nodes_alone():
    head = bgcl.MixtureClassifier(C=1.0, normalize=True).fit(np.eye(4)[None], np.array([0, 1, 0, 1]))
    heads = LinearHeads([head, head], [np.array([0]), np.array([3, 1])])
    heads.start()
    heads(0, torch.eye(4))
    heads.end()
    one, two = heads.result()
    expected = head.predict_proba(np.eye(4)[None])
    np.testing.assert_allclose(np.concatenate([one.probability, two.probability]), expected[[0, 3, 1]], atol=1e-6)


def test_fewer_training_nodes_keep_the_share_of_each_class():
    labels = np.repeat([0, 1], [900, 100])
    kept = fewer(np.arange(1000), labels, 100)
    assert np.bincount(labels[kept]).tolist() == [90, 10]


def test_a_pack_is_evaluated_in_blocks(pack):
    data = pack.data()
    model = bgcl.BGCL(**SMALL, epochs=2, until_settled=False, batch_nodes=100).fit(data, progress=False)
    (result,) = bgcl.evaluate(model, data, "grace", samples=4)
    assert result.scores()["accuracy"] > 0.5
    with pytest.raises(bgcl.BGCLError, match="leave out 'set_size'"):
        bgcl.evaluate(model, data, samples=6, set_size=2)


def test_a_pack_is_predicted_in_blocks_and_no_label_predicts_its_own_node(pack):
    data = pack.data()
    model = bgcl.BGCL(**SMALL, epochs=2, until_settled=False, batch_nodes=100).fit(data, progress=False)
    data.y = data.y.clone()
    data.y[::3] = -1
    found = bgcl.predict(model, data, samples=4)
    assert found.astd is None
    assert "astd" not in found.columns()
    known = found.label >= 0
    assert (found.predicted == found.label)[known].mean() > 0.5
    np.testing.assert_allclose(found.uncertainty.probability.sum(1), 1, atol=1e-5)


def test_embeddings_are_written_in_pieces_as_they_are_in_memory(pack, tmp_path: Path):
    data = pack.data()
    model = bgcl.BGCL(**SMALL, epochs=1, until_settled=False, batch_nodes=100).fit(data, progress=False)
    embedder = model.in_blocks(data).embedder_of(model.network_)
    shapes = write_embeddings(embedder, tmp_path / "out", samples=4, seed=0, scale=None, draws=True)
    found = {name: np.load(tmp_path / "out" / f"{name}.npy") for name in shapes}
    moments = model.moments(data, 4)
    np.testing.assert_allclose(found["mean"], moments.mean, atol=1e-6)
    np.testing.assert_allclose(found["std"], moments.std, atol=1e-5)
    np.testing.assert_allclose(found["astd"], moments.astd, atol=1e-5)
    np.testing.assert_allclose(found["fixed"], model.embed(data), atol=1e-6)
    np.testing.assert_allclose(found["draws"], model.sample(data, 4), atol=1e-3)


def test_batches_of_clusters_are_those_of_the_pack(pack):
    data = pack.data()
    settings = Settings(encoder="gcn", batches=4, clusters_per_batch=2)
    ready = ReadyGraph(check_graph(data), "cpu")
    ready.scaled = ready.prepared
    starts = np.load(pack.path("starts.npy"))
    members = ready.batches(settings).members
    assert [int(part[0]) for part in members] == starts[:-1].tolist()
    assert [len(part) for part in members] == np.diff(starts).tolist()
