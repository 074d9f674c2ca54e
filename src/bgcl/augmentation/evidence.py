r"""How well a graph explains its own edges and attributes, which is what drop rates are learned from before training.

An edge or an attribute, an item of node i, is explained by witnesses: other nodes that have it too. Witnesses of node i
are the k nodes with the most similar attributes, for several k, or its neighbors. A witness explains

- an edge `i - j` if it is j or a neighbor of j: with the probability `A[k, j] / d_k`, A with self-connections;
- an attribute c of node i if it has c too: with the probability `1 / n_k`, where `n_k` is the number of its attributes.

Let `e` be the mean of these probabilities over the witnesses, and `b` the share of all edges that end in j, or of all
attributes that are c. Then an item has the likelihood `pi b + (1 - pi) e`: with the probability `pi` it is noise, and
has nothing to do with the node. What is explained never takes part in its explanation. There is one edge and one
attribute for each node, so the items are close to independent.

If edges have weights, an item is an edge that is drawn in proportion to its weight, A holds the weights, `d_k` is the
sum of row k of A, and `b` and the means over neighbors count edges by their weights.

Attributes that are dense numbers `v` are explained by a normal distribution around the mean of the witnesses' numbers,
and by the standard normal distribution of the column otherwise.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn import functional as F

from bgcl.augmentation.explanations import Explanations
from bgcl.graph.alike import nearest_among, references
from bgcl.graph.prepared import Features, PreparedGraph, SparseFeatures
from bgcl.graph.relations import in_relation

ITEMS = 4096  # nodes whose edges and attributes are looked at; in a smaller graph, all
FEWEST, SHARE = 5, 0.1  # alike nodes that are asked: 5, 10, 20, ... up to this share of all
HELD_OUT = 0.1  # share of a node's attributes that do not decide which nodes are alike
COLUMNS = 16  # columns of dense numbers that are looked at
_ROWS = 512  # items that are computed at a time


# The columns that vary, all nodes' numbers in some columns, and all numbers of some nodes.
Numbers = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], Tensor]]


class Witnesses:
    """Asks the witnesses of a graph for its edges and its attributes.

    Args:
        graph: the graph, with its attributes as the encoder gets them.
        directions: principal directions of the attributes, `(F, q)`.
        numbers: how many of the first columns are dense numbers with mean 0 and variance 1; 0: attributes are words.
        generator: chooses nodes, edges and attributes.
    """

    def __init__(self, graph: PreparedGraph, directions: Tensor, numbers: int, generator: torch.Generator) -> None:
        self.graph, self.directions, self.numbers = graph, directions, numbers
        chosen = torch.randperm(graph.nodes, generator=generator, device=generator.device)[:ITEMS]
        self.nodes = chosen.sort().values.cpu().numpy()
        self.random = np.random.default_rng(int(torch.randint(2**31, (), generator=generator, device=generator.device)))
        pointer, column = graph.connections.pointer.cpu().numpy(), graph.connections.column.cpu().numpy()
        shape = graph.nodes, graph.nodes
        weights = np.ones(len(column)) if graph.weights is None else graph.weights.cpu().double().numpy()
        self.adjacency = csr_matrix((weights, column, pointer), shape=shape)  # with self-connections
        self.relations = 0 if graph.relations is None else graph.relations.shape[1]
        self.among = references(graph).cpu()
        most = max(int(SHARE * len(self.among)), min(FEWEST, len(self.among) - 1))
        self.sizes = [size for i in range(32) if (size := FEWEST << i) <= most] or [most]

    def of_edges(self, relation: int | None = None) -> Explanations | None:
        """What explains an edge of each node, of one relation or of any; None if there are no edges."""
        adjacency = self.adjacency if relation is None else self._in_relation(relation)
        nodes = self.nodes[np.diff(adjacency.indptr)[self.nodes] > 1]
        if not len(nodes):
            return None
        drawn = [self._edge(adjacency, node) for node in nodes]
        ends, weight = np.array([end for end, _ in drawn]), np.array([weight for _, weight in drawn])
        degree = np.asarray(adjacency.sum(1)).ravel()
        received = np.asarray(adjacency.sum(0)).ravel() - 1.0
        ending = received[ends] - weight
        background = (ending + 0.5) / (received.sum() - weight + 0.5 * len(received))
        back = adjacency if relation is None else csr_matrix(adjacency.T)
        target = csr_matrix(back[ends].multiply(1 / degree))  # column k of row i: A[k, j] / d_k
        by_alike = self._by_alike(nodes, self._vectors(nodes), target)
        others = self._without(self._neighbors(nodes, adjacency), ends)  # the edge itself is no witness
        return Explanations.of(background, by_alike, _mean_of(others, target))

    def of_attributes(self) -> Explanations | None:
        """What explains an attribute of each node; None if there are no attributes."""
        return self._of_numbers() if self.numbers else self._of_words()

    def _of_words(self) -> Explanations | None:
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
        by_alike = self._by_alike(nodes, self._vectors(nodes, held_out), target)
        return Explanations.of(background, by_alike, _mean_of(self._neighbors(nodes), target))

    def _of_numbers(self) -> Explanations | None:
        columns, columns_of, rows_of = self._standard_numbers()
        columns = self.random.permutation(columns)[:COLUMNS]
        every = columns_of(columns)  # (N, c)
        found = []
        parts = np.array_split(self.random.permutation(self.nodes), max(len(columns), 1))
        for part, column, values in zip(parts, columns, every.T, strict=False):
            if len(part) < 2:
                continue
            others = [rows_of(nodes).index_fill(1, torch.tensor([column]), 0.0) for nodes in (part, self.among.numpy())]
            told = values[self.among.numpy()[self._alike(part, others[0].float(), others[1].float())]]
            means = np.cumsum(told, 1)[:, np.array(self.sizes) - 1] / self.sizes  # (n, sizes)
            neighbors = self._neighbors(part)
            by_alike = np.stack([_around(values[part], mean) for mean in means.T], 1)
            by_neighbors = _around(values[part], np.asarray(neighbors @ values).ravel())
            by_neighbors[np.diff(neighbors.indptr) == 1] = 0  # only itself
            found.append(Explanations.of(_normal(values[part], 0.0, 1.0), by_alike, by_neighbors))
        return Explanations.joined(found) if found else None

    def _standard_numbers(self) -> Numbers:
        """Dense numbers with mean 0 and variance 1, in float64.

        Returns:
            The columns that vary; a function of columns, all nodes' numbers in them, `(N, c)`; and a function of nodes,
            their numbers, `(n, numbers)`.
        """
        assert isinstance(self.graph.features, Tensor)
        numbers = self.graph.features[:, : self.numbers].cpu().double()
        numbers = numbers - numbers.mean(0)
        numbers = numbers / numbers.square().mean(0).sqrt().clamp(min=1e-12)
        vary = np.flatnonzero(numbers.var(0).numpy() > 1e-6)
        return vary, lambda columns: numbers[:, columns].numpy(), lambda nodes: numbers[nodes]

    def _in_relation(self, relation: int) -> csr_matrix:
        """The weights of one relation, with self-connections, without zeros."""
        weights = in_relation(self.graph, relation, itself=True).weights
        assert weights is not None
        found = self.adjacency.copy()
        found.data = weights.cpu().double().numpy()
        found.eliminate_zeros()
        return found

    def _edge(self, adjacency: csr_matrix, node: int) -> tuple[int, float]:
        """A random edge of a node: the other end, and the weight."""
        place = slice(adjacency.indptr[node], adjacency.indptr[node + 1])
        row, weights = adjacency.indices[place], adjacency.data[place]
        row, weights = row[row != node], weights[row != node]
        if self.graph.weights is None:
            return int(self.random.choice(row)), 1.0
        chosen = int(self.random.choice(len(row), p=weights / weights.sum()))
        return int(row[chosen]), float(weights[chosen])

    def _neighbors(self, nodes: np.ndarray, adjacency: csr_matrix | None = None) -> csr_matrix:
        """The neighbors of each node, with weights that sum to one; nothing for a node without neighbors."""
        return self._without(csr_matrix((self.adjacency if adjacency is None else adjacency)[nodes]), nodes)

    def _without(self, rows: csr_matrix, columns: np.ndarray) -> csr_matrix:
        """Rows without the entry in the given column of each, divided by their sums."""
        row = np.repeat(np.arange(len(columns)), np.diff(rows.indptr))
        data = rows.data * (rows.indices != columns[row])
        total = np.bincount(row, weights=data, minlength=len(columns))
        return csr_matrix((data / np.where(total > 0, total, 1)[row], rows.indices, rows.indptr), shape=rows.shape)

    def _vectors(self, nodes: np.ndarray, without: csr_matrix | None = None) -> Tensor:
        """The attributes of nodes in their principal directions, without some entries, `(n, q)`."""
        rows = self._attributes(nodes)
        if without is not None:
            rows = csr_matrix(rows - rows.multiply(without))
        return torch.from_numpy(rows @ self.directions.cpu().double().numpy()).float()

    def _attributes(self, nodes: np.ndarray) -> csr_matrix:
        """The attributes of some nodes."""
        return _rows(self.graph.features, nodes)

    def _by_alike(self, nodes: np.ndarray, vectors: Tensor, target: csr_matrix) -> np.ndarray:
        """The mean of `target` over the alike nodes of each item, for each number of them, `(n, sizes)`."""
        order = self._alike(nodes, vectors, self._vectors(self.among.numpy()))  # (n, most)
        place = np.full(self.graph.nodes, -1)
        place[self.among.numpy()] = np.arange(len(self.among))
        found = np.zeros((len(nodes), len(self.sizes)))
        for start in range(0, len(nodes), _ROWS):
            near = order[start : start + _ROWS]
            rank = np.full((len(near), len(self.among)), near.shape[1])
            np.put_along_axis(rank, near, np.arange(near.shape[1])[None], 1)
            part = csr_matrix(target[start : start + _ROWS])
            row, witness = np.repeat(np.arange(len(near)), np.diff(part.indptr)), place[part.indices]
            ranks = np.where(witness >= 0, rank[row, witness], near.shape[1])
            for i, size in enumerate(self.sizes):
                told = np.bincount(row, weights=part.data * (ranks < size), minlength=len(near))
                found[start : start + len(near), i] = told / size
        return found

    def _alike(self, nodes: np.ndarray, vectors: Tensor, theirs: Tensor) -> np.ndarray:
        """The alike nodes of each node, the most similar first, as places in `among`, `(n, most)`."""
        place = torch.full((self.graph.nodes,), -1)
        place[self.among] = torch.arange(len(self.among))
        itself = place[torch.from_numpy(nodes)]
        most = self.sizes[-1]
        found = nearest_among(F.normalize(vectors, dim=1), F.normalize(theirs, dim=1), itself, most)[1]
        return found.numpy().reshape(len(nodes), -1)


def _mean_of(witnesses: csr_matrix, target: csr_matrix) -> np.ndarray:
    """`sum_k W[i, k] T[i, k]` for each item i, `(n,)`."""
    parts = [
        np.asarray(witnesses[i : i + _ROWS].multiply(target[i : i + _ROWS]).sum(1)).ravel()
        for i in range(0, witnesses.shape[0], _ROWS)
    ]
    return np.concatenate(parts)


def _around(values: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The density of values around what witnesses say, with the deviation that they have from it, at most 1."""
    width = min(max(float(np.sqrt(np.square(values - mean).mean())), 0.05), 1.0)
    return _normal(values, mean, width)


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
