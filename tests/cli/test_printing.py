"""Tables and errors on the terminal: text is printed as it is, whatever it contains."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bgcl.cli.inspect import _percent
from bgcl.cli.printing import print_table, visible
from command_line import check_refused


@pytest.mark.parametrize(
    "text",
    [
        "gene[chr1]",
        "[/]",
        "[bold]loud[/bold]",
        "[link=x]y[/link]",
        ":smile:",
        "a" * 500,
        "1,103",
        "\\[x]",
        "Zürich 東京",
    ],
)
def test_a_text_is_printed_as_it_is_and_whole(capsys, text):
    print_table([{"id": text, text: 0.5}])
    header, row = capsys.readouterr().out.splitlines()
    assert row.split("  ")[0].strip() == text or row.startswith(text)
    assert text in header


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=5, unique=True))
def test_every_row_is_one_line_with_its_text(capsys, texts):
    print_table([{"id": text, "node": i} for i, text in enumerate(texts)])
    _, *rows = capsys.readouterr().out.split("\n")[:-1]
    assert len(rows) == len(texts)
    assert all(row.endswith(f" {i}") for i, row in enumerate(rows))
    for text, row in zip(texts, rows, strict=True):
        assert visible(text).strip() in row


def test_names_have_no_thousands_separator_and_counts_have_one(capsys):
    print_table([{"id": 1103, "node": 2207, "predicted": 5000, "edges": 12345, "known": True, "rate": 1234.5}])
    assert capsys.readouterr().out.split("\n")[1].split() == ["1103", "2207", "5000", "12,345", "True", "1234.500"]


def test_control_characters_are_escaped():
    assert visible("a\x1b[2Jb\r\n\u202ec\x00") == "a\\x1b[2Jb\\r\\n\\u202ec\\x00"
    for text in ("é ß 東京\u3000都", "\u0645\u06cc\u200c\u062e\u0648", "👩\u200d🔬"):
        assert visible(text) == text


@pytest.mark.parametrize("hidden", ["\u00ad", "\ufeff", "\u2060", "\u200e", "\u200f", "\u2067", "\U000e0041", "\ud800"])
def test_texts_that_differ_look_different(hidden):
    assert visible(f"a{hidden}b") == "a" + hidden.encode("unicode_escape").decode() + "b"


def test_an_output_that_cannot_show_a_character_escapes_it(tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "bgcl", "inspect", "é.csv"]
    (tmp_path / "é.csv").write_text("source,target\na,b\nb,c\n")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True)
    assert "\\xe9.csv" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "bgcl", "data", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "bgcl: Cannot read or write a file: No space left on device.\n"


def test_an_error_does_not_move_the_cursor(run):
    code, out, err = run("train", "no\x1b[2Jgraph", "--out", "r")
    check_refused((code, out, err), "no\\x1b[2Jgraph")
    assert "\x1b" not in err


def test_lines_in_a_pipe_do_not_end_in_blanks(run):
    for command in (["inspect", "cora"], ["data", "list"]):
        code, out, _ = run(*command)
        assert code == 0
        assert [line for line in out.splitlines() if line != line.rstrip()] == []


def test_a_small_share_is_not_written_as_nothing():
    assert [_percent(share) for share in (0.0, 0.00089, 0.01, 0.254, 1.0)] == ["0%", "0.09%", "1%", "25%", "100%"]
