"""Weight decay as the KL divergence of the weights."""

import torch
from torch import Tensor

from bgcl.augmentation.views import Augmentation
from bgcl.model.encoders.base import Encoder
from bgcl.model.encoders.members import Members


def weight_decay(encoder: Encoder, augmentation: Augmentation) -> Tensor:
    """`sum_l (1 - pi^(l)) |W^(l)|^2`, the part of the KL divergence that depends on the weights.

    If the rates are fixed the factor is a constant and left out, which is plain weight decay. Of encoders side by side
    it is the mean, as the loss is, so that each of them has the weight decay that it would have alone.
    """
    terms = []
    for i, weights in enumerate(encoder.weight_matrices()):
        kept = augmentation.kept(i).detach() if augmentation.learned else 1.0
        terms += [kept * weight.square().sum() for weight in weights]
    members = encoder.count if isinstance(encoder, Members) else 1
    return torch.stack(terms).sum() / members if terms else torch.zeros(())  # a module may have no matrix
