"""Results on the terminal: as tables, or as JSON."""

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bgcl.augmentation.drop_rates import RatePosterior


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows with equal keys as a table, with numbers aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console().print(table)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_rates(drop_rates: "dict[str, list[RatePosterior]]") -> None:
    """Print the posterior of each drop rate as a table."""
    rows = []
    for view, rates in drop_rates.items():
        for rate in rates:
            layers, blocks = len(rate.mean), len(rate.mean[0])
            for i, j, _ in rate.places():
                row = {"view": view, "drops": rate.mask}
                row["layer"] = str(i + 1) if layers > 1 else ""
                row["block"] = str(j + 1) if blocks > 1 else ""
                std = rate.std[i][j] if rate.learned else "fixed"
                rows.append({**row, "rate": rate.mean[i][j], "std": std})
    print_table(rows)


def rates_as_json(drop_rates: "dict[str, list[RatePosterior]]") -> dict[str, Any]:
    """The posterior of each drop rate as JSON can hold it."""
    return {view: [rate.to_dict() for rate in rates] for view, rates in drop_rates.items()}


def print_json(value: Any) -> None:
    """Print JSON, with null for NaN."""
    print(json.dumps(_with_null(value), indent=2, allow_nan=False))


def _with_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_null(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_null(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
