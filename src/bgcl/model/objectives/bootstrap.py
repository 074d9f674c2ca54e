r"""BGRL (Thakoor et al., 2022): predict the other view, as a slow copy of the encoder sees it. There are no negatives.

With predictions q of the encoder's vectors, and vectors y of the slow copy, the loss is the mean of both directions,

    L = 1/2N sum_i [2 - 2 cos(q_i^o, y_i^t) + 2 - 2 cos(q_i^t, y_i^o)], between 0 and 4.

This is the loss of the authors' code, `2 - mean cos - mean cos`, which sums directions of half the size.

The weights `phi` of the slow copy follow the weights `theta` of the encoder after each step,
`phi <- m phi + (1 - m) theta`. The momentum m stays the same; the authors raise it to 1 during training.

The authors' encoder has batch normalization and PReLU. With a narrow ReLU encoder, many vectors can be zero for a part
of the training. They have no direction to predict, so their cosine is 0 and the loss rises.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn

from bgcl.model.encoders.base import Encoder
from bgcl.model.objectives.base import Objective, Outcome, Step

SHORT = 1e-6  # a shorter vector has no direction


class Bootstrap(Objective):
    """A predictor that learns, and a slow copy of the encoder that does not.

    All weights of the slow copy are buffers: they are in the state, but not among the parameters.

    Args:
        width: width of the encoder's output.
        encoder: the encoder. `start` copies its weights before the first step.
        momentum: m, from 0 to 1.
    """

    def __init__(self, width: int, encoder: Encoder, *, momentum: float = 0.99) -> None:
        super().__init__()
        self.predictor = Predictor(width)
        self.slow = _without_parameters(deepcopy(encoder))
        self.momentum = momentum

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Initialize the predictor. The slow copy needs `start`."""
        self.predictor.reset_parameters(generator)

    def start(self, encoder: Encoder) -> None:
        """Copy the encoder's weights into the slow copy. Call it when the encoder has its first weights."""
        self.slow.load_state_dict(encoder.state_dict())

    def forward(self, step: Step) -> Outcome:
        """The loss of one step; `shared` is the mean cosine.

        The weights of the slow copy get no gradient, but the masks do, so the rates learn from both vectors of a node.
        """
        all_o = step.encode("o")
        slow = (step.encode(view, encoder=self.slow) for view in ("o", "t"))
        o, t, slow_o, slow_t = step.some(all_o, step.encode("t"), *slow)
        shared = self._agreement(o, t, slow_o, slow_t).mean()
        return Outcome(2 - 2 * shared, shared, all_o, len(o))

    def log_likelihood(self, o: Tensor, t: Tensor) -> Tensor:
        """The cosine of the prediction from either draw with the other draw, averaged over both, `(N,)`."""
        return self._agreement(o, t, o, t)

    def after_step(self, encoder: Encoder) -> None:
        """Move the slow copy towards the encoder."""
        with torch.no_grad():
            for name, weight in encoder.named_parameters():
                self.slow.get_buffer(name).lerp_(weight, 1 - self.momentum)

    def _agreement(self, o: Tensor, t: Tensor, target_o: Tensor, target_t: Tensor) -> Tensor:
        """The cosine of each node, `(N,)`, averaged over the two directions."""
        return (cosine(self.predictor(o), target_t) + cosine(self.predictor(t), target_o)) / 2


class Predictor(nn.Module):
    """Linear, PReLU, Linear, with a hidden layer of twice the width. Shapes: `(N, d)` to `(N, d)`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, 2 * width)
        self.activation = nn.PReLU()
        self.second = nn.Linear(2 * width, width)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Xavier initialization, from one generator."""
        for linear in (self.first, self.second):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)
        self.activation.reset_parameters()

    def forward(self, embeddings: Tensor) -> Tensor:
        predicted: Tensor = self.second(self.activation(self.first(embeddings)))
        return predicted


def cosine(x: Tensor, y: Tensor) -> Tensor:
    """The cosine of each pair of rows, `(N,)`. A vector of zeros has a cosine of 0 and a gradient of usual size.

    A node without attributes and neighbors has such a vector at the start. PyTorch's cosine has a gradient of about
    `1e8` there, after which Adam hardly moves the predictor's biases.
    """
    return (_unit(x) * _unit(y)).sum(-1)


def _unit(x: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length > SHORT, length, 1.0)


def _without_parameters(encoder: Encoder) -> Encoder:
    """Turn all parameters into buffers of the same names."""
    for module in encoder.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.detach())
    return encoder
