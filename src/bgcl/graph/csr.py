"""Torch remarks, once a process, that its CSR tensors are in beta. A user can do nothing about that."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import Tensor


def quietly(make: Callable[..., Tensor], *arguments: Any, **options: Any) -> Tensor:
    """`make(...)`, a sparse CSR tensor, without that remark."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return make(*arguments, **options)
