"""The base class of embedding methods: checked settings, a checked graph, and a seed for all random numbers."""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BeforeValidator, Field
from torch_geometric.data import Data

from bgcl.data.pyg import check_graph
from bgcl.errors import BGCLError
from bgcl.validation import CheckedSettings, Width, plain_number

Array = npt.NDArray[Any]
# The range comes before the validator, because pydantic leaves it out of the JSON schema otherwise.
_is_number = BeforeValidator(plain_number)
Widths = Annotated[tuple[Width, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1), _is_number]
Seed = Annotated[int, Field(ge=0, lt=2**63), _is_number]
LearningRate = Annotated[float, Field(gt=0, le=1), _is_number]
Positive = Annotated[float, Field(gt=0), _is_number]
NotNegative = Annotated[float, Field(ge=0), _is_number]


class EmbeddingMethod(CheckedSettings, ABC):
    """Settings of an embedding method, and `fit`. The same seed gives the same embeddings."""

    parts: ClassVar[int] = 1  # parts of equal width of the embeddings; a head may choose one of them
    seed: Seed = 0

    def fit(self, data: Data) -> Array:
        """Embed the nodes of a graph.

        Args:
            data: the graph.

        Returns:
            Embeddings `(N, d)` in float32.

        Raises:
            BGCLError: the graph is not valid, or an embedding is not finite.
        """
        data = check_graph(data).to("cpu")
        with seeded(self.seed):
            embeddings = np.ascontiguousarray(self._embed(data), dtype=np.float32)
        if not np.isfinite(embeddings).all():
            raise BGCLError(f"{type(self).__name__} made embeddings that are not finite. Give a lower learning rate.")
        return embeddings

    @abstractmethod
    def _embed(self, data: Data) -> Array:
        """Embed a checked graph. The global generators of torch and Python are seeded."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of torch and Python, which other libraries use, and restore both afterwards."""
    state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(state)
