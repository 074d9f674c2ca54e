"""Batches of random nodes of a packed graph. Their attributes stay on disk, and the next batch is read ahead."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from bgcl.data.on_disk import DiskArray
from bgcl.graph.node_batches import NodeBatches
from bgcl.graph.prepared import PreparedGraph


class BatchesAhead(NodeBatches):
    """`NodeBatches` that reads the rows of its nodes from disk, and makes a batch while the one before is in use.

    So that the order of computing does not matter, the batches of an epoch have a generator of their own. Its seed
    comes from the generator of the training.

    Args:
        graph: the graph.
        size: nodes in a batch, without their neighbors.
        scaled: the scaled attributes, `(N, F)`.
    """

    def __init__(self, graph: PreparedGraph, size: int, scaled: DiskArray) -> None:
        super().__init__(graph, size)
        self.scaled = scaled

    def rows(self, nodes: Tensor) -> Tensor:
        return torch.from_numpy(self.scaled.gather(nodes.numpy()))

    def epoch(self, generator: torch.Generator) -> Iterator[PreparedGraph]:
        seed = int(torch.randint(1 << 62, (), generator=generator, device=generator.device))
        own = torch.Generator().manual_seed(seed)
        order = torch.randperm(self.graph.nodes, generator=own)
        ahead: Future[PreparedGraph] | None = None
        with ThreadPoolExecutor(1, "bgcl-reads-ahead") as reader:
            for nodes in order.tensor_split(self.count):
                following = reader.submit(self.batch, nodes, own)
                if ahead is not None:
                    yield ahead.result()
                ahead = following
            if ahead is not None:
                yield ahead.result()
