"""The downstream model: a mixture over draws of the embeddings, here for classification.

A node with draws `h_1 ... h_K` from Q(H) has the likelihood `p(y) = 1/K sum_k p(y | h_k)`. For classification
`p(y | h)` is `softmax(h W + c)`; for regression see `mixture_regression`. The heads follow scikit-learn's
conventions; draws come sample axis first, `(S, N, d)`, and a matrix `(N, d)` is one draw.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from bgcl.downstream.node_draws import as_draws, check_targets
from bgcl.errors import BGCLError
from bgcl.measures.metrics import pavpu
from bgcl.measures.uncertainty import entropy

Array = npt.NDArray[Any]
Objective = Callable[[Array, float], tuple[float, Array]]  # parameters and penalty: loss and gradient

# Inverse strengths of the penalty, strongest first, for embeddings whose mean square distance from their centre is 1.
PATH = (1.0, 10.0, 30.0, 100.0)
PATH_DRAWS = 4  # as many tell one strength from another as well as all would


class MixtureHead(BaseEstimator):  # type: ignore[misc]
    """What both heads share: the penalty's strength by cross-validation, and the optimisers."""

    sharpnesses: ClassVar[tuple[float, ...]] = (1.0,)

    def __init__(
        self, C: float | Literal["cv"] = "cv", *, solver: Literal["lbfgs", "adam"] = "lbfgs", max_iter: int = 1000,
        folds: int = 5, normalise: bool = True, random_state: int = 0,
    ) -> None:  # fmt: skip
        self.C = C
        self.solver = solver
        self.max_iter = max_iter
        self.folds = folds
        self.normalise = normalise
        self.random_state = random_state

    @classmethod
    def paper(cls) -> Self:
        """The paper's setting: Adam at rate 0.1 for 150 epochs, no penalty, embeddings as they are."""
        return cls(C=float("inf"), solver="adam", max_iter=150, normalise=False)

    def _fit(self, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]) -> Array:
        """The parameters; sets `C_` and `sharpness_`."""
        # The problems are small: a second thread costs more than it does.
        with threadpool_limits(1):
            # Centred and scaled embeddings have the same solution, but for the intercept, and it is found much sooner.
            # Only the path that Adam takes depends on them.
            centre, scale = np.zeros(draws.shape[2]), 1.0
            if self.solver == "lbfgs":
                centre = draws.mean((0, 1))
                scale = float(np.sqrt(np.square(draws - centre).sum(2).mean())) or 1.0
            draws = (draws - centre) / scale
            if self.C == "cv":
                C, self.sharpness_, start = self._best_on_path(draws, y, folds)
            else:
                C, self.sharpness_, start = float(self.C) * scale**2, 1.0, self._start(draws, y)
            self.C_ = C / scale**2
            # A strength that was chosen from a coarse path deserves no great precision.
            found = self._optimise(self._objective(draws, y), C, start, 1e-6 if self.C == "cv" else 1e-9)
            return self._moved(found * self.sharpness_, centre, scale)

    def _best_on_path(self, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]) -> tuple[float, float, Array]:
        """The penalty's strength and the sharpness under which held-out nodes are likeliest, and where to begin."""
        held_out = np.zeros((len(PATH), len(self.sharpnesses)))
        found = np.zeros((len(PATH), len(folds), len(self._start(draws, y))))
        for fold, (train, test) in enumerate(folds):
            objective = self._objective(draws[:PATH_DRAWS, train], y[train])
            parameters = self._start(draws, y)
            for i, C in enumerate(PATH):  # the stronger penalty's solution is where the next begins
                parameters = found[i, fold] = self._optimise(objective, C, parameters, 1e-3)
                held_out[i] += self._log_likelihoods(parameters, draws[:, test], y[test])
        best = int(held_out.max(1).argmax())
        merit = self._merit(held_out[best], found[best], draws, y, folds)
        return PATH[best], self.sharpnesses[int(merit.argmax())], found[best].mean(0)

    def _merit(
        self, likelihoods: Array, found: Array, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]
    ) -> Array:
        """What each of the sharpnesses is chosen by: the log likelihood of held-out nodes."""
        return likelihoods

    def _optimise(self, objective: Objective, C: float, start: Array, tolerance: float) -> Array:
        def penalised(parameters: Array) -> tuple[float, Array]:
            return objective(parameters, 1 / C)

        if self.solver == "adam":
            self.n_iter_ = self.max_iter
            return _adam(penalised, start, self.max_iter)
        options = {"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "ftol": tolerance, "gtol": 1e-6}
        found = minimize(penalised, start, jac=True, method="L-BFGS-B", options=options)
        if found.nit >= self.max_iter or found.nfev >= 2 * self.max_iter:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.max_iter} iterations at C = {C:g}. "
                "Raise max_iter, or give a smaller C.", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip
        self.n_iter_ = max(int(found.nit), 1)
        return np.asarray(found.x)

    def _check_settings(self) -> None:
        C: Any = self.C
        if C != "cv" and (isinstance(C, str) or not C > 0):
            raise BGCLError(
                f"The 'C' parameter of {type(self).__name__} must be a number above 0, or 'cv'. Got {self.C!r}."
            )
        if self.solver not in ("lbfgs", "adam"):
            raise BGCLError(f"The 'solver' of {type(self).__name__} must be 'lbfgs' or 'adam'. Got {self.solver!r}.")
        if self.folds < 2 or self.max_iter < 1:
            raise BGCLError(
                f"'folds' must be 2 or more and 'max_iter' 1 or more. Got {self.folds} and {self.max_iter}."
            )

    def _objective(self, draws: Array, y: Array) -> Objective:
        raise NotImplementedError

    def _start(self, draws: Array, y: Array) -> Array:
        raise NotImplementedError

    def _moved(self, parameters: Array, centre: Array, scale: float) -> Array:
        """The parameters for draws as they are, from those for draws less their `centre` over their `scale`."""
        raise NotImplementedError

    def _log_likelihoods(self, parameters: Array, draws: Array, y: Array) -> Array:
        """The log likelihood of all nodes, for each of the sharpnesses."""
        raise NotImplementedError

    def _draws(self, draws: object) -> Array:
        check_is_fitted(self)
        found = as_draws(draws, self.normalise, self)
        if found.shape[2] != self.n_features_in_:
            raise BGCLError(
                f"X has {found.shape[2]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.three_d_array = True
        return tags


class MixtureClassifier(ClassifierMixin, MixtureHead):  # type: ignore[misc]
    """A mixture of categorical distributions, `p(y) = 1/K sum_k softmax(h_k W + c)`.

    Trained by maximising `sum_n log p(y_n) - |W|^2 / 2C`; with one draw that is logistic regression. A penalty makes
    the probabilities too timid, so `C = "cv"` chooses two numbers by the likelihood of held-out training nodes: C, and
    the sharpness by which W and c are multiplied at the end (temperature scaling, Guo et al., 2017). With a C that is
    given the sharpness is 1. `normalise` scales each embedding to unit length first.

    With `criterion = "pavpu"` the sharpness is the one under which held-out nodes have the greatest area of PAvPU. It
    is for decisions by a threshold of certainty: what the draws agree on counts as certain, and probabilities are
    bolder than the accuracy bears out.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(5, 40, 3)) + 4 * (np.arange(40) % 2)[:, None]
    >>> head = MixtureClassifier(normalise=False).fit(draws, np.arange(40) % 2)
    >>> head.predict_proba(draws).shape, head.predict_samples(draws).shape
    ((40, 2), (5, 40, 2))
    """

    sharpnesses = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)

    def __init__(
        self, C: float | Literal["cv"] = "cv", *, criterion: Literal["likelihood", "pavpu"] = "likelihood",
        solver: Literal["lbfgs", "adam"] = "lbfgs", max_iter: int = 1000, folds: int = 5, normalise: bool = True,
        random_state: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            C, solver=solver, max_iter=max_iter, folds=folds, normalise=normalise, random_state=random_state
        )
        self.criterion = criterion

    def fit(self, draws: object, y: object) -> Self:
        """Fit to draws `(S, N, d)` of the training nodes and their labels `(N,)`."""
        self._check_settings()
        if self.criterion not in ("likelihood", "pavpu"):
            raise BGCLError(
                f"The 'criterion' of MixtureClassifier must be 'likelihood' or 'pavpu'. Got {self.criterion!r}."
            )
        X = as_draws(draws, self.normalise, self).astype(np.float64, copy=False)
        labels = check_targets(y, X.shape[1], self, numeric=False)
        self.classes_, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise BGCLError(f"Got {len(self.classes_)} class among the training nodes: a classifier needs two or more.")
        self.n_features_in_ = X.shape[2]
        self.coefficients_ = self._fit(X, codes, self._folds(codes, counts))
        return self

    def _folds(self, codes: Array, counts: Array) -> Sequence[tuple[Array, Array]]:
        if self.C != "cv":
            return ()
        if counts.min() < 2:
            raise BGCLError(
                f"Class {self.classes_[counts.argmin()]} has only one training node: choosing C by cross-validation "
                "needs two or more. Label another node of it, or give C."
            )
        split = StratifiedKFold(min(self.folds, int(counts.min())), shuffle=True, random_state=self.random_state)
        return list(split.split(codes, codes))

    def _start(self, draws: Array, y: Array) -> Array:
        return np.zeros((draws.shape[2] + 1) * len(self.classes_))

    def _moved(self, parameters: Array, centre: Array, scale: float) -> Array:
        W, c = _split(parameters, len(centre), len(self.classes_))
        return np.concatenate([(W / scale).ravel(), c - centre @ W / scale])

    def _objective(self, draws: Array, y: Array) -> Objective:
        # Classes first: NumPy is slow at sums over a short last axis.
        samples, nodes, width = draws.shape
        X = np.ascontiguousarray(draws.reshape(-1, width).T)  # (d, S N)
        classes, column = len(self.classes_), np.arange(samples * nodes)
        row = np.tile(y, samples)

        def objective(parameters: Array, penalty: float) -> tuple[float, Array]:
            W, c = _split(parameters, width, classes)
            logits = W.T @ X + c[:, None]  # (C, S N)
            logits -= logits.max(0)
            p = np.exp(logits)
            total = p.sum(0)
            of_label = (logits[row, column] - np.log(total)).reshape(samples, nodes)  # log p(y_n | h_k)
            log_mixture = log_sum_exp(of_label)
            # A draw's share of its node's likelihood is its weight in the gradient.
            weight = np.exp(of_label - log_mixture).ravel()
            p *= weight / total
            p[row, column] -= weight
            loss = nodes * np.log(samples) - log_mixture.sum() + penalty / 2 * np.square(W).sum()
            return loss, np.concatenate([(X @ p.T + penalty * W).ravel(), p.sum(1)])

        return objective

    def _log_likelihoods(self, parameters: Array, draws: Array, y: Array) -> Array:
        W, c = _split(parameters, draws.shape[2], len(self.classes_))
        logits = np.ascontiguousarray(np.moveaxis(draws @ W + c, 2, 0))  # (C, S, N)
        logits -= logits.max(0)
        own = logits[y, :, np.arange(len(y))].T  # (S, N)
        mixtures = (log_sum_exp(s * own - np.log(np.exp(s * logits).sum(0))) for s in self.sharpnesses)
        return np.asarray([mixture.sum() - len(y) * np.log(len(draws)) for mixture in mixtures])

    def _merit(
        self, likelihoods: Array, found: Array, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]
    ) -> Array:
        if self.criterion == "likelihood":
            return likelihoods
        nodes = np.concatenate([test for _, test in folds])
        logits = np.concatenate(
            [draws[:, test] @ W + c for (_, test), (W, c) in zip(folds, map(self._parts, found), strict=True)], axis=1
        )
        areas = []
        for sharpness in self.sharpnesses:
            p = np.exp(_log_softmax(sharpness * logits)).mean(0)
            areas.append(pavpu(p.argmax(1) == y[nodes], entropy(p)).area)
        return np.asarray(areas)

    def _parts(self, parameters: Array) -> tuple[Array, Array]:
        return _split(parameters, len(parameters) // len(self.classes_) - 1, len(self.classes_))

    def predict_samples(self, draws: object) -> Array:
        """Class probabilities of every draw, `(S, N, C)`."""
        X = self._draws(draws)
        W, c = _split(self.coefficients_.astype(X.dtype), X.shape[2], len(self.classes_))
        return np.exp(_log_softmax(X @ W + c))

    def predict_proba(self, draws: object) -> Array:
        """Class probabilities of the mixture, `(N, C)`."""
        return np.asarray(self.predict_samples(draws).mean(0))

    def predict(self, draws: object) -> Array:
        """The likeliest class of each node, `(N,)`."""
        probability = self.predict_proba(draws)
        return np.asarray(self.classes_[probability.argmax(1)])


class HeadStack:
    """Several classifiers with the same classes that look at a draw together, which is one product for all of them."""

    def __init__(self, heads: Sequence[MixtureClassifier]) -> None:
        if any(not np.array_equal(head.classes_, heads[0].classes_) for head in heads):
            raise BGCLError("The heads differ in their classes: they cannot predict together.")
        self.heads, self.classes = heads, len(heads[0].classes_)
        split = [_split(head.coefficients_, head.n_features_in_, self.classes) for head in heads]
        self.W = np.stack([W for W, _ in split], axis=2).reshape(-1, self.classes * len(heads)).T  # (C heads, d)
        self.c = np.stack([c for _, c in split], axis=1).reshape(-1, 1)

    def predict_proba(self, draws: object) -> Array:
        """Class probabilities of the mixture over draws `(S, N, d)`, classes first: `(C, heads, N)`."""
        X = as_draws(draws, self.heads[0].normalise, self.heads[0])
        W, c = np.ascontiguousarray(self.W, dtype=X.dtype), self.c.astype(X.dtype)
        mean = np.zeros((self.classes, len(self.heads), X.shape[1]), dtype=X.dtype)
        for draw in X:
            p = (W @ draw.T + c).reshape(mean.shape)
            p -= p.max(0)
            np.exp(p, out=p)
            p /= p.sum(0) * len(X)
            mean += p
        return mean


def _adam(objective: Callable[[Array], tuple[float, Array]], parameters: Array, steps: int, rate: float = 0.1) -> Array:
    first = second = np.zeros_like(parameters)
    for step in range(1, steps + 1):
        _, gradient = objective(parameters)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * np.square(gradient)
        parameters = parameters - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return parameters


def _split(parameters: Array, width: int, classes: int) -> tuple[Array, Array]:
    return parameters[: width * classes].reshape(width, classes), parameters[width * classes :]


def _log_softmax(logits: Array) -> Array:
    """Over the last axis, in place. SciPy's is several times slower on small arrays."""
    logits -= logits.max(-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    return logits


def log_sum_exp(values: Array) -> Array:
    """Over the first axis."""
    greatest = values.max(0)
    return np.asarray(greatest + np.log(np.exp(values - greatest).sum(0)))
