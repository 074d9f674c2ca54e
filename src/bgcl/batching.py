"""Which batches suit a graph: the whole graph, clusters, or sampled neighbors; and what training on it will cost.

- An encoder that looks at one node at a time (`mlp`) takes batches of random nodes, whose cost does not depend on the
  graph.
- The whole graph is best for the others, as long as it fits: no edge is lost. With `infonce` this holds up to
  `MOST_COMPARED` nodes, because every node is compared with every other one.
- Batches of clusters lose the edges between them, but few. METIS needs 84 bytes for each connection.
- Sampled neighbors need nothing, and lose most.

Estimates are products of sizes with constants. How fast the machine multiplies and gathers is measured when it is asked
for, in about a tenth of a second, so that the estimate of time is that of this machine and its threads.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.nn import functional as F
from torch_geometric.data import Data

from bgcl.data.memory import check_fits, free_memory, in_words
from bgcl.data.pack import pack_of
from bgcl.errors import BGCLError
from bgcl.graph.clusters import METIS_BYTES
from bgcl.settings import Settings

SEEDS, NEIGHBORS = 1024, 10  # of a batch of sampled neighbors; neighbors of a node for each layer
BATCH_OF_CLUSTERS, MOST_COMPARED = 4000, 20_000  # nodes
SHARE = 0.7  # of the free memory that an estimate may take, because it is rough

BYTES_OF_CONNECTION = 90  # pattern, rows, transposed pattern, values and their gradients
COPIES = 6  # of the columns of a layer: both views, before and after the activation, and gradients
PASSES = 12  # times that a step reads and writes the columns of a layer besides its products
STEP_SECONDS = 0.005  # of a step, besides what grows with its nodes


@dataclass(frozen=True)
class Cost:
    """What a training needs, estimated.

    Attributes:
        memory: bytes at the same time.
        steps: in an epoch; a step of the drop rates counts as one.
        products: multiplications and additions of a step.
        moved: bytes that a step gathers, reads and writes.
    """

    memory: int
    steps: float
    products: float
    moved: float

    @property
    def seconds(self) -> float:
        """The time of one epoch. The speed of the machine is measured when it is asked for."""
        speed = measured_speed()
        return self.steps * (STEP_SECONDS + self.products / speed.multiplies + self.moved / speed.gathers)

    def __str__(self) -> str:
        seconds = self.seconds
        time = f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"
        return f"about {in_words(self.memory)} of memory and {time} an epoch"


@dataclass(frozen=True)
class Speed:
    """How fast this machine is, with the threads that torch uses."""

    multiplies: float  # multiplications and additions in a second
    gathers: float  # bytes of rows that a sparse product gathers in a second


@cache
def measured_speed() -> Speed:
    """Measure the speed, once in a process."""
    side, rows, columns, entries = 256, 1 << 18, 64, 1 << 17
    square, tall = torch.ones(side, side), torch.ones(rows, columns)
    index = torch.randint(rows, (entries,), generator=torch.Generator().manual_seed(0))
    offsets = torch.arange(0, entries, 16)
    multiplying = _shortest(lambda: square @ square)
    gathering = _shortest(lambda: F.embedding_bag(index, tall, offsets, mode="sum"))
    return Speed(2 * side**3 / multiplying, 4 * entries * columns / gathering)


def _shortest(action: Callable[[], object], turns: int = 25) -> float:
    """The shortest time of some turns, which other work on the machine delays least."""
    found = []
    for _ in range(turns):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return max(min(found), 1e-6)


def choose(data: Data, settings: Settings) -> tuple[dict[str, Any], str]:
    """The settings of the batches that `settings.batch` asks for, and why.

    Args:
        data: a checked graph.
        settings: settings with a `batch`.

    Returns:
        The settings to change, and the reason in a few words.

    Raises:
        BGCLError: the encoder cannot use such batches.
    """
    nodes, word = data.num_nodes, settings.batch
    done: dict[str, Any] = {"batch": None}
    if settings.encoder == "mlp":
        if word in ("auto", "full"):
            return done | ({"batch_nodes": None, "until_settled": False} if word == "full" else {}), (
                "the whole graph, as asked for"
                if word == "full"
                else "random nodes, because the encoder looks at one node at a time"
            )
        if word == "neighbors":
            raise BGCLError(
                "The encoder 'mlp' looks at one node at a time, and takes random nodes, each with a neighbor, by "
                "default: use --batch auto, or another encoder, such as 'gcn'."
            )
    count = max(round(nodes / BATCH_OF_CLUSTERS), 1)
    clusters = done | {"batches": count, "batch_nodes": None, "until_settled": False}
    sampled = done | {"batch_nodes": min(SEEDS, nodes), "neighbors": (NEIGHBORS,) * settings.layers}
    sampled["until_settled"] = False
    if word == "clusters":
        how_many = f"{count:,} batches" if count > 1 else "one batch, which is the whole graph"
        return clusters, f"clusters, as asked for: {how_many}"
    if word == "neighbors":
        return sampled, f"sampled neighbors, as asked for: {NEIGHBORS} of each node for each layer"
    if word == "full":
        return done | {"batches": 1}, "the whole graph, as asked for"
    compared = settings.objective == "infonce" and settings.loss_nodes is None and nodes > MOST_COMPARED
    whole = cost_of(data, settings.with_changes(batch=None))
    if not compared and whole.memory <= SHARE * free_memory():
        return done | {"batches": 1}, "the whole graph, because it fits into memory"
    why = f"'infonce' would compare {nodes:,} nodes with each other" if compared else f"the whole graph needs {whole}"
    if METIS_BYTES * (data.num_edges + nodes) <= free_memory():
        return clusters, f"{count:,} batches of clusters, because {why}"
    return sampled, f"sampled neighbors, because {why}, and METIS does not fit into memory"


def cost_of(data: Data, settings: Settings) -> Cost:
    """What training on a graph needs, estimated from its sizes."""
    nodes, entries, width = data.num_nodes, data.num_edges + data.num_nodes, data.x.shape[1]
    sparse = data.x.layout != torch.strided
    nonzero = int(data.x.values().numel()) if sparse else nodes * width
    inputs = 3 * (width + 1) if settings.encoder == "mlp" and not sparse else width
    stored = 0 if pack_of(data) is not None else (12 if sparse else 4 * (1 + inputs / max(width, 1))) * nonzero
    stored += 2 * 8 * data.num_edges + BYTES_OF_CONNECTION * entries
    steps, step_nodes, step_entries = 1.0, float(nodes), float(entries)
    if settings.neighbors is not None:
        seeds = settings.batch_nodes or SEEDS
        steps, step_nodes = nodes / seeds, seeds
        for most in settings.neighbors:
            step_nodes = min(step_nodes * (1 + most), nodes)
        step_entries = step_nodes * min(entries / nodes, 1 + sum(settings.neighbors))
    elif settings.batch_nodes is not None:
        steps, step_nodes = nodes / settings.batch_nodes, 2.0 * settings.batch_nodes
        step_entries = 2 * step_nodes
    elif settings.batches > 1:
        steps, step_nodes = settings.batches, nodes / settings.batches
        step_entries = entries / settings.batches
    columns = inputs + settings.members * sum(settings.widths)
    compared = min(step_nodes, settings.loss_nodes or step_nodes) if settings.objective == "infonce" else 0
    step = COPIES * 4 * step_nodes * columns + 8 * step_entries
    step += settings.members * min(settings.memory_budget * 2**20, 12 * compared**2)
    share = nonzero / max(nodes * width, 1)
    weights = share * inputs * settings.widths[0] + sum(
        a * b for a, b in zip(settings.widths, settings.widths[1:], strict=False)
    )
    pairs = 9 if settings.negatives == "both views" else 3  # products of n x n x d, forward and backward
    products = settings.members * (6 * 2 * step_nodes * weights + 2 * pairs * compared**2 * settings.widths[-1])
    gathered = 0 if settings.encoder == "mlp" else 6 * 4 * step_entries * settings.members * sum(settings.widths)
    passed = PASSES * 2 * 4 * step_nodes * columns
    steps_of_rates = 0.0 if settings.lr_rates is None else 1 / (settings.rate_every or 1)  # they cost about as much
    return Cost(int(stored + step), steps * (1 + steps_of_rates), products, gathered + passed)


def check_cost(data: Data, settings: Settings) -> Cost:
    """What training needs; an error if it is more than the memory that is free."""
    found = cost_of(data, settings)
    if settings.batches == 1 and settings.batch_nodes is None:
        remedy = "Use --batch clusters or --batch neighbors (batch='clusters')."
    elif settings.batches > 1:
        remedy = "Take more 'batches', or pack the graph with 'bgcl data pack'."
    elif settings.neighbors is not None:
        remedy = "Lower 'batch_nodes' or 'neighbors'."
    else:
        remedy = "Pack the graph with 'bgcl data pack', and train on the pack."
    check_fits(found.memory, f"Training on {data.num_nodes:,} nodes and {data.num_edges // 2:,} edges", remedy)
    return found
