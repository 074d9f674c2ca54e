"""The classifier: a mixture of softmax regressions over draws of the embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from bgcl.downstream.head import HeadParameters, MixtureHead, adam, log_sum_exp
from bgcl.downstream.kernel import Kernels
from bgcl.downstream.node_draws import as_draws, beside_of, check_targets
from bgcl.downstream.pooling import Stretch, cross_pooled, part_slices, part_widths, pool_weights
from bgcl.downstream.softmax_fits import SoftmaxFits, held_out_logits
from bgcl.errors import BGCLError
from bgcl.measures.metrics import pavpu
from bgcl.measures.uncertainty import entropy
from bgcl.validation import Flag, Whole, Width

Array = npt.NDArray[Any]

KERNEL_PATH = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # the values of C that a head of a kernel tries


class ClassifierParameters(HeadParameters):
    """The ranges of the classifier's parameters."""

    wrong: ClassVar[str] = "The '{name}' parameter of MixtureClassifier"

    criterion: Literal["likelihood", "pavpu"]
    parts: Annotated[Whole, Field(ge=1)] | tuple[Width, ...] | None = None
    kernel: Flag | None = None


class MixtureClassifier(ClassifierMixin, MixtureHead):  # type: ignore[misc]
    """Classify nodes with a mixture of softmax regressions over draws of their embeddings.

    The class probabilities of a node with draws `h_1 ... h_K` are `p(y) = 1/K sum_k softmax(h_k W + c)`. `fit`
    maximizes `sum_n log p(y_n) - |W|^2 / 2C`. With one draw this is logistic regression.

    The penalty makes probabilities underconfident. With `C="cv"`, `fit` therefore chooses two numbers by the likelihood
    of held-out training nodes: C, and a sharpness that multiplies W and c at the end (temperature scaling, Guo et al.,
    2017). With a given C the sharpness is 1.

    Args:
        C: inverse strength of the penalty; "cv" chooses it by cross-validation.
        criterion: what chooses the sharpness if `C="cv"`: the "likelihood" of held-out nodes, or their area under the
            PAvPU curve ("pavpu"). "pavpu" suits decisions by a threshold of certainty. Its probabilities are
            overconfident.
        solver: "lbfgs" or "adam".
        max_iter: the number of iterations; for "lbfgs" the maximum.
        folds: folds of the cross-validation.
        normalize: scale each embedding to unit length first.
        random_state: seed of the folds.
        parts: widths of the parts of the embeddings, such as `model.parts_`, or a number of equal parts. Each part has
            a head of its own, and one more has all columns. They are pooled by the likelihood of held-out training
            nodes, see `bgcl.downstream.pooling`. None: one head for all columns.
        kernel: whether two heads of a kernel of all columns are in the pool too, see `bgcl.downstream.kernel`. They
            are not linear. Default: if there are several parts.

    Logits of other sources than the embeddings, `NodeDraws(draws, beside=...)`, are one more head of a pool each.

    Attributes:
        classes_: the classes in ascending order, `(C,)`.
        coefficients_: W, row by row, and c, `((d + 1) C,)`.
        C_: the value of C that was used; in a pool, the one of its last head.
        sharpness_: the factor that multiplied W and c.
        weights_: the weight of each head in the pool: of the parts, of all columns, of the kernels, of the logits
            beside the draws; only in a pool.
        beside_weights_: the last of them, `(B,)`.
        stretch_: the correction of the pool's confidence, see `bgcl.downstream.pooling.Stretch`; only in a pool.
        kernel_: the kernels and the coefficients of their landmarks; only in a pool with kernels.
        n_features_in_: the width d of the embeddings.
        n_iter_: iterations of the last optimization.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(5, 40, 3)) + 4 * (np.arange(40) % 2)[:, None]
    >>> head = MixtureClassifier(normalize=False).fit(draws, np.arange(40) % 2)
    >>> head.predict_proba(draws).shape, head.predict_samples(draws).shape
    ((40, 2), (5, 40, 2))
    """

    takes_beside = True
    beside_weights_ = np.empty(0)
    path_tolerance = 1e-6
    sharpnesses = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
    parameters: ClassVar[type[HeadParameters]] = ClassifierParameters

    def __init__(
        self, C: float | Literal["cv"] = "cv", *, criterion: Literal["likelihood", "pavpu"] = "likelihood",
        solver: Literal["lbfgs", "adam"] = "lbfgs", max_iter: int = 1000, folds: int = 5, normalize: bool = True,
        random_state: int = 0, parts: int | Sequence[int] | None = None, kernel: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            C, solver=solver, max_iter=max_iter, folds=folds, normalize=normalize, random_state=random_state
        )
        self.criterion = criterion
        self.parts = parts
        self.kernel = kernel

    def fit(self, draws: object, y: object) -> Self:
        """Fit the head to labeled nodes.

        Args:
            draws: embeddings of the training nodes, `(S, N, d)`, `(N, d)` or `NodeDraws`.
            y: their classes, `(N,)`, numbers or strings.

        Returns:
            The fitted head.

        Raises:
            BGCLError: a parameter, the draws or the classes are not valid.
        """
        self._check_settings()
        if self.criterion != "likelihood" and self.C != "cv":
            raise BGCLError(
                f"criterion='{self.criterion}' has no effect if C is a number: leave it out, or give C=\"cv\"."
            )
        X = as_draws(draws, self.normalize, self)
        labels = check_targets(y, X.shape[1], self, numeric=False)
        self.classes_, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise BGCLError(f"Got {len(self.classes_)} class among the training nodes. A classifier needs two or more.")
        self.n_features_in_ = X.shape[2]
        widths, folds = part_widths(self.parts, X.shape[2]), self._folds(codes, counts)
        kernel = len(widths) > 1 if self.kernel is None else self.kernel
        self._forget("weights_", "stretch_", "kernel_", "beside_weights_")  # of an earlier fit
        beside = beside_of(draws, len(self.classes_))
        if len(widths) > 1 or kernel or len(beside):
            return self._fit_pool(X, codes, folds, part_slices(widths)[0 if len(widths) > 1 else 1 :], kernel, beside)
        single = self.solver == "lbfgs" and X.shape[2] > self.wide  # half of the memory, and precise enough
        self.coefficients_ = self._fit(X.astype(np.float32 if single else np.float64, copy=False), codes, folds)
        return self

    def _fit_pool(
        self, draws: Array, codes: Array, folds: Sequence[tuple[Array, Array]], slices: Sequence[slice], kernel: bool,
        beside: Array,
    ) -> Self:  # fmt: skip
        if self.C != "cv":
            raise BGCLError('Heads are pooled by held-out training nodes, which needs C="cv".')
        if self.criterion != "likelihood":
            raise BGCLError('Heads are pooled by the likelihood of held-out nodes, which needs criterion="likelihood".')
        found: list[Array] = []
        held_out: list[Array] = []

        def fit(columns: Array) -> None:
            found.append(self._fit(columns.astype(np.float32, copy=False), codes, folds) / self.sharpness_)
            assert self._held_out_logits is not None
            held_out.append(self._held_out_logits)

        self._held_out_logits, self.path_draws = np.empty(0), 1
        try:
            for columns in slices:
                fit(draws[:, :, columns])
            if kernel:
                self.path = KERNEL_PATH
                kernels = Kernels.fit(draws[0], np.random.default_rng(self.random_state))
                for features in zip(*(kernels.features(draw) for draw in draws), strict=True):
                    fit(np.stack(features))
        finally:  # the next fit may be one without a pool
            self._forget("_held_out_logits", "path", "path_draws")
        held_out += [np.broadcast_to(source, held_out[0].shape) for source in beside]
        logits = np.stack(held_out).astype(np.float32)
        self.weights_, self.sharpness_ = pool_weights(logits, codes), 1.0
        self.stretch_ = Stretch.fit(cross_pooled(logits, codes, folds), codes)
        self.beside_weights_ = self.weights_[len(found) :]
        W, c = np.zeros((draws.shape[2], len(self.classes_))), np.zeros(len(self.classes_))
        for weight, columns, parameters in zip(self.weights_, slices, found, strict=False):
            part, intercept = self._parts(parameters)
            W[columns] += weight * part
            c += weight * intercept
        landmarks = []
        for i, (weight, parameters) in enumerate(zip(self.weights_[len(slices) :], found[len(slices) :], strict=False)):
            of_features, intercept = self._parts(parameters)
            landmarks.append((kernels.roots[i] @ (weight * of_features)).astype(np.float32))
            c += weight * intercept
        if kernel:
            self.kernel_ = KernelPart(replace(kernels, roots=()), tuple(landmarks))  # only a fit needs the roots
        self.coefficients_ = np.concatenate([W.ravel(), c])
        return self

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    _held_out_logits: Array | None = None  # logits of held-out nodes, `(S, N, C)`, while parts are fitted

    def _keep_held_out(self, found: Array, draws: Array, folds: Sequence[tuple[Array, Array]]) -> None:
        if self._held_out_logits is None:
            return
        self._held_out_logits = held_out_logits(found, draws, len(self.classes_), [test for _, test in folds])

    def _folds(self, codes: Array, counts: Array) -> Sequence[tuple[Array, Array]]:
        if self.C != "cv":
            return ()
        if counts.min() < 2:
            raise BGCLError(
                f"Class {self.classes_[counts.argmin()]} has only one training node, but cross-validation needs two or "
                "more. Label another node of this class, or give a number as C."
            )
        split = StratifiedKFold(min(self.folds, int(counts.min())), shuffle=True, random_state=self.random_state)
        return list(split.split(codes, codes))

    def _start(self, draws: Array, y: Array) -> Array:
        return np.zeros((draws.shape[2] + 1) * len(self.classes_))

    def _moved(self, parameters: Array, center: Array, scale: float) -> Array:
        W, c = split_parameters(parameters, len(center), len(self.classes_))
        return np.concatenate([(W / scale).ravel(), c - center @ W / scale])

    def _turned_back(self, parameters: Array, basis: Array) -> Array:
        W, c = split_parameters(parameters, basis.shape[1], len(self.classes_))
        return np.concatenate([(basis @ W).ravel(), c])

    def _is_rotated(self, draws: Array) -> bool:
        """Rotated columns are fewer columns if there are fewer rows. Unless they are far fewer, it does not pay."""
        return super()._is_rotated(draws) and 3 * draws.shape[0] * draws.shape[1] < draws.shape[2]

    def _problems(
        self, draws: Array, y: Array, held_out: Sequence[Array], before: SoftmaxFits | None = None
    ) -> SoftmaxFits:
        found = SoftmaxFits(draws, y, len(self.classes_), held_out)
        if before is not None:
            found.take_over(before)
        return found

    def _solve(self, problems: SoftmaxFits, C: float, start: Array, tolerance: float) -> Array:
        if self.solver == "lbfgs":
            found, steps, enough = problems.solve(C, start, tolerance, self.max_iter)
            self._note(steps, C, enough=enough)
            return found
        self.n_iter_ = self.max_iter
        return np.stack([adam(problems.one(i, C), point, self.max_iter) for i, point in enumerate(start)])

    def _held_out(self, problems: SoftmaxFits, found: Array) -> Array:
        logits = held_out_logits(found, problems.draws, problems.classes, problems.held_out)
        logits = np.ascontiguousarray(np.moveaxis(logits, 2, 0))  # (C, S, N)
        logits -= logits.max(0)
        y = problems.y
        own = logits[y, :, np.arange(len(y))].T  # (S, N)
        mixtures = (log_sum_exp(s * own - np.log(np.exp(s * logits).sum(0))) for s in self.sharpnesses)
        return np.asarray([mixture.sum(dtype=np.float64) - len(y) * np.log(len(own)) for mixture in mixtures])

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
        return split_parameters(parameters, len(parameters) // len(self.classes_) - 1, len(self.classes_))

    def predict_samples(self, draws: object) -> Array:
        """Predict class probabilities with each draw.

        Args:
            draws: embeddings of nodes, `(S, N, d)`, `(N, d)` or `NodeDraws`.

        Returns:
            Class probabilities `(S, N, C)`, columns in the order of `classes_`.

        Raises:
            NotFittedError: the head is not fitted.
            BGCLError: the draws are not valid, or have another width than in `fit`.
        """
        X = self._draws(draws)
        W, c = split_parameters(self.coefficients_.astype(X.dtype), X.shape[2], len(self.classes_))
        logits = X @ W + c
        logits += self.beside_logits(beside_of(draws, len(self.classes_))).astype(X.dtype)
        if hasattr(self, "kernel_"):
            for i, draw in enumerate(X):
                logits[i] += self.kernel_.logits(draw)
        return np.exp(_log_softmax(self.stretch_(logits) if hasattr(self, "stretch_") else logits))

    def beside_logits(self, beside: Array) -> Array:
        """What logits beside the draws, `(B, N, C)`, add to the logits of the pool: `(N, C)`, or 0 if B is 0."""
        if len(beside) != len(self.beside_weights_):
            raise BGCLError(
                f"The head was fitted with {len(self.beside_weights_)} sources of logits beside the draws, but got "
                f"{len(beside)}. Give NodeDraws(draws, beside=...) of the same sources."
            )
        return np.asarray(np.tensordot(self.beside_weights_, beside, 1)) if len(beside) else np.zeros(())

    def predict_proba(self, draws: object) -> Array:
        """Predict class probabilities with the mixture: the mean of `predict_samples` over the draws, `(N, C)`."""
        return np.asarray(self.predict_samples(draws).mean(0))

    def predict(self, draws: object) -> Array:
        """Predict the most probable class of each node, `(N,)`."""
        probability = self.predict_proba(draws)
        return np.asarray(self.classes_[probability.argmax(1)])


@dataclass(frozen=True)
class KernelPart:
    """The part of a pooled head's logits that comes from its kernels: `sum_g k_g(x, Z) V_g`."""

    kernels: Kernels
    coefficients: tuple[Array, ...]  # of the landmarks in each kernel, `(m, C)`

    def logits(self, rows: Array) -> Array:
        """The part of the logits of rows `(N, d)`, `(N, C)`."""
        return self.kernels.products(rows, self.coefficients)

    def logits_of(self, rows: Array, nodes: Array) -> Array:
        """The same for some of the rows, `(n, C)`."""
        return self.kernels.products(rows, self.coefficients, nodes)


def split_parameters(parameters: Array, width: int, classes: int) -> tuple[Array, Array]:
    """W `(d, C)` and c `(C,)` of the parameters of a classifier."""
    return parameters[: width * classes].reshape(width, classes), parameters[width * classes :]


def _log_softmax(logits: Array) -> Array:
    """Log-softmax over the last axis, in place. SciPy's function is several times slower on small arrays."""
    logits -= logits.max(-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    return logits
