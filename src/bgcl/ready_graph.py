"""A user's graph that is checked, hashed and prepared for the model, each of these once."""

import weakref
import zlib
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.data.facts import GraphFacts
from bgcl.errors import BGCLError
from bgcl.graph.csr import without_beta_warning
from bgcl.graph.prepared import PreparedGraph, RowNorm, prepare


class ReadyGraph:
    """A graph that `check_graph` returned, in the form that the model needs, and its facts."""

    def __init__(self, checked: Data, row_norm: RowNorm, device: str) -> None:
        check_device(device)
        self.checked = checked
        self.prepared: PreparedGraph = prepare(checked, row_norm=row_norm, device=device)

    @cached_property
    def facts(self) -> GraphFacts:
        """Name, size and fingerprint. The fingerprint is a hash, which is computed on first use."""
        return GraphFacts.of(self.checked, getattr(self.checked, "name", None) or "")


class GraphMemo:
    """Remembers a ready graph for as long as the user's tensors exist and keep their values."""

    def __init__(self, data: Data, ready: ReadyGraph) -> None:
        self.ready = ready
        self._seen = [(weakref.ref(tensor), _checksum(tensor)) for tensor in _tensors(data)]

    def holds(self, data: Data) -> bool:
        """Whether the graph has the same tensors, with the same values, as the graph that is remembered."""
        pairs = zip(self._seen, _tensors(data), strict=True)
        return all(
            isinstance(tensor, Tensor) and seen() is tensor and checksum == _checksum(tensor)
            for (seen, checksum), tensor in pairs
        )


def _tensors(data: Data) -> tuple[Tensor, Tensor]:
    return getattr(data, "x", None), getattr(data, "edge_index", None)  # type: ignore[return-value]


def _checksum(tensor: Tensor) -> int:
    """A checksum of the values. It also notices a change through NumPy, which torch's version counter does not see."""
    checksum = 0
    for part in _parts(tensor.detach()):
        checksum = zlib.crc32(part.cpu().contiguous().view(torch.uint8).numpy().data, checksum)
    return checksum


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """The dense tensors that hold a tensor's values and their places."""
    if tensor.layout == torch.strided:
        return (tensor,)
    rows = tensor if tensor.layout == torch.sparse_csr else without_beta_warning(tensor.to_sparse_csr)
    return rows.crow_indices(), rows.col_indices(), rows.values()


def check_device(device: str) -> None:
    """Raise a `BGCLError` if this machine does not have a device."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise BGCLError(f"The setting 'device' is '{device}', which is not on this machine.") from None
