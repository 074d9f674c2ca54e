"""A fitted model and the graphs that it is used on, each of them prepared once: in memory, or in blocks from a pack."""

import torch
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from torch_geometric.data import Data

from bgcl.data.facts import GraphFacts
from bgcl.data.pack import Pack, pack_of
from bgcl.data.pyg import check_graph
from bgcl.errors import BGCLError
from bgcl.graph.prepared import PreparedGraph
from bgcl.model.network import Alike, Network
from bgcl.model.scaling import are_dense_numbers
from bgcl.packed.ready import PackedReady, works_in_blocks
from bgcl.parameters import BGCLParameters
from bgcl.processes.team import Team
from bgcl.ready_graph import GraphMemo, ReadyGraph
from bgcl.settings import Settings


class NotFittedError(BGCLError, SklearnNotFittedError):  # type: ignore[misc]
    """A method needs a fitted model. It is scikit-learn's `NotFittedError` too."""


class PackMemo:
    """Remembers a ready graph for as long as a user's graph is the same pack."""

    def __init__(self, pack: Pack, ready: ReadyGraph) -> None:
        self.pack, self.ready = pack, ready

    def holds(self, data: Data) -> bool:
        """Whether the graph is the pack that is remembered."""
        return pack_of(data) == self.pack


class ReadyModel(BGCLParameters):
    """What `BGCL` computes with: its network, and graphs in the form that the network takes."""

    network_: Network
    settings_: Settings
    graph_: GraphFacts
    team = Team()  # processes that have the same model, call the same methods, and share the draws

    def in_blocks(self, data: Data) -> PackedReady | None:
        """A packed graph that is computed in blocks; None if the graph is computed in memory."""
        self._fitted()
        ready = self._ready_graph(data)
        return ready if isinstance(ready, PackedReady) else None

    def _fitted(self) -> Network:
        if not hasattr(self, "network_"):
            raise NotFittedError("This BGCL is not fitted yet: call fit(data) first.")
        return self.network_.eval()

    def _ready(self, data: Data) -> tuple[Network, PreparedGraph]:
        """The network, and a graph in the form that it takes."""
        network, ready = self._fitted(), self._ready_graph(data)
        found, expected = ready.checked.x.shape[1], self.graph_.num_attributes
        if found != expected:
            raise BGCLError(f"The graph has {found} attributes, but the model was trained on {expected}.")
        if ready.scaled is None:
            if network.parts.structure is not None:
                network.parts.structure.warn_of_other_nodes(
                    ready.prepared, lambda: ready.facts.fingerprint == self.graph_.fingerprint
                )
            ready.scaled = ready.scale(network) if isinstance(ready, PackedReady) else network.scaling(ready.prepared)
        return network, ready.scaled

    def _alike(self, data: Data) -> Alike:
        """The graphs of alike nodes, which all draws of a graph share."""
        ready = self._ready_graph(data)
        ready.alike = ready.alike or self.network_.alike(self._ready(data)[1])
        return ready.alike

    def _ready_graph(self, data: Data) -> ReadyGraph:
        """The same graph is checked, sorted and hashed only once."""
        memo: GraphMemo | PackMemo | None = getattr(self, "_memo", None)
        if memo is None or not memo.holds(data):
            ready = ready_graph(check_graph(data), self.settings_, self.graph_)
            self._memo = memo = memo_of(data, ready)
        return memo.ready


def ready_graph(checked: Data, settings: Settings, trained: GraphFacts | None = None) -> ReadyGraph:
    """A checked graph, ready for a model with some settings.

    Args:
        checked: the graph.
        settings: the settings of the model.
        trained: facts of the training graph; None: this is the training graph.
    """
    kind = PackedReady if works_in_blocks(checked, settings) else ReadyGraph
    return kind(checked, settings.device, trained)


def memo_of(data: Data, ready: ReadyGraph) -> GraphMemo | PackMemo:
    """What remembers a ready graph."""
    pack = pack_of(data)
    return GraphMemo(data, ready) if pack is None else PackMemo(pack, ready)


def is_dense(ready: ReadyGraph) -> bool:
    """Whether the attributes are dense numbers. Those of a graph that is computed in blocks are."""
    return isinstance(ready, PackedReady) or are_dense_numbers(ready.prepared.features)


def fit_graph(network: Network, ready: ReadyGraph, generator: torch.Generator) -> PreparedGraph:
    """Learn what is not trained from a graph. Returns the scaled graph."""
    if isinstance(ready, PackedReady):
        return ready.fit(network, generator)
    return network.fit_graph(ready.prepared, generator)
