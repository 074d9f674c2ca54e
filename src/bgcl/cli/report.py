"""`bgcl report`: a page that shows what a model knows of its nodes, and what it does not."""

from pathlib import Path
from typing import Annotated

import typer

from bgcl.cli.common import DrawSeed, GraphOf, Json, Quiet, RunFolder, Samples, open_run, print_json


def report(
    run: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Page to write; by itself report.html in the run's folder.")] = None,
    samples: Samples = 100,
    seed: DrawSeed = None,
    graph: GraphOf = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write one page to look at, which works offline: map, certainty, nodes to review, training."""
    from bgcl.reporting.report.page import check_out

    page = run / "report.html" if out is None else out
    check_out(page)
    model, data = open_run(run, graph, quiet)
    from bgcl.reporting.report.page import report as write

    write(model, data, page, samples=samples, seed=seed, progress=not (quiet or json))
    size = page.stat().st_size
    if json:
        print_json({"file": str(page), "nodes": data.num_nodes, "bytes": size})
    else:
        print(f"{page}: {data.num_nodes:,} nodes, {size / 1e6:.1f} MB")
