r"""The scale of the attributes, learned from the training graph and kept for others.

- Counts and 0/1 (words, keywords): column j is multiplied by `sqrt(log((1 + N) / (1 + n_j)) + 1)`, where `n_j` nodes
  have the attribute: rare words say more. Then rows have length one.
- Numbers that are mostly zero (such as TF-IDF): rows of length one. If some are negative, as in the columns of a table
  that `bgcl.load` has scaled, they are left as they are.
- Dense numbers: each column is replaced by normal scores, `Phi^-1` of the share of nodes with a lower value, so that
  neither unit nor skewness of a column matters. The degree is one more column, with weights of edges the sum of the
  weights. All columns come three times: of the node, of its neighbors, and of theirs (means by weight), so that the
  encoder can compare a node with its neighborhood.
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from bgcl.graph.prepared import (
    Features,
    PreparedGraph,
    RowNorm,
    SparseFeatures,
    scale_features,
    to_dense,
    within_range,
)
from bgcl.graph.sparse import row_sum, spmm

KNOTS = 256
NEIGHBORHOODS = 2  # how many times dense numbers are averaged over neighbors
MANY = 4096  # dense attributes with more columns than this are taken as words
Scale = Literal["auto"] | RowNorm


class Scaling(nn.Module):
    """Scales attributes as it learned from a graph. With another rule than "auto" it only scales rows.

    Args:
        width: number of attributes.
        rule: "auto", or the scale of rows.
        dense: whether the attributes are dense numbers.
    """

    knots: Tensor  # (F, KNOTS), values of each column
    scores: Tensor  # (F, KNOTS), their normal scores
    weight: Tensor  # (F,)
    of_length_one: Tensor

    def __init__(self, width: int, rule: Scale, dense: bool) -> None:
        super().__init__()
        self.rule, self.dense = rule, dense and rule == "auto"
        self.width = (width + 1) * (1 + NEIGHBORHOODS) if self.dense else width
        if rule == "auto":
            if dense:
                self.register_buffer("knots", torch.zeros(width + 1, KNOTS))
                self.register_buffer("scores", torch.zeros(width + 1, KNOTS))
            else:
                self.register_buffer("weight", torch.ones(width))
                self.register_buffer("of_length_one", torch.tensor(True))  # whether rows are scaled

    @torch.no_grad()
    def fit(self, graph: PreparedGraph) -> None:
        """Learn the scale of each column."""
        if self.rule != "auto":
            return
        if self.dense:
            assert isinstance(graph.features, Tensor)
            for i, column in enumerate(_with_degree(graph).T):
                self.knots[i], self.scores[i] = normal_scores(column)
            return
        self.of_length_one.fill_(not bool((_values(graph.features) < 0).any()))
        if _is_count(graph.features):
            nodes = graph.nodes
            if isinstance(graph.features, SparseFeatures):
                pattern = graph.features.pattern
                present = torch.bincount(pattern.column[graph.features.values != 0], minlength=pattern.columns)
            else:
                present = (graph.features != 0).sum(0)
            self.weight.copy_((torch.log((1 + nodes) / (1 + present.float())) + 1).sqrt())

    @torch.no_grad()
    def forward(self, graph: PreparedGraph) -> PreparedGraph:
        """The graph with scaled attributes."""
        if self.rule != "auto":
            return replace(graph, features=scale_features(graph.features, self.rule))
        if self.dense:
            columns = [interpolate(*row) for row in zip(_with_degree(graph).T, self.knots, self.scores, strict=True)]
            found = [torch.stack(columns, 1)]
            for _ in range(NEIGHBORHOODS):
                found.append(mean_of_neighbors(graph, found[-1]))
            return replace(graph, features=torch.cat(found, 1) / self.width**0.5)
        features = within_range(graph.features) if self.of_length_one else graph.features
        if isinstance(features, SparseFeatures):
            weighted: Features = SparseFeatures(
                features.pattern, features.values * self.weight[features.pattern.column]
            )
        else:
            weighted = features * self.weight
        return replace(graph, features=scale_features(weighted, "length" if self.of_length_one else "none"))

    def numbers(self, graph: PreparedGraph) -> int:
        """How many of the first columns of a scaled graph are dense numbers; 0: attributes are words."""
        if self.dense:
            return self.width // (1 + NEIGHBORHOODS)
        features = graph.features
        return features.shape[1] if isinstance(features, Tensor) and are_dense_numbers(features) else 0


def are_dense_numbers(features: Features) -> bool:
    """Whether attributes are dense numbers, such as measurements, and not words."""
    if isinstance(features, SparseFeatures) or not 0 < features.shape[1] <= MANY:
        return False
    return bool((features < 0).any()) or bool((features != 0).float().mean() > 0.5)


def _values(features: Features) -> Tensor:
    return features.values if isinstance(features, SparseFeatures) else features


def greatest_entry(features: Features) -> float:
    """The greatest absolute value of the attributes; 0 if there are none."""
    values = _values(features)
    return float(values.abs().max()) if values.numel() else 0.0


def are_all_equal(features: Features) -> bool:
    """Whether all nodes have the same attributes."""
    if isinstance(features, SparseFeatures):
        pattern = features.pattern
        present = torch.bincount(pattern.column[features.values != 0], minlength=pattern.columns)
        if not bool(((present == 0) | (present == pattern.rows)).all()):
            return False
        features = to_dense(features)
    return bool((features == features[:1]).all())


def _is_count(features: Features) -> bool:
    values = _values(features)
    return bool(((values >= 0) & (values == values.round())).all())


def _with_degree(graph: PreparedGraph) -> Tensor:
    if graph.weights is None:
        degree = graph.connections.pointer.diff().float()[:, None]
    else:
        degree = row_sum(graph.connections, graph.weights[:, None])
    return torch.cat([to_dense(graph.features), degree], 1)


def mean_of_neighbors(graph: PreparedGraph, columns: Tensor) -> Tensor:
    """The mean of each column over a node's connections, `(N, F)`."""
    if graph.weights is not None:
        share = graph.weights / row_sum(graph.connections, graph.weights[:, None])[graph.connections.row, 0]
        return spmm(graph.connections, share, columns)
    total = spmm(graph.connections, torch.ones(len(graph.connections), device=columns.device), columns)
    return total / graph.connections.pointer.diff().to(total)[:, None]


