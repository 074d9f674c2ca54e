"""Truncated singular value decompositions of matrices that are never made, only multiplied with thin matrices."""

from collections.abc import Callable

import torch
from torch import Tensor

EXTRA, ROUNDS = 20, 2


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
        basis, _ = torch.linalg.qr(transposed_times(times(basis)))
    thin = times(basis)  # (N, q)
    _, vectors = torch.linalg.eigh((thin.T @ thin).double())
    found: Tensor = basis @ vectors.flip(1)[:, :rank].to(basis)
    greatest = found.gather(0, found.abs().argmax(0, keepdim=True))
    return found * torch.where(greatest < 0, -1.0, 1.0)
