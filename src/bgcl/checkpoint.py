"""The files in the folder of a run.

- `model.toml`: settings, graph and versions;
- `model.safetensors`: the tensors of the network and of the training, in one file so that they always fit together;
- `history.jsonl`: one line for each epoch;
- `graph.json`: how the graph was read, if it was read from tables.
"""

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

from bgcl import __version__
from bgcl.data.facts import GraphFacts
from bgcl.data.recipe import Recipe
from bgcl.errors import BGCLError
from bgcl.files import atomic_write, write_text
from bgcl.model.network import Network
from bgcl.model.training import Record, Training
from bgcl.settings import GROUPS, Settings

FORMAT = 3
ABOUT, TENSORS, HISTORY, RECIPE = "model.toml", "model.safetensors", "history.jsonl", "graph.json"


@dataclass(frozen=True)
class SavedRun:
    """The contents of a run's folder."""

    settings: Settings
    graph: GraphFacts
    network: dict[str, Tensor]
    training: dict[str, Tensor]  # empty if only the model was saved
    history: list[Record]
    recipe: Recipe | None  # how the graph was read, if from tables


def is_run(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder contains a run of one epoch or more."""
    return all((Path(folder) / name).is_file() for name in (ABOUT, TENSORS))


def begin(folder: Path, settings: Settings, graph: GraphFacts, recipe: Recipe | None = None) -> None:
    """Start a new run in a folder. An older run there is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TENSORS).unlink(missing_ok=True)  # first: no tensors beside the settings of another run
    write_about(folder, settings, graph)
    write_recipe(folder, recipe)
    write_history(folder, [])


def write_about(folder: Path, settings: Settings, graph: GraphFacts) -> None:
    """Write `model.toml`, without the settings that are None, because TOML has no null."""
    values = settings.to_json()
    about = {
        "format": FORMAT,
        "bgcl": __version__,
        "torch": torch.__version__,
        "graph": vars(graph),
        "settings": {
            group: {name: values[name] for name in kind.model_fields if name in values}
            for group, kind in GROUPS.items()
        },
    }
    write_text(folder / ABOUT, tomli_w.dumps(about))


def write_recipe(folder: Path, recipe: Recipe | None) -> None:
    """Write `graph.json`, or remove it if the graph was not read from tables."""
    if recipe is None:
        (folder / RECIPE).unlink(missing_ok=True)
    else:
        write_text(folder / RECIPE, recipe.to_json())


def write_tensors(folder: Path, network: dict[str, Tensor], training: dict[str, Tensor] | None = None) -> None:
    """Write the tensors of the network and, if the run can resume, the tensors of the training."""
    tensors = {f"network.{name}": tensor for name, tensor in network.items()}
    tensors |= {f"training.{name}": tensor for name, tensor in (training or {}).items()}
    with atomic_write(folder / TENSORS) as part:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, part)
        except SafetensorError as error:  # a full disk, which safetensors does not report as an OSError
            raise BGCLError(
                f"Cannot write {folder / TENSORS}: {error}. Free some space, or choose another folder."
            ) from error


def write_history(folder: Path, history: Iterable[Record]) -> None:
    """Write `history.jsonl` with all epochs."""
    write_text(folder / HISTORY, "".join(_line(record) for record in history))


def append_history(folder: Path, record: Record) -> None:
    """Add one epoch to `history.jsonl`."""
    with (folder / HISTORY).open("a", encoding="utf-8") as history:
        history.write(_line(record))


def _line(record: Record) -> str:
    return json.dumps(record.to_dict()) + "\n"


def save_epoch(folder: Path, training: Training, record: Record, graph: GraphFacts, recipe: Recipe | None) -> None:
    """Save the epoch that a training has just finished."""
    if record.epoch == 1:  # not before: an older run in the folder stays until there is an epoch to replace it
        begin(folder, training.settings, graph, recipe)
    # History first, then tensors: `read` cuts off what follows the last whole epoch.
    append_history(folder, record)
    write_tensors(folder, training.network.state_dict(), training.state())


