r"""Densities by radial flows (Rezende and Mohamed, 2015): one for each class, all computed together.

A flow moves a vector z through L layers

    z' = z + b h(r) (z - c),    r = |z - c|,    h(r) = 1 / (a + r),

towards or away from a center c. With `a > 0` and `b > -a` a layer can be inverted, and the determinant of its Jacobian
is `(1 + b h)^(d-1) (1 + b h - b r h^2)`. The density of z is that of a standard normal at the end of the flow, times
the determinants of all layers.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class RadialLayer(nn.Module):
    """One layer of C flows. Shapes: `(C, N, d)` to `(C, N, d)`, and the log determinants `(C, N)`."""

    def __init__(self, flows: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = width**-0.5

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter((2 * torch.rand(*shape, generator=generator) - 1) * bound)

        self.center, self.raw_a, self.raw_b = uniform(flows, 1, width), uniform(flows, 1), uniform(flows, 1)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        a = F.softplus(self.raw_a)  # (C, 1)
        b = F.softplus(self.raw_b) - a  # greater than -a
        away = z - self.center  # (C, N, d)
        # A vector in the center has no direction, and its length no gradient.
        r = (away.square().sum(-1) + 1e-20).sqrt()  # (C, N)
        h = 1 / (a + r)
        determinant = (z.shape[-1] - 1) * torch.log1p(b * h) + torch.log1p(b * h - b * r * h.square())
        return z + (b * h)[..., None] * away, determinant


class RadialFlows(nn.Module):
    """A density of vectors for each of C classes.

    Args:
        classes: number of densities.
        width: width d of the vectors.
        layers: layers of each flow.
        generator: draws the parameters at the start.

    >>> flows = RadialFlows(3, 2, 4, torch.Generator().manual_seed(0))
    >>> flows(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(self, classes: int, width: int, layers: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList([RadialLayer(classes, width, generator) for _ in range(layers)])
        self.classes = classes

    def forward(self, z: Tensor) -> Tensor:
        """`log p(z | c)` of vectors `(N, d)` for each class, `(N, C)`."""
        z = z.expand(self.classes, *z.shape)
        total = z.new_zeros(z.shape[:2])
        for layer in self.layers:
            z, determinant = layer(z)
            total = total + determinant
        normal = -z.square().sum(-1) / 2 - z.shape[-1] / 2 * math.log(2 * math.pi)
        return (normal + total).T
