"""Make docs/errors.md, where users look up an error, from the catalogue of bad inputs in tests/bad_inputs.

python scripts/errors_page.py
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from bad_inputs.catalogue import bad_inputs, kinds  # noqa: E402

INTRODUCTION = """# Look up an error

<!-- Made by scripts/errors_page.py from tests/bad_inputs. Do not edit. -->

bgcl checks what it reads. If something is wrong, a command prints one line and ends with exit code 2, and a function
raises a `BGCLError` with the same line. The line names the file and, if possible, the row and the column.

This page lists the errors by the kind of input. The names of files, columns and values are examples. Each error is
tested with the inputs that cause it, {count} in all.
"""


def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION.format(count=len(bad_inputs()))]
    for content in kinds().values():
        parts.append(f"\n## {content['title']}\n\n{content['about']}\n")
        parts += [entry(error) for error in content["error"]]
    return "".join(parts)


def entry(error: dict[str, Any]) -> str:
    """One error: its message, its cause, and what to do."""
    return f"\n```text\n{error['message']}\n```\n\n- **Cause:** {error['cause']}\n- **What to do:** {error['remedy']}\n"


if __name__ == "__main__":
    (ROOT / "docs" / "errors.md").write_text(page(), "utf-8")
