"""Measure the rooms of the package from its imports, and make docs/architecture.md and its picture.

Run `python scripts/architecture.py`. A test fails if the page is not up to date.
"""

import ast
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bgcl"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
BEFORE = Path(__file__).with_name("architecture_before.json")  # the same figures before there were rooms

# Rooms (folders) and root modules, lowest first. A unit may import only units above it in this list.
ORDER = (
    "errors", "validation", "arguments", "files", "folders", "progress", "processes", "graph", "data", "augmentation",
    "defaults", "combined_settings", "settings", "batching", "graph_settings", "ready_graph", "model", "packed",
    "checkpoint", "measures", "downstream", "novelty", "conformal", "reporting", "unused_settings", "parameters",
    "ready_model", "fitting", "estimator", "baselines", "reproduce", "cli",
)  # fmt: skip

# The way of one attribute from a cell of a CSV file to the page, and what each module does with it.
WAY = (
    ("data.tables", "reads the cell from the CSV file"),
    ("data.columns", "turns its column into numbers"),
    ("data.pyg", "checks the graph that it belongs to"),
    ("graph.prepared", "puts it on a sparse pattern"),
    ("model.scaling", "scales it"),
    ("augmentation.views", "masks it at the drop rate"),
    ("model.encoders.mlp", "turns it into what the encoder has learned"),
    ("model.parts", "puts the node and its neighbors side by side"),
    ("model.posterior", "draws many embeddings of the node"),
    ("downstream.classifier", "turns each draw into class probabilities"),
    ("measures.uncertainty", "measures how far the draws agree"),
    ("reporting.report.page", "shows it on the page"),
)


@dataclass(frozen=True)
class Unit:
    """A room or a root module: its files, what it imports, and its size."""

    name: str
    files: int
    lines: int
    longest_file: tuple[str, int]
    longest_function: tuple[str, int]
    imports: frozenset[str]


def unit_of(module: str) -> str:
    """The room or root module of a dotted module name inside the package."""
    return module.split(".")[0]


def imported_modules(tree: ast.AST) -> set[str]:
    """Modules of this package that a file imports, anywhere in it, except for type checkers only."""
    found = set()
    for node in ast.walk(_without_type_checking(tree)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "bgcl":
            inner = node.module.partition(".")[2]
            found |= {inner} if inner else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("bgcl.")}
    return found - {"", "__version__"}


