"""Each picture has its axes, its labels and the numbers of what it shows, and is written without a warning."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

from bgcl import uncertainty
from bgcl.downstream.evaluation import SplitResult
from bgcl.measures.metrics import risk_coverage
from bgcl.measures.uncertainty import MEASURES
from bgcl.reporting.evaluation_plots import (
    astd_figure,
    by_class_figure,
    pavpu_figure,
    reliability_figure,
    risk_coverage_figure,
    save_evaluation,
)
from bgcl.reporting.training_plots import save
from bgcl.reproduce.noise_experiment import NoiseExperiment

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def make_result(seed: int, nodes: int = 50, right: bool | None = None) -> SplitResult:
    random = np.random.default_rng(seed)
    label = random.integers(3, size=nodes)
    samples = random.dirichlet(np.ones(3), size=(6, nodes)) + np.eye(3)[label]
    if right is not None:
        samples = np.tile(np.eye(3)[label if right else (label + 1) % 3] + 0.1, (6, 1, 1))
    samples /= samples.sum(-1, keepdims=True)
    return SplitResult(np.arange(nodes), np.unique(label), label, uncertainty(samples), 1.0)


RESULTS = [make_result(seed) for seed in range(3)]
# What may come: one split, splits without errors, with nothing but errors.
CASES = {
    "three splits": RESULTS,
    "one split": RESULTS[:1],
    "all right": [make_result(0, right=True)],
    "all wrong": [make_result(0, right=False)] * 2,
}


def written(figure: Figure, folder) -> None:
    assert isinstance(figure, Figure)
    save(figure, folder / "figure.png")
    assert (folder / "figure.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("results", CASES.values(), ids=CASES)
@pytest.mark.parametrize(
    "draw", [lambda r: pavpu_figure({"BGCL": r}), reliability_figure, risk_coverage_figure, by_class_figure]
)
def test_every_picture_is_written_whatever_the_results(draw, results, tmp_path):
    written(draw(results), tmp_path)


def test_pavpu_shows_the_mean_over_the_splits_of_each_method():
    other = [make_result(seed) for seed in (8, 9)]
    figure = pavpu_figure({"BGCL": RESULTS, "GRACE": other}, "margin")
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "PAvPU",
        "p(accurate | certain)",
        "p(uncertain | inaccurate)",
    ]
    parts = ("pavpu", "accurate_if_certain", "uncertain_if_inaccurate")
    for axis, part in zip(figure.axes, parts, strict=True):
        assert axis.get_xlabel() == "threshold of margin"
        assert [text.get_text() for text in axis.get_legend().get_texts()] == ["BGCL", "GRACE"]
        for line, results in zip(axis.get_lines(), (RESULTS, other), strict=True):
            expected = sum(getattr(result.pavpu("margin"), part) for result in results) / len(results)
            np.testing.assert_allclose(line.get_ydata(), expected)


def test_one_method_needs_no_legend():
    assert pavpu_figure({"BGCL": RESULTS}).axes[0].get_legend() is None


def test_reliability_shows_all_splits_together():
    figure = reliability_figure(RESULTS)
    top, bottom = figure.axes
    ece = np.mean([result.reliability().ece for result in RESULTS])
    assert top.get_title(loc="left") == f"Reliability, ECE {ece:.3f}"
    assert (top.get_ylabel(), bottom.get_xlabel()) == ("share that is right", "probability of the predicted class")
    confidence = np.concatenate([result.uncertainty.probability.max(1) for result in RESULTS])
    correct = np.concatenate([result.correct for result in RESULTS])
    expected = [
        (confidence[inside].mean(), correct[inside].mean())
        for i in range(15)
        if (inside := (i / 15 < confidence) & (confidence <= (i + 1) / 15)).any()
    ]
    np.testing.assert_allclose(top.get_lines()[0].get_xydata(), expected)
    shares = [bar.get_height() for bar in bottom.patches]
    assert sum(shares) == pytest.approx(1)


def test_risk_coverage_has_a_line_for_each_measure():
    (axis,) = risk_coverage_figure(RESULTS).axes
    assert axis.get_xlabel() == "coverage, most certain first"
    assert axis.get_ylabel() == "risk"
    for name, line in zip(MEASURES, axis.get_lines(), strict=True):
        curves = [risk_coverage(result.correct, getattr(result.uncertainty, name)) for result in RESULTS]
        area = np.mean([curve.area for curve in curves])
        assert line.get_label() == f"{name.replace('_', ' ')}, area {area:.3f}"
        assert line.get_ydata()[-1] == pytest.approx(np.mean([1 - result.correct.mean() for result in RESULTS]))


def test_uncertainty_by_class_has_two_boxes_for_each_class():
    (axis,) = by_class_figure(RESULTS, "margin").axes
    assert axis.get_ylabel() == "margin"
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0", "1", "2"]
    assert len(axis.patches) == 6
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["predicted right", "predicted wrong"]


@pytest.mark.parametrize("count", [1, 2])
def test_astd_has_a_panel_for_each_experiment_and_a_box_for_each_hop(count, tmp_path):
    random = np.random.default_rng(0)
    hops = np.array([0, 0, 1, 1, 1, 2, 2, -1])  # nothing at three hops and more
    made = {
        f"graph {i}": NoiseExperiment(np.array([0, 1]), hops, random.random(8), random.random(8)) for i in range(count)
    }
    figure = astd_figure(made, hops=4)
    assert [axis.get_title(loc="left") for axis in figure.axes] == list(made)
    for axis, experiment in zip(figure.axes, made.values(), strict=True):
        assert axis.get_xlabel() == "hops from the nearest noisy node"
        assert axis.get_ylabel() == "increase of ASTD"
        assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0", "1", "2", "3", "4"]
        median = np.median((experiment.noisy_astd - experiment.clean_astd)[hops == 1])
        across = [line for line in axis.get_lines() if line.get_xdata()[0] < 2 < line.get_xdata()[-1]]
        assert any(line.get_ydata() == pytest.approx([median, median]) for line in across)
    written(figure, tmp_path)


def test_save_evaluation_writes_every_picture(tmp_path):
    paths = save_evaluation(RESULTS, tmp_path / "pictures")
    names = ["pavpu.png", "reliability.png", "risk_coverage.png", "uncertainty_by_class.png"]
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == sorted(names)
    assert all(path.read_bytes().startswith(PNG) for path in paths)
