"""The card that a notebook shows for a model."""

import copy
import html
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import bgcl
from bgcl.augmentation import RatePosterior
from bgcl.reporting.card import WIDTH, draw_density


@pytest.fixture(scope="module")
def model():
    drop = ["connections shared", "features at 0.3"]
    return bgcl.BGCL(encoder="gcn", widths=(16, 8), epochs=3, drop=drop).fit(bgcl.example_graph(), progress=False)


def test_a_card_shows_the_given_settings_and_what_was_learned(model):
    page = model._repr_html_()
    assert "widths = (16, 8)" in page
    assert "tau" not in page
    assert "240 nodes" in page
    assert f"{model.history_[-1].loss:.4f}" in page
    assert page.count("<polyline") == 2  # a learned rate in each view
    assert page.count("0.30 fixed") == 2
    ElementTree.fromstring(page.replace("<br>", "<br/>"))  # every tag is closed
    assert not re.search(r"https?://|src=|<script", page)


def test_a_card_escapes_what_it_shows(model):
    twin = copy.deepcopy(model)
    twin.graph_ = replace(model.graph_, name="<script>x</script>")
    assert "<script>" not in twin._repr_html_()
    assert html.escape("<script>") in twin._repr_html_()


def test_a_model_that_is_not_fitted_has_a_card():
    page = bgcl.BGCL("paper-cora", tau=0.5)._repr_html_()
    assert "not fitted" in page
    assert html.escape("preset = 'paper-cora', tau = 0.5") in page
    assert "the defaults" in bgcl.BGCL()._repr_html_()


def test_a_density_peaks_at_the_mode_of_the_posterior():
    a, b = 8.0, 30.0
    mode = ((a - 1) / (a * b - 1)) ** (1 / a)
    posterior = RatePosterior("edges", mean=((0.6,),), std=((0.1,),), a=((a,),), b=((b,),))
    points = re.search(r'points="([^"]+)"', draw_density(posterior, "red"))[1].split()
    x, y = np.array([[float(v) for v in point.split(",")] for point in points]).T
    assert x[y.argmin()] / WIDTH == pytest.approx(mode, abs=0.02)  # y grows downwards
