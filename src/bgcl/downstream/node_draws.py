"""Draws of embeddings in the form that scikit-learn expects: checked, and indexed by node."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor

from bgcl.arguments import numbers
from bgcl.errors import BGCLError

log = logging.getLogger("bgcl")

Array = npt.NDArray[Any]

GREATEST = 1e18  # of an entry whose square is a number of 32 bits


class NodeDraws:
    """Draws that are indexed by node, so that scikit-learn's `GridSearchCV` and `cross_val_score` can split them.

    Args:
        draws: embeddings `(S, N, d)`.
        beside: logits of the nodes that do not come from the embeddings, `(B, N, C)`, such as those of
            `bgcl.downstream.LabelSpreading`. A `MixtureClassifier` takes each of them as one more head of its pool. To
            fit it, they must be made without a node's own label.

    Raises:
        BGCLError: an array does not have three axes, or both have another number of nodes.

    >>> import numpy as np
    >>> nodes = NodeDraws(np.zeros((5, 40, 3)))
    >>> len(nodes), nodes[[1, 2]].draws.shape
    (40, (5, 2, 3))
    """

    def __init__(self, draws: object, beside: object = None) -> None:
        self.draws = np.asarray(draws)
        if self.draws.ndim != 3:
            raise BGCLError(f"Draws must have the shape (samples, nodes, width). Got {self.draws.shape} instead.")
        self.beside = None if beside is None else np.asarray(beside, dtype=np.float32)
        if self.beside is not None and (self.beside.ndim != 3 or self.beside.shape[1] != self.draws.shape[1]):
            raise BGCLError(
                f"Logits beside draws of {self.draws.shape[1]} nodes must have the shape (sources, nodes, classes). "
                f"Got {self.beside.shape} instead."
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        samples, nodes, width = self.draws.shape
        return nodes, samples, width

    def __len__(self) -> int:
        return int(self.draws.shape[1])

    def __getitem__(self, nodes: Any) -> "NodeDraws":
        index = nodes[0] if isinstance(nodes, tuple) else nodes
        index = index if isinstance(index, slice) else np.asarray(index)
        return NodeDraws(self.draws[:, index], None if self.beside is None else self.beside[:, index])


def as_draws(draws: object, normalize: bool, estimator: object) -> Array:
    """Check draws and turn them into a float array `(S, N, d)`. A matrix `(N, d)` is one draw.

    Args:
        draws: an array, a tensor, a list of matrices, or `NodeDraws`.
        normalize: scale each embedding to unit length.
        estimator: the estimator that scikit-learn's errors name.
    """
    if isinstance(draws, NodeDraws):
        if draws.beside is not None and not getattr(estimator, "takes_beside", False):
            raise BGCLError(f"{type(estimator).__name__} cannot take logits beside the draws. Leave them out.")
        draws = draws.draws
    if isinstance(draws, list | tuple) and draws and getattr(draws[0], "ndim", None) == 2:
        draws = [np.asarray(_detached(draw)) for draw in draws]
        if len(shapes := {draw.shape for draw in draws}) > 1:
            raise BGCLError(f"All draws must have the same shape (nodes, width). Got {' and '.join(map(str, shapes))}.")
        draws = np.stack(draws)
    draws = _detached(draws)
    if np.ma.is_masked(draws):
        raise BGCLError("The draws have masked values, which a head cannot leave out. Fill them in.")
    array = draws if getattr(draws, "ndim", None) == 3 else None
    if array is None:
        array = np.asarray(check_array(draws, dtype="numeric", estimator=estimator))[None]
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise BGCLError(f"Draws must be real numbers. Got values of type {array.dtype} instead.")
    array = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32, copy=False)
    if 0 in array.shape:
        raise BGCLError(f"Draws must not be empty. Got the shape {array.shape} for (samples, nodes, width).")
    # A sum is finite if all entries are. It takes a tenth of the time of asking each of them.
    with np.errstate(over="ignore", invalid="ignore"):  # a sum of great numbers may be infinite
        total = array.sum()
    if not np.isfinite(total) and not np.isfinite(array).all():
        raise BGCLError("The draws hold NaN or infinity. Check whether the training of the model diverged.")
    if normalize:
        return _of_length_one(array)
    greatest = float(np.abs(array).max())
    if greatest > GREATEST:
        raise BGCLError(
            f"A draw has an entry as great as {greatest:.2g}, too great to be computed with. Divide the draws by a "
            "constant, or set normalize=True."
        )
    return array


def _of_length_one(array: Array) -> Array:
    """Each row divided by its length; a row of zeros as it is."""
    with np.errstate(over="ignore", under="ignore"):
        length = np.sqrt(np.einsum("...d,...d->...", array, array))[..., None]
        squares = np.sqrt(np.finfo(array.dtype).tiny) / np.finfo(array.dtype).eps  # shorter rows lose digits
        extreme = (~np.isfinite(length) | (length < squares))[..., 0]
        found = np.asarray(array / np.where(length > 0, length, 1))
        if extreme.any():
            greatest = np.abs(array[extreme]).max(-1, keepdims=True)
            rows = array[extreme] / np.where(greatest > 0, greatest, 1)
            length = np.linalg.norm(rows, axis=-1, keepdims=True)
            found[extreme] = rows / np.where(length > 0, length, 1)
    return found


def same_shape(draws: Iterable[Tensor], nodes: int) -> Iterator[Tensor]:
    """Hand on draws `(N, d)` one at a time, and refuse one of another shape."""
    first = None
    for draw in draws:
        first = draw.shape if first is None else first
        if draw.ndim != 2 or len(draw) != nodes or draw.shape != first:
            raise BGCLError(
                f"Each draw must have the shape ({nodes} nodes, width) of the others. Got {tuple(draw.shape)} instead."
            )
        yield draw


def beside_of(draws: object, classes: int) -> Array:
    """The logits beside draws, `(B, N, C)`, with B = 0 if there are none."""
    beside = draws.beside if isinstance(draws, NodeDraws) else None
    if beside is None:
        return np.empty((0, 0, classes), dtype=np.float32)
    if beside.shape[2] != classes:
        raise BGCLError(f"The logits beside the draws are of {beside.shape[2]} classes, but there are {classes}.")
    return np.asarray(beside)


def _detached(draws: Any) -> Any:
    """A tensor without its gradient, which NumPy would refuse. Anything else as it is."""
    return draws.detach().cpu() if isinstance(draws, Tensor) else draws


def check_targets(y: object, nodes: int, estimator: object, *, numeric: bool) -> Array:
    """Check labels, or targets if `numeric`, and turn them into an array `(N,)`."""
    if y is None:
        raise BGCLError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    targets = np.asarray(column_or_1d(np.asarray(y), warn=True))
    if len(targets) != nodes:
        raise BGCLError(f"There are draws of {nodes} nodes, but {len(targets)} labels. Give one label for each node.")
    if targets.dtype.kind in "fc" and not np.isfinite(targets).all():
        raise BGCLError("The labels hold NaN or infinity. Leave out nodes without a label.")
    if numeric:
        return numbers("The targets", _as_floats(targets))
    if targets.dtype.kind == "O":
        _check_one_kind(targets)
    if targets.dtype.kind == "i" and {-1, 0} <= {*np.unique(targets).tolist()}:
        log.warning("-1 is a class here, but in the labels of a graph it means no label: leave out these nodes.")
    if targets.dtype.kind == "f" and (targets != np.round(targets)).any():
        raise BGCLError(
            "Unknown label type: continuous. A classifier needs classes. For numbers, use MixtureRegressor."
        )
    return targets


def _as_floats(targets: Array) -> Array:
    """Objects as numbers, if all of them are. NumPy would turn None into NaN."""
    if targets.dtype.kind != "O":
        return targets
    try:
        return np.array([float(target) for target in targets])
    except (TypeError, ValueError):
        raise BGCLError(
            "Unknown label type: the targets of a regressor must be numbers. Leave out other nodes."
        ) from None


def _check_one_kind(labels: Array) -> None:
    """Labels of several types cannot be sorted, and a missing one is no class."""
    if any(label is None for label in labels):
        raise BGCLError("The labels hold None. Leave out nodes without a label.")
    try:
        np.unique(labels)
    except TypeError:
        names = sorted({type(label).__name__ for label in labels})
        raise BGCLError(f"The labels have several types: {', '.join(names)}. Use one type.") from None
