"""From the files of a run to a network, and to a training that goes on. Nothing is taken over before it is checked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bgcl.checkpoint.contents import ABOUT, FREE, RECIPE, TENSORS, SavedRun
from bgcl.checkpoint.reading import read
from bgcl.checkpoint.writing import put_in_place, write_about, write_history
from bgcl.data.facts import GraphFacts
from bgcl.errors import BGCLError, one_line
from bgcl.model.network import Network
from bgcl.model.training import Record, Training
from bgcl.settings import Settings

SPARE = 1 << 20  # numbers that a network may use besides its saved ones, such as those of a trial call
MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # what Adam keeps of a parameter


class _TooLargeError(Exception):
    """A network needs much more memory than the tensors that were saved for it."""


class _Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Count the numbers of all new tensors, and raise an error before they are more than allowed."""

    def __init__(self, allowed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left = allowed

    def __torch_dispatch__(  # type: ignore[no-untyped-def]
        self, func, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        shape = args[0] if args else ()
        if isinstance(shape, list | tuple) and all(isinstance(side, int) for side in shape):
            self.left -= math.prod(shape)
            if self.left < 0:
                raise _TooLargeError
        return func(*args, **(kwargs or {}))


@contextmanager
def _bounded(saved: SavedRun, folder: Path) -> Iterator[None]:
    """Let only as much memory be used as the tensors of a run need. Their file may be from somebody else."""
    numbers = sum(tensor.numel() for tensor in saved.network.values())
    try:
        with _Bounded(2 * numbers + SPARE):
            yield
    except (_TooLargeError, RuntimeError, OverflowError, TypeError):
        raise BGCLError(
            f"{folder / TENSORS} does not fit {ABOUT}: settings and graph describe a larger network than the one whose "
            "tensors were saved."
        ) from None


def network_of(saved: SavedRun, settings: Settings, folder: Path, **modules: Any) -> Network:
    """The network of a run, with the modules that the user gave."""
    dense = "scaling.knots" in saved.network
    graph = saved.graph
    with _bounded(saved, folder):
        network = Network(
            graph.num_attributes, settings, nodes=graph.nodes, dense=dense, relations=len(graph.relations), **modules
        )
    load_network(network, saved, folder)
    return network


def load_network(network: Network, saved: SavedRun, folder: Path) -> None:
    """Copy the saved tensors into a network, after checking their names, their shapes and that they are finite."""
    expected = {name: _kind(tensor) for name, tensor in network.state_dict().items()}
    found = {name: _kind(tensor) for name, tensor in saved.network.items()}
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


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"


def resume(training: Training, settings: Settings, graph: GraphFacts, folder: Path | None) -> list[Record]:
    """Bring a training to where the run in a folder stopped, and return the history of that run."""
    if folder is None:
        raise BGCLError("To resume, name the folder of the run with 'out'.")
    saved = read(folder)
    if not saved.training:
        raise BGCLError(f"{folder} has a model that was saved without the state of its training: it cannot resume.")
    changed = {name for name, value in settings if name not in FREE and value != getattr(saved.settings, name)}
    if changed:
        raise BGCLError(f"{folder} was trained with other settings ({', '.join(sorted(changed))}): it cannot resume.")
    check_same_graph(saved.graph, graph)
    load_network(training.network, saved, folder)
    with one_line(folder / TENSORS):
        _check_state(training, saved.training)
        training.restore(saved.training)
        if training.watch is not None:
            training.recognized += [_recognized(record) for record in saved.history]
    if (settings.epochs or 0) < training.epoch:
        raise BGCLError(f"{folder} is at epoch {training.epoch} already, beyond the {settings.epochs} asked for.")
    put_in_place(folder)
    # The recipe keeps its words: in those of another version, model.toml would not fit it until it is written too.
    text = None if saved.recipe is None else (folder / RECIPE).read_text("utf-8")
    write_about(folder, settings, graph, text)
    write_history(folder, saved.history)
    return saved.history


def _recognized(record: Record) -> float:
    if record.recognized is None:
        raise ValueError(f"epoch {record.epoch} of the history does not say how well nodes are recognized")
    return record.recognized


def _check_state(training: Training, state: Mapping[str, Tensor]) -> None:
    """Check that the state of a training has the moments of its parameters, in the right shapes."""
    known = {"generator", "epoch"}
    for name, parameters in (("weights", training.theta_w), ("rates", training.theta_a)):
        for i, parameter in enumerate(parameters):
            found = {key for key in MOMENTS if f"{name}.{i}.{key}" in state}
            if found and found != MOMENTS:
                raise ValueError(f"'{name}.{i}.{min(MOMENTS - found)}' is missing")
            for key in found:
                tensor, shape = state[f"{name}.{i}.{key}"], () if key == "step" else parameter.shape
                if tensor.dtype != torch.float32 or tensor.shape != shape:
                    raise ValueError(f"'{name}.{i}.{key}' is {_kind(tensor)}, not {tuple(shape)} of float32")
                known.add(f"{name}.{i}.{key}")
    if unknown := state.keys() - known:
        raise ValueError(f"'{min(unknown)}' is unknown")
    if not any(key.startswith("weights.") for key in known):
        raise ValueError("the state of the optimizer is missing")


def check_same_graph(trained: GraphFacts, given: GraphFacts) -> None:
    """Raise an error if a graph is not the one that a run was trained on."""
    if trained.fingerprint != given.fingerprint:
        raise BGCLError(
            f"The run was trained on another graph ({trained.nodes} nodes, {trained.edges} edges, "
            f"{trained.num_attributes} attributes), not on this one ({given.nodes}, {given.edges}, "
            f"{given.num_attributes})."
        )
