"""Read the WikiCS release (Mernyei and Cangea, 2020): one `data.json` with 20 splits."""

from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from scipy.sparse import csr_matrix

from bgcl.data.border import readable
from bgcl.data.clean import CleanGraph, clean
from bgcl.errors import BGCLError

_REMEDY = "Delete it and download it again."


class _Release(BaseModel):
    """What `data.json` must hold. A label of 1.5 or a mask of "no" is an error; neither is rounded or converted."""

    model_config = ConfigDict(strict=True)
    features: list[list[float]]
    labels: list[int]
    links: list[list[int]]
    train_masks: list[list[bool]]
    val_masks: list[list[bool]]
    stopping_masks: list[list[bool]]
    test_mask: list[bool]


def read(path: Path) -> CleanGraph:
    """Read `data.json`. The masks of the 20 splits are `(N, 20)`; all splits share one test mask `(N,)`."""
    with readable(path, _REMEDY):
        release = _parse(path)
        if len({len(row) for row in release.features}) > 1:
            raise BGCLError(f"{path} is damaged (features: the lists have several lengths). {_REMEDY}")
        links = [(node, other) for node, others in enumerate(release.links) for other in others]
        masks = {
            f"{split}_mask": np.array(getattr(release, f"{split}_masks"), dtype=bool).T
            for split in ("train", "val", "stopping")
        }
        masks["test_mask"] = np.array(release.test_mask, dtype=bool)
        features = np.array(release.features, dtype=np.float64).reshape(len(release.features), -1)  # (N, F)
        edges = np.array(links, dtype=np.int64).reshape(-1, 2).T
        labels = np.array(release.labels, dtype=np.int64)
        return clean(edges, csr_matrix(features), labels, masks, where=str(path))


def _parse(path: Path) -> _Release:
    try:
        return _Release.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name, *place = problem["loc"] or ("",)
        if problem["type"] == "missing":
            raise BGCLError(f"{path} is not WikiCS's data.json: it lacks '{name}'.") from None
        where = f"{name}{''.join(f'[{i}]' for i in place)}: " if name else ""
        raise BGCLError(f"{path} is damaged ({where}{problem['msg']}). {_REMEDY}") from None
