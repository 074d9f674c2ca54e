"""The regressor: a mixture of normal distributions over draws of the embeddings."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.base import RegressorMixin
from sklearn.model_selection import KFold

from bgcl.downstream.head import HeadParameters, MixtureHead, Objective, log_sum_exp
from bgcl.downstream.node_draws import as_draws, check_targets
from bgcl.errors import BGCLError
from bgcl.measures.levels import check_level
from bgcl.measures.normal_mixtures import mixture_quantile

Array = npt.NDArray[Any]


class RegressorParameters(HeadParameters):
    """The ranges of the regressor's parameters."""

    wrong: ClassVar[str] = "The '{name}' parameter of MixtureRegressor"


class MixtureRegressor(RegressorMixin, MixtureHead):  # type: ignore[misc]
    """Predict a number for each node with a mixture of normal distributions over draws of its embedding.

    The density of the target of a node with draws `h_1 ... h_K` is `p(y) = 1/K sum_k Normal(h_k w + c, s^2)`. `fit`
    learns w, c and s: it maximizes `sum_n log p(y_n) - |w|^2 / 2C` with targets scaled to unit variance.

    Args:
        C: inverse strength of the penalty; "cv" chooses it by cross-validation.
        solver: "lbfgs" or "adam".
        max_iter: the number of iterations; for "lbfgs" the maximum.
        folds: folds of the cross-validation.
        normalize: scale each embedding to unit length first.
        random_state: seed of the folds.

    Attributes:
        coefficients_: w, c and log s for the scaled targets, `(d + 2,)`.
        offset_: mean of the training targets.
        scale_: standard deviation of the training targets.
        C_: the value of C that was used.
        n_features_in_: the width d of the embeddings.
        n_iter_: iterations of the last optimization.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(5, 40, 3))
    >>> head = MixtureRegressor(C=1.0).fit(draws, np.arange(40))
    >>> mean, std = head.predict(draws, return_std=True)
    >>> mean.shape, bool((std > 0).all())
    ((40,), True)
    """

    parameters = RegressorParameters

    def fit(self, draws: object, y: object) -> Self:
        """Fit the head to nodes with known targets.

        Args:
            draws: embeddings of the training nodes, `(S, N, d)`, `(N, d)` or `NodeDraws`.
            y: their targets, `(N,)`.

        Returns:
            The fitted head.

        Raises:
            BGCLError: a parameter, the draws or the targets are not valid.
        """
        self._check_settings()
        X = as_draws(draws, self.normalize, self).astype(np.float64, copy=False)
        targets = check_targets(y, X.shape[1], self, numeric=True)
        self.n_features_in_ = X.shape[2]
        self.offset_, self.scale_ = float(targets.mean()), float(targets.std()) or 1.0
        scaled = (targets - self.offset_) / self.scale_
        folds: Sequence[tuple[Array, Array]] = ()
        if self.C == "cv":
            if len(targets) < 2:
                raise BGCLError(
                    "There is only one sample, but cross-validation needs two or more. Add nodes or give a number as C."
                )
            split = KFold(min(self.folds, len(targets)), shuffle=True, random_state=self.random_state)
            folds = list(split.split(scaled))
        self.coefficients_ = self._fit(X, scaled, folds)
        return self

    @property
    def noise_(self) -> float:
        """The standard deviation `s` of each normal distribution, in the unit of the targets."""
        return float(np.exp(self.coefficients_[-1]) * self.scale_)

    def _start(self, draws: Array, y: Array) -> Array:
        return np.zeros(draws.shape[2] + 2)

    def _moved(self, parameters: Array, center: Array, scale: float) -> Array:
        moved = parameters.copy()
        moved[:-2] /= scale
        moved[-2] -= center @ moved[:-2]
        return moved

    def _turned_back(self, parameters: Array, basis: Array) -> Array:
        return np.concatenate([basis @ parameters[:-2], parameters[-2:]])

    def _objective(self, draws: Array, y: Array) -> Objective:
        samples, nodes, width = draws.shape

        def objective(parameters: Array, penalty: float) -> tuple[float, Array]:
            w, c, log_s = parameters[:width], parameters[width], parameters[width + 1]
            standard = (y - draws @ w - c) * np.exp(-log_s)  # (S, N)
            log_density = -0.5 * np.square(standard)
            log_mixture = log_sum_exp(log_density)
            weight = np.exp(log_density - log_mixture)
            pull = weight * standard * np.exp(-log_s)  # minus d loss / d mean
            loss = nodes * (log_s + 0.5 * np.log(2 * np.pi) + np.log(samples)) - log_mixture.sum()
            # The last term keeps s above 0, so that a perfect fit has no infinite likelihood.
            loss += penalty / 2 * np.square(w).sum() + 1e-6 * np.exp(-2 * log_s)
            grad_w = -np.einsum("kn,knd->d", pull, draws) + penalty * w
            grad_s = nodes - (weight * np.square(standard)).sum() - 2e-6 * np.exp(-2 * log_s)
            return loss, np.concatenate([grad_w, [-pull.sum(), grad_s]])

        return objective

    def _log_likelihoods(self, parameters: Array, draws: Array, y: Array) -> Array:
        width = draws.shape[2]
        log_density = norm.logpdf(y, draws @ parameters[:width] + parameters[width], np.exp(parameters[width + 1]))
        return np.array([(log_sum_exp(log_density) - np.log(len(draws))).sum()])

    def predict_samples(self, draws: object) -> Array:
        """Predict the mean with each draw.

        Args:
            draws: embeddings of nodes, `(S, N, d)`, `(N, d)` or `NodeDraws`.

        Returns:
            The means `h_k w + c`, `(S, N)`.

        Raises:
            NotFittedError: the head is not fitted.
            BGCLError: the draws are not valid, or have another width than in `fit`.
        """
        X = self._draws(draws)
        means = X @ self.coefficients_[:-2] + self.coefficients_[-2]
        return np.asarray(means * self.scale_ + self.offset_)

    def predict(self, draws: object, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predict the mean of the mixture.

        Args:
            draws: embeddings of nodes, `(S, N, d)`, `(N, d)` or `NodeDraws`.
            return_std: return the standard deviation too.

        Returns:
            The mean `(N,)`, or the mean and the standard deviation, `(N,)` each.
        """
        means = self.predict_samples(draws)
        if not return_std:
            return np.asarray(means.mean(0))
        return means.mean(0), np.sqrt(means.var(0) + self.noise_**2)

    def predict_interval(self, draws: object, level: float = 0.9) -> tuple[Array, Array]:
        """Predict an interval for each node.

        Args:
            draws: embeddings of nodes, `(S, N, d)`, `(N, d)` or `NodeDraws`.
            level: the probability of the interval, the same on both sides of the median.

        Returns:
            The lower and the upper bound, `(N,)` each.

        Raises:
            BGCLError: `level` is not between 0 and 1.
        """
        level = check_level(level)
        means = self.predict_samples(draws)
        return tuple(mixture_quantile(means, self.noise_, q) for q in ((1 - level) / 2, (1 + level) / 2))  # type: ignore[return-value]
