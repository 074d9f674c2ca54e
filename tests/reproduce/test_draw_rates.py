"""The experiment of starts, seeds and draws: its cells and its tables."""

import numpy as np
import pytest

from bgcl.reproduce import draws_page, experiments
from bgcl.reproduce.draw_rates import INFERRED, MEDIAN, SHARES, STARTS
from bgcl.settings import Settings


def test_starts_have_the_medians_of_their_names():
    for name, (a, b) in STARTS.items():
        assert (1 - 0.5 ** (1 / b)) ** (1 / a) == pytest.approx(float(name), abs=1e-3)


def test_all_cells_of_draws_share_a_training_but_for_the_rates_of_draws():
    cells = [cell for cell in experiments.cells("draws", datasets=["cora"]) if not cell.label.startswith("start")]
    assert len(cells) == len(SHARES) + 3
    for cell in cells:
        assert set(cell.settings) <= {"draw_scale", "rate_draw", "members"}
        assert cell.protocol == "development"
        Settings(**cell.settings)


def result(cell, rate: float, score: float = 0.5) -> dict:
    rates = {view: [{"mean": [[rate]], "std": [[0.01]]}, {"mean": [[2 * rate]], "std": [[0.02]]}] for view in "ot"}
    scores = {name: [score, 0.0] for name in ("accuracy", "ece", "auroc:least_confidence")}
    return {"cell": cell.to_dict(), "drop_rates": rates, "scores": scores}


def test_the_tables_show_the_greatest_difference_between_starts_and_seeds():
    cells = experiments.cells("draws", datasets=["cora"])
    rates = {"start 0.1": 0.2, "start 0.5": 0.21, "start 0.9": 0.2}
    found = [result(cell, rates.get(cell.label, 0.2) + 0.002 * cell.seed) for cell in cells]
    every = draws_page.tables(found)
    row = every["Learned rates from other starts and seeds"][1]
    assert row[:3] == ["cora", "0.21, 0.42", "0.20, 0.40"]
    assert row[-3:] == ["0.0200", "0.008", "0.020"]
    accuracies = every["Accuracy of draws, %"]
    assert accuracies[0][1:3] == [INFERRED, MEDIAN]
    assert accuracies[1][1:] == ["50.00"] * (len(SHARES) + 3)


def test_a_data_set_without_all_starts_has_no_row():
    cells = experiments.cells("draws", datasets=["cora"])
    found = [result(cell, 0.2) for cell in cells if cell.label != "start 0.9"]
    assert "Learned rates from other starts and seeds" not in draws_page.tables(found)
    assert len(draws_page.tables(found)) == 3
    assert np.array(draws_page.tables(found)["ECE of draws"]).shape == (2, len(SHARES) + 4)
