"""Weight decay as the KL divergence of the weights."""

import torch
from torch import Tensor

from bgcl.augmentation.views import Augmentation
from bgcl.model.encoders.gcn import GCNEncoder


def weight_decay(encoder: GCNEncoder, augmentation: Augmentation) -> Tensor:
    """`sum_l (1 - pi^(l)) |W^(l)|^2`, the part of the KL divergence that depends on the weights.

    If the rates are fixed the factor is a constant and left out, which is plain weight decay.
    """
    terms = []
    for i, weight in enumerate(encoder.weight_matrices()):
        kept = augmentation.kept(i).detach() if augmentation.learned else 1.0
        terms.append(kept * weight.square().sum())
    return torch.stack(terms).sum()
