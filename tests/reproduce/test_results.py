"""Result files and the pages made from them: places, spreads, t-tests, tables, and the files in `results/`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bgcl import defaults
from bgcl.errors import BGCLError
from bgcl.reproduce import compute as computing
from bgcl.reproduce import experiments, figures, pages, results
from bgcl.reproduce.cells import Cell
from bgcl.settings import Settings, make_settings

ROOT = Path(__file__).parents[2]


def result(method, seed, accuracy, label="", dataset="cora"):
    cell = Cell(method, dataset, seed, "grace", len(accuracy), label=label)
    names = ("ece", "auroc:least_confidence", "pavpu:predictive_entropy", "pavpu:mutual_information")
    scores = {name: [0.5, 0.1] for name in names}
    curves = {"pavpu": [0.5 + 0.01 * seed] * 11}
    rates = {view: [{"mean": [[0.5]]}] for view in "ot"}
    return {
        "cell": cell.to_dict(), "accuracy": accuracy, "scores": scores, "curves": curves, "drop_rates": rates,
        "seconds": 1.0, "training_seconds": 1.0, "blind": 0.5, "versions": {"bgcl": "0"},
    }  # fmt: skip


def test_baselines_far_from_the_paper_are_listed_with_their_variants():
    found = [result("dgi", 0, [0.9, 0.92]), result("dgi", 0, [0.8, 0.84], "the paper's head")]
    found += [result("grace", 0, [0.835, 0.835]), result("gae", 0, [0.7, 0.7])]
    found += [result("vgae", 0, [0.7, 0.7]), result("vgae", 0, [0.5, 0.5], "widths of 32 and 16")]
    found += [result("vgae", 0, [0.7769, 0.7769], "the paper's head")]  # 1.21 points below the paper
    found += [result("gae", 0, [0.8, 0.8], "widths of 32 and 16")]
    rows = pages.far_rows(experiments.TABLE1, found)[1:]
    assert rows == [
        ["GAE", "cora", "70.00", "76.9", "-6.90", "widths of 32 and 16: 80.00", "bracketed"],
        ["VGAE", "cora", "70.00", "78.9", "-8.90", "the paper's head: 77.69; widths of 32 and 16: 50.00", "no"],
        ["DGI", "cora", "91.00", "82.6", "+8.40", "the paper's head: 82.00", "yes"],
    ]
    assert pages.far_rows(experiments.TABLE1, found, 1.3)[2][-1] == "yes"
    rows = {row[0]: row for row in pages.accuracy_rows(experiments.TABLE1, found)}
    assert rows["DGI"][1].startswith("91.00")  # the other head is not mixed in


def test_learned_rates_and_the_best_of_the_grid_use_the_seeds_that_all_have():
    """The random numbers are such that the best points on the development half and on all test nodes differ."""
    answers = list(experiments.variants()[experiments.LEARNED])
    random = np.random.default_rng(4)
    both, blind = random.uniform(0.6, 0.8, (2, 2, len(answers)))
    found = [
        result("bgcl", seed, [both[seed, i]] * 2, f"{experiments.LEARNED}: {answer}")
        | {"blind": blind[seed, i], "training_seconds": 10.0 + i}
        for seed in range(2)
        for i, answer in enumerate(answers)
    ]
    extra = result(
        "bgcl", 2, [0.99, 0.99], f"{experiments.LEARNED}: {answers[3]}"
    )  # a seed that the others do not have
    rows = pages.grid_rows([*found, extra])[1:]
    mean, outside = both.mean(0), blind.mean(0)
    development = [2 * mean[i] - outside[i] for i in range(len(answers))]
    best = [1 + int(np.argmax(scores[1:])) for scores in (development, mean)]
    assert best[0] != best[1]
    assert [float(row[1].split()[0]) for row in rows] == [round(100 * mean[i], 2) for i in (0, *best)]
    assert [float(row[2]) for row in rows] == [round(100 * outside[i], 2) for i in (0, *best)]
    whole = str(sum(10 + i for i in range(1, 26)))
    assert [row[3:] for row in rows] == [["1", "10"], ["25", whole], ["25", whole]]
    assert len(pages.grid_rows([r for r in found if not r["cell"]["label"].endswith("0.9 and 0.9")])) == 1


def test_a_later_result_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "table1.json"
    results.write(path, "table1", [result("bgcl", 0, [0.1, 0.2]), result("bgcl", 1, [0.3, 0.4])])
    results.write(path, "table1", [result("bgcl", 1, [0.5, 0.6]), result("grace", 0, [0.7, 0.8])])
    found = results.read(path)
    assert [r["accuracy"] for r in results.of(found, "bgcl", "cora")] == [[0.1, 0.2], [0.5, 0.6]]
    assert [r["accuracy"] for r in results.of(found, "grace", "cora")] == [[0.7, 0.8]]
    path.write_text("no results")
    with pytest.raises(BGCLError, match="not a result file"):
        results.read(path)


def test_spreads_and_t_tests_equal_their_formulas():
    random = np.random.default_rng(0)
    ours, theirs = random.random((2, 5, 7))
    a, b = ([result(m, s, list(x)) for s, x in enumerate(t)] for m, t in (("bgcl", ours), ("grace", theirs)))
    mean, over_splits, over_seeds = results.accuracy(a)
    assert mean == pytest.approx(100 * sum(map(sum, ours.tolist())) / 35)
    assert over_splits == pytest.approx(100 * np.mean([np.std(row, ddof=1) for row in ours]))
    assert over_seeds == pytest.approx(100 * np.std([row.mean() for row in ours], ddof=1))
    test = results.compare(a, b)
    d = ours.mean(1) - theirs.mean(1)
    t = d.mean() / (d.std(ddof=1) / np.sqrt(5))
    assert test.seeds == 5
    assert test.difference == pytest.approx(100 * d.mean())
    assert test.paired == pytest.approx(stats.t.sf(t, 4))
    v, w = (side.mean(1).var(ddof=1) / 5 for side in (ours, theirs))
    assert test.welch == pytest.approx(stats.t.sf(d.mean() / np.sqrt(v + w), (v + w) ** 2 / ((v**2 + w**2) / 4)))
    assert results.compare(a[:1], b[:1]) is None


def test_results_are_compared_on_the_splits_that_all_have():
    ours = [result("bgcl", 0, [0.8, 0.9, 0.1]), result("bgcl", 1, [0.7, 0.8])]
    theirs = [result("grace", 0, [0.5]), result("grace", 1, [0.6, 0.9]), result("grace", 2, [0.1])]
    assert results.accuracy(ours)[0] == pytest.approx(80)
    assert results.compare(ours, theirs).difference == pytest.approx(100 * (0.75 - 0.55))
    assert results.compare(ours, theirs).seeds == 2


def test_tables_have_our_numbers_and_the_papers(tmp_path):
    found = [result("bgcl", s, [0.8, 0.9]) for s in range(2)] + [result("grace", s, [0.8, 0.8]) for s in range(2)]
    table = pages.text("table1", found)
    assert "85.00 (7.07 / 0.00) [83.77 ± 0.28]" in table
    assert "+5.00" in table
    pavpu = pages.pavpu_rows([result("bgcl", 1, [0.8]), result("gdc-gcn", 0, [0.7])])
    assert [row[-2:] for row in pavpu[1:]] == [["11", ""], ["", ""]]
    results.write(tmp_path / "pavpu.json", "pavpu", [result("bgcl", 1, [0.8]), result("gdc-gcn", 0, [0.7])])
    figures.write_figures(tmp_path, tmp_path)
    assert figures.SOURCE.search((tmp_path / "pavpu.png").read_bytes())


# What a setting was before it existed. A result that does not record it was computed with this value.
BEFORE = defaults.BEFORE | {
    "negatives": "both views", "rate_rule": "adversary", "until_settled": False,
    "held_out": 0.0,  # of the autoencoders among the baselines
}  # fmt: skip


def settings_of(found, today):
    """The settings of a result, and of those that it does not record what they were before they existed."""
    return {name: value for name, value in BEFORE.items() if name in today} | found["settings"]


@pytest.mark.parametrize("name", experiments.EXPERIMENTS)
def test_results_were_computed_with_todays_settings(name):
    """A setting that was added later must be what it was before. Otherwise the result has to be computed again."""
    today = {cell.place()[:3]: cell for cell in experiments.cells(name)}
    older = set()
    for found in results.read(results.path_of(ROOT / "results", name)):
        cell = Cell.from_dict(found["cell"])
        now = computing._method(replace(today[cell.place()[:3]], seed=cell.seed)).to_json()
        assert computing._method(cell).to_json() == now, cell
        if settings_of(found, now) != now:
            older.add(str(cell))
    assert not older, f"bgcl reproduce {name} has to compute these again"


def test_a_result_without_a_setting_is_not_one_with_todays_default():
    """The default has two encoders. A result of the time before has one, and does not say so."""
    now = Settings().to_json()
    one = {name: value for name, value in now.items() if name != "members"}
    assert settings_of({"settings": now}, now) == now
    assert settings_of({"settings": one}, now) != now
    of_paper = make_settings("paper-cora").to_json()
    older = {name: value for name, value in of_paper.items() if name not in BEFORE}
    assert settings_of({"settings": older}, of_paper) == of_paper
    assert settings_of({"settings": of_paper | {"seed": 1}}, of_paper) != of_paper
    assert settings_of({"settings": of_paper | {"loss_nodes": 7}}, of_paper) != of_paper  # it is None today


def test_page_and_figures_are_up_to_date_with_the_result_files():
    script = pages.page(ROOT / "results", (ROOT / "docs" / "results_introduction.md").read_text("utf-8"))
    assert (ROOT / "docs" / "results.md").read_text("utf-8") == script
    for name in figures.FIGURES:
        found = results.read(results.path_of(ROOT / "results", name))
        assert found
        named = figures.SOURCE.search((ROOT / "docs" / "images" / f"{name}.png").read_bytes())
        assert named
        assert named.group(1).decode() == figures.figure_digest(found)
