"""The experiment of fixed rates on a grid: its cells, the edges that are held out, and its tables."""

import numpy as np
import pytest
import torch

import bgcl
from bgcl.reproduce import experiments, rates_page
from bgcl.reproduce.rate_grid import CRITERIA, GRID, LEARNED, criteria, hold_out
from bgcl.settings import Settings


def test_a_grid_has_every_pair_of_rates_and_the_learned_ones() -> None:
    cells = experiments.cells("rates", datasets=["cora"])
    assert len(cells) == len(GRID) ** 2 + 1
    assert cells[0].label == LEARNED
    assert cells[0].settings == {"members": 1}
    for cell in cells[1:]:
        rates = [mask.rate for mask in Settings(**cell.settings).masks()]
        assert cell.label == f"{rates[0][0]} and {rates[1][0]}"
        assert not Settings(**cell.settings).until_settled  # all points have the same number of steps
    assert {cell.protocol for cell in cells} == {"development"}


def test_held_out_edges_are_a_share_of_all_and_the_rest_is_what_is_left() -> None:
    data = bgcl.example_graph()
    rest, out = hold_out(data, 0.2)
    pairs = {frozenset(edge) for edge in data.edge_index.T.tolist()}
    held, left = ({frozenset(edge) for edge in edges.T.tolist()} for edges in (out, rest.edge_index))
    assert held | left == pairs
    assert not held & left
    assert len(held) == int(0.2 * len(pairs))
    assert torch.equal(out, hold_out(data, 0.2)[1])


def test_the_criteria_of_a_model_are_numbers_and_the_same_each_time() -> None:
    rest, out = hold_out(bgcl.example_graph())
    model = bgcl.BGCL(widths=(16, 8), part_width=8, epochs=4).fit(rest, progress=False)
    found = criteria(model, rest, out)
    assert found.keys() == CRITERIA.keys()
    assert np.isfinite(list(found.values())).all()
    assert found == criteria(model, rest, out)
    assert found["loss"] == pytest.approx(model.history_[-1].loss)


def grid_results() -> list[dict]:
    """A grid in which the rank is as the accuracy, the loss the opposite, and edges prefer one wrong point."""
    found = []
    for i, cell in enumerate(experiments.cells("rates", datasets=["cora"])[1:]):
        score = -abs(i - 7)
        about = {"rank": score, "edges": float(i == 3), "agreement": 0.5, "loss": -score}
        found.append(
            {
                "cell": cell.to_dict(),
                "settings": Settings(**cell.settings).to_json(),
                "accuracy": [0.8 + score / 1000, 0.8 + score / 1000],
                "criteria": about,
                "training_seconds": 2.0,
                "scores": {},
            }
        )
    return found


def test_a_criterion_chooses_its_greatest_point_and_the_table_says_what_that_costs() -> None:
    found = grid_results()
    rows = {row[0]: row for row in rates_page.tables(found)["What each criterion would choose"]}
    best = found[7]["cell"]["label"].replace(" and ", ", ")
    assert rows["greatest rank"][1] == f"{best}: -0.00"
    assert rows["likeliest edges"][1].endswith(": -0.40")
    assert rows["the paper's objective (greatest loss)"][-1] == "1.70"
    assert rates_page.correlation(found, "rank") == pytest.approx(1)
    assert rates_page.correlation(found, "loss") == pytest.approx(-1)


def test_learned_rates_stand_next_to_the_best_of_the_grid() -> None:
    found = grid_results()
    cell = experiments.cells("rates", datasets=["cora"])[0]
    rates = {view: [{"mean": [[0.4]]}, {"mean": [[0.25]]}] for view in "ot"}
    learned = {"cell": cell.to_dict(), "accuracy": [0.799, 0.8], "training_seconds": 3.0, "drop_rates": rates}
    row = rates_page.tables([*found, learned])["Learned rates and the grid"][1]
    assert row[:3] == ["cora", "0.40, 0.25", "79.95"]
    assert row[5:7] == ["-0.05", "5 of 25"]
    assert row[-2:] == ["3", "50"]
    assert len(rates_page.tables(found[1:])) == 2  # a grid that is not complete is left out
    assert len(rates_page.picture(found).axes) == len(CRITERIA)
