"""The splits of each protocol: sizes, disjoint parts, seeds, and errors."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bgcl import BGCLError, splits
from bgcl.downstream.splits import development_half, labels_of, usual_protocol


def labeled_graph(nodes: int = 100, classes: int = 2, unlabeled: int = 0) -> Data:
    y = torch.arange(nodes) % classes
    y[:unlabeled] = -1
    return Data(x=torch.zeros(nodes, 1), y=y)


def parts(split) -> tuple[set[int], set[int], set[int]]:
    return set(split.train), set(split.validation), set(split.test)


def equal(one, other) -> bool:
    names = ("train", "validation", "test")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize(("protocol", "count"), [("grace", 50), ("bgrl", 20)])
@pytest.mark.parametrize("unlabeled", [0, 33])
def test_random_splits_have_their_sizes_are_disjoint_and_cover_all_labeled_nodes(protocol, count, unlabeled):
    data = labeled_graph(233, unlabeled=unlabeled)
    labeled = {n for n in range(233) if data.y[n] >= 0}
    found = splits(data, protocol)
    assert len(found) == count
    for split in found:
        train, validation, test = parts(split)
        assert len(train) == len(labeled) // 10
        assert len(validation) == (len(labeled) // 10 if protocol == "bgrl" else 0)
        assert len(train) + len(validation) + len(test) == len(labeled)
        assert train | validation | test == labeled
    assert not equal(found[0], found[1])


@pytest.mark.parametrize(("protocol", "sizes"), [("bgrl-20", (46, 23, 164)), ("half", (116, 0, 117))])
def test_protocols_with_more_training_nodes_have_their_sizes(protocol, sizes):
    found = splits(labeled_graph(233), protocol)
    assert len(found) == 20
    for split in found:
        assert tuple(map(len, parts(split))) == sizes
        assert set.union(*parts(split)) == set(range(233))


def test_a_training_node_of_bgrl_is_one_of_bgrl_20_too():
    data = labeled_graph(233)
    for few, many in zip(splits(data, "bgrl"), splits(data, "bgrl-20"), strict=True):
        assert set(few.train) < set(many.train)


@pytest.mark.parametrize("protocol", ["grace", "bgrl", "bgrl-20", "half"])
def test_the_first_splits_do_not_depend_on_the_count(protocol):
    data = labeled_graph()
    many = splits(data, protocol, 12, seed=3)
    for count in (1, 5):
        few = splits(data, protocol, count, seed=3)
        assert len(few) == count
        assert all(equal(one, other) for one, other in zip(few, many, strict=False))


@pytest.mark.parametrize("unlabeled", [0, 33])
def test_development_splits_stay_within_a_fixed_half_of_the_nodes(unlabeled):
    data = labeled_graph(233, unlabeled=unlabeled)
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


def test_two_seeds_have_no_split_in_common():
    data = labeled_graph()
    one, other = splits(data, seed=0), splits(data, seed=1)
    assert not any(equal(a, b) for a in one for b in other)


def test_splits_depend_on_the_labeled_nodes_and_not_on_the_attributes():
    data = labeled_graph()
    other = Data(x=torch.rand(100, 7), y=data.y)
    assert all(equal(a, b) for a, b in zip(splits(data), splits(other), strict=True))


def test_all_nodes_are_training_nodes_about_equally_often():
    counts = np.zeros(300)
    for split in splits(labeled_graph(300), "grace", 400):
        counts[split.train] += 1
    assert counts.mean() == 40
    assert np.abs(counts - 40).max() < 5 * np.sqrt(400 * 0.1 * 0.9)


def masked(data: Data, columns: int | None = None) -> Data:
    """Random masks: 1-D, or one column for each split. The test mask is always 1-D, as in WikiCS."""
    random = np.random.default_rng(0)
    group = random.integers(3, size=(data.num_nodes, columns or 1))
    for i, name in enumerate(("train_mask", "val_mask", "test_mask")):
        mask = group == i
        data[name] = torch.as_tensor(mask if columns and name != "test_mask" else mask[:, 0])
    return data


def test_public_masks_of_one_split():
    data = masked(labeled_graph())
    (split,) = splits(data, "public")
    for nodes, mask in zip(parts(split), (data.train_mask, data.val_mask, data.test_mask), strict=True):
        assert nodes == {n for n in range(100) if mask[n]}


@pytest.mark.parametrize("protocol", ["public", "wikics"])
def test_public_masks_of_many_splits_with_one_test_set(protocol):
    data = masked(labeled_graph(), columns=4)
    found = splits(data, protocol)
    assert len(found) == 4
    for i, split in enumerate(found):
        train, validation, test = parts(split)
        assert train == {n for n in range(100) if data.train_mask[n, i]}
        assert validation == {n for n in range(100) if data.val_mask[n, i]}
        assert test == {n for n in range(100) if data.test_mask[n]}
    assert all(equal(a, b) for a, b in zip(splits(data, protocol, 2), found, strict=False))


@pytest.mark.parametrize("columns", [None, 3])
def test_unlabeled_nodes_are_not_in_public_splits(columns):
    data = masked(labeled_graph(unlabeled=30), columns)
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
def test_each_data_set_has_the_protocol_that_papers_use(name, protocol):
    data = labeled_graph()
    if name:
        data.name = name
    assert usual_protocol(data) == protocol


def graph_with_counts(counts: list[int]) -> Data:
    y = torch.as_tensor(np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts)))
    return Data(x=torch.zeros(len(y), 1), y=y)


@pytest.mark.parametrize("protocol", ["grace", "bgrl", "bgrl-20", "half", "development"])
@pytest.mark.parametrize("few", [1, 2, 3, 16])
def test_every_class_trains_with_two_nodes_and_is_tested_if_it_has_three(protocol, few):
    data = graph_with_counts([900, 80, few])
    y, sizes = data.y.numpy(), set()
    for split in splits(data, protocol):
        count = np.bincount(y[split.train], minlength=3)
        there = (y[development_half(len(y))] == 2).sum() if protocol == "development" else few
        assert count[2] >= min(2, there)
        assert count[1] >= 2
        sizes.add(tuple(len(part) for part in parts(split)))
        assert len(set.union(*parts(split))) == sum(len(part) for part in parts(split))
        if few >= 16 and protocol != "half":
            assert (y[split.test] == 2).any()
    assert len(sizes) == 1, "nodes change places, and no part grows"


def test_splits_with_two_of_every_class_stay_as_chance_makes_them():
    data = graph_with_counts([500, 400, 300])
    for i, split in enumerate(splits(data, "grace", 10, seed=4)):
        nodes = np.random.default_rng((4, i)).permutation(1200)
        np.testing.assert_array_equal(split.train, nodes[:120])
        np.testing.assert_array_equal(split.test, nodes[120:])


def test_half_is_the_usual_protocol_if_a_tenth_is_too_few_for_every_class():
    assert usual_protocol(graph_with_counts([20, 20, 19])) == "half"
    assert usual_protocol(graph_with_counts([20, 20, 20])) == "grace"


class TestRefused:
    def refused(self, message, data, *args):
        with pytest.raises(BGCLError, match=message) as caught:
            splits(data, *args)
        assert "\n" not in str(caught.value)

    def test_no_labels(self):
        self.refused(r"no labels \(data.y\)", Data(x=torch.zeros(5, 1)))

    def test_no_labeled_node(self):
        self.refused("No node is labeled", labeled_graph(20, unlabeled=20))

    @pytest.mark.parametrize("y", [torch.zeros(20, 1), torch.zeros(20, 2, 2, dtype=torch.long)])
    def test_labels_that_are_not_class_numbers(self, y):
        self.refused("one class number for each node", Data(x=torch.zeros(20, 1), y=y))

    def test_several_labels_that_are_neither_there_nor_not(self):
        self.refused("a value of node 0 is neither 1", Data(x=torch.zeros(20, 1), y=torch.full((20, 2), 0.5)))

    def test_a_class_without_a_training_node_in_published_masks(self):
        data = masked(labeled_graph())
        data.y = torch.zeros(100, dtype=torch.long)
        data.y[int(torch.where(data.test_mask)[0][0])] = 5
        self.refused("Class 5 has no training node in split 1 of the protocol 'public'", data, "public")

    def test_fewer_training_nodes_than_classes(self):
        self.refused("10 of 100 labeled nodes train.*or use the protocol half", labeled_graph(100, classes=11))

    def test_an_unknown_protocol_names_the_nearest(self):
        self.refused("Unknown protocol 'grac'. Did you mean grace?", labeled_graph(), "grac")

    def test_an_unknown_protocol_without_a_near_one_names_all(self):
        self.refused("Known: grace, bgrl, bgrl-20, half, public, wikics", labeled_graph(), "zzz")

    def test_no_masks(self):
        self.refused(r"no published masks \(data.train_mask\). Use the protocol grace", labeled_graph(), "public")

    def test_one_mask_missing(self):
        data = masked(labeled_graph())
        del data.val_mask
        self.refused(r"data.val_mask", data, "public")

    def test_more_splits_than_are_published(self):
        self.refused("has 4 published splits, not 5. Ask for 4 or fewer", masked(labeled_graph(), 4), "public", 5)

    @pytest.mark.parametrize("count", [0, -1])
    def test_no_splits(self, count):
        self.refused(f"must be 1 or more. Got {count} instead", labeled_graph(), "grace", count)

    @pytest.mark.parametrize("protocol", ["grace", "bgrl"])
    def test_too_few_labeled_nodes(self, protocol):
        self.refused("Only 19 nodes are labeled: too few to train on 10% of them", labeled_graph(19), protocol)

    def test_an_empty_test_set(self):
        data = masked(labeled_graph())
        data.test_mask = torch.zeros(100, dtype=torch.bool)
        self.refused("has no test node", data, "public")


def test_labels_of_a_graph_are_minus_one_for_unlabeled_nodes():
    np.testing.assert_array_equal(labels_of(labeled_graph(5, 3, unlabeled=2)), [-1, -1, 2, 0, 1])


def test_a_split_too_small_for_two_of_every_class_has_one_of_each():
    data = Data(
        x=torch.ones(54, 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.arange(54) % 3, num_nodes=54
    )
    for split in splits(data, "bgrl", 20):  # 5 of 54 nodes train
        assert set(data.y[split.train].tolist()) == {0, 1, 2}
    many = Data(x=torch.ones(54, 1), edge_index=data.edge_index, y=torch.arange(54) % 6, num_nodes=54)
    with pytest.raises(BGCLError, match="too few for 6 classes"):
        splits(many, "bgrl", 1)
