"""Write a run: a new one as a whole, and then one epoch after another."""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import tomli_w
import torch
from torch import Tensor

from bgcl import __version__
from bgcl.checkpoint.contents import (
    ABOUT,
    BEGUN,
    FITTED,
    FORMAT,
    HISTORY,
    MADE,
    RECIPE,
    TENSORS,
    WHOLE,
    checks_of,
    is_fitted,
    sha256,
    with_checksum,
)
from bgcl.checkpoint.tensors import read_checks, write_tensor_file
from bgcl.data.facts import GraphFacts
from bgcl.data.recipe import Recipe
from bgcl.errors import CannotWriteError
from bgcl.files import Spare, sole_use, sync, write_text
from bgcl.model.training import Record, Training
from bgcl.settings import GROUPS, Settings


def save(
    folder: Path, settings: Settings, graph: GraphFacts, recipe: Recipe | None, history: Iterable[Record],
    network: dict[str, Tensor],
) -> None:  # fmt: skip
    """Save a model without the state of its training."""
    with sole_use(folder):
        _replace_run(folder, settings, graph, recipe, history, network)


def save_epoch(
    folder: Path, training: Training, record: Record, graph: GraphFacts, recipe: Recipe | None,
    spare: Spare | None = None,
) -> None:  # fmt: skip
    """Save the epoch that a training has just finished. All epochs of a training may share a spare."""
    network, state = training.network.state_dict(), training.state()
    if record.epoch == 1:  # not before: an older run in the folder stays until there is an epoch to replace it
        _replace_run(folder, training.settings, graph, recipe, [record], network, state)
        return
    # History first, then tensors: `read` cuts off what follows the last whole epoch.
    append_history(folder, record)
    write_tensors(folder, training.settings, graph, network, state, spare)


def _replace_run(
    folder: Path, settings: Settings, graph: GraphFacts, recipe: Recipe | None, history: Iterable[Record],
    network: dict[str, Tensor], training: dict[str, Tensor] | None = None,
) -> None:  # fmt: skip
    """Write a new run. An older one in the folder stays until all files of the new one are on the disk."""
    begun = folder / BEGUN
    try:
        put_in_place(folder)
        begun.mkdir()
        write_about(begun, settings, graph, None if recipe is None else recipe.to_json())
        write_history(begun, history)
        write_fitted(begun, network)
        write_tensors(begun, settings, graph, network, training)
        begun.rename(folder / WHOLE)
        sync(folder)
        put_in_place(folder)
        for name in MADE:  # of the older run
            (folder / name).unlink(missing_ok=True)
        if recipe is None:  # of the older run; the new model.toml does not name it
            (folder / RECIPE).unlink(missing_ok=True)
    except OSError as error:
        raise CannotWriteError(f"Cannot write {folder}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)


def put_in_place(folder: Path) -> None:
    """Let the files of a new run that is whole replace those of the older run, and remove a new run that is not."""
    shutil.rmtree(folder / BEGUN, ignore_errors=True)
    whole = folder / WHOLE
    if whole.is_dir():
        for path in sorted(whole.iterdir()):
            path.replace(folder / path.name)
        sync(folder)
        whole.rmdir()
        sync(folder)  # before files are written over that had a name in it


def write_about(folder: Path, settings: Settings, graph: GraphFacts, text: str | None) -> None:
    """Write `model.toml`, without the settings that are None, because TOML has no null; and `text` as `graph.json`."""
    values = settings.to_json()
    about = {
        "format": FORMAT,
        "bgcl": __version__,
        "torch": torch.__version__,
        "recipe": "" if text is None else sha256(text),
        "graph": vars(graph),
        "settings": {
            group: {name: values[name] for name in kind.model_fields if name in values}
            for group, kind in GROUPS.items()
        },
    }
    if text is None:
        (folder / RECIPE).unlink(missing_ok=True)
    else:
        write_text(folder / RECIPE, text)
    write_text(folder / ABOUT, with_checksum(tomli_w.dumps(about)))


def write_fitted(folder: Path, network: dict[str, Tensor]) -> None:
    """Write the tensors that were found before the training, once for a run."""
    tensors = {f"network.{name}": tensor for name, tensor in network.items() if is_fitted(name)}
    write_tensor_file(folder / FITTED, tensors, {})


def write_tensors(
    folder: Path, settings: Settings, graph: GraphFacts, network: dict[str, Tensor],
    training: dict[str, Tensor] | None = None, spare: Spare | None = None,
) -> None:  # fmt: skip
    """Write the tensors of the network and, if the run can resume, the tensors of the training.

    They belong to the settings, to the graph, and to the history and the fitted tensors that were written before.
    """
    tensors = {f"network.{name}": tensor for name, tensor in network.items() if not is_fitted(name)}
    tensors |= {f"training.{name}": tensor for name, tensor in (training or {}).items()}
    fitted = read_checks(folder / FITTED)["tensors"]
    checks = checks_of(settings, graph, (folder / HISTORY).read_bytes(), fitted)
    write_tensor_file(folder / TENSORS, tensors, checks, spare)


def write_history(folder: Path, history: Iterable[Record]) -> None:
    """Write `history.jsonl` with all epochs."""
    write_text(folder / HISTORY, "".join(_line(record) for record in history))


def append_history(folder: Path, record: Record) -> None:
    """Add one epoch to `history.jsonl`."""
    try:
        with (folder / HISTORY).open("a", encoding="utf-8") as history:
            history.write(_line(record))
            history.flush()
            os.fsync(history.fileno())
    except OSError as error:
        raise CannotWriteError(f"Cannot write {folder / HISTORY}: {error.strerror or error}.") from error


def _line(record: Record) -> str:
    return json.dumps(record.to_dict()) + "\n"
