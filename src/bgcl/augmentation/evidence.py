r"""How much of a graph is explained by the rest of it, which is what drop rates are learned from before training.

A mask drops what says nothing about a node. So its drop rate is the share of edges, or of attributes, that the rest of
the graph does not explain. There are two witnesses. View o asks the nodes that are alike in their attributes, and
view t asks the neighbors. A witness k of node i explains

- an edge `i - j` if it is j or a neighbor of j: with the probability `A[k, j] / d_k`, A with self-connections;
- an attribute c of node i if it has c too: with the probability `1 / n_k`, where `n_k` is the number of its attributes.

Let `e` be the mean of these probabilities over the witnesses, and `b` the share of all edges that end in j, or of all
attributes that are c. Then an item has the likelihood `pi b + (1 - pi) e`: with the probability `pi`, the drop rate, it
has nothing to do with the node. What is explained never takes part in its explanation. There is one edge and one
attribute for each node, so the items are close to independent. Together with the Beta prior of `pi`, they have a
posterior, which `bgcl.augmentation.rate_evidence` approximates. It is narrow where the graph has many nodes.

Attributes that are dense numbers `v` are explained by a normal distribution around the mean of the witnesses' numbers,
and by the standard normal distribution of the column otherwise.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn import functional as F

from bgcl.graph.alike import nearest_among, references
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures

ITEMS = 4096  # nodes whose edges and attributes are looked at; in a smaller graph, all
WITNESSES = 20  # alike nodes that are asked
HELD_OUT = 0.1  # share of a node's attributes that do not decide which nodes are alike
COLUMNS = 16  # columns of dense numbers that are looked at
WIDTH = 0.5  # standard deviation of dense numbers around the mean of their witnesses
_ROWS = 512  # items that are computed at a time


@dataclass(frozen=True)
class Evidence:
    """For each item, its probability if nothing explains it, and if the witnesses do; both `(n,)`, in float64."""

    background: Tensor
    explained: Tensor

    def log_likelihood(self, rate: Tensor) -> Tensor:
        """`sum_i log(pi b_i + (1 - pi) e_i)` at each rate, `(r,)`. The items are divided by the greater of b and e."""
        greater = torch.maximum(self.background, self.explained)
        b, e = self.background / greater, self.explained / greater
        return torch.log(rate[:, None] * b + (1 - rate[:, None]) * e).sum(1) + greater.log().sum()


class Witnesses:
    """The evidence of a graph for its edges and its attributes.

    Args:
        graph: the graph, with its attributes as the encoder gets them.
        directions: principal directions of the attributes, `(F, q)`.
        numbers: how many of the first columns are dense numbers with mean 0 and variance 1; 0: attributes are words.
        generator: chooses nodes, edges and attributes.
    """

    def __init__(
        self, graph: PreparedGraph, directions: Tensor, numbers: int, generator: torch.Generator
    ) -> None:  # fmt: skip
        self.graph, self.directions, self.numbers = graph, directions, numbers
        chosen = torch.randperm(graph.nodes, generator=generator, device=generator.device)[:ITEMS]
        self.nodes = chosen.sort().values.cpu().numpy()
        self.random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator, device=generator.device)))
        pointer, column = graph.connections.pointer.cpu().numpy(), graph.connections.column.cpu().numpy()
        shape = graph.nodes, graph.nodes
        self.adjacency = csr_matrix((np.ones(len(column)), column, pointer), shape=shape)  # with self-connections
        self.degree = np.diff(pointer)

    def of_edges(self) -> tuple[Evidence, Evidence] | None:
        """The evidence of alike nodes and of neighbors for an edge of each node; None if there are no edges."""
        nodes = self.nodes[self.degree[self.nodes] > 1]
        if not len(nodes):
            return None
        ends = np.array([self._neighbor(node) for node in nodes])
        received = self.degree - 1.0
        background = (received[ends] - 1 + 0.5) / (received.sum() - 1 + 0.5 * len(received))
        target = csr_matrix(self.adjacency[ends].multiply(1 / self.degree))  # column k of row i: A[k, j] / d_k
        by_alike = _mean_of(self._alike(nodes, self._vectors(nodes)), target)
        others = self._without(self._neighbors(nodes), ends)  # the edge itself is no witness
        return _evidence(background, by_alike), _evidence(background, _mean_of(others, target))

    def of_attributes(self) -> tuple[Evidence, Evidence] | None:
        """The evidence of alike nodes and of neighbors for an attribute of each node; None if there are none."""
        return self._of_numbers() if self.numbers else self._of_words()

    def _of_words(self) -> tuple[Evidence, Evidence] | None:
        words = _presence(self.graph.features)
        count = np.diff(words.indptr)
        nodes = self.nodes[count[self.nodes] > 1]
        if not len(nodes):
            return None
        held_out = csr_matrix(words[nodes])
        held_out.data = (self.random.random(held_out.nnz) < HELD_OUT).astype(float)
        item = held_out.indptr[:-1] + (self.random.random(len(nodes)) * count[nodes]).astype(np.int64)
        held_out.data[item] = 1
        column = held_out.indices[item]
        present = np.asarray(words.sum(0)).ravel()
        background = (present[column] - 1 + 0.5) / (present.sum() - 1 + 0.5 * len(present))
        target = csr_matrix(csr_matrix(words.T)[column].multiply(1 / np.maximum(count, 1)))  # row i: X[k, c] / n_k
        by_alike = _mean_of(self._alike(nodes, self._vectors(nodes, held_out)), target)
        return _evidence(background, by_alike), _evidence(background, _mean_of(self._neighbors(nodes), target))

    def _of_numbers(self) -> tuple[Evidence, Evidence] | None:
        assert isinstance(self.graph.features, Tensor)
        numbers = self.graph.features[:, : self.numbers].cpu().double()
        numbers = numbers - numbers.mean(0)
        numbers = numbers / numbers.square().mean(0).sqrt().clamp(min=1e-12)
        columns = np.flatnonzero(numbers.var(0).numpy() > 1e-6)
        columns = self.random.permutation(columns)[:COLUMNS]
        if not len(columns):
            return None
        found: list[list[Evidence]] = [[], []]
        for part, column in zip(
            np.array_split(self.random.permutation(self.nodes), len(columns)), columns, strict=True
        ):
            if not len(part):
                continue
            others = numbers.clone()
            others[:, column] = 0
            alike = self._alike(part, others[part].float(), others.float())
            values = numbers[:, column].numpy()
            background = _normal(values[part], 0.0, 1.0)
            for i, witnesses in enumerate((alike, self._neighbors(part))):
                many = np.asarray(witnesses.sum(1)).ravel()
                mean = np.asarray(witnesses @ values).ravel()
                explained = np.where(many > 0.5, _normal(values[part], mean, WIDTH), 0.0)
                found[i].append(_evidence(background, explained))
        o, t = (Evidence(*(torch.cat([getattr(e, name) for e in some]) for name in ("background", "explained")))
                for some in found)  # fmt: skip
        return o, t

    def _neighbor(self, node: int) -> int:
        row = self.adjacency.indices[self.adjacency.indptr[node] : self.adjacency.indptr[node + 1]]
        return int(self.random.choice(row[row != node]))

    def _neighbors(self, nodes: np.ndarray) -> csr_matrix:
        """The neighbors of each node, with weights that sum to one; nothing for a node without neighbors."""
        return self._without(csr_matrix(self.adjacency[nodes]), nodes)

    def _without(self, rows: csr_matrix, columns: np.ndarray) -> csr_matrix:
        """Rows without the entry in the given column of each; the other weights are equal and sum to one."""
        row = np.repeat(np.arange(len(columns)), np.diff(rows.indptr))
        data = (rows.data > 0) & (rows.indices != columns[row])
        total = np.bincount(row, weights=data, minlength=len(columns))
        return csr_matrix((data / np.maximum(total, 1)[row], rows.indices, rows.indptr), shape=rows.shape)

    def _vectors(self, nodes: np.ndarray, without: csr_matrix | None = None) -> Tensor:
        """The attributes of nodes in their principal directions, without some entries, `(n, q)`."""
        rows = _rows(self.graph.features, nodes)
        if without is not None:
            rows = csr_matrix(rows - rows.multiply(without))
        return torch.from_numpy(rows @ self.directions.cpu().double().numpy()).float()

    def _alike(self, nodes: np.ndarray, vectors: Tensor, all_vectors: Tensor | None = None) -> csr_matrix:
        """The alike nodes of each node, with weights that sum to one."""
        among = references(self.graph).cpu()
        theirs = self._vectors(among.numpy()) if all_vectors is None else all_vectors[among]
        place = torch.full((self.graph.nodes,), -1)
        place[among] = torch.arange(len(among))
        itself = place[torch.from_numpy(nodes)]
        row, found, _ = nearest_among(F.normalize(vectors, dim=1), F.normalize(theirs, dim=1), itself, WITNESSES)
        weight = np.full(len(row), len(nodes) / max(len(row), 1))
        return csr_matrix((weight, (row.numpy(), among[found].numpy())), shape=(len(nodes), self.graph.nodes))


def _mean_of(witnesses: csr_matrix, target: csr_matrix) -> np.ndarray:
    """`sum_k W[i, k] T[i, k]` for each item i, `(n,)`."""
    parts = [
        np.asarray(witnesses[i : i + _ROWS].multiply(target[i : i + _ROWS]).sum(1)).ravel()
        for i in range(0, witnesses.shape[0], _ROWS)
    ]
    return np.concatenate(parts)


def _evidence(background: np.ndarray, explained: np.ndarray) -> Evidence:
    return Evidence(torch.from_numpy(np.asarray(background, float)), torch.from_numpy(np.asarray(explained, float)))


def _normal(values: np.ndarray, mean: np.ndarray | float, width: float) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((values - mean) / width) ** 2) / (width * np.sqrt(2 * np.pi)))


def _presence(features: Features) -> csr_matrix:
    """1 where a node has an attribute."""
    rows = _rows(features)
    rows.data = np.ones(rows.nnz)
    return rows


def _rows(features: Features, nodes: np.ndarray | slice = slice(None)) -> csr_matrix:
    """Attributes of nodes without entries of 0."""
    if isinstance(features, SparseFeatures):
        pattern = features.pattern
        whole = csr_matrix(
            (features.values.cpu().double().numpy(), pattern.column.cpu().numpy(), pattern.pointer.cpu().numpy()),
            shape=(pattern.rows, pattern.columns),
        )
        found = csr_matrix(whole[nodes])
    else:
        found = csr_matrix(features[nodes].cpu().double().numpy())
    found.eliminate_zeros()
    return found
