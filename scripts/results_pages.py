"""Write docs/results.md, its figures and the table in the README from the files in results/."""

import re
from pathlib import Path

from bgcl.files import write_text
from bgcl.reproduce import figures, pages

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: made by scripts/results_pages.py -->", "<!-- end of results -->"


def with_table(readme: str, folder: Path) -> str:
    """The text of the README with the table between its two comments replaced."""
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}",
        lambda _: f"{BEGIN}\n{pages.readme_table(folder)}\n{END}",
        readme,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    results, docs, readme = ROOT / "results", ROOT / "docs", ROOT / "README.md"
    figures.write_figures(results, docs / "images")
    write_text(docs / "results.md", pages.page(results, (docs / "results_introduction.md").read_text("utf-8")))
    write_text(readme, with_table(readme.read_text("utf-8"), results))
