r"""Drop rates: their prior, their posterior, and the KL divergence between the two.

A drop rate `pi` is the probability that something is dropped. It has a Beta prior and a Kumaraswamy posterior

    p(pi) = Beta(alpha, beta),    q(pi) = a b pi^(a-1) (1 - pi^a)^(b-1).

A draw from the posterior is a smooth function of its parameters: `pi = (1 - u^(1/b))^(1/a)` with `u ~ Uniform(0, 1)`.
Masks need only the logit of `pi`, so everything is computed in logarithms and does not overflow near 0 or 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from bgcl.augmentation.noise import Noise

Array = npt.NDArray[Any]
Rates = tuple[tuple[float, ...], ...]  # (layers, blocks), with 1 where layers or blocks share a rate

LOGIT_BOUND = 15.0  # |logit(pi)| of a learned rate; in float32 a rate beyond it is 0 or 1
LARGE_B = 1e6  # a narrow posterior has a greater b: then its moments are computed in another way
_SERIES_TERMS = 512


def log1mexp(x: Tensor) -> Tensor:
    """`log(1 - exp(x))` for `x < 0`, without cancellation at either end (Maechler, 2012)."""
    x = x.clamp(max=-torch.finfo(x.dtype).tiny)
    near, far = x > -math.log(2), x <= -math.log(2)
    # Each branch gets a harmless argument where it is not used, because a NaN there would spoil the gradient.
    return torch.where(near, torch.log(-torch.expm1(torch.where(near, x, -1.0))),
                       torch.log1p(-torch.exp(torch.where(far, x, -1.0))))  # fmt: skip


def kumaraswamy_log_quantile(a: Tensor, b: Tensor, above: Tensor) -> Tensor:
    """`log(pi)` of the drop rate that is exceeded with the probability `above`: `pi = (1 - above^(1/b))^(1/a)`."""
    return log1mexp(torch.log(above) / b) / a


def kumaraswamy_logit(a: Tensor, b: Tensor, uniform: Tensor) -> Tensor:
    """`logit(pi)` of the draw `pi = (1 - u^(1/b))^(1/a)`, bounded so that it and its gradient stay finite."""
    log_pi = kumaraswamy_log_quantile(a, b, uniform)
    return (log_pi - log1mexp(log_pi)).clamp(-LOGIT_BOUND, LOGIT_BOUND)


def kumaraswamy_log_moment(a: Tensor, b: Tensor, order: Tensor | float) -> Tensor:
    """`log E[pi^n] = log(b B(1 + n/a, b))`."""
    n = torch.as_tensor(order, dtype=a.dtype, device=a.device) / a
    return torch.log(b) + torch.lgamma(1 + n) - _log_rising(b, 1 + n)


def _log_rising(b: Tensor, s: Tensor) -> Tensor:
    """`log(Gamma(b + s) / Gamma(b))`. For large b by an asymptotic series, because the difference would lose digits."""
    large = b > LARGE_B
    inverse = 1 / torch.where(large, b, 1.0)
    series = s * torch.log(b) + s * (s - 1) * inverse / 2 - s * (s - 1) * (2 * s - 1) * inverse**2 / 12
    b = torch.where(large, 1.0, b)
    return torch.where(large, series, torch.lgamma(b + s) - torch.lgamma(b))


def kumaraswamy_beta_kl(a: Tensor, b: Tensor, alpha: float, beta: float) -> Tensor:
    r"""`KL(Kumaraswamy(a, b) || Beta(alpha, beta))`.

        (a - alpha)/a (-gamma - Psi(b) - 1/b) + log(a b) + log B(alpha, beta) - (b - 1)/b - (beta - 1) E[log(1 - pi)]

    For `beta = 1` this is the paper's closed form. Otherwise the last term is the series of Nalisnick and Smyth.
    """
    log_beta_function = math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)
    mean_log = -torch.special.digamma(b) - 1 / b - _EULER  # a E[log pi]
    kl: Tensor = (a - alpha) / a * mean_log + torch.log(a * b) + log_beta_function - (b - 1) / b
    return kl if beta == 1 else kl - (beta - 1) * expected_log_complement(a, b)


_EULER = 0.57721566490153286
_NODES, _WEIGHTS = (torch.as_tensor(values) / 2 for values in np.polynomial.legendre.leggauss(96))
_NODES = _NODES + 0.5  # on (0, 1)


def quantile_nodes(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Drop rates and weights, `(..., n)`, with which `E_q[f(pi)]` is the sum of `weight * f(rate)`."""
    log_pi = kumaraswamy_log_quantile(a[..., None], b[..., None], _NODES.to(a))
    return torch.exp(log_pi).clamp(max=1 - torch.finfo(a.dtype).eps), _WEIGHTS.to(a)


