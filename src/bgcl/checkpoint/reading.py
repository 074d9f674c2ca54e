"""Read a run, and check every file of it. An error is one line that names the file."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from bgcl.checkpoint.contents import (
    ABOUT,
    FITTED,
    FORMAT,
    HISTORY,
    RECIPE,
    TENSORS,
    SavedRun,
    checks_of,
    checksum,
    place_of,
    runs_of,
    sha256,
    with_checksum,
)
from bgcl.checkpoint.tensors import read_tensor_file
from bgcl.data.facts import GraphFacts
from bgcl.data.recipe import Recipe
from bgcl.defaults import BEFORE
from bgcl.errors import BGCLError, one_line
from bgcl.model.training import Record
from bgcl.settings import Settings
from bgcl.validation import checked, checked_json

WRONG = "its checksum is wrong"
LARGEST_ABOUT = 1 << 20  # bytes; it has a few hundred settings at most


@dataclass(frozen=True)
class _About:
    """The tables of `model.toml`."""

    graph: GraphFacts
    settings: dict[str, dict[str, Any]]
    recipe: str  # SHA-256 of graph.json; empty if there is none


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder contains a run of one epoch or more."""
    return all(place_of(Path(folder), name).is_file() for name in (ABOUT, TENSORS))


def read(folder: str | os.PathLike[str]) -> SavedRun:
    """Read and check every file of a run's folder. An error names the file that is wrong."""
    folder = Path(folder)
    if not place_of(folder, ABOUT).is_file():
        raise BGCLError(f"{folder} is not a run: it has no {ABOUT}. Make one with 'bgcl train GRAPH --out {folder}'.")
    settings, graph, recipe = _read_about(folder)
    path = place_of(folder, TENSORS)
    if not path.is_file():
        raise BGCLError(f"{path} is missing: no epoch of this run was finished. Train again.")
    parts, checks = _read_tensors(path)
    epoch = _epoch(path, parts["training"])
    history, text = _read_history(place_of(folder, HISTORY), epoch)
    fitted, fitted_checks = _read_tensors(place_of(folder, FITTED))
    expected = checks_of(settings, graph, text, fitted_checks["tensors"])
    if checks.get("run") not in runs_of(settings, graph):
        raise BGCLError(f"{path} does not fit {ABOUT}: it belongs to a run with other settings or data.")
    if checks.get("history") != expected["history"] or (epoch is not None and len(history) != epoch):
        raise BGCLError(f"{folder / HISTORY} does not fit {TENSORS}: epochs are missing, or were changed.")
    if checks.get("fitted") != expected["fitted"]:
        raise BGCLError(f"{folder / FITTED} does not fit {TENSORS}: it is of another run.")
    network = fitted["network"] | parts["network"]
    return SavedRun(settings, graph, network, parts["training"], history, recipe)


def _read_about(folder: Path) -> tuple[Settings, GraphFacts, Recipe | None]:
    path = place_of(folder, ABOUT)
    with one_line(path):
        if path.stat().st_size > LARGEST_ABOUT:
            raise ValueError("it is too large")
        text = path.read_bytes().decode("utf-8")
        values = tomllib.loads(text)
        if values["format"] != FORMAT:
            raise BGCLError(
                f"{path} has format {values['format']}, and this version of bgcl reads format {FORMAT}. Train again."
            )
        about = checked(_About, values)
        settings = _read_settings(about.settings, path)
        recipe = _read_recipe(place_of(folder, RECIPE), about.recipe) if about.recipe else None
        if text != with_checksum(text.partition("\n")[2]):
            raise ValueError(WRONG)
        return settings, about.graph, recipe


def _read_settings(groups: dict[str, dict[str, Any]], path: Path) -> Settings:
    """The settings of all groups. A missing one is None and never a default, so `Settings` refuses most of them.

    A setting that was added later is what it was before.
    """
    values: dict[str, Any] = dict.fromkeys(Settings.model_fields) | BEFORE
    for group in groups.values():
        values |= group
    try:
        return Settings(**values)
    except BGCLError as error:
        raise BGCLError(f"{path}: {error}") from error


def _read_recipe(path: Path, expected: str) -> Recipe:
    wrong = BGCLError(f"{path} does not fit {ABOUT}: it is missing, was changed, or is of another run.")
    if not path.is_file():
        raise wrong
    with one_line(path):
        text = path.read_bytes().decode("utf-8")
        recipe = Recipe.from_json(text, str(path))
    if sha256(text) != expected:
        raise wrong
    return recipe


def _read_tensors(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The tensors of the network and of the training, and the checksums in their file."""
    with one_line(path):
        tensors, checks = read_tensor_file(path)
        parts: dict[str, dict[str, Tensor]] = {"network": {}, "training": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition(".")
            if part not in parts:
                raise BGCLError(f"{path} has an unknown tensor '{key}'. It is not a model of bgcl.")
            parts[part][name] = tensor
        if not isinstance(checks, dict) or checks.get("tensors") != checksum(tensors):
            raise ValueError(WRONG)
        return parts, checks


def _epoch(path: Path, training: dict[str, Tensor]) -> int | None:
    """The number of finished epochs; None if the state of the training was not saved."""
    if not training:
        return None
    with one_line(path):
        epoch = int(training["epoch"].item())
        if epoch < 1:
            raise ValueError(f"its number of epochs is {epoch}")
        return epoch


def _read_history(path: Path, epochs: int | None) -> tuple[list[Record], bytes]:
    """The first epochs of the history, or all, and their text. A run that was killed may have begun another line."""
    with one_line(path):
        lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        lines = lines if epochs is None else lines[:epochs]
        records = []
        for number, line in enumerate(lines, 1):
            try:
                records.append(checked_json(Record, line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            if records[-1].epoch != number:
                raise ValueError(f"line {number} has epoch {records[-1].epoch}")
        return records, b"".join(lines)
