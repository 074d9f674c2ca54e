"""Write docs/results.md, its figures and the table in the README from the files in results/."""

import re
from pathlib import Path

from bgcl.files import write_text
from bgcl.reproduce import field_page, figures, pages, results

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: made by scripts/results_pages.py -->", "<!-- end of results -->"


NOTE = (
    "Defaults, 10 % of the labels (lastfm: 50 %), mean accuracy (standard deviation over splits / over training "
    "seeds). No training: attributes propagated along the edges, on the same splits, with a linear head or with "
    "the head of BGCL, whichever is more accurate."
)


def readme_table(folder: Path) -> str:
    """The table of the README."""
    rows = field_page.readme_rows(results.read(results.path_of(folder, "field")))
    return f"{pages.markdown(rows)}\n\n{NOTE}"


def with_table(readme: str, folder: Path) -> str:
    """The text of the README with the table between its two comments replaced."""
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}",
        lambda _: f"{BEGIN}\n{readme_table(folder)}\n{END}",
        readme,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    folder, docs, readme = ROOT / "results", ROOT / "docs", ROOT / "README.md"
    figures.write_figures(folder, docs / "images")
    write_text(docs / "results.md", pages.page(folder, (docs / "results_introduction.md").read_text("utf-8")))
    write_text(readme, with_table(readme.read_text("utf-8"), folder))
