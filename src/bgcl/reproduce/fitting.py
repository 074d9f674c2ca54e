"""Train the method of a cell, or read it from the cache. Cells that differ only in their evaluation share it."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bgcl import checkpoint
from bgcl.data.facts import GraphFacts
from bgcl.data.pyg import check_graph
from bgcl.errors import BGCLError, CannotWriteError
from bgcl.estimator import BGCL
from bgcl.files import atomic_write, exclusive
from bgcl.model.training import TrainingError
from bgcl.reproduce.cache import Cache
from bgcl.settings import Settings

if TYPE_CHECKING:
    from torch_geometric.data import Data


def data_digest(data: "Data") -> str:
    """A digest of edges, attributes and labels."""
    sha = hashlib.sha256(GraphFacts.of(check_graph(data)).fingerprint.encode())
    sha.update(b"" if data.y is None else data.y.cpu().numpy().tobytes())
    return sha.hexdigest()


def embeddings_file(name: str, method: Any, data: "Data", cache: Cache) -> Path:
    """The file of a baseline's embeddings."""
    key = json.dumps([name, method.to_json(), data_digest(data)], sort_keys=True)
    return cache.embeddings(hashlib.sha256(key.encode()).hexdigest()[:20])


def fitted(name: str, method: Any, data: "Data", cache: Cache) -> Any:
    """The embeddings of a baseline. They are cached, so that other heads and other splits do not fit it again."""
    path = embeddings_file(name, method, data, cache)
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):  # missing or damaged
        embeddings = method.fit(data)
        with atomic_write(path) as part:
            np.save(part, embeddings, allow_pickle=False)
        return embeddings


def run_folder(settings: Settings, data: "Data", cache: Cache) -> Path:
    """The folder of a training run. Models that differ only in `draw_scale` share it."""
    facts = GraphFacts.of(check_graph(data))
    name = f"{facts.fingerprint}{settings.with_changes(draw_scale=1.0).model_dump_json()}"
    return cache.run(hashlib.sha256(name.encode()).hexdigest()[:20])


def trained(data: "Data", settings: Settings, cache: Cache) -> BGCL:
    """Train a model. The run is stored in the cache and resumes if it was interrupted."""
    folder = run_folder(settings, data, cache)
    model = BGCL(**dict(settings))
    with exclusive(folder):
        try:
            return model.fit(data, out=folder, resume=checkpoint.is_run(folder), progress=False)
        except (TrainingError, CannotWriteError):
            raise
        except BGCLError:
            if not checkpoint.is_run(folder):
                raise
            shutil.rmtree(folder)  # the run is damaged, so start again
            return model.fit(data, out=folder, progress=False)
