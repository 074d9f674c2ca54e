"""Random numbers of modules that take them from torch's global generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded_from(seed: int) -> Iterator[None]:
    """Seed torch's global generators, and restore them at the end."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield
