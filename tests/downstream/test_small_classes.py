"""Classes with few labeled nodes are left out, merged or kept."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCLError
from bgcl.downstream import settle_classes
from bgcl.downstream.small_classes import with_pairs


def graph(counts: list[int], names: list[str] | None = None) -> Data:
    y = torch.as_tensor(np.repeat(np.arange(-1, len(counts)), [2, *counts]))
    data = Data(x=torch.zeros(len(y), 1), y=y)
    data.ids = np.arange(len(y))
    if names is not None:
        data.classes = names
    return data


def test_classes_with_three_labeled_nodes_stay_as_they_are():
    data = graph([5, 3])
    assert settle_classes(data) == (data, None, "")


def test_nodes_of_a_small_class_count_as_unlabeled():
    data = graph([5, 2, 3])
    found, _, note = settle_classes(data)
    assert found.y.tolist() == [-1, -1, 0, 0, 0, 0, 0, -1, -1, 2, 2, 2]
    assert note.startswith("Class 1 has fewer than 3 labeled nodes and is left out")
    assert (data.y == 1).sum() == 2, "the graph of the user is not changed"


def test_small_classes_are_merged_into_a_class_after_the_others():
    found, _, note = settle_classes(graph([5, 2, 3, 1], ["a", "b", "c", "d"]), small="merge")
    assert found.y.tolist() == [-1, -1, 0, 0, 0, 0, 0, 4, 4, 2, 2, 2, 4]
    assert found.classes == ["a", "b", "c", "d", "(other)"]
    assert note == "2 classes (b, d) have fewer than 3 labeled nodes and are merged into (other)."
    alone, _, note = settle_classes(graph([5, 2, 3]), small="merge")
    assert (alone.y == 1).sum() == 0
    assert "left out, because together they have too few" in note


@pytest.mark.parametrize("counts", [[2, 2], [9, 2], [1, 1]])
def test_two_classes_are_left_or_all_are_kept(counts):
    data = graph(counts)
    found, _, note = settle_classes(data)
    assert found is data
    assert "fewer than two classes would be left" in note


def test_labels_of_both_graphs_count():
    one, other = graph([5, 1], ["a", "b"]), graph([4, 3], ["c", "b"])
    other.ids = other.ids + 100
    settled = settle_classes(one, other)
    assert settled[2] == "", "b has four labeled nodes, and c and a have four and five"
    other.y[other.y == 1] = -1
    found, also, note = settle_classes(one, other)
    assert note.startswith("Class b has fewer than 3")
    assert found.classes == also.classes == ["a", "b", "c"]
    assert set(found.y.tolist()) == {-1, 0}
    assert set(also.y.tolist()) == {-1, 2}


def test_an_unknown_way_names_the_nearest():
    with pytest.raises(BGCLError, match="Did you mean keep"):
        settle_classes(graph([5, 1]), small="kep")


def test_only_a_single_node_of_a_class_comes_twice():
    labels = np.array([0, 0, 1, 2, 2, 1])
    assert with_pairs(np.array([0, 1, 2, 3]), labels).tolist() == [0, 1, 2, 3, 2, 3]
    assert with_pairs(np.arange(6), labels).tolist() == [0, 1, 2, 3, 4, 5]
