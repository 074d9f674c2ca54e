"""Splits by a protocol: their sizes, that nothing leaks between their parts, their seeds, and what is refused."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCLError, splits
from bgcl.downstream.splits import development_half, labels_of, suited_to


def labelled_graph(nodes: int = 100, classes: int = 2, unlabelled: int = 0) -> Data:
    y = torch.arange(nodes) % classes
    y[:unlabelled] = -1
    return Data(x=torch.zeros(nodes, 1), y=y)


def parts(split) -> tuple[set[int], set[int], set[int]]:
    return set(split.train), set(split.validation), set(split.test)


def equal(one, other) -> bool:
    names = ("train", "validation", "test")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize(("protocol", "count"), [("grace", 50), ("bgrl", 20)])
@pytest.mark.parametrize("unlabelled", [0, 33])
def test_random_splits_have_their_sizes_are_disjoint_and_cover_all_labelled_nodes(protocol, count, unlabelled):
    data = labelled_graph(233, unlabelled=unlabelled)
    labelled = {n for n in range(233) if data.y[n] >= 0}
    found = splits(data, protocol)
    assert len(found) == count
    for split in found:
        train, validation, test = parts(split)
        assert len(train) == len(labelled) // 10
        assert len(validation) == (len(labelled) // 10 if protocol == "bgrl" else 0)
        assert len(train) + len(validation) + len(test) == len(labelled)
        assert train | validation | test == labelled
    assert not equal(found[0], found[1])


@pytest.mark.parametrize("protocol", ["grace", "bgrl"])
def test_the_first_splits_are_the_same_whatever_the_number_asked_for(protocol):
    data = labelled_graph()
    many = splits(data, protocol, 12, seed=3)
    for count in (1, 5):
        few = splits(data, protocol, count, seed=3)
        assert len(few) == count
        assert all(equal(one, other) for one, other in zip(few, many, strict=False))


@pytest.mark.parametrize("unlabelled", [0, 33])
def test_development_splits_stay_within_a_fixed_half_of_the_nodes(unlabelled):
    data = labelled_graph(233, unlabelled=unlabelled)
    half = {int(node) for node in development_half(233) if data.y[node] >= 0}
    assert len(development_half(233)) == 116
    found = splits(data, "development")
    assert len(found) == 20
    for split in found:
        train, validation, test = parts(split)
        assert len(train) == 23
        assert not validation
        assert train | test == half
        assert not train & test
    assert not equal(found[0], found[1])
    assert equal(found[0], splits(data, "development", count=1)[0])


def test_another_seed_gives_other_splits_and_none_in_common():
    data = labelled_graph()
    one, other = splits(data, seed=0), splits(data, seed=1)
    assert not any(equal(a, b) for a in one for b in other)


def test_splits_depend_on_the_labelled_nodes_and_not_on_the_attributes():
    data = labelled_graph()
    other = Data(x=torch.rand(100, 7), y=data.y)
    assert all(equal(a, b) for a, b in zip(splits(data), splits(other), strict=True))


def test_every_node_is_in_training_about_as_often():
    counts = np.zeros(300)
    for split in splits(labelled_graph(300), "grace", 400):
        counts[split.train] += 1
    assert counts.mean() == 40
    assert np.abs(counts - 40).max() < 5 * np.sqrt(400 * 0.1 * 0.9)


def masked(data: Data, columns: int | None = None) -> Data:
    """Masks at random: 1-D, or with a column for each of many splits; the test mask has one, as WikiCS's."""
    random = np.random.default_rng(0)
    group = random.integers(3, size=(data.num_nodes, columns or 1))
    for i, name in enumerate(("train_mask", "val_mask", "test_mask")):
        mask = group == i
        data[name] = torch.as_tensor(mask if columns and name != "test_mask" else mask[:, 0])
    return data


def test_public_masks_of_one_split():
    data = masked(labelled_graph())
    (split,) = splits(data, "public")
    for nodes, mask in zip(parts(split), (data.train_mask, data.val_mask, data.test_mask), strict=True):
        assert nodes == {n for n in range(100) if mask[n]}


