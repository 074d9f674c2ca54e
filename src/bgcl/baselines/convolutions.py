"""The GCN encoder for baselines: any module may follow a layer, and torch's global generator initializes it."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import init

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, PreparedGraph
from bgcl.model.encoders.gcn import GCNEncoder


class Convolutions(GCNEncoder):
    """Graph convolutions, each followed by its own module. The result has the shape `(N, d)`.

    Args:
        widths: width of the input, then the output width of each layer.
        after: the module that follows each layer.
    """

    def __init__(self, widths: Sequence[int], after: Sequence[nn.Module]) -> None:
        super().__init__(widths)  # the activation of GCNEncoder is not used
        self.after = nn.ModuleList(after)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Xavier initialization. PyTorch Geometric's models call it without a generator."""
        for layer in self.layers:
            init.xavier_uniform_(layer.weight, generator=generator)  # type: ignore[arg-type]
            init.zeros_(layer.bias)  # type: ignore[arg-type]
        for module in self.after.modules():
            if isinstance(module, nn.PReLU | nn.BatchNorm1d):
                module.reset_parameters()

    def forward(self, graph: PreparedGraph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        features: Features = graph.features
        for i, (layer, after) in enumerate(zip(self.layers, self.after, strict=True)):
            features = after(layer(graph, features, LayerMask() if masks is None else masks[i]))
        assert isinstance(features, Tensor)
        return features
