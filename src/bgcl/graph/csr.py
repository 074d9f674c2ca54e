"""Sparse CSR tensors without torch's warning that they are in beta, which users can do nothing about."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import Tensor


def without_beta_warning(make: Callable[..., Tensor], *arguments: Any, **options: Any) -> Tensor:
    """Call a function that makes a sparse CSR tensor, and hide the warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return make(*arguments, **options)