def _without_type_checking(tree: ast.AST) -> ast.AST:
    class Remove(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            named = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            return node.orelse if named else self.generic_visit(node)

    return Remove().visit(tree)


def measure(package: Path = PACKAGE) -> dict[str, Unit]:
    """Every room and root module with its figures."""
    parts: dict[str, list[tuple[str, int, tuple[str, int], set[str]]]] = {}
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        if module in ("__init__", "__main__"):
            continue
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        longest = max(((f.name, f.end_lineno - f.lineno + 1) for f in functions), key=lambda f: f[1], default=("", 0))
        parts.setdefault(unit_of(module), []).append(
            (module, len(text.splitlines()), (f"{module}.{longest[0]}", longest[1]), imported_modules(tree))
        )
    return {
        name: Unit(
            name,
            len(files),
            sum(lines for _, lines, _, _ in files),
            max(((module, lines) for module, lines, _, _ in files), key=lambda f: f[1]),
            max((function for _, _, function, _ in files), key=lambda f: f[1]),
            frozenset({unit_of(m) for _, _, _, imports in files for m in imports} - {name}),
        )
        for name, files in parts.items()
    }


def upward_imports(units: dict[str, Unit]) -> list[str]:
    """Imports of a unit that comes later in the order, which must not exist; cycles are among them."""
    rank = {name: i for i, name in enumerate(ORDER)}
    return [f"{u.name} imports {other}" for u in units.values() for other in u.imports if rank[other] >= rank[u.name]]


def depth(units: dict[str, Unit]) -> int:
    """The length of the longest chain of imports between units."""
    longest: dict[str, int] = {}
    for name in ORDER:
        if name in units:
            longest[name] = 1 + max((longest[other] for other in units[name].imports if other in longest), default=0)
    return max(longest.values())


def figures(units: dict[str, Unit]) -> dict[str, object]:
    """The figures of the whole package."""
    file = max((u.longest_file for u in units.values()), key=lambda f: f[1])
    function = max((u.longest_function for u in units.values()), key=lambda f: f[1])
    rooms = [u for u in units.values() if u.files > 1]
    return {
        "modules at the root": sum(u.files == 1 for u in units.values()),
        "rooms": len(rooms),
        "lines": sum(u.lines for u in units.values()),
        "longest file": f"{file[0]}, {file[1]} lines",
        "longest function": f"{function[0]}, {function[1]} lines",
    }


def table(units: dict[str, Unit]) -> str:
    """Lines, fan-in and fan-out of each room and root module, as Markdown."""
    rows = ["| room or module | files | lines | fan-in | fan-out | longest file | longest function |",
            "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name in ORDER:
        u = units[name]
        fan_in = sum(name in other.imports for other in units.values())
        rows.append(
            f"| `{name}{'/' if u.files > 1 else '.py'}` | {u.files} | {u.lines:,} | {fan_in} | {len(u.imports)} | "
            f"`{u.longest_file[0]}`, {u.longest_file[1]} | `{u.longest_function[0].split('.')[-1]}`, "
            f"{u.longest_function[1]} |"
        )
    return "\n".join(rows)


def summary_of(name: str) -> str:
    """The first sentence of a unit's docstring."""
    path = PACKAGE / name / "__init__.py"
    path = path if path.is_file() else PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def page(units: dict[str, Unit]) -> str:
    """The text of docs/architecture.md."""
    before = json.loads(BEFORE.read_text("utf-8"))
    after = figures(units) | {"levels of imports": depth(units)}
    compared = "\n".join(f"| {name} | {before[name]} | {after[name]} |" for name in after)
    rooms = "\n".join(f"| `{name}` | {summary_of(name)} |" for name in ORDER)
    way = "\n".join(f"{i}. `{module}` {what}." for i, (module, what) in enumerate(WAY, 1))
    return f"""# Architecture

<!-- Made by scripts/architecture.py from the imports. Do not edit. -->

The package consists of rooms: subpackages with one subject each. A few subjects are single modules at the root.
Data flows one way: a room imports only rooms above it in the table below. A test reads every import and fails if one
points the other way.

![The rooms in their order, and the path of an attribute from a CSV file to the page](images/architecture.svg)

| room or module | what it is |
|---|---|
{rooms}

## The path of an attribute

One number in a CSV file goes through these modules until it is part of the report:

{way}

`bgcl.load` takes the first two steps, [`BGCL`](api/model.md) the next seven, and `bgcl.predict` and `bgcl.report` the
rest. To change a step, change its module.

## Figures

Fan-in is the number of rooms and root modules that import a room. Fan-out is the number that it imports. Levels of
imports are the length of the longest chain in which each room or module imports the next.

{table(units)}

Before the rooms, all of these were modules in one folder:

| | before | now |
|---|---|---|
{compared}
"""


def picture(units: dict[str, Unit]) -> str:
    """The rooms as boxes from top to bottom, imports as arcs on the left, and the way of an attribute on the right."""
    width, row, left, box = 1060, 46, 250, 300
    height = row * len(ORDER) + 30
    middle = {name: 20 + row * i + row / 2 for i, name in enumerate(ORDER)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'role="img" aria-label="Rooms of the package, their imports, and the way of an attribute">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for name in ORDER:
        for other in sorted(units[name].imports):
            y, to = middle[name], middle[other]
            reach = left - 14 - 11 * abs(ORDER.index(name) - ORDER.index(other))
            parts.append(
                f'<path d="M{left} {y:.0f} C{reach} {y:.0f} {reach} {to:.0f} {left} {to:.0f}" fill="none" '
                'stroke="#0072B2" stroke-opacity="0.35"/>'
            )
    for name in ORDER:
        y, is_room = middle[name], units[name].files > 1
        parts.append(
            f'<rect x="{left}" y="{y - 17:.0f}" width="{box}" height="34" rx="6" stroke="#0072B2" '
            f'fill="{"#e6f1f8" if is_room else "#ffffff"}"/>'
            f'<text x="{left + 12}" y="{y + 5:.0f}" font-size="15" fill="#222222">'
            f"{name}{'/' if is_room else '.py'}</text>"
            f'<text x="{left + box - 12}" y="{y + 5:.0f}" font-size="12" fill="#555555" text-anchor="end">'
            f"{units[name].lines:,} lines</text>"
        )
    x, count = left + box + 70, len(WAY)
    step = (height - 60) / (count - 1)
    places = [30 + step * i for i in range(count)]
    for i, (module, what) in enumerate(WAY):
        y, room = places[i], middle[unit_of(module)]
        parts.append(
            f'<path d="M{left + box} {room:.0f} C{x - 40} {room:.0f} {x - 40} {y:.0f} {x - 8} {y:.0f}" fill="none" '
            'stroke="#D55E00" stroke-opacity="0.6"/>'
            f'<circle cx="{x}" cy="{y:.0f}" r="7" fill="#D55E00"/>'
            f'<text x="{x + 16}" y="{y:.0f}" font-size="14" fill="#222222">{escape(module)}</text>'
            f'<text x="{x + 16}" y="{y + 17:.0f}" font-size="12" fill="#555555">{escape(what)}</text>'
        )
        if i:
            parts.append(f'<path d="M{x} {places[i - 1] + 7:.0f} V{y - 7:.0f}" stroke="#D55E00" stroke-width="2"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    units = measure()
    if wrong := upward_imports(units):
        raise SystemExit("; ".join(wrong))
    PAGE.write_text(page(units), "utf-8")
    PICTURE.write_text(picture(units), "utf-8")


if __name__ == "__main__":
    main()