def expected_log_complement(a: Tensor, b: Tensor) -> Tensor:
    r"""`E[log(1 - pi)] = -sum_m E[pi^m] / m`: the first M terms one by one, and the rest as an integral.

    For large m the moments fall like a power, `E[pi^m] ~ (m + s)^-b` with `s = a (b + 1) / 2`. So the rest of the sum,
    as an integral from `k = M + 1/2` on, is about `E[pi^k] int_0^1 x^(b-1) / (1 - r x) dx` with `r = s / (k + s)`.
    With `x = y^(1/b)` it is computed at Gauss-Legendre nodes.

    If b is very large, the posterior is narrow. Then the expectation is a mean over its quantiles.
    """
    large = b > LARGE_B
    if large.any():
        few = torch.where(large, 1.0, b)
        rates, weights = quantile_nodes(a, b)
        by_quantiles = (torch.log1p(-rates) * weights).sum(-1)
        return torch.where(large, by_quantiles, _by_series(torch.where(large, 1.0, a), few))
    return _by_series(a, b)


def _by_series(a: Tensor, b: Tensor) -> Tensor:
    order = torch.arange(1, _SERIES_TERMS + 1, dtype=a.dtype, device=a.device)
    moments = torch.exp(kumaraswamy_log_moment(a[..., None], b[..., None], order))
    head = (moments / order).sum(-1)
    shift = a * (b + 1) / 2
    start = _SERIES_TERMS + 0.5
    moment = moments[..., -1] * ((_SERIES_TERMS + shift) / (start + shift)) ** b
    ratio = shift / (start + shift)
    node, weight = (torch.as_tensor(values).to(a) for values in np.polynomial.legendre.leggauss(48))
    node, weight = (node + 1) / 2, weight / 2  # on (0, 1)
    x = node ** (1 / b[..., None])
    tail = moment * (weight / (1 - ratio[..., None] * x)).sum(-1) / b
    return -(head + tail)


