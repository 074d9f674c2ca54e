"""The code that `MixtureClassifier` and `MixtureRegressor` share.

A head is a mixture over draws of the embeddings, fitted by maximum likelihood. A node with draws `h_1 ... h_K` from
Q(H) has the likelihood `p(y) = 1/K sum_k p(y | h_k)`. Draws have the shape `(S, N, d)`; a matrix `(N, d)` is one draw.
Heads follow the conventions of scikit-learn.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from bgcl.downstream.node_draws import as_draws
from bgcl.errors import BGCLError
from bgcl.validation import CheckedSettings, Flag, Whole, plain_number

Array = npt.NDArray[Any]
Objective = Callable[[Array, float], tuple[float, Array]]  # parameters and penalty: loss and gradient

# The values of C that cross-validation tries, strongest penalty first. They are for embeddings whose mean square
# distance from their center is 1.
ROUNDING = 1e-6
PATH = (1.0, 10.0, 30.0, 100.0)
ROUGH, CLEAR = 1e-4, 0.01  # a tolerance at which a C is judged first, and the share by which it has to be worse then


class HeadParameters(CheckedSettings):
    """The ranges of the parameters that both heads have."""

    C: Literal["cv"] | Annotated[float, Field(gt=0, allow_inf_nan=True), BeforeValidator(plain_number)]
    solver: Literal["lbfgs", "adam"]
    max_iter: Whole = Field(ge=1)
    folds: Whole = Field(ge=2)
    normalize: Flag
    random_state: Annotated[Whole, Field(ge=0, lt=2**32)] | None


class MixtureHead(BaseEstimator):  # type: ignore[misc]
    """The part that both heads share: the optimizers, and the choice of the penalty by cross-validation."""

    sharpnesses: ClassVar[tuple[float, ...]] = (1.0,)
    wide = 256  # above this many columns, embeddings are rotated to their principal directions first
    path: Sequence[float] = PATH  # the values of C that cross-validation tries
    path_tolerance = 1e-3  # of the solutions on the path
    path_draws = 4  # draws that cross-validation fits to: enough to compare values of C
    parameters: ClassVar[type[HeadParameters]]

    def __init__(
        self, C: float | Literal["cv"] = "cv", *, solver: Literal["lbfgs", "adam"] = "lbfgs", max_iter: int = 1000,
        folds: int = 5, normalize: bool = True, random_state: int = 0,
    ) -> None:  # fmt: skip
        self.C = C
        self.solver = solver
        self.max_iter = max_iter
        self.folds = folds
        self.normalize = normalize
        self.random_state = random_state

    @classmethod
    def paper(cls) -> Self:
        """The paper's head: 150 epochs of Adam with learning rate 0.1, no penalty, embeddings not normalized."""
        return cls(C=float("inf"), solver="adam", max_iter=150, normalize=False)

    def _fit(self, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]) -> Array:
        """Find the coefficients, and set `C_` and `sharpness_`."""
        # The problems are so small that a second thread costs more than it saves.
        with threadpool_limits(1):
            # Centered and scaled embeddings have the same solution, apart from the intercept, and L-BFGS finds it much
            # faster. Adam's steps depend on center and scale, so it gets the embeddings as they are.
            center, scale = np.zeros(draws.shape[2]), 1.0
            if self.solver == "lbfgs":
                center = draws.mean((0, 1))
                draws = draws - center
                flat = draws.ravel()
                scale = float(np.sqrt(flat @ flat / (draws.shape[0] * draws.shape[1])))
                if scale <= ROUNDING * np.linalg.norm(center):  # no node differs: what is left is rounding
                    scale = 1.0
                draws /= scale
            basis = None
            if self.solver == "lbfgs" and self._is_rotated(draws):
                draws, basis = principal_directions(draws)
            if self.C == "cv":
                C, self.sharpness_, start, before = self._best_on_path(draws, y, folds)
            else:
                C, self.sharpness_, start, before = float(self.C) * scale**2, 1.0, self._start(draws, y), None
            self.C_ = C / scale**2
            # High precision is wasted on a C from a coarse list.
            problem = self._problems(draws, y, [np.empty(0, dtype=np.int64)], before)
            (found,) = self._solve(problem, C, start[None], 1e-6 if self.C == "cv" else 1e-9)
            found = found if basis is None else self._turned_back(found, basis)
            return self._moved(found * self.sharpness_, center, scale)

    def _best_on_path(
        self, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]
    ) -> tuple[float, float, Array, Any]:
        """Choose C and the sharpness by cross-validation. Returns them, parameters to start from, and the problems."""
        held_out = np.full((len(self.path), len(self.sharpnesses)), -np.inf)
        found = np.zeros((len(self.path), len(folds), len(self._start(draws, y))))
        problems = self._problems(draws[: self.path_draws], y, [test for _, test in folds])
        for i, C in enumerate(self.path):  # the solution for one C is the start for the next
            start = found[max(i - 1, 0)]
            if i and self.path_tolerance < ROUGH:
                start = self._solve(problems, C, start, ROUGH)
                best_so_far = held_out[:i].max()
                if self._held_out(problems, start).max() < best_so_far - CLEAR * abs(best_so_far):
                    break  # more steps would not bring it back
            found[i] = self._solve(problems, C, start, self.path_tolerance)
            held_out[i] = self._held_out(problems, found[i])
            if i and held_out[i].max() < held_out[:i].max():
                break  # weaker penalties are slower to fit, and worse still
        best = int(held_out.max(1).argmax())
        self.held_out_ = float(held_out[best].max())  # log likelihood of the held-out training nodes
        self._keep_held_out(found[best], draws, folds)
        merit = self._merit(held_out[best], found[best], draws, y, folds)
        return self.path[best], self.sharpnesses[int(merit.argmax())], found[best].mean(0), problems

    def _is_rotated(self, draws: Array) -> bool:
        """Whether the columns are rotated to their principal directions first."""
        return bool(draws.shape[2] > self.wide)

    def _problems(self, draws: Array, y: Array, held_out: Sequence[Array], before: Any = None) -> Any:
        """The problems of some folds, each with the nodes that it holds out, after others with the same draws."""
        train = [np.setdiff1d(np.arange(len(y)), test) for test in held_out]
        return [
            (self._objective(draws[:, rest], y[rest]), draws[:, test], y[test])
            for rest, test in zip(train, held_out, strict=True)
        ]

    def _solve(self, problems: Any, C: float, start: Array, tolerance: float) -> Array:
        """The solution of each problem for a C, `(F, D)`."""
        pairs = zip(problems, start, strict=True)
        return np.stack([self._optimize(objective, C, point, tolerance) for (objective, *_), point in pairs])

    def _held_out(self, problems: Any, found: Array) -> Array:
        """The log likelihood summed over all held-out nodes, for each sharpness, `(sharpnesses,)`."""
        pairs = zip(problems, found, strict=True)
        return np.asarray(sum(self._log_likelihoods(point, draws, y) for (_, draws, y), point in pairs))

    def _merit(
        self, likelihoods: Array, found: Array, draws: Array, y: Array, folds: Sequence[tuple[Array, Array]]
    ) -> Array:
        """A score for each sharpness, greater is better: the log likelihood of held-out nodes."""
        return likelihoods

    def _keep_held_out(self, found: Array, draws: Array, folds: Sequence[tuple[Array, Array]]) -> None:
        """Keep what the folds predict for their held-out nodes, if somebody needs it."""

    def _optimize(self, objective: Objective, C: float, start: Array, tolerance: float) -> Array:
        def penalized(parameters: Array) -> tuple[float, Array]:
            return objective(parameters, 1 / C)

        if self.solver == "adam":
            self.n_iter_ = self.max_iter
            return adam(penalized, start, self.max_iter)
        options = {"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "ftol": tolerance, "gtol": 1e-6}
        found = minimize(penalized, start, jac=True, method="L-BFGS-B", options=options)
        self._note(int(found.nit), C, enough=found.nit < self.max_iter and found.nfev < 2 * self.max_iter)
        return np.asarray(found.x)

    def _note(self, iterations: int, C: float, *, enough: bool) -> None:
        """Set `n_iter_`, and warn if the iterations were not enough."""
        self.n_iter_ = max(iterations, 1)
        if not enough:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.max_iter} iterations at C = {C:g}. "
                "Increase max_iter or give a smaller C.", ConvergenceWarning, stacklevel=5,
            )  # fmt: skip

    def _check_settings(self) -> None:
        """Check the parameters. scikit-learn's convention is to do this in `fit`, not in the constructor."""
        self.parameters(**{name: getattr(self, name) for name in self.parameters.model_fields})

    def _objective(self, draws: Array, y: Array) -> Objective:
        raise NotImplementedError

    def _start(self, draws: Array, y: Array) -> Array:
        raise NotImplementedError

    def _moved(self, parameters: Array, center: Array, scale: float) -> Array:
        """Turn parameters for `(draws - center) / scale` into parameters for `draws`."""
        raise NotImplementedError

    def _turned_back(self, parameters: Array, basis: Array) -> Array:
        """Turn parameters for `draws @ basis` into parameters for `draws`."""
        raise NotImplementedError

    def _log_likelihoods(self, parameters: Array, draws: Array, y: Array) -> Array:
        """The log likelihood summed over nodes, for each sharpness, `(sharpnesses,)`."""
        raise NotImplementedError

    def _draws(self, draws: object) -> Array:
        check_is_fitted(self)
        found = as_draws(draws, self.normalize, self)
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


