"""What the augmentation maximizes: the contrastive loss, up to a ceiling that `shared_information` sets."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bgcl.model.network import Network
from bgcl.model.objectives.infonce import contrastive_loss
from bgcl.settings import make_settings


def network(share: float, tau: float = 0.4) -> Network:
    return Network(3, make_settings(shared_information=share, tau=tau, widths=(4, 2)))


def test_the_loss_of_views_that_share_no_information_is_log_2n_minus_1():
    same = torch.ones(7, 3, dtype=torch.float64)  # all nodes are equal
    assert float(contrastive_loss(same, same, 0.4)) == pytest.approx(math.log(13), rel=1e-12)


def test_the_information_of_views_is_at_most_about_one_over_tau():
    nodes, tau = 50, 0.2
    apart = torch.eye(nodes, dtype=torch.float64)  # both views are equal, and all nodes are orthogonal
    loss = float(contrastive_loss(apart, apart, tau))
    assert loss == pytest.approx(math.log(math.exp(1 / tau) + 2 * nodes - 2) - 1 / tau, rel=1e-9)
    assert math.log(2 * nodes - 1) - loss < 1 / tau


@given(st.floats(0.01, 0.99), st.floats(0.0, 12.0), st.integers(2, 10_000))
def test_the_gain_is_the_loss_up_to_the_ceiling_and_its_mirror_image_beyond(share, loss, nodes):
    ceiling = math.log(2 * nodes - 1) - share / 0.4
    gain = float(network(share).adversary(torch.tensor(loss, dtype=torch.float64), nodes))
    assert gain == pytest.approx(loss if loss <= ceiling else 2 * ceiling - loss, abs=1e-9)
    assert gain <= ceiling + 1e-9


def test_shared_information_of_zero_is_the_papers_objective():
    loss = torch.tensor(8.3)
    assert network(0.0).adversary(loss, 100) is loss


@pytest.mark.parametrize(("loss", "slope"), [(1.0, 1.0), (5.0, -1.0)])
def test_the_gain_rises_below_the_ceiling_and_falls_above_it(loss, slope):
    value = torch.tensor(loss, requires_grad=True)
    network(0.5).adversary(value, 20).backward()
    assert float(value.grad) == slope
