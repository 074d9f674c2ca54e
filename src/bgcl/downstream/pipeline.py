"""A trained model as the first step of a scikit-learn pipeline."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bgcl.downstream.node_draws import NodeDraws
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL


class Embedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer from node numbers to draws of their embeddings.

    With it as first step of a pipeline, scikit-learn can split, search and score by node. The model has to be fitted
    already. It was trained without labels, so it does not leak labels of held-out nodes. Clones of the pipeline share
    the model and do not train it again.

    Args:
        model: a fitted model.
        data: the graph.
        samples: how many draws.
        seed: seed of the draws. Default: the seed of the model.

    Attributes:
        draws_: embeddings of all nodes, `(samples, N, d)`.

    >>> import bgcl
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from bgcl.downstream import Embedding
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> pipeline = make_pipeline(Embedding(model, data, samples=4), bgcl.MixtureClassifier(C=10.0))
    >>> nodes, labels = range(data.num_nodes), data.y.numpy()
    >>> len(cross_val_score(pipeline, nodes, labels, cv=3))
    3
    """

    def __init__(self, model: "BGCL", data: "Data", *, samples: int = 20, seed: int | None = None) -> None:
        self.model = model
        self.data = data
        self.samples = samples
        self.seed = seed

    def fit(self, nodes: object = None, y: object = None) -> Self:
        """Draw the embeddings of all nodes. `nodes` and `y` are ignored."""
        self.draws_ = self.model.sample(self.data, self.samples, seed=self.seed).numpy()
        return self

    def transform(self, nodes: object) -> NodeDraws:
        """Select nodes.

        Args:
            nodes: node numbers, `(n,)`.

        Returns:
            Their draws, `(samples, n, d)`.

        Raises:
            BGCLError: `nodes` does not hold valid node numbers.
        """
        check_is_fitted(self)
        chosen = np.asarray(nodes)
        count = self.draws_.shape[1]
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise BGCLError(f"Nodes must be a list of whole numbers. Got {chosen.dtype} of shape {chosen.shape}.")
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
            raise BGCLError(f"Nodes must be numbers between 0 and {count - 1}. Got {chosen.min()} to {chosen.max()}.")
        return NodeDraws(self.draws_[:, chosen])

    def __sklearn_clone__(self) -> "Embedding":
        return Embedding(self.model, self.data, samples=self.samples, seed=self.seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags
