"""What tests of commands share: a small graph, fast settings, a reader of tables, and the check of an error."""

import json
from pathlib import Path

import numpy as np

FAST = ["--epochs", "2", "--set", "widths=[8, 4]", "--quiet"]
LONGER = ["--epochs", "40", "--set", "widths=[32, 16]", "--set", "lr_weights=0.01", "--quiet"]


def small_graph(path: Path, **change) -> Path:
    """Write a ring of 12 nodes with 6 attributes as .npz. `change` replaces arrays, or removes them with None."""
    ring = np.arange(12)
    arrays = {
        "adj_data": np.ones(12), "adj_indices": (ring + 1) % 12, "adj_indptr": np.arange(13), "adj_shape": [12, 12],
        "attr_data": np.ones(24), "attr_indices": np.stack([ring % 6, (ring % 5 + 1) % 6], 1).ravel(),
        "attr_indptr": np.arange(13) * 2, "attr_shape": [12, 6], "labels": ring % 2,
    }  # fmt: skip
    np.savez(path, **{name: array for name, array in (arrays | change).items() if array is not None})
    return path


def read_table(path: Path) -> dict[str, list]:
    """The columns of a file, read by another library."""
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".json":
        rows = json.loads(path.read_text())
        return {name: [row[name] for row in rows] for name in rows[0]}
    return (pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.csv.read_csv)(path).to_pydict()


def check_refused(result: tuple[int, str, str], *messages: str) -> None:
    """Check that a command ended with exit code 2 and one line on stderr that contains the messages."""
    code, _, err = result
    assert code == 2
    assert err.startswith("bgcl: ")
    assert err.count("\n") == 1, err
    assert all(message in err for message in messages), err
    assert "Traceback" not in err