def adam(objective: Callable[[Array], tuple[float, Array]], parameters: Array, steps: int, rate: float = 0.1) -> Array:
    first = second = np.zeros_like(parameters)
    for step in range(1, steps + 1):
        _, gradient = objective(parameters)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * np.square(gradient)
        parameters = parameters - rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return parameters


def principal_directions(draws: Array) -> tuple[Array, Array]:
    """Centered draws `(S, N, d)` in their principal directions: `(S, N, r)`, and the directions `(d, r)`.

    The penalty does not change under a rotation, and a direction in which no draw differs has a coefficient of 0. So
    the solution is the same, but there are fewer columns if there are fewer rows, and L-BFGS needs fewer steps.
    Directions with less than a thousandth of the greatest spread are left out; in float64, less than a millionth.
    """
    samples, nodes, width = draws.shape
    rows = draws.reshape(-1, width)
    least = 1e-6 if draws.dtype == np.float32 else 1e-12
    if len(rows) < width:
        values, left = np.linalg.eigh(rows @ rows.T)
        kept = values > values[-1] * least
        basis = rows.T @ (left[:, kept] / np.sqrt(values[kept]))
    else:
        values, basis = np.linalg.eigh(rows.T @ rows)
        basis = basis[:, values > values[-1] * least]
    return np.ascontiguousarray(rows @ basis).reshape(samples, nodes, basis.shape[1]), basis


def log_sum_exp(values: Array) -> Array:
    """`log sum_k exp(values_k)` over the first axis."""
    greatest = values.max(0)
    return np.asarray(greatest + np.log(np.exp(values - greatest).sum(0)))
