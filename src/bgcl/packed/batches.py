"""Batches of random nodes of a packed graph. Their attributes stay on disk, and the next batch is read ahead."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from bgcl.data.on_disk import DiskArray
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import PreparedGraph


class BatchesAhead(NodeBatches):
    """`NodeBatches` that reads the rows of its nodes from disk, and makes a batch while the one before is in use.

    Args:
        graph: the graph.
        size: nodes in a batch, without their neighbors.
        scaled: the scaled attributes, `(N, F)`.
    """

    apart = True

    def __init__(self, graph: PreparedGraph, size: int, scaled: DiskArray) -> None:
        super().__init__(graph, size)
        graph.connections.forget()
        self.scaled = scaled

    def rows(self, nodes: Tensor) -> Tensor:
        return torch.from_numpy(self.scaled.gather(nodes.numpy()))

    def stream(self, wanted: Iterable[tuple[Tensor, torch.Generator]]) -> Iterator[PreparedGraph]:
        ahead: Future[PreparedGraph] | None = None
        with ThreadPoolExecutor(1, "bgcl-reads-ahead") as reader:
            for plan, generator in wanted:
                following = reader.submit(self.make, plan, generator)
                if ahead is not None:
                    yield ahead.result()
                ahead = following
            if ahead is not None:
                yield ahead.result()
