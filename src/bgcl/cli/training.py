"""`bgcl demo` and `bgcl train`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.cli import graphs
from bgcl.cli.common import Json, Quiet, fit_and_keep, parse_setting, print_json, print_rates
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
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help=graphs.GRAPH)],
    out: Annotated[Path, typer.Option(help="Folder to keep the run in.")] = Path("run"),
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings to start from; by itself the data set's own, if it has one, or 'auto', by size, for a graph "
            "of your own."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of every random number.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="What a view drops, such as 'edges at 0.3'; may be given again.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write the training there for TensorBoard.")
    ] = None,
    nodes: graphs.Nodes = None,
    label: graphs.Label = None,
    id_: graphs.Id = None,
    source: graphs.Source = None,
    target: graphs.Target = None,
    ignore: graphs.Ignore = None,
    categorical: graphs.Categorical = None,
    text: graphs.Text = None,
    words: graphs.WordLimit = 2000,
    skip_unknown: graphs.SkipUnknown = False,
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
    from bgcl import checkpoint as runs
    from bgcl.automatic import describe
    from bgcl.estimator import BGCL
    from bgcl.settings import AUTO

    if resume:
        saved = runs.read(out)
        model = BGCL(**saved.settings.model_dump() | given)
        model.recipe_, model.graph_ = saved.recipe, saved.graph
        data = graphs.graph_of(model, out, graph if saved.recipe is None or nodes else None, nodes, quiet)
    else:
        if runs.is_run(out) and not overwrite:
            raise BGCLError(
                f"{out} holds a run already: go on with --resume, replace it with --overwrite, or name another."
            )
        model = BGCL(_preset(graph, preset), **given)
        data, _ = graphs.load_graph(
            graph, nodes, quiet, label=label, id=id_, source=source, target=target, ignore=ignore,
            categorical=categorical, text=text, words=words, skip_unknown=skip_unknown,
        )  # fmt: skip
        if model.preset == AUTO and not quiet:
            print(describe(data, model.settings_for(data)), file=sys.stderr)
    fit_and_keep(model, data, out, graph, resume=resume, show=not quiet, tensorboard=tensorboard)
    last = model.history_[-1] if model.history_ else {"epoch": model.settings.epochs, "loss": float("nan")}
    if json:
        print_json({"run": str(out), "epoch": last["epoch"], "loss": last["loss"], "drop_rates": model.drop_rates_})
    else:
        print(f"{out}: {last['epoch']} epochs, loss {last['loss']:.4f}")
        print_rates(model)


def _preset(graph: str, preset: str | None) -> str | None:
    """What was asked for; or the preset of a data set that has its own, however its name is spelt; or for a user's own
    graph, the one that is picked by its size.
    """
    from bgcl.data.catalogue import DATASETS, canonical_name
    from bgcl.settings import AUTO, presets

    name = canonical_name(graph)
    return preset or (name if name in presets() else None if name in DATASETS else AUTO)
