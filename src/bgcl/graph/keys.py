"""Numbers that stand for nodes in every graph that has them, and a hash of such numbers."""

from torch import Tensor

from bgcl.graph.prepared import PreparedGraph, numbers_of


def keys_of(graph: PreparedGraph) -> Tensor:
    """The key of each node, `(N,)`: a hash of its id, or its row in the whole graph if it has none."""
    return numbers_of(graph) if graph.keys is None else graph.keys


def mixed(numbers: Tensor, more: Tensor | int = 0) -> Tensor:
    """A hash of whole numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), in wrapping arithmetic.

    Args:
        numbers: the numbers.
        more: other numbers, which are added after the first multiplication.
    """
    found = numbers * _GOLDEN + more
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        found = (found ^ ((found >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return found


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST, _SECOND = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)