def read(folder: str | os.PathLike[str]) -> SavedRun:
    """Read and check every file of a run's folder. An error names the file that is wrong."""
    folder = Path(folder)
    if not (folder / ABOUT).is_file():
        raise BGCLError(f"{folder} is not a run: it has no {ABOUT}. Make one with 'bgcl train GRAPH --out {folder}'.")
    settings, graph = _read_about(folder / ABOUT)
    tensors = _read_tensors(folder / TENSORS)
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "training": {}}
    for key, tensor in tensors.items():
        part, _, name = key.partition(".")
        if part not in parts:
            raise BGCLError(f"{folder / TENSORS} has an unknown tensor '{key}'. It is not a model of bgcl.")
        parts[part][name] = tensor
    history = _read_history(folder / HISTORY)
    if "epoch" in parts["training"]:
        history = history[: int(parts["training"]["epoch"])]
    return SavedRun(settings, graph, parts["network"], parts["training"], history, _read_recipe(folder / RECIPE))


def load_network(network: Network, saved: SavedRun, folder: Path) -> None:
    """Copy the saved tensors into a network, after checking their names, their shapes and that they are finite."""
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in saved.network.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise BGCLError(
                f"{folder / TENSORS} does not fit {ABOUT}: '{name}' should be {expected.get(name)}, but is "
                f"{found.get(name)}."
            )
    for name, tensor in saved.network.items():
        if not torch.isfinite(tensor).all():
            raise BGCLError(f"{folder / TENSORS} is damaged: '{name}' is not finite.")
    network.load_state_dict(saved.network)


def resume(training: Training, settings: Settings, graph: GraphFacts, folder: Path | None) -> list[Record]:
    """Bring a training to where the run in a folder stopped, and return the history of that run."""
    if folder is None:
        raise BGCLError("To resume, name the folder of the run with 'out'.")
    saved = read(folder)
    if not saved.training:
        raise BGCLError(f"{folder} has a model that was saved without the state of its training: it cannot resume.")
    free = ("epochs", "memory_budget", "draw_scale")  # these do not change the epochs that are done
    changed = {name for name, value in settings if name not in free and value != getattr(saved.settings, name)}
    if changed:
        raise BGCLError(f"{folder} was trained with other settings ({', '.join(sorted(changed))}): it cannot resume.")
    check_same_graph(saved.graph, graph)
    load_network(training.network, saved, folder)
    training.restore(saved.training)
    if settings.epochs < training.epoch:
        raise BGCLError(f"{folder} is at epoch {training.epoch} already, beyond the {settings.epochs} asked for.")
    write_about(folder, settings, graph)
    write_history(folder, saved.history)
    return saved.history


def check_same_graph(trained: GraphFacts, given: GraphFacts) -> None:
    """Raise an error if a graph is not the one that a run was trained on."""
    if trained.fingerprint != given.fingerprint:
        raise BGCLError(
            f"The run was trained on another graph ({trained.nodes} nodes, {trained.edges} edges, "
            f"{trained.num_attributes} attributes), not on this one ({given.nodes}, {given.edges}, "
            f"{given.num_attributes})."
        )


def _damaged(path: Path, error: Exception) -> BGCLError:
    return BGCLError(f"{path} is damaged ({error}). Train again, or restore the file.")


def _read_recipe(path: Path) -> Recipe | None:
    if not path.is_file():
        return None
    try:
        return Recipe.from_json(path.read_text("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise _damaged(path, error) from error


def _read_about(path: Path) -> tuple[Settings, GraphFacts]:
    try:
        about = tomllib.loads(path.read_text("utf-8"))
        if about["format"] != FORMAT:
            raise BGCLError(
                f"{path} has format {about['format']}, and this version of bgcl reads format {FORMAT}. Train again."
            )
        facts = about["graph"]
        nodes, edges, attributes = (int(facts[name]) for name in ("nodes", "edges", "num_attributes"))
        graph = GraphFacts(str(facts["name"]), nodes, edges, attributes, str(facts["fingerprint"]))
        return _read_settings(about["settings"]), graph
    except BGCLError:
        raise
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error


def _read_settings(groups: dict[str, dict[str, Any]]) -> Settings:
    """The settings of all groups. A missing one is None and never a default, so `Settings` refuses most of them."""
    values: dict[str, Any] = dict.fromkeys(Settings.model_fields)
    for group in groups.values():
        values |= group
    return Settings(**values)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise BGCLError(f"{path} is missing: no epoch of this run was finished. Train again.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _read_history(path: Path) -> list[Record]:
    if not path.is_file():
        return []
    history = []
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            history.append(Record.from_dict(json.loads(line)))
        except json.JSONDecodeError:
            break  # the run was killed while it wrote the last line
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(path, error) from error
    return history
