"""Pages of the site that are made from the code when it is built: settings, commands, and the gallery of examples.

MkDocs calls `on_files` (see `hooks` in mkdocs.yml). Nothing is written to docs/.
"""

import ast
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/bgcl/bgcl/blob/main"


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those in docs/."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT / "src"))
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> dict[str, str]:
    """Every generated page by its path."""
    found = {
        "settings.md": settings_page(),
        "contributing.md": copied("CONTRIBUTING.md"),
        "changelog.md": copied("CHANGELOG.md"),
    }
    return found | command_pages() | gallery_pages()


def copied(name: str) -> str:
    """A page of the repository's root, with links into docs/ made relative."""
    return (ROOT / name).read_text("utf-8").replace("](docs/", "](")


def settings_page() -> str:
    """Every setting with its default, its range and its meaning, in groups; then the presets."""
    from bgcl.settings import GROUPS, Settings, presets

    parts = [
        "# Settings",
        "Every setting is a keyword argument of [`bgcl.BGCL`](api/model.md), a field of `bgcl.Settings`, and an option "
        "of [`bgcl train`](commands/train.md): `--set NAME=VALUE`. A value outside the range is refused when training "
        "starts.",
    ]
    for group, kind in GROUPS.items():
        doc = (kind.__doc__ or "").strip()
        parts += [f"## {group.capitalize()}", doc, "| setting | default | allowed | what it is |\n|---|---|---|---|"]
        for name, field in kind.model_fields.items():
            allowed = Settings.allowed(name)
            if field.description and field.description in allowed:
                allowed = f"such as `{field.default!r}`"
            parts[-1] += f"\n| `{name}` | `{field.default!r}` | {allowed} | {field.description} |"
    parts += [
        "## Presets",
        'A preset replaces some defaults: `bgcl.BGCL(preset="paper-cora")`, or `bgcl train GRAPH --preset paper-cora`. '
        "The paper's tables were made with these. See [the method](method.md).",
        "| preset | settings |\n|---|---|",
    ]
    for name, values in presets().items():
        parts[-1] += f"\n| `{name}` | {', '.join(f'`{key} = {value!r}`' for key, value in values.items())} |"
    return "\n\n".join(parts) + "\n"


def command_pages() -> dict[str, str]:
    """A page for every command, with its arguments and options."""
    import typer

    from bgcl.cli import app

    group = typer.main.get_command(app)
    found, rows = {}, []
    for name, command in group.commands.items():
        found[f"commands/{name}.md"] = _command_page(f"bgcl {name}", command)
        rows.append(f"| [`bgcl {name}`]({name}.md) | {_first_sentence(command.help or '')} |")
    index = [
        "# Commands",
        "Every command has `--help`, `--quiet`, and `--json` if it prints results. Wrong input ends in one line that "
        "says what is wrong and what to do, and exit code 2. An interrupted command ends with exit code 130.",
        "| command | what it does |\n|---|---|\n" + "\n".join(rows),
    ]
    return found | {"commands/index.md": "\n\n".join(index) + "\n"}


def _command_page(name: str, command: Any) -> str:
    parts = [f"# {name}", " ".join((command.help or "").split())]
    if hasattr(command, "commands"):
        for inner, sub in command.commands.items():
            parts.append(_command_page(f"{name} {inner}", sub).replace("# ", "## ", 1))
        return "\n\n".join(parts)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([name, *(p.metavar or p.name.upper() for p in arguments), "[OPTIONS]"])
    parts.append(f"```\n{usage}\n```")
    for params, head in ((arguments, "argument"), (options, "option")):
        if params:
            rows = [f"| {_flags(p)} | {_help(p)} |" for p in params]
            parts.append(f"| {head} | |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _flags(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{param.metavar or param.name.upper()}`"
    return ", ".join(f"`{flag}`" for flag in [*param.opts, *param.secondary_opts])


def _help(param: Any) -> str:
    text = (param.help or "").replace("|", "\\|")
    default = param.default
    if param.param_type_name == "option" and default not in (None, False, True, ()) and "Default" not in text:
        text += f" Default: {default}."
    return text


def gallery_pages() -> dict[str, str]:
    """A page for every script in examples/, and an index of them."""
    found, rows = {}, []
    for path in sorted((ROOT / "examples").glob("*.py")):
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        title, _, about = (ast.get_docstring(tree) or path.stem).partition("\n\n")
        code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
        found[f"gallery/{path.stem}.md"] = "\n\n".join(
            [f"# {title.rstrip('.')}", about, f"```python\n{code}\n```",
             f"Run it with `python examples/{path.name}`. [The file]({REPOSITORY}/examples/{path.name})."]
        )  # fmt: skip
        rows.append(f"| [{title.rstrip('.')}]({path.stem}.md) | {_first_sentence(about)} |")
    index = "# Gallery\n\nShort scripts that run from top to bottom. CI runs all of them.\n\n| example | |\n|---|---|\n"
    return found | {"gallery/index.md": index + "\n".join(rows) + "\n"}


def _first_sentence(text: str) -> str:
    text = " ".join(text.split())
    return text.split(". ")[0].rstrip(".") + "." if text else ""
