"""Attributes in long form: numbers of any size, and values that are missing."""

import logging

import numpy as np
import pytest

import bgcl
from bgcl import BGCLError

EDGES = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(7))


@pytest.fixture
def long_form(tmp_path):
    """Reads rows of node, feature and value."""

    def read(rows):
        (tmp_path / "edges.csv").write_text(EDGES)
        (tmp_path / "features.csv").write_text("id,feature,value\n" + "".join(f"{n},{f},{v}\n" for n, f, v in rows))
        return bgcl.load(tmp_path, feature="feature")

    return read


def column(data, name):
    return data.x.to_dense().numpy()[:, data.attribute_names.index(name)]


def test_numbers_of_any_size_have_the_same_attributes(long_form):
    plain = long_form([(i, "a", f"{i + 1}.0") for i in range(8)])
    assert np.std(column(plain, "a")) == pytest.approx(1)
    for size in ("e200", "e-200", "e307"):
        data = long_form([(i, "a", f"{i + 1}{size}") for i in range(8)])
        np.testing.assert_allclose(column(data, "a"), column(plain, "a"), rtol=1e-6)


def test_features_of_some_nodes_keep_their_scale_at_any_size(long_form):
    rows = [(i, "b", "1") for i in range(8)]
    plain = long_form([*rows, (0, "a", "3"), (1, "a", "4")])
    great = long_form([*rows, (0, "a", "3e180"), (1, "a", "4e180")])
    np.testing.assert_allclose(column(great, "a"), column(plain, "a"), rtol=1e-6)


def test_a_node_without_a_value_is_as_one_without_the_row(long_form, caplog):
    rows = [(i, name, i + 1) for i in range(8) for name in ("a", "b")]
    with caplog.at_level(logging.WARNING):
        empty = long_form([(n, f, "" if (n, f) == (3, "a") else v) for n, f, v in rows])
    assert "1 row(s) have no value. They are as if they were not there." in caplog.text
    absent = long_form([row for row in rows if row[:2] != (3, "a")])
    np.testing.assert_array_equal(empty.x.to_dense(), absent.x.to_dense())
    assert column(empty, "a")[3] == 0


def test_an_infinite_value_among_texts_is_refused_with_its_row(long_form):
    rows = [row for i in range(8) for row in ((i, "a", "1e400" if i == 3 else i), (i, "city", "Ulm"))]
    with pytest.raises(BGCLError, match=r"features.csv, row 8, column 'value': the value is infinite"):
        long_form(rows)


def test_a_value_far_from_those_at_training_is_refused_with_its_row(long_form, tmp_path):
    data = long_form([(i, "a", f"{i}e-300") for i in range(8)])
    (tmp_path / "features.csv").write_text("id,feature,value\n" + "".join(f"{i},a,{i}\n" for i in range(8)))
    from bgcl.data.own import read_files

    with pytest.raises(BGCLError, match=r"features.csv, row 3, column 'value': 1 is too far from the others"):
        read_files(tmp_path, recipe=data.recipe)


def test_a_table_whose_features_are_all_constant_is_named(long_form, caplog):
    with caplog.at_level(logging.WARNING):
        long_form([(i, name, 7 if name == "a" else 5) for i in range(8) for name in ("a", "b")])
    assert "features.csv has no usable column" in caplog.text
