"""A classifier that may use one part of the columns, or all of them."""

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from bgcl.downstream.classifier import ClassifierParameters, MixtureClassifier
from bgcl.downstream.node_draws import as_draws, check_targets
from bgcl.downstream.pooling import part_slices, part_widths
from bgcl.errors import BGCLError
from bgcl.validation import Whole


class PartsParameters(ClassifierParameters):
    """The ranges of the parameters of `BestPartClassifier`."""

    wrong: ClassVar[str] = "The '{name}' parameter of BestPartClassifier"

    parts: Whole = Field(ge=1)


class BestPartClassifier(MixtureClassifier):
    """A `MixtureClassifier` on one of several parts of the embedding, or on all parts side by side.

    The columns are cut into `parts` parts of equal width. A classifier is fitted to each part and to all columns. The
    classifier under which held-out training nodes are likeliest is kept. No test node takes part in the choice.

    Args:
        parts: number of parts.
        C: see `MixtureClassifier`; the choice needs "cv".

    Attributes:
        part_: the number of the part that was chosen, counted from 0; None for all columns.

    >>> import numpy as np
    >>> y = np.arange(60) % 2
    >>> columns = np.random.default_rng(0).normal(size=(60, 80))
    >>> columns[:, 40] += 6 * y  # only the second half of the columns shows the class
    >>> BestPartClassifier(parts=2).fit(columns, y).part_
    1
    """

    parameters = PartsParameters
    takes_beside = False

    def __init__(
        self, parts: int = 1, C: float | Literal["cv"] = "cv", *,
        criterion: Literal["likelihood", "pavpu"] = "likelihood", solver: Literal["lbfgs", "adam"] = "lbfgs",
        max_iter: int = 1000, folds: int = 5, normalize: bool = False, random_state: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            C, criterion=criterion, solver=solver, max_iter=max_iter, folds=folds, normalize=normalize,
            random_state=random_state, parts=parts,
        )  # fmt: skip

    def fit(self, draws: object, y: object) -> Self:
        """Fit to draws `(S, N, d)` of the training nodes and their labels `(N,)`."""
        self._check_settings()
        X = as_draws(draws, self.normalize, self)
        labels = check_targets(y, X.shape[1], self, numeric=False)
        width = X.shape[2]
        widths = part_widths(self.parts, width)
        if self.C != "cv" and len(widths) > 1:
            raise BGCLError('To choose a part, BestPartClassifier needs C="cv".')
        *alone, together = part_slices(widths)
        slices: list[tuple[int | None, slice]] = [(None, together)]
        if len(alone) > 1:
            slices += enumerate(alone)
        fitted = [(part, columns, self._plain().fit(X[:, :, columns], labels)) for part, columns in slices]
        self.part_, columns, best = max(fitted, key=lambda found: found[2].held_out_)
        self.classes_, self.C_, self.sharpness_ = best.classes_, best.C_, best.sharpness_
        self.held_out_, self.n_iter_, self.n_features_in_ = best.held_out_, best.n_iter_, width
        # The columns of other parts have coefficients of 0.
        classes = len(self.classes_)
        weights = np.zeros((width, classes))
        weights[columns] = best.coefficients_[:-classes].reshape(-1, classes)
        self.coefficients_ = np.concatenate([weights.ravel(), best.coefficients_[-classes:]])
        return self

    def _plain(self) -> MixtureClassifier:
        """A classifier with the same parameters that looks at all the columns that it gets."""
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "parts"}
        return MixtureClassifier(**params | {"normalize": False})
