"""What commands keep of the draws of a model: the predictions, and mean and standard deviation of every node.

A result is found again only for the same model, graph, labels, numbers of draws, seed and versions of the packages.
Then it is the same, bit for bit, as one from new draws.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bgcl.arguments import seed_or
from bgcl.augmentation.noise import VERSION
from bgcl.checkpoint import checksum
from bgcl.checkpoint.kept import MOST, Kept
from bgcl.downstream.evaluation import versions
from bgcl.model.posterior import Moments, moments
from bgcl.progress import with_progress

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

Array = npt.NDArray[Any]
OF_LABELS = ("y", "classes", "train_mask", "val_mask", "test_mask")  # what draws do not depend on
ABOUT_FILES = ("recipe", "name")  # where a graph was read from


class KeptResults:
    """The results in the folder of a run, for one model.

    Args:
        run: the folder.
        model: the model that was loaded from it.
        most: the greatest number of bytes to keep.

    >>> import bgcl, tempfile
    >>> from pathlib import Path
    >>> from bgcl.downstream import KeptResults
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> kept = KeptResults(Path(tempfile.mkdtemp()), model)
    >>> first = bgcl.predict(model, data, samples=8, kept=kept)
    >>> again = bgcl.predict(model, data, samples=8, kept=kept)  # makes no draws
    >>> bool((first.astd == again.astd).all())
    True
    """

    def __init__(self, run: Path, model: "BGCL", *, most: int = MOST) -> None:
        self.model, self.store = model, Kept(run, _digest_of_model(model), most=most)

    @property
    def notes(self) -> list[str]:
        """What could not be kept, and why."""
        return self.store.notes

    def find(self, what: str, how: Mapping[str, Any]) -> dict[str, Array] | None:
        """Arrays that were kept; None if there are none. Graphs in `how` count by their contents."""
        found = self.store.find(what, _key(how))
        return None if found is None else {name: tensor.numpy() for name, tensor in found.items()}

    def keep(self, what: str, how: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Keep arrays of numbers."""
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        self.store.put(what, _key(how), tensors)

    def find_moments(self, data: "Data", samples: int, seed: int | None, hard: bool = False) -> Moments | None:
        """Mean and standard deviation of some draws, if they were kept."""
        found = self.find("moments of draws", self._how(data, samples, seed, hard))
        if found is None or found.keys() != {"mean", "std"}:
            return None
        return Moments(torch.from_numpy(found["mean"]), torch.from_numpy(found["std"]), samples)

    def keep_moments(self, data: "Data", seed: int | None, found: Moments, hard: bool = False) -> None:
        """Keep mean and standard deviation of draws."""
        arrays = {"mean": found.mean.cpu().numpy(), "std": found.std.cpu().numpy()}
        self.keep("moments of draws", self._how(data, found.samples, seed, hard), arrays)

    def _how(self, data: "Data", samples: int, seed: int | None, hard: bool) -> dict[str, Any]:
        return {"drawn": digest(data, labels=False), "samples": samples, "seed": self.seed(seed), "hard": hard}

    def seed(self, given: int | None) -> int:
        """The seed of draws."""
        return seed_or(given, self.model.settings_.seed)


def moments_of(
    model: "BGCL", data: "Data", samples: int, *, seed: int | None, kept: KeptResults | None, progress: bool
) -> Moments:
    """Mean and standard deviation of draws, from the run if they were kept there."""
    found = None if kept is None else kept.find_moments(data, samples, seed)
    if found is None:
        found = moments(with_progress(lambda: model.draws(data, samples, seed=seed), samples, "draws", show=progress))
        if kept is not None:
            kept.keep_moments(data, seed, found)
    return found


def digest(data: "Data", *, labels: bool = True) -> str:
    """A SHA-256 of everything in a graph that results may depend on."""
    sha = hashlib.sha256()
    for name in sorted(data.keys()):
        if name not in ABOUT_FILES and (labels or name not in OF_LABELS):
            sha.update(f"{name} ".encode())
            _add(sha, data[name])
    return sha.hexdigest()


def _add(sha: Any, value: Any) -> None:
    if isinstance(value, Tensor) and value.layout == torch.sparse_csr:
        for part in (value.crow_indices(), value.col_indices(), value.values()):
            _add(sha, part)
        value = tuple(value.shape)
    if isinstance(value, Tensor):
        value = value.detach().cpu().contiguous().numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        sha.update(f"{value.dtype} {value.shape} ".encode())
        sha.update(np.ascontiguousarray(value).tobytes())
        return
    sha.update(json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, default=str).encode())


def _digest_of_model(model: "BGCL") -> str:
    tensors = {name: tensor.cpu() for name, tensor in model.network_.state_dict().items()}
    about = [checksum(tensors), model.settings_.to_json(), versions(), f"noise {VERSION}"]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _key(how: Mapping[str, Any]) -> str:
    return json.dumps(dict(how), sort_keys=True)
