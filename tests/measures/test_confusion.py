"""The confusion matrix and the figures of each class, against scikit-learn."""

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from bgcl.measures.confusion import Confusion


def test_matrix_and_figures_equal_those_of_scikit_learn():
    random = np.random.default_rng(0)
    label, predicted = random.integers(0, 5, 200), random.integers(0, 4, 200)
    found = Confusion.of(label, predicted, 6)
    np.testing.assert_array_equal(found.matrix, confusion_matrix(label, predicted, labels=range(6)))
    expected = precision_recall_fscore_support(label, predicted, labels=range(6), zero_division=0)
    for mine, theirs in zip((found.precision, found.recall, found.f1, found.support), expected, strict=True):
        np.testing.assert_allclose(mine, theirs)
