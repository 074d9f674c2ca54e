"""Runs that somebody else made, with right checksums and wrong contents: one line, little memory, little time."""

import json
import shutil
import tomllib
import tracemalloc
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import bgcl
from bgcl import BGCL, BGCLError, checkpoint
from bgcl.checkpoint.contents import checks_of, sha256


def graph():
    random = np.random.default_rng(0)
    edges = {"from": random.integers(0, 30, 90), "to": random.integers(0, 30, 90)}
    nodes = {"id": np.arange(30), "age": random.random(30), "city": random.choice(["a", "b"], 30)}
    return bgcl.graph_from(edges, nodes)


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """A run that can resume, from tables."""
    folder = tmp_path_factory.mktemp("original") / "r"
    BGCL(widths=(8, 4), part_width=4, epochs=3).fit(graph(), out=folder, progress=False)
    return folder


@pytest.fixture
def folder(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "r"))


def forge_about(folder: Path, change: Callable[[dict], object]) -> None:
    about = tomllib.loads((folder / "model.toml").read_text())
    del about["sha256"]
    change(about)
    (folder / "model.toml").write_text(checkpoint.with_checksum(tomli_w.dumps(about)))
    forge_tensors(folder, lambda tensors: None)


def forge_tensors(folder: Path, change: Callable[[dict], object]) -> None:
    """Change tensors. The file gets the checksums of what is in the folder, as far as they can be made."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    with safe_open(path, "pt") as file:
        checks = json.loads(file.metadata()[checkpoint.CHECKS])
    change(tensors)
    try:
        about = tomllib.loads((folder / "model.toml").read_text())
        settings = bgcl.Settings(
            **{name: value for group in about["settings"].values() for name, value in group.items()}
        )
        facts = bgcl.data.GraphFacts(**about["graph"])
        checks |= checks_of(settings, facts, (folder / "history.jsonl").read_bytes(), checks["fitted"])
    except (BGCLError, KeyError, TypeError, AttributeError):
        pass
    checks["tensors"] = checkpoint.checksum(tensors)
    save_file(tensors, path, {checkpoint.CHECKS: json.dumps(checks)})


def forge_recipe(folder: Path, text: str) -> None:
    (folder / "graph.json").write_text(text)
    forge_about(folder, lambda about: about.update(recipe=sha256(text)))


def refused(folder: Path, *messages: str) -> None:
    with pytest.raises(BGCLError) as caught:
        BGCL.load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    assert all(message in text for message in messages), text


def put(*keys: str) -> Callable[[Any], Callable[[dict], None]]:
    """A function of a value that makes a change: the entry at these keys becomes the value."""

    def of(value: Any) -> Callable[[dict], None]:
        def change(values: dict) -> None:
            for key in keys[:-1]:
                values = values[key]
            values[keys[-1]] = value

        return change

    return of


WIDTHS, ATTRIBUTES = put("settings", "encoder", "widths"), put("graph", "num_attributes")
LARGE = {
    "wide layers": WIDTHS([16384] * 3),
    "as wide as can be": WIDTHS([65536] * 16),
    "a trillion attributes": ATTRIBUTES(10**12),
    "more attributes than a number of 64 bits": ATTRIBUTES(10**30),
    "a trillion nodes": put("graph", "nodes")(10**12),
    "negative attributes": ATTRIBUTES(-(10**12)),
    "wide parts": put("settings", "encoder", "part_width")(65536),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_network_that_is_larger_than_its_tensors_is_refused_before_memory_is_taken(folder, name):
    forge_about(folder, LARGE[name])
    tracemalloc.start()
    refused(folder, "does not fit model.toml: ")
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


@pytest.mark.parametrize("encoder", ["gcn", "hops", "sage", "gin", "gat", "pyg:GCNConv", "pyg:GraphConv"])
@pytest.mark.parametrize("objective", ["infonce", "bootstrap", "infomax", "decorrelation"])
def test_wide_layers_of_any_encoder_are_refused(tmp_path, encoder, objective):
    data = bgcl.example_graph(60)
    BGCL(encoder=encoder, objective=objective, widths=(8, 4), epochs=1).fit(data, out=tmp_path, progress=False)
    BGCL.load(tmp_path)
    forge_about(tmp_path, WIDTHS([65536] * 3))
    refused(tmp_path, "settings and graph describe a larger network than the one whose tensors were saved")


ABOUTS = {
    "a billion blocks": put("settings", "augmentation", "drop")(["connections in 999999999 blocks per block"]),
    "the same at a fixed rate": put("settings", "augmentation", "drop")(["connections in 999999999 blocks at 0.5"]),
    "a list of settings": put("settings")([1]),
    "a group that is a number": put("settings", "encoder")(3),
    "no graph": lambda about: about.pop("graph"),
    "a graph that is a text": put("graph")("cora"),
    "nodes that are infinite": put("graph", "nodes")(float("inf")),
    "nodes that are a list": put("graph", "nodes")([]),
    "a recipe that is a number": put("recipe")(3),
    "a date": put("graph", "edges")(date(2020, 1, 1)),
    "no format": lambda about: about.pop("format"),
    "widths of texts": WIDTHS(["a"]),
    "widths in lists": WIDTHS([[[8]]]),
}


@pytest.mark.parametrize("name", ABOUTS)
def test_wrong_types_in_model_toml(folder, name):
    forge_about(folder, ABOUTS[name])
    refused(folder, "model.toml")


TEXTS = {
    "deep lists": "x = " + "[" * 100_000,
    "whole deep lists": "x = " + "[" * 5000 + "]" * 5000,
    "deep tables": "[" + ".".join("a" * 5000) + "]\nx = 1",
    "deep inline tables": "x = " + "{a = " * 5000 + "1" + "}" * 5000,
    "5,000 digits": f"format = {'9' * 5000}",
    "a million digits": f"format = {'9' * 1_000_000}",
    "two million letters": f"format = 6\nx = '{'a' * 2_000_000}'",
    "not UTF-8": b"format = \xff",
    "nothing": "",
    "zeros": b"\0" * 1000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_model_toml_that_no_program_wrote(folder, name):
    text = TEXTS[name]
    (folder / "model.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(folder, "model.toml is damaged")


JSON = {
    "null": "null",
    "a number": "3",
    "a text": '"format"',
    "a list": "[]",
    "deep lists": "[" * 100_000,
    "deep dictionaries": '{"a":' * 5000 + "1" + "}" * 5000,
    "5,000 digits": f'{{"format": {"9" * 5000}}}',
    "not UTF-8": b"\xff",
    "zeros": b"\0" * 100,
}


@pytest.mark.parametrize("name", JSON)
def test_a_line_of_the_history_that_no_program_wrote(folder, name):
    text = JSON[name]
    lines = (folder / "history.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = (text if isinstance(text, bytes) else text.encode()) + b"\n"
    (folder / "history.jsonl").write_bytes(b"".join(lines))
    forge_tensors(folder, lambda tensors: None)
    refused(folder, "history.jsonl is damaged (line 2")


RECORDS = {
    "no loss": {"loss": None},
    "a loss in letters": {"loss": "small"},
    "rates that are a number": {"rates": 3},
    "rates that are texts": {"rates": {"o": ["x"], "t": []}},
    "an epoch in a list": {"epoch": [1]},
    "another epoch": {"epoch": 7},
}


@pytest.mark.parametrize("name", RECORDS)
def test_wrong_values_in_the_history(folder, name):
    lines = (folder / "history.jsonl").read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | RECORDS[name])
    (folder / "history.jsonl").write_text("\n".join([*lines, ""]))
    forge_tensors(folder, lambda tensors: None)
    refused(folder, "history.jsonl is damaged (line 2")


@pytest.mark.parametrize("name", [name for name in JSON if not isinstance(JSON[name], bytes)])
def test_a_graph_json_that_no_program_wrote(folder, name):
    forge_recipe(folder, JSON[name])
    refused(folder, "graph.json is damaged")


RECIPES = {
    "columns that are a number": put("columns")(3),
    "columns that are null": put("columns")(None),
    "a column that is null": put("columns")([None]),
    "a column of no kind": put("columns")([{"name": "x"}]),
    "a column of an unknown kind": put("columns")([{"name": "x", "kind": "map"}]),
    "a column whose kind is a list": put("columns")([{"name": "x", "kind": []}]),
    "a name that is a number": put("columns")([{"name": 3, "kind": "number"}]),
    "a mean in letters": put("columns")([{"name": "x", "kind": "number", "mean": "low"}]),
    "words that are numbers": put("columns")([{"name": "x", "kind": "words", "words": [1, 2]}]),
    "words that are one text": put("columns")([{"name": "x", "kind": "words", "words": "many"}]),
    "an entry more": put("columns")([{"name": "x", "kind": "words", "more": 1}]),
    "classes in lists": put("classes")([[1], [2]]),
    "classes that are a text": put("classes")("abc"),
    "a source that is null": put("source")(None),
    "a label that is a list": put("label")(["a"]),
    "a path that is a number": put("edges_file")(3),
    "another format": put("format")([1]),
    "structural in letters": put("structural")("perhaps"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_wrong_types_in_graph_json(folder, name):
    values = json.loads((folder / "graph.json").read_text())
    RECIPES[name](values)
    forge_recipe(folder, json.dumps(values))
    refused(folder, "graph.json")


def drop(*words: str) -> Callable[[dict], None]:
    def change(tensors: dict) -> None:
        for name in [name for name in tensors if any(word in name for word in words)]:
            del tensors[name]

    return change


TRAININGS = {
    "no state of the optimizer": drop("training.weights"),
    "half of the state": drop("exp_avg_sq"),
    "a state in int8": lambda t: t.update(
        {"training.weights.0.exp_avg": t["training.weights.0.exp_avg"].to(torch.int8)}
    ),
    "a state in another shape": lambda t: t.update({"training.weights.0.exp_avg": torch.zeros(1)}),
    "a state of a parameter that is not": lambda t: t.update({"training.weights.99.step": torch.zeros(())}),
    "an unknown state": lambda t: t.update({"training.momentum": torch.zeros(3)}),
    "no generator": drop("training.generator"),
    "a generator in float": lambda t: t.update({"training.generator": t["training.generator"].float()}),
    "a short generator": lambda t: t.update({"training.generator": t["training.generator"][:7].clone()}),
    "no epoch": drop("training.epoch"),
    "an epoch that is NaN": lambda t: t.update({"training.epoch": torch.tensor(torch.nan)}),
    "two epochs": lambda t: t.update({"training.epoch": torch.tensor([1, 2])}),
    "an empty epoch": lambda t: t.update({"training.epoch": torch.zeros(0)}),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_a_state_of_the_training_that_does_not_fit_cannot_resume(tmp_path, name):
    settings = {"widths": (8, 4), "part_width": 4}
    data = bgcl.example_graph(60)
    BGCL(**settings, epochs=2).fit(data, out=tmp_path, progress=False)
    forge_tensors(tmp_path, TRAININGS[name])
    with pytest.raises(BGCLError, match=r"is damaged") as caught:
        BGCL(**settings, epochs=3).fit(data, out=tmp_path, resume=True, progress=False)
    assert "\n" not in str(caught.value)


def test_a_recipe_in_other_words_stays_when_a_run_resumes(folder):
    """Another version of bgcl wrote it. Two files that belong together cannot be replaced at once."""
    recipe = json.loads((folder / "graph.json").read_text())
    del recipe["bipartite"]  # an entry that this version adds, with its default
    forge_recipe(folder, json.dumps(recipe))
    before = (folder / "graph.json").read_bytes()
    BGCL(widths=(8, 4), part_width=4, epochs=4).fit(graph(), out=folder, resume=True, progress=False)
    assert (folder / "graph.json").read_bytes() == before
    assert BGCL.load(folder).recipe_ is not None


@pytest.mark.parametrize(
    "name", ["model.toml", "model.safetensors", "fitted.safetensors", "history.jsonl", "graph.json"]
)
def test_a_file_without_permission_is_not_called_damaged(folder, name, monkeypatch):
    real = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    refused(folder, f"Cannot read {folder / name}: Permission denied.")


def test_a_lock_that_is_a_link_does_not_touch_what_it_points_to(folder, tmp_path):
    (tmp_path / "precious").write_text("mine")
    (folder / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(BGCLError, match="Cannot write"):
        BGCL.load(folder).save(folder)
    assert (tmp_path / "precious").read_text() == "mine"
