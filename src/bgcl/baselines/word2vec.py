"""DeepWalk and node2vec: random walks are sentences of nodes, from which gensim's word2vec learns embeddings."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch_geometric.data import Data

from bgcl.baselines.method import Array, Count, EmbeddingMethod, Positive
from bgcl.baselines.raw import RawFeatures
from bgcl.baselines.walks import Neighbors, random_walks
from bgcl.errors import BGCLError


class _SkipGram(EmbeddingMethod):
    """Settings and `fit` of both methods. The defaults are from the paper of node2vec, which uses them for both."""

    width: Count = 128
    walks: Count = 10  # from each node
    length: Count = 80  # nodes in a walk
    window: Count = 10
    passes: Count = 1  # over all walks
    alpha: Positive = 0.025  # learning rate at the start; it decays to almost 0

    def _embed(self, data: Data) -> Array:
        walks = self._walks(Neighbors.of(data), np.random.default_rng(self.seed))
        return skip_gram(
            walks, data.num_nodes, width=self.width, window=self.window, passes=self.passes, alpha=self.alpha,
            seed=self.seed, **self._softmax(),
        )  # fmt: skip

    def _walks(self, neighbors: Neighbors, random: np.random.Generator) -> Array:
        return random_walks(neighbors, self.walks, self.length, random)

    @abstractmethod
    def _softmax(self) -> dict[str, int]:
        """The options of word2vec for its approximation of the softmax."""


class DeepWalk(_SkipGram):
    """DeepWalk (Perozzi et al., 2014): first-order walks and hierarchical softmax."""

    def _softmax(self) -> dict[str, int]:
        return {"hs": 1, "negative": 0}


class DeepWalkFeatures(DeepWalk):
    """The embeddings of DeepWalk and the attributes, side by side.

    Each of the two parts is scaled to a mean squared row norm of one half. Without this, attributes with rows that sum
    to one are much shorter than the vectors of word2vec, and have almost no influence on a classifier that normalizes
    embeddings.
    """

    balanced: bool = True  # False: do not scale the two parts

    def _embed(self, data: Data) -> Array:
        parts = [super()._embed(data), RawFeatures().fit(data)]
        return np.hstack([_scale_to_half(part) for part in parts] if self.balanced else parts)


class Node2Vec(_SkipGram):
    """node2vec (Grover and Leskovec, 2016): second-order walks and negative sampling.

    There are no published values of `p` and `q` for these data sets. The paper finds communities with the default
    values (in its figure of Les Miserables).
    """

    p: Positive = 1.0
    q: Positive = 0.5
    negative: Count = 5

    def _walks(self, neighbors: Neighbors, random: np.random.Generator) -> Array:
        return random_walks(neighbors, self.walks, self.length, random, p=self.p, q=self.q)

    def _softmax(self) -> dict[str, int]:
        return {"hs": 0, "negative": self.negative}


def _scale_to_half(part: Array) -> Array:
    """Scale rows to a mean squared norm of one half."""
    square = float(np.square(part, dtype=np.float64).sum(1).mean())
    return part / np.sqrt(2 * square) if square > 0 else part


def skip_gram(walks: Array, nodes: int, *, seed: int, width: int, passes: int, **options: Any) -> Array:
    """Learn an embedding of each node from walks, `(N, width)`. Every node must be in a walk.

    There is one worker, and the initial vectors are from NumPy's generator. So the result depends on the seed only, and
    not on Python's hashes, which differ between processes.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise BGCLError("DeepWalk and node2vec need gensim: pip install bgcl[baselines]") from None
    # gensim's generators take seeds of 32 bits.
    model = Word2Vec(
        vector_size=width, epochs=passes, sg=1, sample=0, min_count=1, workers=1, seed=seed % 2**32, **options
    )
    count = np.bincount(walks.ravel(), minlength=nodes)
    model.build_vocab_from_freq({str(node): int(times) for node, times in enumerate(count)})
    sentences = _Sentences(walks, nodes)
    model.train(sentences, total_examples=len(walks), total_words=walks.size, epochs=passes)
    place = [model.wv.key_to_index[str(node)] for node in range(nodes)]
    vectors: Array = model.wv.vectors[place]
    return vectors


class _Sentences:
    """Walks as lists of words. They are made when they are read, so not all of them are in memory as text."""

    def __init__(self, walks: Array, nodes: int) -> None:
        self.walks = walks
        self.word = [str(node) for node in range(nodes)]

    def __iter__(self) -> Iterator[list[str]]:
        for walk in self.walks:
            yield [self.word[node] for node in walk.tolist()]
