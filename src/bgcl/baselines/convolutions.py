"""The project's encoder as the baselines need it: another activation behind each layer, and a reset of its own."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import init

from bgcl.augmentation.views import LayerMask
from bgcl.graph.prepared import Features, Graph
from bgcl.model.encoders.gcn import Encoder


class Convolutions(Encoder):
    """Graph convolutions, each followed by a module of its own. Shapes: result `(N, d)`."""

    def __init__(self, widths: Sequence[int], behind: Sequence[nn.Module]) -> None:
        super().__init__(widths)  # its one activation for all layers is not used
        self.behind = nn.ModuleList(behind)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier's initialisation, from torch's own generator: PyTorch Geometric's models call this."""
        for layer in self.layers:
            init.xavier_uniform_(layer.weight)  # type: ignore[arg-type]
            init.zeros_(layer.bias)  # type: ignore[arg-type]
        for module in self.behind.modules():
            if isinstance(module, nn.PReLU | nn.BatchNorm1d):
                module.reset_parameters()

    def forward(self, graph: Graph, masks: Sequence[LayerMask] | None = None) -> Tensor:
        features: Features = graph.features
        for i, (layer, behind) in enumerate(zip(self.layers, self.behind, strict=True)):
            features = behind(layer(graph, features, LayerMask() if masks is None else masks[i]))
        assert isinstance(features, Tensor)
        return features


def width_of(graph: Graph) -> int:
    """The number of attributes."""
    return graph.features.shape[1] if isinstance(graph.features, Tensor) else graph.features.width
