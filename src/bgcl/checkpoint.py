"""A run's folder: `model.toml` says what it is, `model.safetensors` holds the tensors, `history.jsonl` what happened,
and `graph.json` how its graph was read, if it was read from tables.

The tensors of the network and of the training under way are one file, so that they cannot disagree after a crash.
"""

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch_geometric.data import Data

from bgcl import __version__
from bgcl.data.recipe import Recipe
from bgcl.errors import BGCLError
from bgcl.files import whole, write_text
from bgcl.settings import Settings, make_settings

FORMAT = 2
ABOUT, TENSORS, HISTORY, RECIPE = "model.toml", "model.safetensors", "history.jsonl", "graph.json"


@dataclass(frozen=True)
class GraphFacts:
    """What a run knows of the graph that it was trained on."""

    name: str  # a data set's name or a file, so that a command can find it again; may be empty
    nodes: int
    edges: int
    attributes: int
    fingerprint: str

    @classmethod
    def of(cls, data: Data, name: str = "") -> "GraphFacts":
        """The facts of a clean graph."""
        sha = hashlib.sha256(data.edge_index.cpu().numpy().tobytes())
        parts = (
            (data.x,)
            if data.x.layout == torch.strided
            else (data.x.crow_indices(), data.x.col_indices(), data.x.values())
        )
        for part in parts:
            sha.update(part.cpu().numpy().tobytes())
        return cls(name, data.num_nodes, data.num_edges // 2, data.x.shape[1], sha.hexdigest())


@dataclass(frozen=True)
class Saved:
    """A run as it was read."""

    settings: Settings
    graph: GraphFacts
    network: dict[str, Tensor]
    training: dict[str, Tensor]  # empty if only the model was saved
    history: list[dict[str, Any]]
    recipe: Recipe | None  # how the graph was read, if from tables


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run of one epoch or more."""
    return all((Path(folder) / name).is_file() for name in (ABOUT, TENSORS))


def begin(folder: Path, settings: Settings, graph: GraphFacts, recipe: Recipe | None = None) -> None:
    """Make room for a new run, in the place of one that may be there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TENSORS).unlink(missing_ok=True)  # first: tensors must never stand beside the settings of another run
    write_about(folder, settings, graph)
    write_recipe(folder, recipe)
    write_history(folder, [])


def write_about(folder: Path, settings: Settings, graph: GraphFacts) -> None:
    """`model.toml`: what the run is."""
    about = {
        "format": FORMAT,
        "bgcl": __version__,
        "torch": torch.__version__,
        "graph": vars(graph),
        "settings": settings.model_dump(mode="json", exclude_none=True),
    }
    write_text(folder / ABOUT, tomli_w.dumps(about))


def write_recipe(folder: Path, recipe: Recipe | None) -> None:
    """`graph.json`, or none for a graph that was not read from tables."""
    if recipe is None:
        (folder / RECIPE).unlink(missing_ok=True)
    else:
        write_text(folder / RECIPE, recipe.to_json())


def write_tensors(folder: Path, network: dict[str, Tensor], training: dict[str, Tensor] | None = None) -> None:
    """The network's tensors and, for a run that may be resumed, the training's."""
    tensors = {f"network.{name}": tensor for name, tensor in network.items()}
    tensors |= {f"training.{name}": tensor for name, tensor in (training or {}).items()}
    with whole(folder / TENSORS) as part:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, part)
        except SafetensorError as error:  # a full disk, which safetensors does not tell as an OSError
            raise BGCLError(
                f"Cannot write {folder / TENSORS}: {error}. Make room, or choose another folder."
            ) from error


def write_history(folder: Path, history: Iterable[dict[str, Any]]) -> None:
    write_text(folder / HISTORY, "".join(json.dumps(record) + "\n" for record in history))


def append_history(folder: Path, record: dict[str, Any]) -> None:
    with (folder / HISTORY).open("a", encoding="utf-8") as history:
        history.write(json.dumps(record) + "\n")


def read(folder: str | os.PathLike[str]) -> Saved:
    """A run's folder, each part checked; errors say which file is wrong."""
    folder = Path(folder)
    if not (folder / ABOUT).is_file():
        raise BGCLError(f"{folder} is not a run: it has no {ABOUT}. Make one with 'bgcl train GRAPH --out {folder}'.")
    settings, graph = _read_about(folder / ABOUT)
    tensors = _read_tensors(folder / TENSORS)
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "training": {}}
    for key, tensor in tensors.items():
        part, _, name = key.partition(".")
        if part not in parts:
            raise BGCLError(f"{folder / TENSORS} holds an unknown tensor '{key}'. It is not a model of this program.")
        parts[part][name] = tensor
    history = _read_history(folder / HISTORY)
    if "epoch" in parts["training"]:
        history = history[: int(parts["training"]["epoch"])]
    return Saved(settings, graph, parts["network"], parts["training"], history, _read_recipe(folder / RECIPE))


def _read_recipe(path: Path) -> Recipe | None:
    if not path.is_file():
        return None
    try:
        return Recipe.from_json(path.read_text("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise BGCLError(f"{path} is damaged ({error}). Train again, or restore the file.") from error


def _read_about(path: Path) -> tuple[Settings, GraphFacts]:
    try:
        about = tomllib.loads(path.read_text("utf-8"))
        if about["format"] != FORMAT:
            raise BGCLError(f"{path} has format {about['format']}; this version reads format {FORMAT}.")
        facts = about["graph"]
        nodes, edges, attributes = (int(facts[name]) for name in ("nodes", "edges", "attributes"))
        graph = GraphFacts(str(facts["name"]), nodes, edges, attributes, str(facts["fingerprint"]))
        return make_settings(None, **about["settings"]), graph
    except BGCLError:
        raise
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise BGCLError(f"{path} is damaged ({error}). Train again, or restore the file.") from error


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise BGCLError(f"{path} is missing: no epoch of this run was finished. Train again.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise BGCLError(f"{path} is damaged ({error}). Train again, or restore the file.") from error


def _read_history(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    history = []
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            history.append(json.loads(line))
        except json.JSONDecodeError:
            break  # the last line of a run that was killed while it wrote
    return history
