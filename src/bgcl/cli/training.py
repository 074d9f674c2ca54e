"""`bgcl demo` and `bgcl train`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.cli.common import GRAPH, Json, Quiet, fit_and_keep, load_graph, parse_setting, print_json, print_rates
from bgcl.errors import BGCLError


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run, made anew.")] = Path("run"),
    epochs: Annotated[int | None, typer.Option(help="Number of epochs, instead of the preset's.")] = None,
    seed: Annotated[int, typer.Option(help="Of every random number.")] = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on the bundled Cora, classify its nodes, and write a page and pictures of what was learned."""
    from bgcl.cli.demo import run_demo

    run_demo(out, seed=seed, quiet=quiet, json=json, **({} if epochs is None else {"epochs": epochs}))


def train(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help=GRAPH)],
    out: Annotated[Path, typer.Option(help="Folder to keep the run in.")] = Path("run"),
    preset: Annotated[str | None, typer.Option(help="Settings to start from; by itself the data set's own.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of every random number.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="What a view drops, such as 'edges at 0.3'; may be given again.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on a graph, without labels."""
    given: dict[str, Any] = {"epochs": epochs, "seed": seed, "drop": drop}
    given = {name: value for name, value in given.items() if value is not None}
    given |= dict(parse_setting(pair) for pair in set_ or [])
    if "preset" in given:
        raise BGCLError("Unknown setting 'preset'. Name a preset with --preset.")
    if resume and (preset or overwrite):
        raise BGCLError("--resume goes on with the run as it is: leave out --preset and --overwrite.")
    from bgcl import runs
    from bgcl.estimator import BGCL

    if resume:
        saved = runs.read(out).settings.model_dump()
        model = BGCL(**saved | given)
    else:
        if runs.is_run(out) and not overwrite:
            raise BGCLError(
                f"{out} holds a run already: go on with --resume, replace it with --overwrite, or name another."
            )
        model = BGCL(_preset(graph, preset), **given)
    data = load_graph(graph, quiet)
    fit_and_keep(model, data, out, graph, resume=resume, show=not quiet)
    last = model.history_[-1] if model.history_ else {"epoch": model.settings.epochs, "loss": float("nan")}
    if json:
        print_json({"run": str(out), "epoch": last["epoch"], "loss": last["loss"], "drop_rates": model.drop_rates_})
    else:
        print(f"{out}: {last['epoch']} epochs, loss {last['loss']:.4f}")
        print_rates(model)


def _preset(graph: str, preset: str | None) -> str | None:
    """The preset that was asked for, or the one of a data set that has its own, however its name is spelt."""
    from bgcl.data.catalogue import canonical_name
    from bgcl.settings import presets

    name = canonical_name(graph)
    return preset or (name if name in presets() else None)