@pytest.mark.parametrize("protocol", ["public", "wikics"])
def test_public_masks_of_many_splits_with_one_test_set(protocol):
    data = masked(labelled_graph(), columns=4)
    found = splits(data, protocol)
    assert len(found) == 4
    for i, split in enumerate(found):
        train, validation, test = parts(split)
        assert train == {n for n in range(100) if data.train_mask[n, i]}
        assert validation == {n for n in range(100) if data.val_mask[n, i]}
        assert test == {n for n in range(100) if data.test_mask[n]}
    assert all(equal(a, b) for a, b in zip(splits(data, protocol, 2), found, strict=False))


@pytest.mark.parametrize("columns", [None, 3])
def test_unlabelled_nodes_take_no_part_in_public_splits_either(columns):
    data = masked(labelled_graph(unlabelled=30), columns)
    for split in splits(data, "public"):
        assert min(n for part in parts(split) for n in part) >= 30


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("cora", "grace"),
        ("citeseer", "grace"),
        ("amazon-photo", "bgrl"),
        ("amazon-computers", "bgrl"),
        ("coauthor-cs", "bgrl"),
        ("wikics", "wikics"),
        (None, "grace"),
    ],
)
def test_each_data_set_has_the_protocol_of_the_papers(name, protocol):
    data = labelled_graph()
    if name:
        data.name = name
    assert suited_to(data) == protocol


class TestRefused:
    def refused(self, message, data, *args):
        with pytest.raises(BGCLError, match=message) as caught:
            splits(data, *args)
        assert "\n" not in str(caught.value)

    def test_no_labels(self):
        self.refused(r"no labels \(data.y\)", Data(x=torch.zeros(5, 1)))

    def test_no_labelled_node(self):
        self.refused("No node is labelled", labelled_graph(20, unlabelled=20))

    @pytest.mark.parametrize("y", [torch.zeros(20), torch.zeros(20, 2, dtype=torch.long)])
    def test_labels_that_are_no_class_numbers(self, y):
        self.refused("one class number for each node", Data(x=torch.zeros(20, 1), y=y))

    def test_a_class_without_a_training_node(self):
        data = labelled_graph()
        data.y = torch.zeros(100, dtype=torch.long)
        data.y[-1] = 5
        self.refused("Class 5 has no training node in split 1 of the protocol 'grace'", data)

    def test_an_unknown_protocol_names_the_nearest(self):
        self.refused("Unknown protocol 'grac'. Did you mean grace?", labelled_graph(), "grac")

    def test_an_unknown_protocol_that_is_near_none_names_all(self):
        self.refused("Known: grace, bgrl, public, wikics", labelled_graph(), "zzz")

    def test_no_masks(self):
        self.refused(r"no published masks \(data.train_mask\). Take the protocol grace", labelled_graph(), "public")

    def test_one_mask_missing(self):
        data = masked(labelled_graph())
        del data.val_mask
        self.refused(r"data.val_mask", data, "public")

    def test_more_splits_than_are_published(self):
        self.refused("has 4 published splits, not 5", masked(labelled_graph(), 4), "public", 5)

    @pytest.mark.parametrize("count", [0, -1])
    def test_no_splits(self, count):
        self.refused(f"must be 1 or more. Got {count} instead", labelled_graph(), "grace", count)

    @pytest.mark.parametrize("protocol", ["grace", "bgrl"])
    def test_too_few_labelled_nodes(self, protocol):
        self.refused("Only 19 nodes are labelled: too few to train on 10% of them", labelled_graph(19), protocol)

    def test_an_empty_test_set(self):
        data = masked(labelled_graph())
        data.test_mask = torch.zeros(100, dtype=torch.bool)
        self.refused("has no test node", data, "public")


def test_labels_are_those_of_the_graph():
    np.testing.assert_array_equal(labels_of(labelled_graph(5, 3, unlabelled=2)), [-1, -1, 2, 0, 1])
