"""What the embedding methods share: checked settings, a clean graph, and random numbers from the seed alone."""

import dataclasses
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from bgcl.data import check_graph
from bgcl.errors import BGCLError

Array = npt.NDArray[Any]


def whole(default: int, least: int = 1) -> Any:
    """A field for a whole number of at least `least`."""
    return dataclasses.field(default=default, metadata={"least": least})


def number(default: float, least: float = 0.0, most: float = float("inf"), *, above: bool = False) -> Any:
    """A field for a number between `least` (or `above` it) and `most`."""
    return dataclasses.field(default=default, metadata={"least": least, "most": most, "above": above})


@dataclass(frozen=True, kw_only=True)
class EmbeddingMethod(ABC):
    """Settings, and a `fit` that makes embeddings of them and a graph. The same seed gives the same embeddings."""

    seed: int = whole(0, least=0)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.metadata:
                _check(field, getattr(self, field.name))
        widths = getattr(self, "widths", (1,))
        if not widths or not all(_is_whole(width) and width >= 1 for width in widths):
            raise BGCLError(f"The setting 'widths' must be whole numbers of 1 or more. Got {widths!r} instead.")

    def fit(self, data: Data) -> Array:
        """The embeddings of a graph's nodes, `(N, d)` in float32."""
        data = check_graph(data).to("cpu")
        with seeded(self.seed):
            embeddings = np.ascontiguousarray(self._embed(data), dtype=np.float32)
        if not np.isfinite(embeddings).all():
            raise BGCLError(f"{type(self).__name__} made embeddings that are not finite: lower its learning rate.")
        return embeddings

    @abstractmethod
    def _embed(self, data: Data) -> Array:
        """The embeddings of a clean graph; all of torch's random numbers come from the seed."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the generators of torch and Python that other libraries draw from, and put both back afterwards."""
    state = random.getstate()
    with torch.random.fork_rng(devices=[]):
        random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(state)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check(field: "dataclasses.Field[Any]", value: Any) -> None:
    allowed = field.metadata
    if "most" not in allowed:
        if not _is_whole(value) or value < allowed["least"]:
            least = allowed["least"]
            raise BGCLError(
                f"The setting '{field.name}' must be a whole number of {least} or more. Got {value!r} instead."
            )
        return
    least, most, above = allowed["least"], allowed["most"], allowed["above"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (value > least if above else value >= least) or not value <= most:
        upper = "" if most == float("inf") else f" and at most {most:g}"
        lower = f"above {least:g}" if above else f"of {least:g} or more"
        raise BGCLError(f"The setting '{field.name}' must be a number {lower}{upper}. Got {value!r} instead.")
