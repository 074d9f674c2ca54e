"""Commands on a user's own tables: two CSV files with string ids, a category, and labels for half of the nodes."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

import bgcl
from command_line import check_refused

FAST = ["--epochs", "30", "--set", "widths=[16, 8]", "--set", "lr_weights=0.01", "--quiet"]


def shop(folder: Path, people: int = 80, first: int = 0, labels: bool = True) -> Path:
    """Write tables of people in two groups that differ in town, spending and friends."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(first)
    group = np.arange(people) % 2
    nodes = pandas.DataFrame({
        "customer": [f"c-{i:03d}" for i in range(people)],
        "town": np.where(random.random(people) < 0.8, np.array(["Ulm", "Rome"])[group], "Oslo"),
        "spent": group + random.normal(0, 0.5, people),
        "segment": np.where(random.random(people) < 0.5, None, np.array(["loyal", "new"])[group]),
    })  # fmt: skip
    source = np.repeat(np.arange(people), 3)
    target = (source + 2 * random.integers(1, people // 2, 3 * people)) % people
    edges = pandas.DataFrame({"from": nodes.customer[source].to_numpy(), "to": nodes.customer[target].to_numpy()})
    (nodes if labels else nodes.drop(columns="segment")).to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)
    return folder


def test_from_two_files_to_predictions_that_join_on_the_ids(run, tmp_path):
    shop(tmp_path / "shop")
    code, out, _ = run("inspect", "shop", "--label", "segment", "--json")
    found = json.loads(out)
    assert (code, found["nodes"], set(found["classes"])) == (0, 80, {"loyal", "new"})
    assert found["columns"] == {"town": "3 categories", "spent": "number"}
    unnamed = json.loads(run("inspect", "shop/edges.csv", "--nodes", "shop/nodes.csv", "--json")[1])
    assert any("Is it the label? --label segment" in warning for warning in unnamed["warnings"])
    assert run("train", "shop", "--label", "segment", "--out", "r", *FAST)[0] == 0
    assert run("predict", "r", "--out", "p.csv", "--samples", "16")[0] == 0
    nodes, table = pandas.read_csv("shop/nodes.csv"), pandas.read_csv("p.csv")
    assert next(iter(table)) == "id"
    joined = nodes.merge(table, left_on="customer", right_on="id", validate="one_to_one")
    assert len(joined) == 80
    assert (joined.segment.fillna("-") == joined.label.fillna("-")).all()
    truth = np.array(["loyal", "new"])[np.arange(80) % 2]
    assert (joined.predicted == truth).mean() > 0.8
    np.testing.assert_allclose(joined.p_loyal + joined.p_new, 1, atol=1e-6)
    for ending in ("csv", "parquet", "json"):
        assert run("embed", "r", "--out", f"e.{ending}", "--samples", "4")[0] == 0
        read = {"csv": pandas.read_csv, "parquet": pandas.read_parquet, "json": pandas.read_json}[ending]
        assert read(f"e.{ending}")["id"].tolist() == nodes.customer.tolist()
    run("embed", "r", "--out", "e.npz", "--samples", "4")
    assert np.load("e.npz")["ids"].tolist() == nodes.customer.tolist()
    ranked = json.loads(run("rank", "r", "--unlabeled", "--top", "3", "--samples", "16", "--json")[1])
    assert all(nodes.set_index("customer").segment.isna()[row["id"]] for row in ranked)
    assert run("train", "shop", "--out", "r", "--resume", "--epochs", "31", "--quiet")[0] == 0


@pytest.mark.parametrize("labels", [True, False])
def test_new_nodes_are_predicted_without_training_again(run, tmp_path, labels):
    shop(tmp_path / "shop")
    run("train", "shop", "--label", "segment", "--out", "r", *FAST)
    shop(tmp_path / "grown", people=100, labels=labels)
    code, _, err = run("predict", "r", "--graph", "grown", "--out", "p.csv", "--samples", "16")
    assert code == 0, err
    table = pandas.read_csv("p.csv")
    assert table["id"].tolist() == [f"c-{i:03d}" for i in range(100)]
    truth = np.array(["loyal", "new"])[np.arange(100) % 2]
    assert (table.predicted == truth)[80:].mean() > 0.7
    assert run("embed", "r", "--graph", "grown", "--out", "e.csv", "--samples", "4")[0] == 0


def test_new_nodes_lose_little_compared_with_training_on_all_nodes(tmp_path):
    """A tenth of the nodes is held out together with its edges."""
    data = bgcl.load(shop(tmp_path / "all", people=200), label="segment")
    truth, held = np.arange(200) % 2, np.arange(180, 200)
    kept = data.edge_index[:, (data.edge_index < 180).all(0)]
    part = data.clone()
    part.x, part.y, part.edge_index, part.ids = data.x.to_dense()[:180], data.y[:180], kept, data.ids[:180]
    right = []
    for graph in (part, data):
        model = bgcl.BGCL(widths=(16, 8), epochs=30, lr_weights=0.01, seed=0).fit(graph, progress=False)
        draws = model.sample(data, 16)
        train = np.flatnonzero(np.asarray(data.y) >= 0)
        train = train[train < 180]
        head = bgcl.MixtureClassifier().fit(draws[:6, train], truth[train])
        right.append(float((head.predict(draws[6:, held]) == truth[held]).mean()))
    assert right[0] >= right[1] - 0.1
    assert right[0] > 0.7


BAD = {
    "a missing column": (
        ["inspect", "shop", "--label", "segmnt"],
        "nodes.csv has no column 'segmnt'. Did you mean segment",
    ),
    "no such folder": (["train", "nowhere/"], "There is no file nowhere"),
    "another ending": (["train", "shop/edges.xlsx"], "There is no file"),
    "options of tables with a data set": (["inspect", "cora", "--label", "x"], "cora is not a table"),
    "nodes with a folder": (["train", "shop", "--nodes", "shop/nodes.csv"], "leave out --nodes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(run, tmp_path, name):
    shop(tmp_path / "shop")
    arguments, message = BAD[name]
    check_refused(run(*arguments), message)


def test_a_graph_that_moved_or_changed_is_reported(run, tmp_path):
    folder = shop(tmp_path / "shop")
    run("train", "shop", "--label", "segment", "--out", "r", *FAST)
    folder.rename(tmp_path / "moved")
    check_refused(run("embed", "r", "--out", "e.csv", "--samples", "2"), "is no longer at")
    assert run("embed", "r", "--out", "e.csv", "--samples", "2", "--graph", "moved")[0] == 0
    shop(tmp_path / "shop", people=82)
    check_refused(run("embed", "r", "--out", "e.csv", "--samples", "2"), "its files have changed")


def test_what_was_inferred_is_printed_unless_quiet(run, tmp_path):
    shop(tmp_path / "shop", people=20)
    command = ["train", "shop", "--label", "segment", "--epochs", "1", "--set", "widths=[8, 4]"]
    _, _, err = run(*command, "--out", "a")
    assert "Inferred: " in err
    assert "'from'" in err
    assert run(*command, "--out", "b", "--quiet")[2] == ""


def test_inspect_prints_a_table(run, tmp_path):
    shop(tmp_path / "shop")
    code, out, _ = run("inspect", "shop", "--label", "segment")
    assert code == 0
    rows = {line.split()[0]: line for line in out.splitlines() if line and not line.startswith(" ")}
    assert rows["nodes"].split()[1] == "80,"
    assert "town (3 categories)" in rows["columns"]
    assert {"graph", "inferred", "edges", "components", "attributes", "labels", "classes", "homophily"} <= rows.keys()


def test_a_graph_or_an_option_that_is_given_to_resume_is_not_ignored(run, tmp_path):
    shop(tmp_path / "shop")
    shop(tmp_path / "other", people=60)
    run("train", "shop", "--label", "segment", "--out", "r", "--epochs", "2", "--quiet")
    resume = ("--out", "r", "--resume", "--quiet", "--epochs")
    check_refused(run("train", "no_such_graph", *resume, "3"), "no_such_graph")
    check_refused(
        run("train", "shop", "--label", "town", "--words", "7", *resume, "3"), "leave out --label and --words."
    )
    check_refused(run("train", "other", *resume, "3"), "trained on another graph")
    assert run("train", "shop", *resume, "3")[0] == 0
    assert run("train", "shop/edges.csv", *resume, "4")[0] == 0
    assert run("train", "shop/edges.csv", "--nodes", "shop/nodes.csv", *resume, "5")[0] == 0


def test_known_nodes_keep_their_places_when_a_new_id_makes_all_ids_texts(tmp_path):
    random = np.random.default_rng(0)

    def tables(folder: Path, ids: list):
        ends = [ids[i] for i in np.arange(40) % 20], [ids[i] for i in (np.arange(40) * 7 + 3) % 20]
        more = ([ids[0]], [ids[-1]])
        folder.mkdir()
        pandas.DataFrame({"from": ends[0] + more[0], "to": ends[1] + more[1]}).to_csv(folder / "edges.csv", index=False)
        pandas.DataFrame({"id": ids, "spent": random.random(len(ids))}).to_csv(folder / "nodes.csv", index=False)
        return bgcl.load(folder)

    data = tables(tmp_path / "a", list(range(20)))
    model = bgcl.BGCL(widths=(4,), part_width=4, parts=["structure", "encoder"], epochs=1).fit(data, progress=False)
    for name, new in (("b", 20), ("c", "x20")):
        grown = tables(tmp_path / name, [*range(20), new])
        np.testing.assert_array_equal(model.embed(grown)[:20, :4], model.embed(data)[:, :4])
        assert not model.embed(grown)[20, :4].any()


OPTIONS = {
    "a column in two roles": (["shop", "--ignore", "town", "--text", "town"], "named by --ignore and by --text"),
    "a label that is ignored": (["shop", "--label", "segment", "--ignore", "segment"], "--label and by --ignore"),
    "words without a text": (["shop", "--words", "2000"], "leave out --words"),
    "unknown nodes without nodes": (["shop/edges.csv", "--skip-unknown"], "leave out --skip-unknown"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_could_not_act_is_refused(run, tmp_path, name):
    shop(tmp_path / "shop")
    arguments, message = OPTIONS[name]
    check_refused(run("inspect", *arguments), message)


def test_formulas_are_text_in_a_safe_table(run, tmp_path):
    shop(tmp_path / "shop")
    for path in (tmp_path / "shop").iterdir():
        path.write_text(path.read_text().replace("c-001", "=cmd|x").replace("loyal", "@loyal"))
    run("train", "shop", "--label", "segment", "--out", "r", *FAST)
    predict = ("predict", "r", "--samples", "8", "--out", "p.csv")
    assert run(*predict)[0] == 0
    assert "=cmd|x" in set(pandas.read_csv("p.csv").id)
    assert run(*predict, "--spreadsheet-safe")[0] == 0
    table = pandas.read_csv("p.csv")
    assert {"'=cmd|x", "c-002"} < set(table.id)
    assert "'@loyal" in set(table.predicted)
