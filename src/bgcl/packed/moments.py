"""The embedding of a packed graph, written in pieces: mean, standard deviation and ASTD of each node, and draws."""

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bgcl.augmentation.noise import CountedNoise
from bgcl.augmentation.views import VIEWS
from bgcl.data.memory import in_words
from bgcl.data.on_disk import DiskArray, check_room
from bgcl.errors import BGCLError
from bgcl.folders import new_files
from bgcl.packed.embedding import PackedEmbedder
from bgcl.packed.slabs import row_blocks
from bgcl.processes.team import Team
from bgcl.progress import with_progress

NAMES = ("mean.npy", "std.npy", "astd.npy", "draws.npy", "fixed.npy")  # in the order in which they appear


class MomentsOnDisk:
    """Mean and sum of squares of a stream of draws in slabs, which stay on disk (Welford, 1962).

    Args:
        folder: a folder for the slabs.
        nodes: number of nodes.
    """

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.nodes, self.count = folder, nodes, 0
        self.slabs: dict[int, tuple[DiskArray, DiskArray]] = {}  # by first column

    def start(self) -> None:
        """Begin a draw."""
        self.count += 1

    def __call__(self, first: int, slab: Tensor) -> None:
        if first not in self.slabs:
            paths = [self.folder / f"moments-{name}-{first}.npy" for name in ("mean", "squares")]
            mean, squares = (DiskArray.create(path, tuple(slab.shape), np.float32) for path in paths)
            self.slabs[first] = mean, squares
        for start, stop in row_blocks(*slab.shape):
            rows = slab[start:stop].numpy()
            so_far, sums = (array.read(start, stop) for array in self.slabs[first])
            difference = rows - so_far
            so_far += difference / self.count
            sums += difference * (rows - so_far)
            for array, values in zip(self.slabs[first], (so_far, sums), strict=True):
                array.write(start, values)

    def add_up(self, team: Team) -> None:
        """Add up the moments of all processes, each of which has a draw or more (Chan, Golub and LeVeque, 1979).

        With `n_r` draws of mean `m_r` and sum of squares `q_r` in process r, the mean is `m = sum n_r m_r / n`, and the
        sum of squares is `sum q_r + n_r (m_r - m)^2`.
        """
        if team.size == 1:
            return
        own = self.count
        self.count = int(team.sum(torch.tensor(own)))
        for arrays in (self.slabs[first] for first in sorted(self.slabs)):
            for start, stop in row_blocks(*arrays[0].shape):
                mean, squares = (torch.from_numpy(array.read(start, stop)) for array in arrays)
                whole = team.sum(mean * (own / self.count))
                squares = team.sum(squares + own * (mean - whole).square_())
                for array, values in zip(arrays, (whole, squares), strict=True):
                    array.write(start, values.numpy())

    def write(self, folder: Path) -> dict[str, DiskArray]:
        """Write `mean.npy` and `std.npy`, `(N, d)`, and `astd.npy`, `(N,)`."""
        order = sorted(self.slabs)
        width = sum(self.slabs[first][0].shape[1] for first in order)
        shapes = {"mean": (self.nodes, width), "std": (self.nodes, width), "astd": (self.nodes,)}
        made = {name: DiskArray.create(folder / f"{name}.npy", shape, np.float32) for name, shape in shapes.items()}
        for start, stop in row_blocks(self.nodes, width):
            means, squares = (
                np.concatenate([self.slabs[first][i].read(start, stop) for first in order], 1) for i in (0, 1)
            )
            std = np.sqrt(squares / max(self.count - 1, 1))
            for name, rows in (("mean", means), ("std", std), ("astd", std.mean(1))):
                made[name].write(start, rows)
        return made


