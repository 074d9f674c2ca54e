"""Text as words: each node has the words that occur in its text, in any order and number.

A word is a run of two or more letters and digits, in lower case. Kept are the words that two nodes or more have and at
most half of the nodes, the most frequent first, up to a limit.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_matrix

Array = npt.NDArray[Any]

LEAST_NODES = 2
GREATEST_SHARE = 0.5


def occurrences(texts: Any) -> tuple[Array, Any]:
    """The words of an Arrow column of text, one after the other: the row and the word of each occurrence."""
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    texts = pc.utf8_lower(texts.fill_null("").cast(pa.large_string()))
    cleaned = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[^\p{L}\p{M}\p{N}]+", " "))
    lists = pc.split_pattern(cleaned, " ")
    row, word = pc.list_parent_indices(lists), pc.list_flatten(lists)
    long = pc.greater_equal(pc.utf8_length(word), 2)
    return row.filter(long).to_numpy(zero_copy_only=False), word.filter(long)


def vocabulary(texts: Any, limit: int) -> list[str]:
    """The words that are kept, the most frequent first, equals in their order."""
    row, word = occurrences(texts)
    coded = word.dictionary_encode()
    codes, words = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary
    if not len(words):
        return []
    pairs = np.unique(codes * len(texts) + row)  # a node counts once for a word
    counts = np.bincount(pairs // len(texts), minlength=len(words))
    fit = np.flatnonzero((counts >= LEAST_NODES) & (counts <= max(GREATEST_SHARE * len(texts), LEAST_NODES)))
    spelt = np.asarray(words.take(pa.array(fit)).to_pylist(), dtype=object)
    order = sorted(range(len(fit)), key=lambda i: (-counts[fit[i]], spelt[i]))
    return [str(spelt[i]) for i in order[:limit]]


def word_matrix(texts: Any, words: tuple[str, ...]) -> tuple[csr_matrix, int]:
    """`(N, words)` with rows of unit length, equal in all words that the text has; and how many words are unknown."""
    row, word = occurrences(texts)
    column = pc.index_in(word, value_set=pa.array(words, type=pa.large_string()))
    known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    column = column.fill_null(0).to_numpy(zero_copy_only=False)[known]
    matrix = csr_matrix((np.ones(len(column), np.float32), (row[known], column)), shape=(len(texts), len(words)))
    matrix.sum_duplicates()
    counts = np.diff(matrix.indptr)
    matrix.data = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    unknown = pc.count_distinct(word.filter(pa.array(~known))).as_py() if not known.all() else 0
    return matrix, int(unknown)
