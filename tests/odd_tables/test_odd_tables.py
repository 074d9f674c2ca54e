"""The catalogue of odd tables: each is understood as it is meant, or refused with the option that settles it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from bgcl import BGCLError
from bgcl.data.inspection import inspect
from bgcl.data.options import make_options
from bgcl.data.own import read_again, read_files
from bgcl.data.reading import Reading
from bgcl.data.recipe import Recipe
from odd_tables.catalogue import OddTable, odd_tables, write_files

CASES = odd_tables()


@pytest.mark.parametrize("odd", CASES, ids=[odd.name for odd in CASES])
def test_an_odd_table_is_understood_or_refused(odd: OddTable, tmp_path: Path):
    case = odd.case
    path = write_files(case, tmp_path)
    files = {name: tmp_path / case[name] for name in ("nodes_file", "labels_file") if name in case}
    given = {name.removesuffix("_file"): file for name, file in files.items()}
    if "error" in case:
        with pytest.raises(BGCLError, match=case["error"]) as error:
            read_files(path, options=make_options(**case.get("options", {})), **given)
        assert len(str(error.value).splitlines()) == 1
        return
    reading = read_files(path, options=make_options(**case.get("options", {})), **given)
    found = what_is_understood(reading)
    for name in found.keys() & case.keys():
        assert found[name] == case[name], name
    told = "\n".join([*reading.guesses, *reading.notes])
    for pattern in case.get("says", []):
        assert re.search(pattern, told), told
    for pattern in case.get("silent", []):
        assert not re.search(pattern, told), told
    check_read_again(reading)


OPTIONS = sorted({name for odd in CASES for name in odd.case.get("options", {})} | {"labels_file"})


@pytest.mark.parametrize("name", OPTIONS)
def test_a_command_understands_the_same_by_its_options(name: str, tmp_path: Path, run):
    """The first case with each option, read by `bgcl inspect`."""
    uses = [odd.case for odd in CASES if name in odd.case or name in odd.case.get("options", {})]
    case = next(case for case in uses if "error" not in case)
    path = write_files(case, tmp_path)
    flags = ["--labels", str(tmp_path / case["labels_file"])] if "labels_file" in case else []
    code, out, err = run("inspect", str(path), *flags, *flags_of(case.get("options", {})), "--json")
    assert code == 0, err
    options = make_options(**case.get("options", {}))
    labels = tmp_path / case["labels_file"] if "labels_file" in case else None
    expected = inspect(read_files(path, options=options, labels=labels))
    found = json.loads(out)
    assert {key: found[key] for key in ("nodes", "edges", "classes", "columns", "guesses")} == {
        key: getattr(expected, key) for key in ("nodes", "edges", "classes", "columns", "guesses")
    }


def flags_of(options: dict[str, Any]) -> list[str]:
    """The flags of a command for the options of `bgcl.load`."""
    found = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            found.append(flag if value else f"--no-{flag[2:]}")
        elif name == "missing_label":
            found.append(f"{flag}={','.join(value)}")
        else:
            found += [part for each in (value if isinstance(value, list) else [value]) for part in (flag, str(each))]
    return found


def what_is_understood(reading: Reading) -> dict[str, Any]:
    """What a case may say about a graph."""
    data, seen = reading.data, inspect(reading)
    classes = getattr(data, "classes", None)
    y = [] if data.y is None else data.y.tolist()
    return {
        "nodes": data.num_nodes,
        "edges": seen.edges,
        "ids": data.ids.tolist(),
        "classes": classes or [],
        "labels": _labels(classes, y),
        "attributes": [] if reading.recipe.structural else data.attribute_names,
        "values": [[round(v, 3) for v in row] for row in data.x.to_dense().tolist()],
        "weights": data.edge_weight.tolist() if "edge_weight" in data else [],
        "relations": data.get("relations") or [],
        "pairs": pairs_of(data),
    }


def _labels(classes: Any, y: list[Any]) -> list[Any]:
    """The label of each node by its name; several with ; between them."""
    if classes and isinstance(y[0], list):
        return [";".join(str(name) for name, has in zip(classes, row, strict=True) if has > 0) for row in y]
    return [classes[each] if each >= 0 else "" for each in y] if classes else [round(each, 4) for each in y]


def pairs_of(data: Any) -> list[list[Any]]:
    """The edges by their ids, each once."""
    rows = [(data.ids[a], data.ids[b]) for a, b in data.edge_index.T.tolist() if a < b]
    return [[a if isinstance(a, str) else int(a), b if isinstance(b, str) else int(b)] for a, b in rows]


def check_read_again(reading: Reading) -> None:
    """A run reads the same graph again, without options."""
    recipe = Recipe.from_json(reading.recipe.to_json(), "graph.json")
    again = read_again(recipe).data
    assert again.ids.tolist() == reading.data.ids.tolist()
    assert torch.equal(again.edge_index, reading.data.edge_index)
    torch.testing.assert_close(again.x.to_dense(), reading.data.x.to_dense())
    if reading.data.y is not None:
        torch.testing.assert_close(again.y, reading.data.y, equal_nan=True)
    assert again.get("relations") == reading.data.get("relations")
    if "relations" in reading.data:
        assert torch.equal(again.edge_relations, reading.data.edge_relations)
    if "edge_weight" in reading.data:
        torch.testing.assert_close(again.edge_weight, reading.data.edge_weight)


def test_the_catalogue_has_a_hundred_and_twenty_tables():
    assert len(CASES) >= 120
    assert len({odd.name for odd in CASES}) == len(CASES)
