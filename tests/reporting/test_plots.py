"""Each plot has its axes, labels and numbers, and is written without a warning."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from synthetic_report import make_history

import bgcl
from bgcl import BGCLError, uncertainty
from bgcl.downstream.evaluation import SplitResult
from bgcl.measures.metrics import risk_coverage
from bgcl.measures.uncertainty import MEASURES
from bgcl.reporting import (
    plot_drop_rates,
    plot_pavpu,
    plot_reliability,
    plot_risk_coverage,
    plot_training,
    plot_uncertainty,
)
from bgcl.reporting.plots import draw_boxes, save, save_evaluation

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
# One split, no errors, only errors.
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
@pytest.mark.parametrize("draw", [plot_pavpu, plot_reliability, plot_risk_coverage, plot_uncertainty])
def test_every_plot_is_written_for_any_results(draw, results, tmp_path):
    written(draw(results), tmp_path)


def test_pavpu_shows_the_mean_over_the_splits_of_each_method():
    other = [make_result(seed) for seed in (8, 9)]
    figure = plot_pavpu({"BGCL": RESULTS, "GRACE": other}, "margin")
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
    assert plot_pavpu({"BGCL": RESULTS}).axes[0].get_legend() is None


def test_reliability_shows_all_splits_together():
    figure = plot_reliability(RESULTS)
    top, bottom = figure.axes
    ece = np.mean([result.reliability().ece for result in RESULTS])
    assert top.get_title(loc="left") == f"Reliability, ECE {ece:.3f}"
    assert (top.get_ylabel(), bottom.get_xlabel()) == (
        "share of correct predictions",
        "probability of the predicted class",
    )
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
    (axis,) = plot_risk_coverage(RESULTS).axes
    assert axis.get_xlabel() == "coverage, most certain first"
    assert axis.get_ylabel() == "risk"
    for name, line in zip(MEASURES, axis.get_lines(), strict=True):
        curves = [risk_coverage(result.correct, getattr(result.uncertainty, name)) for result in RESULTS]
        area = np.mean([curve.area for curve in curves])
        assert line.get_label() == f"{name.replace('_', ' ')}, area {area:.3f}"
        assert line.get_ydata()[-1] == pytest.approx(np.mean([1 - result.correct.mean() for result in RESULTS]))


def test_uncertainty_by_class_has_two_boxes_for_each_class():
    (axis,) = plot_uncertainty(RESULTS, "margin").axes
    assert axis.get_ylabel() == "margin"
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0", "1", "2"]
    assert len(axis.patches) == 6
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["correct prediction", "wrong prediction"]


def test_boxes_show_the_median_and_groups_may_be_empty():
    groups = [np.array([1.0, 2.0, 9.0]), np.array([]), np.array([4.0])]
    axis = Figure().subplots()
    assert len(draw_boxes(axis, groups)) == 3
    level = [line.get_ydata() for line in axis.get_lines() if np.ptp(line.get_xdata()) > 0]  # medians and caps
    assert any(values == pytest.approx([2, 2]) for values in level)
    assert any(values == pytest.approx([4, 4]) for values in level)


def test_training_shows_the_loss_and_the_rate_of_each_mask():
    history = make_history(20)
    loss, learned, fixed = plot_training(history).axes
    np.testing.assert_array_equal(loss.get_lines()[0].get_xydata(), [[r.epoch, r.loss] for r in history])
    assert learned.get_title(loc="left") == "Drop rate: connections in 8 blocks"
    assert fixed.get_title(loc="left") == "Drop rate: features at 0.3/0.4"
    for axis, rates in ((learned, (0.5, 0.5)), (fixed, (0.3, 0.4))):
        assert [text.get_text() for text in axis.get_legend().get_texts()] == ["view o", "view t"]
        for line, rate in zip(axis.get_lines(), rates, strict=True):
            np.testing.assert_allclose(line.get_ydata(), np.full(20, rate))


def test_drop_rates_show_the_first_and_the_last_density_of_learned_rates():
    history = make_history(20)
    (axis,) = plot_drop_rates(history).axes
    assert axis.get_title(loc="left") == "Posterior: connections in 8 blocks"
    lines = axis.get_lines()
    ends = [history[i].rates[view][0] for view in ("o", "t") for i in (0, -1)]
    for line, rate in zip(lines, ends, strict=True):
        pi, (a,), (b,) = line.get_xdata(), rate.a[0], rate.b[0]
        np.testing.assert_allclose(line.get_ydata(), a * b * pi ** (a - 1) * (1 - pi**a) ** (b - 1))


def test_drop_rates_that_are_all_fixed_are_named():
    model = bgcl.BGCL(widths=(8,), epochs=1, drop=["features at 0.3"]).fit(bgcl.example_graph(), progress=False)
    (axis,) = model.plot_drop_rates().axes
    assert axis.get_title(loc="left") == "All drop rates are fixed"


def test_plots_are_figures_that_a_notebook_shows():
    figures = [
        plot_training(make_history(3)),
        plot_drop_rates(make_history(3)),
        plot_pavpu({"a": RESULTS, "b": RESULTS}),
    ]
    figures += [plot(RESULTS) for plot in (plot_reliability, plot_risk_coverage, plot_uncertainty)]
    assert all(isinstance(figure, Figure) for figure in figures)
    assert figures[0]._repr_png_().startswith(PNG)


def test_plots_of_nothing_or_of_an_unknown_measure_are_refused():
    with pytest.raises(BGCLError, match=r"Unknown measure 'entropy'"):
        plot_uncertainty(RESULTS, "entropy")
    with pytest.raises(BGCLError, match=r"nothing to plot"):
        plot_pavpu([])


def test_save_evaluation_writes_every_plot(tmp_path):
    paths = save_evaluation(RESULTS, tmp_path / "plots")
    names = ["pavpu.png", "reliability.png", "risk_coverage.png", "uncertainty_by_class.png"]
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == sorted(names)
    assert all(path.read_bytes().startswith(PNG) for path in paths)
