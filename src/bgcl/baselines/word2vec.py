"""DeepWalk and node2vec: random walks read as sentences, whose words, the nodes, gensim's word2vec learns."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from bgcl.baselines.method import Array, EmbeddingMethod, number, whole
from bgcl.baselines.raw import RawFeatures
from bgcl.baselines.walks import Neighbours, random_walks
from bgcl.errors import BGCLError


@dataclass(frozen=True, kw_only=True)
class _SkipGram(EmbeddingMethod):
    """What both have in common. Numbers are those of node2vec's paper, which gives them to DeepWalk too."""

    width: int = whole(128)
    walks: int = whole(10)  # from each node
    length: int = whole(80)  # nodes of a walk
    window: int = whole(10)
    passes: int = whole(1)  # over all walks
    alpha: float = number(0.025, above=True)  # learning rate, which falls to nearly 0

    def _embed(self, data: Data) -> Array:
        walks = self._walks(Neighbours.of(data), np.random.default_rng(self.seed))
        return skip_gram(
            walks, data.num_nodes, width=self.width, window=self.window, passes=self.passes, alpha=self.alpha,
            seed=self.seed, **self._softmax(),
        )  # fmt: skip

    def _walks(self, neighbours: Neighbours, random: np.random.Generator) -> Array:
        return random_walks(neighbours, self.walks, self.length, random)

    @abstractmethod
    def _softmax(self) -> dict[str, int]:
        """How word2vec gets around the sum over all nodes."""


@dataclass(frozen=True, kw_only=True)
class DeepWalk(_SkipGram):
    """DeepWalk (Perozzi et al., 2014): first-order walks, hierarchical softmax."""

    def _softmax(self) -> dict[str, int]:
        return {"hs": 1, "negative": 0}


@dataclass(frozen=True, kw_only=True)
class DeepWalkFeatures(DeepWalk):
    """DeepWalk's embeddings beside the attributes.

    Each of the two parts is scaled to a mean square row norm of one half. As they come, attributes whose rows sum to
    one are so short beside word2vec's vectors that a classifier which looks at directions would hardly see them.
    """

    balanced: bool = True  # scaled so, or as they come

    def _embed(self, data: Data) -> Array:
        parts = [super()._embed(data), RawFeatures().fit(data)]
        return np.hstack([_half(part) for part in parts] if self.balanced else parts)


@dataclass(frozen=True, kw_only=True)
class Node2Vec(_SkipGram):
    """node2vec (Grover and Leskovec, 2016): second-order walks, negative sampling.

    `p` and `q` have no published values for these data sets. The defaults are those with which the paper finds
    communities (its figure of Les Miserables): outward walks.
    """

    p: float = number(1.0, above=True)
    q: float = number(0.5, above=True)
    negative: int = whole(5)

    def _walks(self, neighbours: Neighbours, random: np.random.Generator) -> Array:
        return random_walks(neighbours, self.walks, self.length, random, p=self.p, q=self.q)

    def _softmax(self) -> dict[str, int]:
        return {"hs": 0, "negative": self.negative}


def _half(part: Array) -> Array:
    """Scaled so that rows have a mean square norm of one half."""
    square = float(np.square(part, dtype=np.float64).sum(1).mean())
    return part / np.sqrt(2 * square) if square > 0 else part


def skip_gram(walks: Array, nodes: int, *, seed: int, width: int, passes: int, **options: Any) -> Array:
    """The vectors of the nodes, `(N, width)`. Every node must be in a walk.

    One worker, and initial vectors from NumPy's generator: the result depends on the seed alone, not on Python's
    hashes, which differ from process to process.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise BGCLError("DeepWalk and node2vec need gensim: pip install bgcl[baselines]") from None
    # gensim's generators take 32 bits.
    model = Word2Vec(
        vector_size=width, epochs=passes, sg=1, sample=0, min_count=1, workers=1, seed=seed % 2**32, **options
    )
    count = np.bincount(walks.ravel(), minlength=nodes)
    model.build_vocab_from_freq({str(node): int(often) for node, often in enumerate(count)})
    sentences = _Sentences(walks, nodes)
    model.train(sentences, total_examples=len(walks), total_words=walks.size, epochs=passes)
    place = [model.wv.key_to_index[str(node)] for node in range(nodes)]
    vectors: Array = model.wv.vectors[place]
    return vectors


class _Sentences:
    """Walks as lists of words, made as they are read, so that they are never all held as text."""

    def __init__(self, walks: Array, nodes: int) -> None:
        self.walks = walks
        self.word = [str(node) for node in range(nodes)]

    def __iter__(self) -> Iterator[list[str]]:
        for walk in self.walks:
            yield [self.word[node] for node in walk.tolist()]
