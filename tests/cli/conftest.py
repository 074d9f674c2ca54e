"""Graphs and runs for the tests of commands."""

import numpy as np
import pytest

from command_line import FAST


@pytest.fixture
def blobs(tmp_path) -> str:
    """A .npz of 120 nodes in two classes that differ in attributes and edges. One node in six is unlabeled."""
    random = np.random.default_rng(0)
    label = np.arange(120) % 2
    attributes = (random.random((120, 8)) < np.where(label[:, None] == (np.arange(8) % 2), 0.8, 0.2)).astype(float)
    source = np.repeat(np.arange(120), 3)
    target = (source + 2 * random.integers(1, 60, 360)) % 120  # an even step stays in the class
    order = np.lexsort((target, source))
    pairs = np.unique(np.stack([source[order], target[order]]), axis=1)
    row, column = np.nonzero(attributes)
    np.savez(
        tmp_path / "blobs.npz", adj_data=np.ones(pairs.shape[1]), adj_indices=pairs[1], adj_shape=[120, 120],
        adj_indptr=np.concatenate([[0], np.bincount(pairs[0], minlength=120).cumsum()]), attr_data=np.ones(len(row)),
        attr_indices=column, attr_indptr=np.concatenate([[0], np.bincount(row, minlength=120).cumsum()]),
        attr_shape=[120, 8], labels=np.where(np.arange(120) % 6 == 5, -1, label),
    )  # fmt: skip
    return str(tmp_path / "blobs.npz")


@pytest.fixture
def run_trained(run, blobs):
    """The fixture `run`, in a folder that has a run "r" on `blobs`."""
    run("train", blobs, "--out", "r", *FAST)
    return run
