"""The weight decay by hand."""

import math

import numpy as np
import pytest
import torch

from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.views import Augmentation
from bgcl.model.encoders.members import Members
from bgcl.model.network import Network
from bgcl.model.weight_decay import weight_decay
from bgcl.settings import make_settings
from small import random_encoder, seeded


def squares(encoder: torch.nn.Module) -> list[float]:
    return [float((layer.weight.detach().double().numpy() ** 2).sum()) for layer in encoder.layers]


def test_weight_decay_with_fixed_rates_is_the_sum_of_squares() -> None:
    encoder = random_encoder((5, 4, 3))
    masks = [parse_mask("connections in 3 blocks at 0.3"), parse_mask("features at 0.9")]
    assert weight_decay(encoder, Augmentation(masks, 2)).item() == pytest.approx(sum(squares(encoder)))


def test_encoders_side_by_side_have_the_mean_weight_decay() -> None:
    """Their loss is a mean too, so the gradient of each is a share of what it would be alone, also of its decay."""
    encoders = [random_encoder((5, 4, 3), seed=seed) for seed in range(3)]
    augmentation = Augmentation([parse_mask("features")], 2)
    each = [weight_decay(encoder, augmentation).item() for encoder in encoders]
    assert len(set(each)) == 3
    assert weight_decay(Members(encoders), augmentation).item() == pytest.approx(np.mean(each))


def test_weight_decay_with_learned_rates_weighs_each_layer_by_the_kept_share() -> None:
    encoder = random_encoder((5, 4, 3))
    # E[pi] of Kumaraswamy(a, 1) is a / (a + 1).
    augmentation = Augmentation([parse_mask("connections")], 2, start=(3.0, 1.0))
    assert weight_decay(encoder, augmentation).item() == pytest.approx(0.25 * sum(squares(encoder)))


def test_weight_decay_takes_the_product_over_masks_and_the_mean_over_views_and_blocks() -> None:
    encoder = random_encoder((5, 4, 3))
    masks = [parse_mask(s) for s in ("connections in 2 blocks per block", "features", "edges at 0.2/0.4")]
    augmentation = Augmentation(masks, 2)
    mean = {
        "o": (np.array([[0.1, 0.3], [0.5, 0.6]]), 0.25),
        "t": (np.array([[0.2, 0.4], [0.7, 0.3]]), 0.75),
    }
    with torch.no_grad():
        for view, (connections, features) in mean.items():
            of_view = augmentation.of(view)
            of_view[0][1].log_a.copy_(torch.as_tensor(np.log(connections / (1 - connections))))
            of_view[1][1].log_a.fill_(math.log(features / (1 - features)))
    first, second = squares(encoder)
    kept_first = ((1 - 0.2) * (1 - 0.25) * (1 - 0.2) + (1 - 0.3) * (1 - 0.75) * (1 - 0.4)) / 2
    kept_second = ((1 - 0.55) * (1 - 0.2) + (1 - 0.5) * (1 - 0.4)) / 2  # features are masked only in layer 1
    expected = kept_first * first + kept_second * second
    assert weight_decay(encoder, augmentation).item() == pytest.approx(expected, rel=1e-5)


def test_weight_decay_has_a_gradient_for_the_weights_and_none_for_the_rates() -> None:
    network = Network(5, make_settings(encoder="gcn", drop="connections", widths=(4,), weight_decay=0.5))
    network.reset_parameters(seeded(0))
    network.weight_decay().backward()
    # E[pi] = 1/2 at the start, so the gradient of 0.5 * 0.5 |W|^2 is 0.5 W.
    torch.testing.assert_close(network.encoder.layers[0].weight.grad, 0.5 * network.encoder.layers[0].weight.detach())
    assert all(rate.grad is None for rate in network.augmentation.parameters())


def test_dropped_neighbors_do_not_change_the_weight_decay() -> None:
    encoder = random_encoder((5, 4, 3))
    augmentation = Augmentation([parse_mask("connections"), parse_mask("neighbors")], 2, start=(3.0, 1.0))
    assert weight_decay(encoder, augmentation).item() == pytest.approx(0.25 * sum(squares(encoder)))
