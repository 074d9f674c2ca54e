"""Random numbers of modules that take them from torch's global generators, and generators with a name."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bgcl.augmentation.noise import CountedNoise


@contextmanager
def seeded_from(seed: int) -> Iterator[None]:
    """Seed torch's global generators, and restore them at the end."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def generator_of(device: str, *path: int | str) -> torch.Generator:
    """A generator whose numbers depend only on a path, such as a seed, a step and the place of a batch in it.

    >>> one, other = (torch.rand((), generator=generator_of("cpu", 0, "step", step)) for step in (1, 2))
    >>> bool(one == other)
    False
    """
    return torch.Generator(device).manual_seed(CountedNoise(path).keys()[0] & (2**63 - 1))
