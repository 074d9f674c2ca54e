"""Truncated singular value decompositions of matrices that are never made, only multiplied with thin matrices."""

from collections.abc import Callable

import torch
from torch import Tensor

from bgcl.errors import BGCLError

EXTRA, ROUNDS = 20, 2
LARGE = 1e15  # products of greater numbers may be too great for float32


def right_directions(
    times: Callable[[Tensor], Tensor], transposed_times: Callable[[Tensor], Tensor], columns: int, rank: int,
    generator: torch.Generator,
) -> Tensor:  # fmt: skip
    """The first right singular vectors of M by a randomized range finder (Halko, Martinsson and Tropp, 2011).

    Args:
        times: `M Q` for a thin matrix Q, `(F, q)`.
        transposed_times: `M' Y` for a thin matrix Y, `(N, q)`.
        columns: F, the number of columns of M.
        rank: how many vectors, at most F.
        generator: source of the random start.

    Returns:
        Orthonormal vectors `(F, rank)`. The projection of the rows, `M V`, has the singular values in its columns. The
        sign of a vector is such that its greatest entry is positive.
    """
    width = min(rank + EXTRA, columns)
    basis = torch.randn(columns, width, generator=generator, device=generator.device)
    for _ in range(ROUNDS):
        basis, _ = torch.linalg.qr(_within_range(transposed_times(_within_range(times(basis)))))
    thin = _within_range(times(basis))  # (N, q)
    _, vectors = torch.linalg.eigh((thin.T @ thin).cpu().double())  # some devices have no float64
    return greatest_entry_positive(basis @ vectors.flip(1)[:, :rank].to(basis))


def greatest_entry_positive(found: Tensor) -> Tensor:
    """Vectors `(F, q)` with the sign that makes the greatest entry of each positive."""
    greatest = found.gather(0, found.abs().argmax(0, keepdim=True))
    return found * torch.where(greatest < 0, -1.0, 1.0)


def _within_range(matrix: Tensor) -> Tensor:
    """The matrix, divided by its greatest entry if this is very large. Directions do not depend on the scale."""
    greatest = matrix.abs().max()
    if not torch.isfinite(greatest):
        raise BGCLError("The attributes are too large: their sums are not finite. Divide them by a constant.")
    return matrix / greatest if greatest > LARGE else matrix
