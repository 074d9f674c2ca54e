"""Sparse products on a fixed pattern: the entries of a matrix keep their places, and only their values change.

A graph is never rebuilt during training. Its connections, with self-connections, are one `Pattern` in compressed rows,
and a mask only changes the values on it. A layer with B blocks of input features needs the sum over blocks of
`A_b X_b W_b`. Both ways to compute it are one product on a pattern that is derived from the first:

- propagate, then transform: `[A_1 X_1 | ... | A_B X_B] W`, a block-diagonal pattern (`diagonal_blocks`);
- transform, then propagate: `[A_1 | ... | A_B] [X_1 W_1; ...; X_B W_B]`, a side-by-side one (`side_by_side`).

In both, row `u * B + b` of the stacked features belongs to node u and block b, and the values are `(E, B)`.
"""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from bgcl.graph.csr import without_beta_warning


class Pattern:
    """The places of the E entries of a sparse `(rows, columns)` matrix, in compressed rows."""

    def __init__(self, pointer: Tensor, column: Tensor, columns: int) -> None:
        self.pointer = pointer  # (rows + 1,)
        self.column = column  # (E,)
        self.rows, self.columns = len(pointer) - 1, columns
        self.derived: dict[tuple[str, int], tuple[Pattern, Tensor]] = {}  # by name and number of blocks

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, `(E,)`."""
        counts = self.pointer.diff()
        return torch.repeat_interleave(torch.arange(self.rows, device=counts.device), counts, output_size=len(self))

    @cached_property
    def transposed(self) -> tuple["Pattern", Tensor]:
        """The transposed pattern, and the order of the values on it."""
        order = torch.argsort(self.column, stable=True)
        return Pattern(row_pointer(self.column, self.columns), self.row[order], self.rows), order

    def forget(self) -> None:
        """Forget what was derived from the pattern, which takes more memory than the pattern. It is derived anew."""
        for name in ("row", "transposed"):
            self.__dict__.pop(name, None)
        self.derived.clear()

    def side_by_side(self, blocks: int) -> "Pattern":
        """`[A_1 | ... | A_B]`, `(rows, columns * B)`. The `(E, B)` values keep their order."""
        if ("beside", blocks) not in self.derived:
            block = torch.arange(blocks, device=self.column.device)
            column = (self.column[:, None] * blocks + block).reshape(-1)
            pattern = Pattern(self.pointer * blocks, column, self.columns * blocks)
            self.derived["beside", blocks] = pattern, block
        return self.derived["beside", blocks][0]

    def diagonal_blocks(self, blocks: int) -> tuple["Pattern", Tensor]:
        """`diag(A_1, ..., A_B)`, `(rows * B, columns * B)`, and the order of the `(E, B)` values on it."""
        if ("diagonal", blocks) not in self.derived:
            block = torch.arange(blocks, device=self.column.device)
            row = (self.row[:, None] * blocks + block).reshape(-1)
            order = torch.argsort(row, stable=True)
            column = (self.column[:, None] * blocks + block).reshape(-1)[order]
            pattern = Pattern(row_pointer(row, self.rows * blocks), column, self.columns * blocks)
            self.derived["diagonal", blocks] = pattern, order
        return self.derived["diagonal", blocks]


def row_pointer(index: Tensor, size: int) -> Tensor:
    """The start of each row if the entries are sorted by `index`, `(size + 1,)`."""
    pointer = index.new_zeros(size + 1)
    torch.cumsum(torch.bincount(index, minlength=size), 0, out=pointer[1:])
    return pointer


def spmm(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    """`A @ dense`, with `values` `(E,)` on the pattern of A; differentiable in both.

    It is computed with as many bits as `values` have. Sums over many neighbors lose too much with fewer.
    """
    result: Tensor = _SparseProduct.apply(values, dense.to(values.dtype), pattern)  # type: ignore[no-untyped-call]
    return result


class _SparseProduct(torch.autograd.Function):
    """The forward product and both backward products go through the rows in order, without scatter operations."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values, dense)
        return _product(pattern, values, dense)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        values, dense = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        grad = grad.contiguous()
        grad_values = grad_dense = None
        if ctx.needs_input_grad[0]:
            grad_values = _sampled_product(pattern, grad, dense)
        if ctx.needs_input_grad[1]:
            transposed, order = pattern.transposed
            grad_dense = _product(transposed, values.index_select(0, order), grad)
        return grad_values, grad_dense, None


def _product(pattern: Pattern, values: Tensor, dense: Tensor) -> Tensor:
    # On a CPU this is twice as fast as the product of a CSR tensor, and no such tensor has to be made.
    return F.embedding_bag(
        pattern.column, dense, pattern.pointer, mode="sum", per_sample_weights=values, include_last_offset=True
    )