class RowsOnDisk:
    """Writes the rows of draws that come in slabs. The slabs of a draw stay on disk until all of them are there.

    Args:
        folder: a folder for the slabs.
        path: the `.npy` file.
        shape: `(N, d)`, or `(S, N, d)` for several draws.
        dtype: type of the numbers.
    """

    def __init__(self, folder: Path, path: Path, shape: tuple[int, ...], dtype: type) -> None:
        self.folder, self.nodes, self.draw = folder, shape[-2], -1
        whole = DiskArray.create(path, shape, dtype)
        self.rows = replace(whole, shape=(whole.shape[0] * self.nodes, shape[-1])) if len(shape) == 3 else whole
        self.slabs: dict[int, DiskArray] = {}  # by first column

    def start(self) -> None:
        """Begin a draw."""
        self.draw += 1

    def __call__(self, first: int, slab: Tensor) -> None:
        if first not in self.slabs:
            path = self.folder / f"{self.rows.path.stem}-{first}.npy"
            self.slabs[first] = DiskArray.create(path, tuple(slab.shape), self.rows.dtype)
        self.slabs[first].write(0, slab.numpy())

    def end(self) -> None:
        """End a draw: its rows are written."""
        order = sorted(self.slabs)
        for start, stop in row_blocks(self.nodes, self.rows.shape[1]):
            rows = np.concatenate([self.slabs[first].read(start, stop) for first in order], 1)
            self.rows.write(self.draw * self.nodes + start, rows)


@torch.no_grad()
def write_embeddings(
    embedder: PackedEmbedder, folder: Path, *, samples: int, seed: int, scale: float | None, hard: bool = False,
    draws: bool = False, progress: bool = False, team: Team | None = None,
) -> dict[str, tuple[int, ...]]:  # fmt: skip
    """Write mean, standard deviation and ASTD of each node's embedding, and the embedding without masks.

    Args:
        embedder: embeds the nodes.
        folder: the folder of `mean.npy`, `std.npy`, `fixed.npy`, each `(N, d)`, `astd.npy`, `(N,)`, and perhaps
            `draws.npy`, `(S, N, d)` in float16.
        samples: number of draws S.
        seed: seed of the draws.
        scale, hard: see `Network.draw`.
        draws: whether to write every draw.
        progress: show a progress bar.
        team: processes that share the draws. The main process writes the folder. Default: this one alone.

    Returns:
        The shape of each array; nothing in the other processes.

    Raises:
        BGCLError: the disk has no room, or several processes have too few draws to share, or are to write them.
    """
    team = team or Team()
    if team.size > samples:
        raise BGCLError(
            f"{team.size} processes need {team.size} draws or more. Got {samples} instead: raise --samples."
        )
    if team.size > 1 and draws:
        raise BGCLError("One process writes every draw of a packed graph: leave out --processes, or --draws.")
    nodes, width = embedder.nodes, embedder.width
    needed = nodes * width * (4 * 3 + (2 * samples if draws else 0))
    check_room(folder, needed + 12 * nodes * width, f"The embeddings of {nodes:,} nodes, {in_words(needed)},")
    shape = (samples, nodes, width)
    with contextlib.ExitStack() as stack:
        begun = Path()
        with team.agreed():
            if team.is_main:
                begun = stack.enter_context(new_files(folder, NAMES, replace=True))
        moments = MomentsOnDisk(embedder.folder, nodes)
        every = RowsOnDisk(embedder.folder, begun / "draws.npy", shape, np.float16) if draws else None
        consumers: list[MomentsOnDisk | RowsOnDisk] = [moments] if every is None else [moments, every]
        own = team.dealt(range(samples))
        for i in with_progress(own, len(own), "draws", show=progress):
            for consumer in consumers:
                consumer.start()

            def consume(first: int, slab: Tensor) -> None:
                for consumer in consumers:
                    consumer(first, slab)

            embedder.draw(consume, VIEWS[i % 2], CountedNoise.of_draw(seed, i), hard=hard, scale=scale)
            if every is not None:
                every.end()
        moments.add_up(team)
        if not team.is_main:
            return {}
        made = moments.write(begun)
        fixed = RowsOnDisk(embedder.folder, begun / "fixed.npy", (nodes, width), np.float32)
        fixed.start()
        embedder.draw(fixed)
        fixed.end()
    shapes = {name: array.shape for name, array in made.items()} | {"fixed": (nodes, width)}
    return shapes | ({} if every is None else {"draws": shape})