class DropRate(nn.Module):
    """The drop rates of one mask in one view: learned with a Kumaraswamy posterior, or fixed.

    Shapes: `(layers, blocks)`, with 1 where layers or blocks share a rate. `(1, 1)` is one rate for the whole view.
    """

    log_a: Tensor
    log_b: Tensor
    fixed: Tensor

    def __init__(
        self, shape: tuple[int, int], *, rate: float | None = None, start: tuple[float, float] = (1.0, 1.0),
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:  # fmt: skip
        super().__init__()
        self.learned = rate is None
        self.prior = prior
        if rate is None:
            self.log_a = nn.Parameter(torch.full(shape, math.log(start[0])))
            self.log_b = nn.Parameter(torch.full(shape, math.log(start[1])))
        else:
            self.register_buffer("fixed", torch.full(shape, float(rate)))

    @property
    def a(self) -> Tensor:
        return self.log_a.cpu().double().exp()

    @property
    def b(self) -> Tensor:
        """In double precision, because b of a narrow posterior is too great for float32, and so on the processor."""
        return self.log_b.cpu().double().exp()

    @torch.no_grad()
    def set_posterior(self, a: float, b: float, block: int | slice = slice(None)) -> None:
        """Give all rates, or those of one block or relation, the posterior `Kumaraswamy(a, b)`."""
        self.log_a[:, block] = math.log(a)
        self.log_b[:, block] = math.log(b)

    def draw(self, noise: Noise) -> Tensor:
        """`logit(pi)` with `pi ~ q(pi)`, reparameterized."""
        if not self.learned:
            return torch.logit(self.fixed)
        uniform = noise.rates(self.log_a.shape, self.log_a.device)
        return kumaraswamy_logit(self.a, self.b, uniform.cpu().double()).to(self.log_a)

    def median(self) -> Tensor:
        """`logit(pi)` at the posterior's median."""
        if not self.learned:
            return torch.logit(self.fixed)
        return kumaraswamy_logit(self.a, self.b, torch.full_like(self.a, 0.5)).to(self.log_a)

    def mean(self) -> Tensor:
        """`E[pi]`."""
        return self._moment(1.0).to(self.log_a) if self.learned else self.fixed

    def _moment(self, order: float) -> Tensor:
        return kumaraswamy_log_moment(self.a, self.b, order).exp()

    def std(self) -> Tensor:
        """The standard deviation of `pi`."""
        if not self.learned:
            return torch.zeros_like(self.fixed)
        return (self._moment(2.0) - self._moment(1.0) ** 2).clamp(min=0).sqrt().to(self.log_a)

    def posterior(self, mask: str) -> "RatePosterior":
        """The posterior as plain numbers, for histories, tables and plots."""
        tensors = {"mean": self.mean(), "std": self.std()}
        if self.learned:
            tensors |= {"a": self.a, "b": self.b}
        return RatePosterior.from_dict({"mask": mask} | {name: tensor.tolist() for name, tensor in tensors.items()})

    def kl(self) -> Tensor:
        """`KL(q(pi) || p(pi))`, summed over the rates; 0 for fixed rates."""
        if not self.learned:
            return self.fixed.new_zeros(())
        return kumaraswamy_beta_kl(self.a, self.b, *self.prior).sum().to(self.log_a)


@dataclass(frozen=True)
class RatePosterior:
    r"""The posterior of one mask's drop rates in one view.

        q(pi) = a b pi^(a-1) (1 - pi^a)^(b-1)

    Rates have the shape `(layers, blocks)`, with 1 where layers or blocks share a rate.

    Args:
        mask: the sentence of the mask.
        mean: expected drop rates.
        std: standard deviations; 0 for fixed rates.
        a: first parameter of the posterior; None for fixed rates.
        b: second parameter; None for fixed rates.

    >>> import bgcl
    >>> model = bgcl.BGCL(encoder="gcn", widths=(16, 8), epochs=2).fit(bgcl.example_graph(), progress=False)
    >>> edges, entries = model.drop_rates_["o"]
    >>> edges.mask, edges.learned, 0 < edges.average < 1
    ('edges', True, True)
    """

    mask: str
    mean: Rates
    std: Rates
    a: Rates | None = None
    b: Rates | None = None

    @property
    def learned(self) -> bool:
        """Whether the rates are learned. If not, they are fixed and have no posterior."""
        return self.a is not None

    @property
    def average(self) -> float:
        """The expected drop rate, averaged over layers and blocks."""
        return float(np.mean(self.mean))

    @property
    def average_std(self) -> float:
        """The standard deviation, averaged over layers and blocks."""
        return float(np.mean(self.std))

    def places(self, relations: Sequence[str] = ()) -> Iterator[tuple[int, int, str]]:
        """Layer and block of each rate, counted from 0, and in words such as `layer 2, block 1`; empty if shared.

        Relations are in the place of blocks.

        Args:
            relations: the names of the relations of the graph.
        """
        layers, blocks = np.shape(self.mean)
        for i in range(layers):
            for j in range(blocks):
                block = f"block {j + 1}"
                if "per relation" in self.mask:
                    block = relations[j] if relations else f"relation {j + 1}"
                words = [f"layer {i + 1}"] * (layers > 1) + [block] * (blocks > 1)
                yield i, j, ", ".join(words)

    def density(self, pi: Array) -> Array:
        """`q(pi)` at points in (0, 1).

        Args:
            pi: the points, `(points,)`.

        Returns:
            The density of each rate, `(layers, blocks, points)`.

        Raises:
            ValueError: the rates are fixed.
        """
        a, b = self._parameters()
        # In logarithms, because a narrow posterior has large parameters.
        with np.errstate(divide="ignore"):
            log_density = np.log(a * b) + (a - 1) * np.log(pi) + (b - 1) * np.log1p(-(pi**a))
        return np.asarray(np.exp(log_density))

    def quantile(self, level: float) -> Array:
        """The quantile `(1 - (1 - level)^(1/b))^(1/a)`, which solves `1 - (1 - pi^a)^b = level`.

        Args:
            level: probability that a rate is below the quantile, in [0, 1).

        Returns:
            The quantile of each rate, `(layers, blocks)`.

        Raises:
            ValueError: the rates are fixed.
        """
        a, b = self._parameters()
        return np.asarray(((-np.expm1(np.log1p(-level) / b)) ** (1 / a))[..., 0])

    def _parameters(self) -> tuple[Array, Array]:
        if self.a is None or self.b is None:
            raise ValueError(f"The drop rate of '{self.mask}' is fixed, so it has no posterior.")
        return np.asarray(self.a)[..., None], np.asarray(self.b)[..., None]

    def to_dict(self) -> dict[str, Any]:
        """The fields as values that JSON can store. Fixed rates have no `a` and `b`."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "RatePosterior":
        """The inverse of `to_dict`."""
        rates = {name: _rates(values[name]) for name in ("mean", "std", "a", "b") if name in values}
        return cls(str(values["mask"]), **rates)


def _rates(rows: list[list[float]]) -> Rates:
    return tuple(tuple(float(rate) for rate in row) for row in rows)
