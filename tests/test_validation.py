"""Checked settings: each range in words, and errors with the words of the class."""

from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import Field

from bgcl.errors import BGCLError, nearest
from bgcl.validation import CheckedSettings, Number, Whole, Width


class Every(CheckedSettings):
    """A setting of each type."""

    wrong: ClassVar[str] = "The parameter {name}"
    unknown: ClassVar[str] = "There is no parameter {name}."

    closed: Number = Field(default=1, ge=0, le=2)
    above: Number = Field(default=1, gt=0)
    half_open: Number = Field(default=0.5, ge=0, lt=1)
    whole: Whole = Field(default=1, ge=0)
    annotated: Annotated[Whole, Field(ge=3, le=9)] = 4
    anything: Number = 1.0
    choice: Literal["a", "b"] = "a"
    flag: bool = True
    perhaps: Annotated[Whole, Field(gt=2, lt=5)] | None = None
    number_or_word: Annotated[Number, Field(gt=0, le=100)] | Literal["cv"] = "cv"
    widths: tuple[Width, ...] = Field(default=(4, 2), description="the width of each layer")
    pair: tuple[Number, Number] = (1.0, 2.0)
    few: tuple[Width, ...] = Field(default=(4, 2), min_length=1, max_length=3)
    words: tuple[str, ...] = Field(default=("a",), description="the words")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("closed", "a number between 0 and 2"),
        ("above", "a number above 0"),
        ("half_open", "a number of 0 or more and below 1"),
        ("whole", "a whole number of 0 or more"),
        ("annotated", "a whole number between 3 and 9"),
        ("anything", "a number"),
        ("choice", "'a' or 'b'"),
        ("flag", "true or false"),
        ("perhaps", "a whole number above 2 and below 5, or None"),
        ("number_or_word", "a number above 0 and at most 100, or 'cv'"),
        ("widths", "0 or more whole numbers between 1 and 65,536"),
        ("pair", "2 numbers"),
        ("few", "1 to 3 whole numbers between 1 and 65,536"),
        ("words", "the words, such as ('a',)"),
    ],
)
def test_allowed_values_are_described_and_used_in_errors(name: str, words: str) -> None:
    assert Every.allowed(name) == words
    with pytest.raises(BGCLError) as caught:
        Every(**{name: "wrong"})
    assert str(caught.value) == f"The parameter {name} must be {words}. Got 'wrong' instead."


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(BGCLError, match=r"There is no parameter clsed. Did you mean closed\?"):
        Every(clsed=1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1", None, [1]])
def test_values_that_are_not_finite_numbers_are_refused(value: object) -> None:
    with pytest.raises(BGCLError, match="The parameter anything must be a number"):
        Every(anything=value)


def test_settings_cannot_be_changed_but_copied_with_changes() -> None:
    settings = Every(closed=2)
    with pytest.raises(ValueError, match="frozen"):
        settings.closed = 1
    changed = settings.with_changes(choice="b")
    assert (changed.closed, changed.choice, settings.choice) == (2, "b", "a")
    with pytest.raises(BGCLError, match="The parameter closed must be"):
        settings.with_changes(closed=3)


def test_suggestions_name_similar_words_or_all_of_them() -> None:
    assert nearest("epoch", ["epochs", "tau"]) == "Did you mean epochs?"
    assert nearest("xyz", ["epochs", "tau"]) == "Known: epochs, tau."
