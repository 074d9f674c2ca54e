"""`bgcl report`: one page, in the folder of the run or in a named file."""

import json
from pathlib import Path

from command_line import check_refused


def test_the_page_is_in_the_folder_of_the_run_or_in_a_named_file(run_trained):
    code, out, _ = run_trained("report", "r", "--samples", "12", "--json")
    assert code == 0
    assert json.loads(out) == {
        "file": str(Path("r/report.html")), "nodes": 120, "bytes": Path("r/report.html").stat().st_size
    }  # fmt: skip
    code, out, _ = run_trained("report", "r", "--samples", "12", "--out", "page.html", "--quiet")
    assert code == 0
    assert "120 nodes" in out
    assert Path("page.html").read_bytes() == Path("r/report.html").read_bytes()


def test_a_file_that_is_not_html_is_refused(run_trained):
    check_refused(run_trained("report", "r", "--out", "page.txt"), "must end in .html")


def test_the_page_has_figures_of_each_class_and_says_if_the_model_pays(run_trained):
    assert run_trained("report", "r", "--samples", "6")[0] == 0
    text = Path("r/report.html").read_text()
    for part in ("Which class is taken for which", "Precision", "Does the model pay?", "vote of neighbors"):
        assert part in text
    assert run_trained("report", "r", "--samples", "6", "--no-floors")[0] == 0
    assert "Does the model pay?" not in Path("r/report.html").read_text()
