"""Encoders from PyTorch Geometric: its convolutions, chosen by name, or any module of the user.

Both get the masked features `x` `(N, F)`, the connections `edge_index` `(2, E)` from source to target, and their keep
values `edge_weight` `(E,)`. The connections are all of the graph's, including a self-connection for each node, also if
their keep value is 0.
"""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeGuard

import torch
import torch_geometric.nn
from torch import Tensor, nn

from bgcl.augmentation.views import LayerMask
from bgcl.errors import BGCLError, nearest
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.model.encoders.base import Activation, Encoder, Jump, LayeredEncoder, Norm, kept_connections, masked_dense
from bgcl.model.seeding import seeded_from

_CALL = ("x", "edge_index", "edge_weight")
_WIDTHS = ("in_channels", "out_channels")
_PATH = ([0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 2, 1, 2])  # three nodes in a row with self-connections, for a trial call


class PyGConvolution(nn.Module):
    """One layer: a convolution of PyTorch Geometric on masked features and connections, before the activation."""

    def __init__(self, name: str, width_in: int, width_out: int) -> None:
        super().__init__()
        self.convolution = make_convolution(name, width_in, width_out)

    def reset_parameters(self, generator: torch.Generator) -> None:
        reset_from(generator, self.convolution)

    def weight_matrices(self) -> list[Tensor]:
        return matrices(self.convolution)

    def forward(self, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
        return call(self.convolution, graph, features, mask)


class PyGEncoder(LayeredEncoder):
    """Convolutions of PyTorch Geometric, each followed by normalization and activation. Shapes: result `(N, d)`.

    Args:
        widths: width of the input, then the output width of each layer.
        activation: activation function.
        norm: normalization before the activation.
        skip: add the input of a layer to its output, from the second layer on.
        jump: which layers are handed on.
        convolution: name of a class in `torch_geometric.nn`, such as "GraphConv", "GCNConv" or "TAGConv".

    Raises:
        BGCLError: no such class, or one that needs more than the two widths or takes no weights of connections.
    """

    def __init__(
        self, widths: Sequence[int], *, activation: Activation = "relu", norm: Norm = "none", skip: bool = False,
        jump: Jump = "last", convolution: str = "GraphConv",
    ) -> None:  # fmt: skip
        layers = [PyGConvolution(convolution, *pair) for pair in pairwise(widths)]
        super().__init__(layers, widths, activation=activation, norm=norm, skip=skip, jump=jump)


class ModuleEncoder(Encoder):
    """A module of the user that is called as `module(x, edge_index, edge_weight)` and returns `(N, d)`.

    The input is the only masked layer. `reset_parameters` calls the module's own `reset_parameters`, or those of its
    parts; what has none keeps its weights.

    Args:
        module: the module. Its output width is found by a trial call on a graph of three nodes.
        width_in: number of attributes of a node.

    Raises:
        BGCLError: the trial call failed, or did not return one vector per node.
    """

    def __init__(self, module: nn.Module, width_in: int) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise BGCLError(f"An encoder must be an instance of torch.nn.Module. Got {module!r}.")
        cached = [name or type(module).__name__ for name, part in module.named_modules() if _is_cached(part)]
        if cached:
            names = ", ".join(cached)
            raise BGCLError(
                f"An encoder must not cache its connections, which masks change. Set cached=False in {names}."
            )
        self.width = trial_call(module, width_in).shape[1]
        self.module = module

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize the module's parameters from one generator."""
        reset_from(generator, self.module)

    def weight_matrices(self) -> list[list[Tensor]]:
        """All parameters of the module with two axes or more."""
        return [matrices(self.module)]

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        return call(self.module, graph, graph.features, LayerMask() if masks is None else masks[0])


def call(module: nn.Module, graph: PreparedGraph, features: Features, mask: LayerMask) -> Tensor:
    """`module(x, edge_index, edge_weight)` on masked features and connections, `(N, d)`."""
    x = masked_dense(features, mask)
    keep = kept_connections(graph, mask, x)
    if keep.shape[1] > 1:
        raise BGCLError(
            f"Modules of PyTorch Geometric take one weight per connection, but the mask has {keep.shape[1]} blocks of "
            "input features. Leave out 'in ... blocks' from the mask of connections."
        )
    edge_weight = keep[:, 0]
    if edge_weight.requires_grad:
        # PyTorch Geometric's normalization has the gradient NaN where all connections of a node are dropped.
        edge_weight.register_hook(_without_nan)  # type: ignore[no-untyped-call]
    edge_index = torch.stack([graph.connections.column, graph.connections.row])  # source, target
    result: Tensor = module(x, edge_index, edge_weight)
    return result


def _without_nan(gradient: Tensor) -> Tensor:
    return torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)


