r"""When training ends: as soon as twice the training would gain little, by a criterion without labels.

The criterion is how well a node is recognized: the objective's log likelihood of two views of a node, averaged over
`WATCHED` nodes with the same masks in every epoch. With `infonce` it is, up to a constant, the information that the two
views of a node share. It counts a node alone and not its neighbors, whom the encoder can learn by heart.

Let `I(s)` be the criterion after s steps, and `I_0` the least so far, at the start. Training ends at the first epoch
with `I(s) - I(s / 2) < GAIN (I(s) - I_0)`: the second half of the training has added less than the share `GAIN` of what
is known. The criterion grows about with the logarithm of the steps, so twice the training would add about as little.
"""

from collections.abc import Sequence

import numpy as np
import torch

from bgcl.augmentation.noise import NoiseStream
from bgcl.graph.alike import references
from bgcl.graph.node_batches import NodeBatches
from bgcl.model.network import Network

WATCHED = 512  # nodes, or all if there are fewer
GAIN = 0.08
LEAST = 150  # steps before training may end: where little is dropped, nodes are recognized sooner than told apart well


class Watch:
    """Measures how well nodes are recognized.

    Args:
        network: the network.
        batches: the batches of the training.
        seed: seed of the masks, which are the same in every call.
    """

    def __init__(self, network: Network, batches: NodeBatches, seed: int) -> None:
        self.network, self.batches, self.seed = network, batches, seed
        self.nodes = references(batches.graph, WATCHED)

    @torch.no_grad()
    def recognized(self) -> float:
        """The mean log likelihood of two views of each watched node."""
        generator = torch.Generator(self.nodes.device).manual_seed(self.seed)
        batch = self.batches.batch(self.nodes, generator)
        was_training = self.network.training
        self.network.eval()
        noise = NoiseStream(generator)
        views = [self.network.encode(view, batch, noise)[: len(self.nodes)] for view in ("o", "t")]
        found = self.network.objective.log_likelihood(*views).mean()
        self.network.train(was_training)
        return float(found)


def is_settled(recognized: Sequence[float], steps: int) -> bool:
    """Whether twice the training would gain little.

    Args:
        recognized: the criterion before training and after each epoch.
        steps: steps in an epoch.
    """
    epochs = len(recognized) - 1
    if epochs < 2 or epochs * steps < LEAST:
        return False
    half = float(np.interp(epochs / 2, range(epochs + 1), recognized))
    return recognized[-1] - half < GAIN * (recognized[-1] - min(recognized))
