"""Small releases, written by hand in the formats of the published ones."""

import json
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from bgcl.data.planetoid import PARTS


def python2_pickle(value: object) -> bytes:
    """A pickle with the module names in the published files."""
    text = pickle.dumps(value, protocol=3)
    for new, old in (("numpy._core.", "numpy.core."), ("scipy.sparse._csr", "scipy.sparse.csr")):
        text = text.replace(b"c" + new.encode(), b"c" + old.encode())
    return text.replace(b"cbuiltins\n", b"c__builtin__\n")


def write_release(folder: Path, name: str = "tiny") -> None:
    """Write Planetoid's files for 7 nodes: 0 to 2 in `allx` (0 and 1 labeled), 6, 3 and 5 in `tx`, 4 in neither."""
    graph = defaultdict(list, {0: [1, 1, 2], 1: [0, 3], 2: [2, 0], 3: [1, 6], 5: [6], 6: [3, 5]})
    parts = {
        "x": csr_matrix(np.array([[1.0, 0, 0], [0, 0.5, 0]])),
        "allx": csr_matrix(np.array([[1.0, 0, 0], [0, 0.5, 0], [0, 0, 2]])),
        "tx": csr_matrix(np.array([[6.0, 0, 0], [0, 3, 0], [0, 0, 5]])),
        "y": np.array([[0, 1], [1, 0]]),
        "ally": np.array([[0, 1], [1, 0], [0, 1]]),
        "ty": np.array([[0, 1], [0, 1], [1, 0]]),
        "graph": graph,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS[:-1]:
        (folder / f"ind.{name}.{part}").write_bytes(python2_pickle(parts[part]))
    (folder / f"ind.{name}.test.index").write_text("6\n3\n5\n")


RELEASE_EDGES = {(0, 1), (0, 2), (1, 3), (3, 6), (5, 6)}


def write_wikics(path: Path) -> None:
    """Write WikiCS's file for four nodes, two attributes and three splits."""
    splits = [[True, False, False, False], [False, True, False, False], [False, False, True, False]]
    raw = {
        "features": [[0.5, -1.0], [1.5, 2.0], [0.25, 3.0], [-4.0, 1.0]],
        "labels": [0, 1, 1, 2],
        "links": [[1, 1, 0], [0, 2], [], [0]],
        "train_masks": splits,
        "val_masks": splits[::-1],
        "stopping_masks": splits,
        "test_mask": [False, False, False, True],
    }
    path.write_text(json.dumps(raw))
