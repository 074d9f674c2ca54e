"""What a run consists of: the names of its files, their checksums, and all of it in memory."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from bgcl.data.facts import GraphFacts
from bgcl.data.recipe import Recipe
from bgcl.defaults import BEFORE
from bgcl.model.training import Record
from bgcl.settings import Settings

FORMAT = 7
ABOUT, TENSORS, FITTED = "model.toml", "model.safetensors", "fitted.safetensors"
HISTORY, RECIPE = "history.jsonl", "graph.json"
BEGUN, WHOLE = ".begun", ".whole"  # folders of a new run: not all of its files are there yet; all are
CHECKS = "sha256"  # the entry of the tensors' file that has the checksums
# Files that commands write into the folder of a run. They show this run, and no other.
MADE = ("report.html", "training.png", "drop_rates.png", "pavpu.png", "reliability.png", "risk_coverage.png",
        "uncertainty_by_class.png")  # fmt: skip
FREE = ("epochs", "memory_budget", "draw_scale")  # settings that may change when a run resumes


@dataclass(frozen=True)
class SavedRun:
    """The contents of a run's folder."""

    settings: Settings
    graph: GraphFacts
    network: dict[str, Tensor]
    training: dict[str, Tensor]  # empty if only the model was saved
    history: list[Record]
    recipe: Recipe | None  # how the graph was read, if from tables


def is_fitted(name: str) -> bool:
    """Whether a tensor of the network is found before the training, which does not change it."""
    return name.startswith(("scaling.", "parts."))


def place_of(folder: Path, name: str) -> Path:
    """Where a file of the run is: among the files of a new run that is whole but not yet in place, or in the folder."""
    whole = folder / WHOLE / name
    return whole if whole.is_file() else folder / name


def sha256(text: str | bytes) -> str:
    """The SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8") if isinstance(text, str) else text).hexdigest()


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of names, types, shapes and values of tensors."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        sha.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()


def with_checksum(text: str) -> str:
    """A TOML text that begins with its own SHA-256."""
    return f'sha256 = "{sha256(text)}"\n{text}'


def runs_of(settings: Settings, graph: GraphFacts) -> tuple[str, str]:
    """Checksums of settings that cannot change, with the graph: of all, and of those that older runs have too.

    A setting is not in an older run if it was added later and has the value that it had before.
    """
    fixed = {name: value for name, value in settings.to_json().items() if name not in FREE}
    older = {name: value for name, value in fixed.items() if name not in BEFORE or value != BEFORE[name]}
    every, before = (sha256(json.dumps([some, graph.fingerprint], sort_keys=True)) for some in (fixed, older))
    return every, before


def checks_of(settings: Settings, graph: GraphFacts, history: bytes, fitted: str) -> dict[str, str]:
    """Checksums of what tensors belong to: settings that cannot change, with the graph; history; fitted tensors."""
    return {"run": runs_of(settings, graph)[0], "history": sha256(history), "fitted": fitted}
