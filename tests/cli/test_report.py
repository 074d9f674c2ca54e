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
