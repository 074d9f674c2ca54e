"""A user's graph that is checked, hashed and prepared for the model, each of these once."""

import logging
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Data

from bgcl.data.facts import GraphFacts
from bgcl.data.ids import id_texts
from bgcl.data.pack import pack_of
from bgcl.data.partition import partition
from bgcl.data.structure import hashes
from bgcl.errors import BGCLError
from bgcl.graph.clusters import Batches
from bgcl.graph.csr import without_beta_warning
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.graph.neighbor_batches import NeighborBatches
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import PreparedGraph, mean_weight, prepare, relations_of
from bgcl.settings import Settings

log = logging.getLogger("bgcl")


class ReadyGraph:
    """A graph that `check_graph` returned, in the form that the model needs, and its facts.

    Args:
        checked: the graph.
        device: device to compute on.
        trained: facts of the training graph; None: this is the training graph.
    """

    def __init__(self, checked: Data, device: str, trained: GraphFacts | None = None) -> None:
        check_device(device)
        self.checked = checked
        if trained is not None:
            _warn_of_weights(trained, mean_weight(checked), "edge_weight" in checked)
            _check_relations(trained.relations, checked.get("relations") or ())
        unit = None if trained is None else trained.mean_weight
        relations = relations_of(checked) if trained is None else trained.relations
        prepared = prepare(checked, row_norm="none", device=device, unit=unit, relations=relations)
        self.prepared: PreparedGraph = replace(prepared, keys=_keys(checked, device))
        self.scaled: PreparedGraph | None = None  # with the attributes scaled as the model needs them
        self.alike: dict[Any, PreparedGraph] | None = None  # the graphs of alike nodes, by the fitted model

    @cached_property
    def facts(self) -> GraphFacts:
        """Name, size and fingerprint. The fingerprint is a hash, which is computed on first use."""
        return GraphFacts.of(self.checked, getattr(self.checked, "name", None) or "")

    def batches(self, settings: Settings) -> EpochBatches:
        """The batches of an epoch: random nodes, sampled neighbors, clusters, or the whole graph as one."""
        assert self.scaled is not None, "the graph has to be scaled first"
        if settings.batch_nodes is not None and settings.neighbors is not None:
            return NeighborBatches(self.scaled, settings.batch_nodes, settings.neighbors)
        if settings.batch_nodes is not None:
            return NodeBatches(self.scaled, settings.batch_nodes)
        pack = pack_of(self.checked)
        cut = partition if pack is None else partial(partition, known=pack.clusters())
        return Batches(self.scaled, settings.batches, settings.clusters_per_batch, cut)


class GraphMemo:
    """Remembers a ready graph for as long as the user's tensors exist and keep their values and their names."""

    def __init__(self, data: Data, ready: ReadyGraph) -> None:
        self.ready = ready
        self._ids, self._names = getattr(data, "ids", None), _names(data)
        self._seen = [None if each is None else (weakref.ref(each), _checksum(each)) for each in _tensors(data)]

    def holds(self, data: Data) -> bool:
        """Whether the graph has the same tensors, with the same values and names, as the graph that is remembered."""
        same = getattr(data, "ids", None) is self._ids and _names(data) == self._names
        return same and all(map(_is_same, self._seen, _tensors(data)))


def _is_same(seen: "tuple[weakref.ref[Tensor], int] | None", tensor: Tensor | None) -> bool:
    """Whether a tensor is the one that was seen, with the same values."""
    if seen is None or not isinstance(tensor, Tensor):
        return seen is None and tensor is None
    return seen[0]() is tensor and seen[1] == _checksum(tensor)


def _warn_of_weights(trained: GraphFacts, mean: float, has_weights: bool) -> None:
    if mean and not trained.mean_weight:
        log.warning("The model was trained on edges without weights, so the weights of this graph are not used.")
    elif trained.mean_weight and not has_weights:
        log.warning(
            "The model was trained on edges with weights, and this graph has none: each of its edges has the weight 1."
        )


def _check_relations(trained: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a graph without relations if the model needs them, and warn of relations that it does not know."""
    if trained and not given:
        raise BGCLError(
            f"The model was trained on edges of {len(trained)} relations ({', '.join(trained)}), and this graph has "
            "one kind of edges. Give it the same types or directions: see bgcl.graph_from."
        )
    unknown = [name for name in given if name not in trained]
    if unknown and (trained or len(given) > 1):
        log.warning(
            "The model was not trained on the relations %s. Their edges count, but not as relations of their own.",
            ", ".join(unknown),
        )


def _keys(data: Data, device: str) -> Tensor | None:
    """A number for each node that depends only on its id, `(N,)`; None if the nodes have no ids."""
    ids = getattr(data, "ids", None)
    if ids is None:
        return None
    texts = id_texts(ids)
    # The id 24 has the same key as a number and as a text: one new id that is a text makes all of them texts.
    whole = np.array([_is_whole(text) for text in texts], dtype=bool)
    found = np.empty(len(texts), dtype=np.uint64)
    every = np.array(texts, dtype=object)
    if whole.any():
        found[whole] = hashes(pa.array([int(text) for text in every[whole]], pa.int64()))
    if not whole.all():
        found[~whole] = hashes(pa.array(every[~whole].tolist(), pa.string()))
    return torch.from_numpy(found.view(np.int64).copy()).to(device)


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number of 64 bits as Python writes it."""
    if not text.removeprefix("-").isdecimal() or len(text) > 20:
        return False
    return str(int(text)) == text and -(2**63) <= int(text) < 2**63


_COMPUTED_FROM = ("x", "edge_index", "edge_weight", "edge_type", "node_type", "edge_relations")


def _tensors(data: Data) -> tuple[Tensor | None, ...]:
    """What the model is computed from; None for what the graph does not have."""
    return tuple(getattr(data, name, None) for name in _COMPUTED_FROM)


def _names(data: Data) -> list[list[str]]:
    """The names of relations and types: a model finds its relations in a graph by their names."""
    fields = ("relations", "edge_type_names", "node_type_names")
    return [[str(name) for name in getattr(data, field, None) or ()] for field in fields]


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
