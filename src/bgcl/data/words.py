"""Text as words: each node has the words that occur in its text, regardless of order and number.

A word is a sequence of two or more letters and digits, in lower case. The vocabulary has the words that occur in at
least two nodes and in at most half of the nodes. If there are more than the limit, the most frequent ones are kept.
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
    """The row and the word of each occurrence of a word in an Arrow column of text."""
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    texts = pc.utf8_lower(texts.fill_null("").cast(pa.large_string()))
    cleaned = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[^\p{L}\p{M}\p{N}]+", " "))
    lists = pc.split_pattern(cleaned, " ")
    row, word = pc.list_parent_indices(lists), pc.list_flatten(lists)
    long = pc.greater_equal(pc.utf8_length(word), 2)
    return row.filter(long).to_numpy(zero_copy_only=False), word.filter(long)


def vocabulary(texts: Any, limit: int) -> list[str]:
    """The words that are kept, the most frequent first, words of equal frequency in alphabetical order."""
    row, word = occurrences(texts)
    coded = word.dictionary_encode()
    codes, words = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary
    if not len(words):
        return []
    pairs = np.unique(codes * len(texts) + row)  # each word counts once in a node
    counts = np.bincount(pairs // len(texts), minlength=len(words))
    kept = np.flatnonzero((counts >= LEAST_NODES) & (counts <= max(GREATEST_SHARE * len(texts), LEAST_NODES)))
    spelled = np.asarray(words.take(pa.array(kept)).to_pylist(), dtype=object)
    order = sorted(range(len(kept)), key=lambda i: (-counts[kept[i]], spelled[i]))
    return [str(spelled[i]) for i in order[:limit]]


def word_matrix(texts: Any, words: tuple[str, ...]) -> csr_matrix:
    """A matrix `(N, words)`. Each row has unit length and equal entries for all known words in the text of a node."""
    row, word = occurrences(texts)
    column = pc.index_in(word, value_set=pa.array(words, type=pa.large_string()))
    known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    column = column.fill_null(0).to_numpy(zero_copy_only=False)[known]
    matrix = csr_matrix((np.ones(len(column), np.float32), (row[known], column)), shape=(len(texts), len(words)))
    matrix.sum_duplicates()
    counts = np.diff(matrix.indptr)
    matrix.data = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    return matrix
