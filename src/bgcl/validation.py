"""Checks of settings, used by the model, the baselines and the heads.

A class of settings declares its fields and their ranges. The error for an invalid value is one line: the name of the
setting, the allowed values, and the value that was given. What files say is checked in the same way, by its types.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from bgcl.errors import BGCLError, nearest


def plain_number(value: Any) -> Any:
    """Accept numbers of Python and NumPy, but not bools and strings, which pydantic would convert to numbers."""
    if isinstance(value, np.number):
        return value.item()
    if isinstance(value, bool | np.bool_ | str):
        raise ValueError("not a number")
    return value


def plain_flag(value: Any) -> Any:
    """Accept True and False of Python and NumPy, but not "no" and 0, which pydantic would convert."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError("not a flag")
    return bool(value)


T = TypeVar("T")
Flag = Annotated[bool, BeforeValidator(plain_flag)]
Whole = Annotated[int, BeforeValidator(plain_number)]
Number = Annotated[float, BeforeValidator(plain_number)]
Width = Annotated[Whole, Field(ge=1, le=65536)]


class CheckedSettings(BaseModel):
    """Base class of settings. They are checked when they are created, and cannot be changed.

    >>> class Walks(CheckedSettings):
    ...     length: Whole = Field(default=40, ge=2, le=1000, description="nodes in a walk")
    >>> Walks(length=1)
    Traceback (most recent call last):
    bgcl.errors.BGCLError: The setting 'length' must be a whole number between 2 and 1,000. Got 1 instead.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    # The first words of an error.
    wrong: ClassVar[str] = "The setting '{name}'"
    unknown: ClassVar[str] = "Unknown setting '{name}'."

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise BGCLError(self._one_line(error.errors()[0])) from None

    def with_changes(self, **changes: Any) -> Self:
        """A copy with some settings changed. All settings are checked again."""
        return type(self)(**dict(self) | changes)

    def to_json(self) -> dict[str, Any]:
        """All settings as values that JSON and TOML can store, without those that are None."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def _one_line(cls, problem: Any) -> str:
        inner = problem.get("ctx", {}).get("error")
        if isinstance(inner, BGCLError):
            return str(inner)
        name = str(problem["loc"][0]) if problem["loc"] else "?"
        if problem["type"] == "extra_forbidden":
            return f"{cls.unknown.format(name=name)} {nearest(name, cls.model_fields)}"
        return f"{cls.wrong.format(name=name)} must be {cls.allowed(name)}. Got {problem['input']!r} instead."

    @classmethod
    def allowed(cls, name: str) -> str:
        """The allowed values of a setting, in words.

        >>> from bgcl import Settings
        >>> Settings.allowed("activation")
        "'relu' or 'prelu'"
        """
        field = cls.model_json_schema()["properties"][name]
        options: Sequence[Any] = field.get("anyOf", [field])
        words = [_words_for(option) for option in options]
        if None in words:
            return f"{field.get('description', 'a value')}, such as {cls.model_fields[name].default!r}"
        return ", or ".join(word for word in words if word)


def _words_for(option: dict[str, Any]) -> str | None:
    """One type of a setting's JSON schema in words; None if there are no words for it."""
    if "enum" in option or "const" in option:
        return " or ".join(repr(value) for value in option.get("enum", [option.get("const")]))
    kind = option.get("type")
    if kind == "null":
        return "None"
    if kind == "boolean":
        return "true or false"
    if kind == "array":
        return _words_for_list(option)
    if kind not in ("integer", "number"):
        return None
    noun = "a whole number" if kind == "integer" else "a number"
    # In the schema of an Annotated[Number, Field(...)], pydantic keeps the names of its own constraints.
    low, above = option.get("minimum", option.get("ge")), option.get("exclusiveMinimum", option.get("gt"))
    high, below = option.get("maximum", option.get("le")), option.get("exclusiveMaximum", option.get("lt"))
    if low is not None and high is not None:
        return f"{noun} between {_digits(low)} and {_digits(high)}"
    lower = f"above {_digits(above)}" if above is not None else f"of {_digits(low)} or more" if low is not None else ""
    upper = f"below {_digits(below)}" if below is not None else f"at most {_digits(high)}" if high is not None else ""
    return " ".join(filter(None, [noun, " and ".join(filter(None, [lower, upper]))]))


def _words_for_list(option: dict[str, Any]) -> str | None:
    """A list of numbers of one kind in words: `2 numbers above 0`, or `1 to 16 whole numbers between 1 and 9`."""
    items = option.get("prefixItems") or [option.get("items", {})]
    word = _words_for(items[0])
    if word is None or not word.startswith("a "):
        return None
    many = word.removeprefix("a ").replace("number", "numbers", 1)
    least, most = option.get("minItems", 0), option.get("maxItems")
    count = str(least) if least == most else f"{least} to {most}" if most is not None else f"{least} or more"
    return f"{count} {many}"


def _digits(number: float) -> str:
    """
    >>> _digits(1e6), _digits(0.02)
    ('1,000,000', '0.02')
    """
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


def checked(kind: type[T], values: Any) -> T:
    """Make a dataclass of values that were read from a file.

    Raises:
        ValueError: a value is missing or has the wrong type. The message is short and names it.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     nodes: int
    >>> checked(Size, {"nodes": 3})
    Size(nodes=3)
    >>> checked(Size, {"nodes": "many"})
    Traceback (most recent call last):
    ValueError: nodes: Input should be a valid integer, unable to parse string as an integer
    """
    try:
        found: T = _adapter(kind).validate_python(values)
        return found
    except ValidationError as error:
        raise ValueError(_first_problem(error)) from None


def checked_json(kind: type[T], text: str | bytes) -> T:
    """Make a dataclass of a JSON text, as `checked` does. pydantic's reader bounds its depth."""
    try:
        found: T = _adapter(kind).validate_json(text)
        return found
    except ValidationError as error:
        raise ValueError(_first_problem(error)) from None


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


_adapters: dict[type, TypeAdapter[Any]] = {}  # to make one takes a millisecond


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(step) for step in problem["loc"])
    return f"{place}: {problem['msg']}" if place else problem["msg"]