def make_convolution(name: str, width_in: int, width_out: int) -> nn.Module:
    """A convolution of `torch_geometric.nn` that takes weights of connections.

    Args:
        name: name of the class.
        width_in: width of its input.
        width_out: width of its output.

    Returns:
        The convolution, from `(N, width_in)` to `(N, width_out)`.

    Raises:
        BGCLError: no class of this name fits. The message says why, and which names are similar.

    >>> make_convolution("GraphConv", 8, 4)
    GraphConv(8, 4)
    """
    known = getattr(torch_geometric.nn, name, None)
    if not _is_module(known):
        raise BGCLError(f"torch_geometric.nn has no convolution '{name}'. {nearest(name, convolution_names())}")
    if reason := _misfit(known):
        raise BGCLError(f"{name} cannot be the layer of an encoder: {reason}. {nearest(name, convolution_names())}")
    with seeded_from(0):
        convolution = known(width_in, width_out)
    if (width := trial_call(convolution, width_in).shape[1]) != width_out:
        reason = f"{name}({width_in}, {width_out}) returns the width {width}, not {width_out}"
        raise BGCLError(f"{name} cannot be the layer of an encoder: {reason}. {nearest(name, convolution_names())}")
    return convolution


def convolution_names() -> list[str]:
    """The names of all convolutions in `torch_geometric.nn` that can be layers."""
    found = {name: getattr(torch_geometric.nn, name) for name in dir(torch_geometric.nn)}
    fitting = {name: known for name, known in found.items() if _is_module(known) and not _misfit(known)}
    with seeded_from(0):
        return [name for name, known in fitting.items() if trial_call(known(3, 2), 3).shape[1] == 2]


def _is_module(known: object) -> TypeGuard[type[nn.Module]]:
    return isinstance(known, type) and issubclass(known, nn.Module)


def _misfit(known: type[nn.Module]) -> str | None:
    """Why a class cannot be made from two widths, or called with weights of connections; None if it can."""
    takes = list(inspect.signature(known.forward).parameters)[1:]
    if tuple(takes[:3]) != _CALL:
        return f"its forward takes {', '.join(takes[:4]) or 'nothing'} and not {', '.join(_CALL)}"
    made = list(inspect.signature(known).parameters.values())
    needed = [each.name for each in made if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    if tuple(each.name for each in made[:2]) != _WIDTHS or needed != list(_WIDTHS):
        return f"it must be made with {' and '.join(_WIDTHS)} only, but needs {', '.join(needed) or 'neither'}"
    return None


def trial_call(module: nn.Module, width_in: int) -> Tensor:
    """Call a module on a graph of three nodes, and return the `(3, d)` result.

    Raises:
        BGCLError: the call failed, or returned something else. The message has the call and its shapes.
    """
    like = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))
    edge_index = torch.tensor(_PATH, device=like.device)
    x, edge_weight = like.new_ones(3, width_in), like.new_ones(edge_index.shape[1])
    arguments = dict(zip(_CALL, (x, edge_index, edge_weight), strict=True))
    shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in arguments.items())
    called = f"{type(module).__name__} cannot be an encoder: called as module({', '.join(_CALL)}) with {shapes}, it"
    was_training = {part: part.training for part in module.modules()}
    try:
        with torch.no_grad(), seeded_from(0):  # evaluation and no random numbers: the module stays as it was
            result = module.eval()(*arguments.values())
    except Exception as error:
        raise BGCLError(f"{called} raised {type(error).__name__}: {' '.join(str(error).split())}") from error
    finally:
        for part, training in was_training.items():
            part.training = training
    if not isinstance(result, Tensor):
        raise BGCLError(f"{called} returned a {type(result).__name__} and not a tensor of shape (3, d).")
    if result.ndim != 2 or len(result) != 3:
        raise BGCLError(f"{called} returned a tensor of shape {tuple(result.shape)} and not (3, d).")
    return result


def reset_from(generator: torch.Generator, module: nn.Module) -> None:
    """Initialize a module that takes its random numbers from torch's global generator."""
    with seeded_from(int(torch.randint(2**62, (), generator=generator, device=generator.device))):
        _reset(module)


def _reset(module: nn.Module) -> None:
    """Call `reset_parameters` of a module, or of the outermost parts that have it."""
    if callable(getattr(module, "reset_parameters", None)):
        module.reset_parameters()  # type: ignore[operator]
    else:
        for part in module.children():
            _reset(part)


def matrices(module: nn.Module) -> list[Tensor]:
    """All parameters with two axes or more."""
    return [parameter for parameter in module.parameters() if parameter.ndim >= 2]


def _is_cached(part: nn.Module) -> bool:
    return getattr(part, "cached", False) is True
