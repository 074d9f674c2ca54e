"""Folders of tables as their publishers have them are read without an option."""

import csv
from pathlib import Path

import numpy as np
import pytest

from bgcl.data.inspection import inspect
from bgcl.data.own import read_files


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


@pytest.fixture
def twitch(larger: Path) -> Path:
    if not (larger / "twitch").is_dir():
        pytest.skip("the folder twitch is not there")
    return larger / "twitch"


@pytest.fixture
def lastfm(larger: Path) -> Path:
    if not (larger / "lastfm").is_dir():
        pytest.skip("the folder lastfm is not there")
    return larger / "lastfm"


def test_twitch_has_the_attributes_and_labels_of_its_files(twitch):
    reading = read_files(twitch)
    data, found = reading.data, inspect(reading)
    assert (found.nodes, found.edges, found.labeled) == (7126, 35324, 7126)
    pairs = {(int(node), int(feature)) for node, feature, _ in rows_of(twitch / "features.csv")}
    row, column = np.nonzero(data.x.to_dense().numpy())
    names = [int(name.split()[-1]) for name in data.attribute_names]
    assert {(int(data.ids[i]), names[j]) for i, j in zip(row, column, strict=True)} == pairs
    labels = {int(node): int(label) for node, label in rows_of(twitch / "target.csv")}
    assert [data.classes[each] for each in data.y] == [labels[node] for node in data.ids.tolist()]
    told = "; ".join(found.guesses)
    assert "features.csv has the attributes, target.csv has the labels" in told


def test_lastfm_has_labels_and_no_attributes(lastfm):
    reading = read_files(lastfm)
    found = inspect(reading)
    assert (found.nodes, found.edges, len(found.classes), min(found.classes.values())) == (7624, 27806, 18, 16)
    assert reading.recipe.structural
