"""A recipe survives JSON, and other tables are read as it says."""

import json

import numpy as np
import pytest
import torch
from people import EDGES, NODES, dense, write

from bgcl import BGCLError
from bgcl.data import Recipe
from bgcl.data.own import read_again, read_files


def test_the_recipe_reads_the_same_graph_and_new_nodes(tmp_path):
    reading = read_files(write(tmp_path / "g"))
    recipe = Recipe.from_json(reading.recipe.to_json(), "graph.json")
    assert recipe == reading.recipe
    again = read_again(recipe).data
    torch.testing.assert_close(again.x.to_dense(), reading.data.x.to_dense())
    new = NODES + "joe,99,Oslo,knits dogs,false,x\nzoe,1,Ulm,,,\n"
    found = read_again(recipe, str(write(tmp_path / "h", EDGES + "joe,ann,1\nzoe,joe,1\n", new)))
    np.testing.assert_allclose(dense(found.data)[:4], dense(reading.data))
    x = dict(zip(found.data.attribute_names, dense(found.data)[4], strict=True))
    assert (x["city = Ulm"], x["city = Rome"], x["bio: dogs"]) == (0, 0, 1)
    assert x["age"] == pytest.approx((99 - np.mean([31, 45, 27])) / np.std([31, 45, 27]))
    assert any("'Oslo'" in note for note in found.notes)


def test_a_damaged_recipe_is_a_one_line_error(tmp_path):
    text = read_files(write(tmp_path / "g")).recipe.to_json()
    with pytest.raises(BGCLError, match=r"^graph\.json was written by another version of bgcl"):
        Recipe.from_json(json.dumps(json.loads(text) | {"format": 99}), "graph.json")
    for damaged in (
        text[:-20],
        "[]",
        "{}",
        json.dumps(json.loads(text) | {"more": 1}),
        text.replace('"number"', '"x"'),
    ):
        with pytest.raises(BGCLError, match=r"^graph\.json is damaged") as error:
            Recipe.from_json(damaged, "graph.json")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (None, "the model was trained on nodes with columns, such as 'age'. Give the table of nodes too"),
        (NODES.replace("age", "aged"), "has no column 'age', which the model was trained on. Did you mean aged?"),
        (NODES.replace("45", "old"), "row 3, column 'age': 'old' is not a number, but all values were at training"),
        (
            NODES.replace("true", "1").replace("false", "7"),
            "row 3, column 'active': the value must be true or false, as at training",
        ),
    ],
)
def test_nodes_that_the_recipe_does_not_fit_are_a_one_line_error(tmp_path, nodes, says):
    recipe = read_files(write(tmp_path / "g")).recipe
    with pytest.raises(BGCLError) as error:
        read_again(recipe, str(write(tmp_path / "h", EDGES, nodes)))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_may_be_missing_and_new_classes_get_the_next_numbers(tmp_path):
    recipe = read_files(write(tmp_path / "g")).recipe
    unlabeled = "\n".join(line.rpartition(",")[0] for line in NODES.splitlines())
    found = read_again(recipe, str(write(tmp_path / "h", EDGES, unlabeled))).data
    assert found.y is None
    assert found.classes == ["x", "y"]
    found = read_again(recipe, str(write(tmp_path / "i", EDGES, NODES.replace("true,x", "true,a"))))
    assert (found.data.classes, found.data.y.tolist()) == (["x", "y", "a"], [2, 1, -1, 0])
    assert any("1 class(es), such as 'a', were not seen at training" in note for note in found.notes)


def test_a_recipe_of_a_graph_in_memory_needs_files(tmp_path):
    recipe = Recipe("a", "b", None, None, None, (), True, False)
    with pytest.raises(BGCLError, match="trained on a graph in memory"):
        read_again(recipe)
    assert str(recipe) == "Recipe(0 columns)"


def test_a_new_number_that_is_too_far_from_the_others_is_refused_with_its_row(tmp_path):
    edges = "from,to\n0,1\n1,2\n2,3\n"
    recipe = read_files(write(tmp_path / "g", edges, "id,size\n0,1\n1,2\n2,3\n3,4\n")).recipe
    with pytest.raises(BGCLError, match=r"'size'.*: 1e\+300 is too far from the others, whose mean is 2.5") as caught:
        read_again(recipe, str(write(tmp_path / "h", edges, "id,size\n0,1\n1,2\n2,1e300\n3,4\n")))
    assert "nodes.csv" in str(caught.value)
