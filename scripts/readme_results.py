"""Write the table of results into README.md from the files in results/, between its two markers.

The files are the output of `bgcl evaluate RUN... --json`, one for each data set.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: made by scripts/readme_results.py -->", "<!-- end of results -->"
SCORES = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "auroc:least_confidence": "AUROC of errors",
    "pavpu:predictive_entropy": "PAvPU, area",
}


def table(files: list[Path]) -> str:
    """Mean, spread over splits and spread over training seeds of each score, as Markdown."""
    lines = [f"| data set | {' | '.join(SCORES.values())} |", "|---|" + "---|" * len(SCORES)]
    for file in files:
        found = json.loads(file.read_text("utf-8"))
        cells = [_cell(name, found["scores"][name]) for name in SCORES]
        lines.append(f"| {file.stem} | {' | '.join(cells)} |")
    seeds, splits = len(found["runs"]), found["splits"]
    note = f"Mean over {seeds} training seeds, each over {splits} splits; in brackets deviation over splits / seeds."
    note += "\nThe defaults were developed on Cora with its test figures in view: see docs/method.md."
    return "\n".join([*lines, "", note])


def _cell(name: str, score: dict[str, float]) -> str:
    if name == "accuracy":
        return f"{100 * score['mean']:.2f} % ({100 * score['over_splits']:.2f} / {100 * score['over_seeds']:.2f})"
    return f"{score['mean']:.3f} ({score['over_splits']:.3f} / {score['over_seeds']:.3f})"


def with_table(readme: str, files: list[Path]) -> str:
    """The README with the table in its place."""
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n{table(files)}\n{END}", readme, flags=re.DOTALL
    )


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_table(path.read_text("utf-8"), sorted((ROOT / "results").glob("*.json"))), "utf-8")