def normal_scores(column: Tensor) -> tuple[Tensor, Tensor]:
    """At most `KNOTS` values of a column, ascending, and their normal scores with mean 0 and mean square 1.

    Equal values share a score: the one of the middle of their ranks.
    """
    ordered, _ = column.cpu().double().sort()  # some devices have no float64
    levels = torch.linspace(0, 1, KNOTS, dtype=torch.float64)
    knots = ordered[(levels * (len(ordered) - 1)).round().long()]
    below, upto = torch.searchsorted(ordered, knots), torch.searchsorted(ordered, knots, right=True)
    scores = torch.special.ndtri((below + upto) / (2 * len(ordered)))
    found = interpolate(ordered, knots, scores)
    spread = found.std(correction=0)
    scores = (scores - found.mean()) / torch.where(spread > 1e-6, spread, 1.0)
    return knots.float(), scores.float()


def interpolate(values: Tensor, knots: Tensor, scores: Tensor) -> Tensor:
    """Scores of values between knots by straight lines; beyond the knots, the score of the last one."""
    right = torch.searchsorted(knots, values.contiguous().to(knots.dtype)).clamp(1, len(knots) - 1)
    low, high = knots[right - 1], knots[right]
    width = high / 4 - low / 4  # a quarter, which changes no digit, because the whole may be too great for float32
    share = ((values / 4 - low / 4) / torch.where(width > 0, width, 1.0)).clamp(0, 1)
    exact = torch.where(width > 0, share, 1.0)  # the smallest numbers of float32 have no quarter
    return scores[right - 1] + exact * (scores[right] - scores[right - 1])
