"""The scaled attributes of a packed graph, on disk. What `bgcl.model.scaling` computes, in blocks."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bgcl.data.on_disk import DiskArray
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.scaling import NEIGHBORHOODS, Scaling, interpolate, mean_of_neighbors, normal_scores
from bgcl.packed.slabs import SLAB, Slabs, row_blocks, rows_of


def are_dense_numbers(attributes: DiskArray, most: int) -> bool:
    """Whether attributes are dense numbers: some are negative, or most are not zero.

    Args:
        attributes: the attributes, `(N, F)`.
        most: attributes with more columns are taken as words.
    """
    if not 0 < attributes.shape[1] <= most:
        return False
    present = 0
    for start, stop in row_blocks(*attributes.shape):
        block = rows_of(attributes, start, stop)
        if bool((block < 0).any()):
            return True
        present += int(torch.count_nonzero(block))
    return present > 0.5 * attributes.shape[0] * attributes.shape[1]


def are_all_equal(attributes: DiskArray) -> bool:
    """Whether all nodes have the same attributes."""
    first = rows_of(attributes, 0, 1)
    return all(bool((rows_of(attributes, *block) == first).all()) for block in row_blocks(*attributes.shape))


def columns_of(attributes: DiskArray, columns: slice) -> Tensor:
    """Some columns of all rows, `(N, c)`. All of the file is read."""
    blocks = [array[:, columns] for array in _arrays(attributes)]
    return torch.from_numpy(np.concatenate(blocks))


def _arrays(attributes: DiskArray) -> Iterator[np.ndarray]:
    for start, stop in row_blocks(*attributes.shape):
        yield attributes.read(start, stop)


def write_scaled(
    scaling: Scaling, graph: PreparedGraph, attributes: DiskArray, folder: Path, *, fit: bool, slab: int = SLAB
) -> DiskArray:
    """Scale dense numbers, and learn their scale first if `fit` is true.

    Args:
        scaling: the scale, which is for dense numbers.
        graph: the connections.
        attributes: the attributes, `(N, F)`.
        folder: where the result is written.
        fit: whether to learn the scale from these attributes.
        slab: columns that are computed at a time.

    Returns:
        The scaled attributes, `(N, 3 (F + 1))`.
    """
    nodes, width = attributes.shape[0], attributes.shape[1] + 1
    degree = graph.connections.pointer.diff().float()[:, None]
    levels = [Slabs(folder, f"level-{i}", nodes, width, slab) for i in range(1 + NEIGHBORHOODS)]
    for number, (first, last) in enumerate(levels[0].ranges):
        columns = columns_of(attributes, slice(first, min(last, width - 1)))
        if last == width:
            columns = torch.cat([columns, degree], 1)
        for i, column in enumerate(columns.T, start=first):
            if fit:
                scaling.knots[i], scaling.scores[i] = normal_scores(column)
            column.copy_(interpolate(column, scaling.knots[i], scaling.scores[i]))
        for level in levels:
            if level is not levels[0]:
                columns = mean_of_neighbors(graph, columns)
            level.write(number, columns.contiguous())
    found = DiskArray.create(folder / "scaled.npy", (nodes, scaling.width), np.float32)
    for start, stop in row_blocks(nodes, scaling.width):
        rows = torch.cat([level.read_rows(start, stop) for level in levels], 1)
        found.write(start, (rows / scaling.width**0.5).numpy())
    for level in levels:
        level.remove()
    return found


def mapped(array: DiskArray) -> Tensor:
    """The array as a tensor that is mapped into memory, so that only the rows that are used are read.

    It cannot be written. So it does not count as memory of the process where a limit is set.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(np.load(array.path, mmap_mode="r"))
