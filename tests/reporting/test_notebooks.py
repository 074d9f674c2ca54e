"""What makes the library feel at home: notebooks, scikit-learn, pickles that are refused, logs, TensorBoard, names."""

import ast
import copy
import html
import logging
import pickle
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import bgcl
from bgcl.model.training import Record
from bgcl.reporting.card import density
from bgcl.reporting.progress import _Notebook, average
from bgcl.reporting.tensorboard import scalars


@pytest.fixture(scope="module")
def data():
    return bgcl.example_graph()


@pytest.fixture(scope="module")
def model(data):
    return bgcl.BGCL(widths=(16, 8), epochs=3, drop=["connections shared", "features at 0.3"]).fit(data, progress=False)


def record(epoch=1):
    rates = {view: [{"mask": "<edges>", "mean": [[0.25], [0.75]]}] for view in "ot"}
    return Record(epoch=epoch, loss=1.5, objective=None, kl=0.1, spread=0.2, seconds=0.01, rates=rates)


def test_a_card_says_what_differs_from_the_defaults_and_what_was_learned(model):
    page = model._repr_html_()
    assert "widths = (16, 8)" in page
    assert "tau" not in page
    assert "240 nodes" in page
    assert f"{model.history_[-1]['loss']:.4f}" in page
    assert page.count("<polyline") == 2  # a learned rate in each view
    assert page.count("0.30 fixed") == 2
    ElementTree.fromstring(page.replace("<br>", "<br/>"))  # every tag is closed
    assert not re.search(r"https?://|src=|<script", page)


def test_a_card_escapes_what_it_shows(model):
    twin = copy.deepcopy(model)
    twin.graph_ = twin.graph_.__class__(**vars(model.graph_) | {"name": "<script>x</script>"})
    assert "<script>" not in twin._repr_html_()
    assert html.escape("<script>") in twin._repr_html_()


def test_an_unfitted_model_has_a_card():
    assert "not fitted" in bgcl.BGCL()._repr_html_()


def test_a_density_peaks_at_the_posterior_s_mode():
    a, b = 8.0, 30.0
    mode = ((a - 1) / (a * b - 1)) ** (1 / a)
    points = re.search(r'points="([^"]+)"', density([[a]], [[b]], "red"))[1].split()
    x, y = np.array([[float(v) for v in point.split(",")] for point in points]).T
    assert x[y.argmin()] / 120 == pytest.approx(mode, abs=0.02)  # y grows downwards


def test_plots_are_figures_that_a_notebook_shows(model, data):
    results = bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4)
    figures = [model.plot_training(), model.plot_drop_rates(), bgcl.plot_pavpu({"a": results, "b": results})]
    figures += [plot(results) for plot in (bgcl.plot_reliability, bgcl.plot_risk_coverage, bgcl.plot_uncertainty)]
    assert all(isinstance(figure, Figure) for figure in figures)
    assert figures[0]._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(bgcl.BGCLError, match=r"Unknown measure 'entropy'"):
        bgcl.plot_uncertainty(results, "entropy")
    with pytest.raises(bgcl.BGCLError, match=r"nothing to plot"):
        bgcl.plot_pavpu([])


def test_a_notebook_s_line_is_one_output_changed_in_place(monkeypatch):
    shown = []

    class Handle:
        def update(self, what):
            shown.append(what.data)

    display = pytest.importorskip("IPython.display")
    monkeypatch.setattr(display, "display", lambda what, display_id: Handle())
    line = _Notebook(1000)
    for epoch in range(1, 1001):
        line(record(epoch))
    assert 2 <= len(shown) < 100
    assert "epoch 1000/1000" in shown[-1]


def test_a_model_is_not_pickled_but_copied_and_cloned(model, data):
    with pytest.raises(bgcl.BGCLError, match=r"model\.save\(folder\)"):
        pickle.dumps(model)
    twin = copy.deepcopy(model)
    assert (twin.embed(data) == model.embed(data)).all()
    assert not hasattr(clone(model), "network_")
    assert clone(model).settings == model.settings


def test_a_model_sits_in_a_pipeline_that_scikit_learn_may_search(model, data):
    nodes, labels = np.arange(data.num_nodes), data.y.numpy()
    pipeline = make_pipeline(bgcl.Embedding(model, data, samples=4), bgcl.MixtureClassifier())
    search = GridSearchCV(pipeline, {"mixtureclassifier__C": [0.1, 10.0]}, cv=3).fit(nodes[::2], labels[::2])
    draws = model.sample(data, samples=4).numpy()
    head = bgcl.MixtureClassifier(C=search.best_params_["mixtureclassifier__C"]).fit(draws[:, ::2], labels[::2])
    np.testing.assert_allclose(search.predict_proba(nodes[1::2]), head.predict_proba(draws[:, 1::2]))
    with pytest.raises(bgcl.BGCLError, match=r"between 0 and 239. Got 5 to 240"):
        pipeline.fit(nodes, labels).predict([5, 240])
    with pytest.raises(bgcl.BGCLError, match=r"whole numbers"):
        pipeline.predict([[1.5]])


def test_epochs_are_logged_and_several_reporters_are_told(data, caplog):
    first, second = [], []
    with caplog.at_level(logging.DEBUG, "bgcl"):
        bgcl.BGCL(widths=(8,), epochs=2).fit(data, progress=[False, first.append, second.append])
    assert [found.epoch for found in first] == [1, 2]
    assert first == second
    assert [r.message.split(":")[0] for r in caplog.records if r.levelno == logging.DEBUG] == [
        "epoch 1 of 2", "epoch 2 of 2",
    ]  # fmt: skip


def test_tensorboard_reads_what_was_written(data, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with bgcl.TensorBoard(tmp_path) as board:
        model = bgcl.BGCL(widths=(8,), epochs=3).fit(data, progress=board)
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    losses = [event.value for event in found.Scalars("training/loss")]
    assert losses == pytest.approx([epoch["loss"] for epoch in model.history_], rel=1e-6)


def test_tensorboard_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(bgcl.BGCLError, match=r"bgcl\[tensorboard\]"):
        bgcl.TensorBoard(tmp_path)


def test_scalars_hold_the_mean_rate_of_each_mask():
    assert scalars(record())["drop rate/o/1 <edges>"] == average([[0.25], [0.75]]) == 0.5


def test_type_checkers_see_every_name_that_is_exported():
    tree = ast.parse(Path(bgcl.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {name.name: statement.module for statement in block.body for name in statement.names}
    assert seen == {name: f"bgcl.{home}" for name, home in bgcl._HOME.items()}
    assert {*seen, "BGCLError", "__version__"} == set(bgcl.__all__)
    assert Path(bgcl.__file__).with_name("py.typed").exists()


@pytest.mark.parametrize("name", sorted(set(bgcl.__all__) - {"__version__"}))
def test_every_public_name_has_an_example(name):
    assert ">>>" in getattr(bgcl, name).__doc__
