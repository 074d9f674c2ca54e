"""The training of a model on a graph that is ready: from its first state or from a saved run, epoch by epoch.

Several processes that train together agree on settings and graph first. They have the network of the main process,
which alone reads and writes the run.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bgcl import __version__, checkpoint
from bgcl.data.recipe import Recipe
from bgcl.errors import BGCLError, SaidElsewhereError
from bgcl.files import Spare
from bgcl.graph.epoch_batches import EpochBatches
from bgcl.model.network import Network
from bgcl.model.training import Record, Training, TrainingError
from bgcl.processes.team import Team
from bgcl.ready_graph import ReadyGraph
from bgcl.ready_model import fit_graph, is_dense
from bgcl.settings import Settings

OWN = ("memory_budget",)  # settings that each process may have for itself


def prepare(ready: ReadyGraph, settings: Settings, modules: dict[str, Any]) -> tuple[Network, EpochBatches]:
    """The network before its first step, and the batches of a graph."""
    network = Network(
        ready.facts.num_attributes, settings, dense=is_dense(ready), relations=len(ready.facts.relations), **modules
    ).to(settings.device)
    ready.scaled = fit_graph(network, ready, torch.Generator(settings.device).manual_seed(settings.seed))
    return network, ready.batches(settings)


def check_team(team: Team, settings: Settings, network: Network) -> None:
    """Raise an error if so many processes cannot train with these settings."""
    if team.size == 1:
        return
    several = settings.batches_per_step or 1
    if team.size > several:
        raise BGCLError(
            f"There are {team.size} processes, but a step has {several} {'batch' if several == 1 else 'batches'} to "
            f"share among them: set batches_per_step = {team.size} or more, or start {several}."
        )
    for name, module in network.encoder.named_modules():
        if getattr(module, "track_running_stats", False):
            raise BGCLError(
                f"The module '{name}' of the encoder keeps running statistics, which would depend on who computes a "
                "batch: set track_running_stats=False, or train in one process."
            )


def agree(team: Team, settings: Settings, ready: ReadyGraph, batches: EpochBatches) -> None:
    """Raise an error in all processes if they do not agree about settings, graph, clusters or versions."""
    if team.size == 1:
        return
    values = {f"'{name}'": json.dumps(value) for name, value in settings.to_json().items() if name not in OWN}
    values |= {"the graph": ready.facts.fingerprint, "the clusters": _clusters(batches)}
    team.check_same(values | {"the version of bgcl": __version__, "the version of torch": torch.__version__})


def _clusters(batches: EpochBatches) -> str:
    """A digest of the clusters of batches: METIS finds others in another version."""
    sha = hashlib.sha256()
    for members in getattr(batches, "members", []):
        sha.update(members.cpu().numpy().tobytes() + b"/")
    return sha.hexdigest()


def begin(
    network: Network, batches: EpochBatches, settings: Settings, ready: ReadyGraph, team: Team, folder: Path | None,
    resume: bool,
) -> tuple[Training, list[Record]]:  # fmt: skip
    """A training before its next epoch, and the history of the run that it continues, if `resume`."""
    _take_over(network.state_dict(), team)
    training, history = Training(network, batches, settings, team), []
    if resume:
        with team.agreed():
            if team.is_main:
                history = checkpoint.resume(training, settings, ready.facts, folder)
        history = _as_main(training, history)
    return training, history


def _take_over(state: dict[str, Tensor], team: Team) -> None:
    """Give the tensors of a network the values of the main process."""
    _, found = team.from_main("", _sendable(state))
    if not team.is_main:
        for name, tensor in state.items():
            tensor.copy_(found[name])


def _as_main(training: Training, history: list[Record]) -> list[Record]:
    """Bring a training to where that of the main process is, and return its history."""
    team = training.team
    lines = json.dumps([record.to_dict() for record in history])
    lines, state = team.from_main(lines, _sendable(training.state()))
    _take_over(training.network.state_dict(), team)
    if team.is_main:
        return history
    training.restore(state)
    found = [Record.from_dict(values) for values in json.loads(lines)]
    if training.watch is not None:
        training.recognized += [record.recognized or 0.0 for record in found]
    return found


def _sendable(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state.items()}


def epochs(training: Training, folder: Path | None, ready: ReadyGraph, recipe: Recipe | None) -> Iterator[Record]:
    """Train, and yield the record of each epoch when the main process has saved it."""
    team = training.team
    with Spare() as spare:
        try:
            for record in training.run():
                with team.agreed():
                    if folder is not None and team.is_main:
                        checkpoint.save_epoch(folder, training, record, ready.facts, recipe, spare)
                yield record
        except TrainingError as error:  # it is the same in all processes
            if team.is_main:
                raise
            raise SaidElsewhereError(str(error)) from error
