"""Every embedding method on a small graph: shapes, seeds, communities that it finds, and errors."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch_geometric.data import Data

from bgcl import BGCLError
from bgcl.baselines import CLASSIFIERS, EMBEDDINGS, baseline, published
from bgcl.data import DATASETS, check_graph
from planted import leave_one_out_accuracy, planted_graph

WALKS = {"width": 16, "walks": 10, "length": 20, "window": 3}
SMALL = {
    "raw-features": {},
    "propagated-features": {"width": 8},
    "random-encoder": {"widths": (16, 8)},
    "node2vec": WALKS | {"passes": 4},
    "deepwalk": WALKS | {"passes": 4},
    "deepwalk-features": WALKS | {"passes": 4},
    "gae": {"widths": (16, 8), "epochs": 60},
    "vgae": {"widths": (16, 8), "epochs": 60},
    "dgi": {"width": 16, "epochs": 100, "lr": 0.01},
    "grace": {"widths": (16, 8), "epochs": 60, "lr": 0.01},
    "bgrl": {"widths": (16, 8), "epochs": 60, "predictor": 16, "lr": 0.01},
    "cca-ssg": {"widths": (16, 8), "epochs": 60, "lr": 0.01},
    "signa": {"widths": (16, 8), "steps": 60, "projector": 8, "lr": 0.01},
}
WIDTH = {
    "raw-features": 24,
    "propagated-features": 24,
    "node2vec": 16,
    "deepwalk": 16,
    "deepwalk-features": 40,
    "dgi": 16,
}
LEARNED = [name for name in EMBEDDINGS if name not in ("raw-features", "propagated-features")]
WEAK = ("raw-features", "random-encoder")


def test_every_embedding_method_is_tested() -> None:
    assert SMALL.keys() == EMBEDDINGS.keys()


@pytest.mark.parametrize("name", EMBEDDINGS)
@pytest.mark.parametrize("sparse", [True, False])
def test_embeddings_separate_planted_communities(name: str, sparse: bool) -> None:
    graph = planted_graph(sparse=sparse)
    assert (check_graph(graph).x.layout == torch.sparse_csr) == sparse
    embeddings = baseline(name, **SMALL[name]).fit(graph)
    assert embeddings.shape == (60, WIDTH.get(name, 8))
    assert embeddings.dtype == np.float32
    assert np.isfinite(embeddings).all()
    # Chance is 0.5 with a standard deviation of 0.065. Attributes alone, and random weights, say less than the rest.
    assert leave_one_out_accuracy(embeddings, graph.y.numpy()) > (0.7 if name in WEAK else 0.85)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_same_seed_same_embeddings_and_global_generators_are_restored(name: str) -> None:
    graph, short = planted_graph(), SMALL[name] | ({"epochs": 3} if "epochs" in SMALL[name] else {})
    torch.manual_seed(5)
    random.seed(5)
    first = baseline(name, **short, seed=1).fit(graph)
    drawn = torch.rand(3), random.random()
    torch.manual_seed(5)
    random.seed(5)
    assert torch.equal(drawn[0], torch.rand(3))
    assert drawn[1] == random.random()
    np.testing.assert_array_equal(first, baseline(name, **short, seed=1).fit(graph))


@pytest.mark.parametrize("name", LEARNED)
def test_another_seed_gives_other_embeddings(name: str) -> None:
    graph, short = planted_graph(), SMALL[name] | ({"epochs": 3} if "epochs" in SMALL[name] else {})
    one, other = (baseline(name, **short, seed=seed).fit(graph) for seed in (1, 2))
    assert np.abs(one - other).max() > 1e-3


def test_raw_features_are_attributes_with_rows_that_sum_to_one() -> None:
    graph = planted_graph()
    x = graph.x.numpy()
    np.testing.assert_allclose(baseline("raw-features").fit(graph), x / x.sum(1, keepdims=True), rtol=1e-6)


def test_an_unknown_method_or_setting_is_refused_with_the_nearest_name() -> None:
    floors = {"majority-class", "neighbor-vote"}
    assert set(CLASSIFIERS) == {"gcn", "mc-dropout-gcn", "ensemble-gcn", "gdc-gcn", "gnnsafe", "gpn"} | floors
    with pytest.raises(BGCLError, match=r"Unknown method 'node2vek'\. Did you mean node2vec\?"):
        baseline("node2vek")
    with pytest.raises(BGCLError, match=r"Unknown setting 'epoch'\. Did you mean epochs\?"):
        baseline("dgi", epoch=3)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("dgi", {"epochs": 0}, "'epochs' must be a whole number of 1 or more. Got 0"),
        ("dgi", {"seed": -1}, "'seed' must be a whole number of 0 or more and below 9,223,372,036,854,775,808. Got -1"),
        ("node2vec", {"q": 0}, "'q' must be a number above 0. Got 0"),
        ("gae", {"lr": float("nan")}, "'lr' must be a number above 0 and at most 1. Got nan"),
        ("bgrl", {"decay": 2.0}, "'decay' must be a number between 0 and 1. Got 2.0"),
        ("grace", {"edges": 0.2}, "'edges' must be 2 numbers. Got 0.2"),
        ("bgrl", {"drop": "edges"}, "'drop' must be what a view drops: one sentence for each mask"),
        ("grace", {"widths": ()}, "'widths' must be 1 or more whole numbers between 1 and 65,536"),
    ],
)
def test_bad_settings_are_refused(name: str, settings: dict, message: str) -> None:
    with pytest.raises(BGCLError, match=message):
        baseline(name, **settings)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        baseline("dgi").epochs = 3


@pytest.mark.parametrize("name", EMBEDDINGS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_data_set_has_published_settings(name: str, dataset: str) -> None:
    assert published(name, dataset, seed=4).seed == 4


def test_published_settings_equal_those_of_the_authors() -> None:
    citeseer = published("grace", "citeseer")
    assert (citeseer.edges, citeseer.features, citeseer.tau) == ((0.2, 0.0), (0.3, 0.2), 0.9)
    assert (citeseer.widths, citeseer.activation, citeseer.lr) == ((512, 256), "prelu", 1e-3)
    assert published("gae", "citeseer").widths == (512, 256)
    assert [published("vgae", name).row_norm for name in ("citeseer", "amazon-photo")] == ["sum", "none"]
    assert published("bgrl", "Amazon_Photo").drop == ("edges at 0.4/0.1", "features at 0.1/0.2")
    with pytest.raises(BGCLError, match="Did you mean cora"):
        published("grace", "coar")


def test_a_graph_without_attributes_is_refused() -> None:
    with pytest.raises(BGCLError, match="The graph has no"):
        baseline("dgi").fit(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))


def test_importing_the_list_of_methods_does_not_import_torch() -> None:
    code = "import sys, bgcl.baselines; sys.exit('torch' in sys.modules or 'gensim' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
