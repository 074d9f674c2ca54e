"""The catalogue of bad inputs: every case ends in its one line."""

import re
from pathlib import Path

import pytest

import errors_page
from bad_inputs.build import build
from bad_inputs.catalogue import BadInput, bad_inputs, kinds
from bgcl import BGCLError
from command_line import check_refused

CASES = bad_inputs()
READ = [case for case in CASES if "command" not in case.case]
COMMANDS = [case for case in CASES if "command" in case.case or case.by_command]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


@pytest.mark.parametrize("bad", READ, ids=[case.name for case in READ])
@pytest.mark.filterwarnings("error")  # a warning before the line would be a second line
def test_a_bad_input_ends_in_its_line(bad: BadInput, tmp_path: Path):
    call, _ = build(bad.case, tmp_path)
    with pytest.raises(BGCLError) as error:
        call()
    text = str(error.value)
    assert re.search(bad.line, text), text
    assert len(text.splitlines()) == 1
    assert len(text) < 2100
    assert "pickle=True" not in text  # NumPy's advice to load a file unsafely


@pytest.mark.parametrize("bad", COMMANDS, ids=[case.name for case in COMMANDS])
def test_a_command_with_a_bad_input_ends_in_the_same_line(bad: BadInput, tmp_path: Path, run):
    if "command" in bad.case:
        result = run(*bad.case["command"])
    else:
        _, path = build(bad.case, tmp_path)
        result = run("inspect", str(path), *flags(bad.case.get("options", {})))
    check_refused(result)
    assert re.search(bad.line, result[2]), result[2]


def flags(options: dict[str, object]) -> list[str]:
    """The flags of a command for the options of `bgcl.load`."""
    found = []
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            found += [f"--{name.replace('_', '-')}"] + ([] if each is True else [str(each)])
    return found


def test_the_catalogue_has_three_hundred_cases():
    assert len(CASES) >= 300


def test_a_message_of_the_page_fits_the_pattern_of_its_cases():
    for content in kinds().values():
        for error in content["error"]:
            message = error["message"].replace("ind.citeseer", "ind.tiny").replace("citeseer release", "tiny release")
            assert re.search(error["line"], message), error["message"]


def test_the_page_of_errors_is_todays():
    assert PAGE.read_text("utf-8") == errors_page.page(), "run python scripts/errors_page.py"
