"""Refuse to write a result over a file that the command reads: a file of the run, or a table of the graph."""

from pathlib import Path
from typing import TYPE_CHECKING

from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from bgcl.estimator import BGCL


def check_not_read(out: Path | None, run: Path, model: "BGCL", *graphs: str | None) -> None:
    """Raise an error if `out` is a file of the run, of its training graph, or of one of `graphs`."""
    from bgcl.checkpoint import ABOUT, FITTED, HISTORY, RECIPE, TENSORS
    from bgcl.data.folder import NAMES

    if out is None:
        return
    place, recipe = out.resolve(), model.recipe_
    trained = [model.graph_.name] if recipe is None else [recipe.edges_file, recipe.nodes_file, recipe.labels_file]
    read = {(run / name).resolve() for name in (ABOUT, FITTED, HISTORY, RECIPE, TENSORS)}
    paths = [Path(graph).resolve() for graph in (*trained, *graphs) if graph]
    is_table = place.parent in paths and place.name.split(".")[0] in NAMES  # in a folder of tables
    if is_table or place in {*read, *paths}:
        raise BGCLError(f"Cannot write {out}: this command reads it, and it would be lost. Name another file.")
