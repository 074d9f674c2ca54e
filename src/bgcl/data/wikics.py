"""Read the WikiCS release (Mernyei and Cangea, 2020): one `data.json` with 20 splits."""

import json
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from bgcl.data.clean import CleanGraph, clean
from bgcl.errors import BGCLError


def read(path: Path) -> CleanGraph:
    """Read `data.json`. The masks of the 20 splits are `(N, 20)`; all splits share one test mask `(N,)`."""
    try:
        with path.open(encoding="utf-8") as file:
            raw = json.load(file)
        features = np.array(raw["features"], dtype=np.float64)  # (N, F)
        if features.ndim != 2:
            raise ValueError("features must have one list of numbers for each node")
        links = [(node, other) for node, others in enumerate(raw["links"]) for other in others]
        masks = {
            f"{split}_mask": np.array(raw[f"{split}_masks"], dtype=bool).T for split in ("train", "val", "stopping")
        }
        masks["test_mask"] = np.array(raw["test_mask"], dtype=bool)
        labels = np.array(raw["labels"], dtype=np.int64)
        edges = np.array(links, dtype=np.int64).reshape(-1, 2).T
    except FileNotFoundError as error:
        raise BGCLError(f"There is no file {path}.") from error
    except KeyError as error:
        raise BGCLError(f"{path} is not WikiCS's data.json: it lacks {error}.") from error
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BGCLError(f"{path} is damaged ({reason}). Delete it and download it again.") from error
    return clean(edges, csr_matrix(features), labels, masks, where=str(path))
