"""GRACE's projection head, between the embeddings and the contrastive loss."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class ProjectionHead(nn.Module):
    """Linear, ELU, Linear. Shapes: `(N, d)` to `(N, d)`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Xavier initialization, from one generator."""
        for linear in (self.first, self.second):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, embeddings: Tensor) -> Tensor:
        projected: Tensor = self.second(F.elu(self.first(embeddings)))
        return projected
