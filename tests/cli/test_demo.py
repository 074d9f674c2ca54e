"""`bgcl demo`: scores, plots and a report of Cora."""

import json
from pathlib import Path


def test_demo_prints_scores_and_writes_plots_and_a_report(run):
    code, out, _ = run("demo", "--epochs", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert 0.2 < found["scores"]["accuracy"]["mean"] < 1
    assert found.keys() == {"scores", "drop_rates", "most_certain", "least_certain", "pictures", "report"}
    assert Path(found["report"]).read_text().startswith("<!doctype html>")
    assert len(found["pictures"]) == 6
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["pictures"])
