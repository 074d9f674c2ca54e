"""`--help`: every command, argument and option says what it does, and every option says its default."""

import pytest
from typer.main import get_command

from bgcl.cli import app


def commands(command, name="bgcl"):
    """All commands, with those inside groups."""
    inner = getattr(command, "commands", {})
    yield from [(name, command)] if not inner else []
    for part in inner.values():
        yield from commands(part, f"{name} {part.name}")


COMMANDS = dict(commands(get_command(app)))


def test_every_command_has_its_own_help():
    assert {"bgcl train", "bgcl demo", "bgcl data list"} <= COMMANDS.keys()
    texts = [command.help for command in COMMANDS.values()]
    assert all(texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does_and_its_default(name):
    for option in COMMANDS[name].params:
        if option.name == "help":
            continue
        assert (option.help or "").endswith("."), option.name
        printed = option.default is not None and option.default is not False  # typer prints "[default: ...]"
        assert option.required or printed or "Default: " in option.help, option.name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_printed_without_an_error(run, name):
    code, out, err = run(*name.split()[1:], "--help")
    assert (code, err) == (0, "")
    assert f"{name} [OPTIONS]" in out


def test_help_names_every_choice():
    """The names are written by hand, because the help must not import the model."""
    from bgcl.augmentation.masks import Mask
    from bgcl.cli.rank import LABEL_FREE, OF_NUMBERS
    from bgcl.data.options import DELIMITERS
    from bgcl.downstream.small_classes import WAYS
    from bgcl.downstream.splits import PROTOCOLS
    from bgcl.measures.uncertainty import MEASURES
    from bgcl.settings import presets

    measures = [name.replace("predictive_entropy", "entropy").replace("_", "-") for name in MEASURES]
    choices = {
        ("train", "preset"): presets(),
        ("train", "drop"): [kind.kind for kind in every_subclass(Mask) if hasattr(kind, "kind")],
        ("train", "task"): ["classes", "numbers"],
        ("train", "delimiter"): DELIMITERS,
        ("train", "dates"): ["dmy", "mdy", "ymd"],
        ("evaluate", "protocol"): PROTOCOLS,
        ("predict", "small_classes"): WAYS,
        ("rank", "by"): [*measures, *LABEL_FREE, *OF_NUMBERS],
    }
    for (command, name), words in choices.items():
        option = next(each for each in COMMANDS[f"bgcl {command}"].params if each.name == name)
        assert [word for word in words if word not in option.help] == [], option.help


def every_subclass(kind: type) -> list[type]:
    return [kind for each in kind.__subclasses__() for kind in (each, *every_subclass(each))]
