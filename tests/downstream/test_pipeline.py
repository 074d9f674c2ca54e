"""`Embedding` as the first step of a scikit-learn pipeline, against draws selected by hand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from bgcl import BGCL, BGCLError, MixtureClassifier, example_graph
from bgcl.downstream import Embedding
from trained import narrow


@pytest.fixture(scope="module")
def data():
    return example_graph()


@pytest.fixture(scope="module", params=["gcn", "mlp"])
def model(request, data) -> BGCL:
    return BGCL(**narrow(request.param), epochs=2).fit(data, progress=False)


def test_transform_selects_the_draws_of_the_nodes(model, data):
    found = Embedding(model, data, samples=3, seed=5).fit().transform([7, 2, 2])
    np.testing.assert_array_equal(found.draws, model.sample(data, 3, seed=5).numpy()[:, [7, 2, 2]])


def test_scores_of_a_pipeline_equal_a_loop_over_the_folds(model, data):
    nodes, labels, folds = np.arange(data.num_nodes), data.y.numpy(), KFold(3)
    pipeline = make_pipeline(Embedding(model, data, samples=4), MixtureClassifier(1.0))
    draws = model.sample(data, 4).numpy()
    expected = []
    for train, test in folds.split(nodes):
        head = MixtureClassifier(1.0).fit(draws[:, train], labels[train])
        expected.append(np.mean(head.predict(draws[:, test]) == labels[test]))
    np.testing.assert_allclose(cross_val_score(pipeline, nodes, labels, cv=folds), expected)


def test_a_clone_shares_the_fitted_model_and_the_graph(model, data):
    copy = clone(Embedding(model, data, samples=3, seed=1))
    assert copy.model is model
    assert copy.data is data
    assert (copy.samples, copy.seed) == (3, 1)
    assert not hasattr(copy, "draws_")


def test_transform_before_fit_raises_not_fitted_error(model, data):
    with pytest.raises(NotFittedError):
        Embedding(model, data).transform([0])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([[1, 2]], "must be a list of whole numbers"),
        ([0.5], "must be a list of whole numbers. Got float64"),
        ([5, 240], "between 0 and 239. Got 5 to 240"),
        ([-1, 3], "between 0 and 239. Got -1 to 3"),
    ],
)
def test_bad_node_numbers_are_refused(model, data, nodes, message):
    with pytest.raises(BGCLError, match=message):
        Embedding(model, data, samples=2).fit().transform(nodes)


def test_grid_search_over_a_pipeline_equals_a_head_with_the_best_parameter(model, data):
    nodes, labels = np.arange(data.num_nodes), data.y.numpy()
    pipeline = make_pipeline(Embedding(model, data, samples=4), MixtureClassifier())
    search = GridSearchCV(pipeline, {"mixtureclassifier__C": [0.1, 10.0]}, cv=3).fit(nodes[::2], labels[::2])
    draws = model.sample(data, samples=4).numpy()
    head = MixtureClassifier(C=search.best_params_["mixtureclassifier__C"]).fit(draws[:, ::2], labels[::2])
    np.testing.assert_allclose(search.predict_proba(nodes[1::2]), head.predict_proba(draws[:, 1::2]))