def _sampled_product(pattern: Pattern, left: Tensor, right: Tensor) -> Tensor:
    """`left[row] . right[column]` for every entry, `(E,)`."""
    zeros = left.new_zeros(len(pattern))
    where = without_beta_warning(
        torch.sparse_csr_tensor, pattern.pointer, pattern.column, zeros, (pattern.rows, pattern.columns),
        check_invariants=False,
    )  # fmt: skip
    product: Tensor = torch.sparse.sampled_addmm(where, left, right.t(), beta=0.0).values()
    return product


def row_sum(pattern: Pattern, values: Tensor) -> Tensor:
    """The sum of the `(E, B)` values in each row, `(rows, B)`."""
    entries = torch.arange(len(pattern), device=values.device)
    return F.embedding_bag(entries, values, pattern.pointer, mode="sum", include_last_offset=True)


def column_sum(pattern: Pattern, values: Tensor) -> Tensor:
    """The sum of the `(E, B)` values in each column, `(columns, B)`."""
    transposed, order = pattern.transposed
    return row_sum(transposed, values.index_select(0, order))


def normalize(pattern: Pattern, values: Tensor) -> Tensor:
    """`g_a` of Kipf and Welling, `a_vu / sqrt(d_v d'_u)` with the degrees `d_v = sum_u a_vu` and `d'_u = sum_v a_vu`.

    A random mask can keep one direction of an edge and drop the other, so the two degrees differ. With the row's degree
    on the row's side and the column's on the column's side, each entry is at most 1. With the row's degree on both
    sides, a node with few incoming connections would be amplified hundreds of times. For a symmetric matrix both are
    the same.

    `values` and the result are `(E, B)`, and each block has its own degrees. A node without any connection has degree 0
    and sends nothing.
    """
    result: Tensor = _Normalize.apply(values, pattern)  # type: ignore[no-untyped-call]
    return result


class _Normalize(torch.autograd.Function):
    """With `r = d^-1/2`, `r' = d'^-1/2`: `d loss / d a_vu = g_vu r_v r'_u - (r_v^3 R_v + r'_u^3 R'_u) / 2`, where R and
    R' are the sums of `g a r'` over rows and of `g a r` over columns.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, pattern: Pattern) -> Tensor:
        row_root = _inverse_root(row_sum(pattern, values))  # (rows, B)
        column_root = _inverse_root(column_sum(pattern, values))
        ctx.pattern = pattern
        ctx.save_for_backward(values, row_root, column_root)
        return values * row_root.index_select(0, pattern.row) * column_root.index_select(0, pattern.column)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        values, row_root, column_root = ctx.saved_tensors
        pattern: Pattern = ctx.pattern
        by_row, by_column = row_root.index_select(0, pattern.row), column_root.index_select(0, pattern.column)
        slope = grad * values
        row_part = _degree_slope(row_root) * row_sum(pattern, slope * by_column)
        column_part = _degree_slope(column_root) * column_sum(pattern, slope * by_row)
        through_degrees = row_part.index_select(0, pattern.row) + column_part.index_select(0, pattern.column)
        return grad * by_row * by_column + through_degrees, None


_LEAST_DEGREE = 1e-12  # below it, a node has lost all its connections, and the gradient of the root overflows


def _inverse_root(degree: Tensor) -> Tensor:
    # Where a hard mask drops every connection, the least degree would make the gradient of each lost connection a
    # million times too large. So the root is 1 there, as if the connection were the only one to come back.
    return degree.clamp(min=_LEAST_DEGREE).rsqrt().masked_fill(degree == 0, 1.0)


def _degree_slope(root: Tensor) -> Tensor:
    """`d root / d degree`; 0 if the degree was raised to `_LEAST_DEGREE`."""
    return torch.where(root < _LEAST_DEGREE**-0.5, -0.5 * root**3, 0.0)


def block_propagate(pattern: Pattern, values: Tensor, features: Tensor) -> Tensor:
    """`[A_1 X_1 | ... | A_B X_B]` for `(E, B)` values and `(N, F)` features, block b being an equal slice of F."""
    blocks = values.shape[1]
    nodes, width = features.shape
    missing = -width % blocks
    stacked = F.pad(features, (0, missing)).reshape(nodes * blocks, -1)  # row u * B + b: block b of node u
    diagonal, order = pattern.diagonal_blocks(blocks)
    result = spmm(diagonal, values.reshape(-1).index_select(0, order), stacked)
    return result.reshape(nodes, width + missing)[:, :width]


def block_gather(pattern: Pattern, values: Tensor, stacked: Tensor) -> Tensor:
    """`sum_b A_b Y_b` for `(E, B)` values, with `Y_b` the rows `u * B + b` of `stacked`, `(N * B, H)`."""
    return spmm(pattern.side_by_side(values.shape[1]), values.reshape(-1), stacked)
