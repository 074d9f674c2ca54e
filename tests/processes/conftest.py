"""Two processes for all tests of a module."""

from collections.abc import Iterator

import pytest
from pair import Pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Iterator[Pair]:
    found = Pair(tmp_path_factory.mktemp("pair"))
    yield found
    found.close()
