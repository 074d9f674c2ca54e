"""The command line. Nothing heavy is imported before a command needs it, so that `bgcl --help` is quick."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl import __version__
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL

app = typer.Typer(
    help="Bayesian graph contrastive learning: node embeddings that know what they do not know.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="List, get and verify data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results alone, no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, as 'bgcl train' makes it.")]
GraphOf = Annotated[str | None, typer.Option("--graph", help="The graph, if not the one that the run names.")]
GRAPH = "A data set's name (see 'bgcl data list') or a .npz file."


def main() -> None:
    """Run a command; bad input ends in one line on standard error and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except BGCLError as error:
        _fail(str(error), 2)
    except typer.TyperException as error:
        _fail(f"{error.format_message()} Try 'bgcl --help'.", 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted.", 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; so do we, without a word
        raise SystemExit(1) from None
    raise SystemExit(code if isinstance(code, int) else 0)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _fail(text: str, code: int) -> None:
    print(f"bgcl: {' '.join(text.split())}", file=sys.stderr)
    raise SystemExit(code)


def _version(value: bool) -> None:
    if value:
        print(f"bgcl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the run, made anew.")] = Path("run"),
    epochs: Annotated[int | None, typer.Option(help="Number of epochs, instead of the preset's.")] = None,
    seed: Annotated[int, typer.Option(help="Of every random number.")] = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on the bundled Cora, classify its nodes, and save pictures of what was learned."""
    from bgcl.demo import run_demo

    given = {} if epochs is None else {"epochs": epochs}
    _saving(out, f"bgcl train cora --out {out} --resume")(
        lambda: run_demo(out, seed=seed, quiet=quiet, json=json, **given)
    )


@app.command()
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
    given = {name: value for name, value in given.items() if value} | ({"seed": 0} if seed == 0 else {})
    given |= dict(_setting(pair) for pair in set_ or [])
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
    data = _load(graph, quiet)
    again = f"bgcl train {graph} --out {out} --resume"
    _saving(out, again)(lambda: model.fit(data, out=out, resume=resume, progress=not quiet))
    last = model.history_[-1]
    if json:
        print_json({"run": str(out), "epoch": last["epoch"], "loss": last["loss"], "drop_rates": model.drop_rates_})
    else:
        print(f"{out}: {last['epoch']} epochs, loss {last['loss']:.4f}")
        print_rates(model)


@app.command()
def embed(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="File to write, ending in .npz.")],
    samples: Annotated[int, typer.Option(help="Number of draws from the posterior.")] = 100,
    draws: Annotated[bool, typer.Option(help="Whether to write every draw, or mean and deviation alone.")] = True,
    hard: Annotated[bool, typer.Option("--hard", help="Bernoulli masks instead of relaxed ones.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of the draws; by itself the run's.")] = None,
    graph: GraphOf = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Draw embeddings: draws, mean, deviation and ASTD of each node, and the fixed embedding without masks."""
    if out.suffix != ".npz":
        raise BGCLError(f"Cannot write {out}: the file must end in .npz.")
    import numpy as np

    from bgcl.embeddings import Moments
    from bgcl.files import whole

    model, data = _open(run, graph, quiet)
    arrays: dict[str, Any] = {"fixed": model.embed(data).numpy()}
    if draws:
        sampled = model.sample(data, samples, hard=hard, seed=seed)
        arrays["draws"] = sampled.numpy()
        found = Moments(sampled.mean(0), sampled.std(0, correction=min(1, samples - 1)), samples)
    else:
        found = model.moments(data, samples, hard=hard, seed=seed)
    arrays |= {"mean": found.mean.numpy(), "deviation": found.deviation.numpy(), "astd": found.astd.numpy()}
    with whole(out) as part:
        np.savez(part, **arrays)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if json:
        print_json({"file": str(out), "arrays": shapes})
    else:
        print(f"{out}: " + ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items()))


@data_app.command("list")
def data_list(json: Json = False) -> None:
    """List the data sets, and where each of them is."""
    from bgcl.data import DATASETS, locate

    facts = [
        {"name": name, "nodes": d.nodes, "edges": d.edges, "attributes": d.features, "classes": d.classes,
         "where": str(locate(name)[0])}
        for name, d in DATASETS.items()
    ]  # fmt: skip
    if json:
        print_json(facts)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in facts[0]:
        table.add_column(column, justify="left" if column in ("name", "where") else "right")
    for fact in facts:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in fact.values()))
    Console().print(table)


@data_app.command("get")
def data_get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of data sets.")], quiet: Quiet = False
) -> None:
    """Get data sets and put them into the cache."""
    from bgcl.data import get

    for name in names:
        print(f"{name}: {get(name, quiet=quiet)}")


@data_app.command("verify")
def data_verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="By itself, all that are here.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare the data sets that are on this machine with their checksums."""
    from bgcl.data import DATASETS, Place, locate, verify

    names = names or [name for name in DATASETS if locate(name)[0] != Place.ABSENT]
    found = [verify(name) for name in names]
    if json:
        print_json([{"name": v.name, "where": str(v.place), "digest": v.digest, "note": v.note} for v in found])
    else:
        for v in found:
            print(f"{v.name}: {v.note} ({v.place}, {v.digest[:12]})")


def _load(graph: str, quiet: bool) -> "Data":
    """A graph by name or file, which remembers what it was called."""
    from bgcl.data import load

    data = load(graph, quiet=quiet)
    if "name" not in data:
        data.name = str(Path(graph).resolve())
    return data


def _open(run: Path, graph: str | None, quiet: bool) -> tuple["BGCL", "Data"]:
    """A run's model and the graph that it was trained on, or another one with the same attributes."""
    from bgcl.estimator import BGCL

    model = BGCL.load(run)
    if not (graph or model.graph_.name):
        raise BGCLError(f"{run} does not say which graph it was trained on. Name it with --graph.")
    return model, _load(graph or model.graph_.name, quiet)


def _preset(graph: str, preset: str | None) -> str | None:
    from bgcl.settings import presets

    return preset or (graph if graph in presets() else None)


def _setting(pair: str) -> tuple[str, Any]:
    """`NAME=VALUE`, the value written as in TOML; what is not TOML is a string."""
    import tomllib

    name, equals, value = pair.partition("=")
    if not equals:
        raise BGCLError(f"Cannot read --set '{pair}': write NAME=VALUE, such as tau=0.5.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def _saving(out: Path, again: str) -> Callable[[Callable[[], Any]], None]:
    """Run something that can be interrupted; then say what was kept and how to go on."""

    def run(action: Callable[[], Any]) -> None:
        try:
            action()
        except KeyboardInterrupt:
            from bgcl import runs

            if not (out / runs.TENSORS).is_file():
                raise
            epoch = int(runs.read(out).training["epoch"])
            _fail(f"interrupted; {out} holds epoch {epoch}. Go on with: {again}", 130)

    return run


def print_rates(model: "BGCL") -> None:
    """The posterior of each drop rate, as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("view", "drops", "layer", "block", "rate", "deviation"):
        table.add_column(column, justify="right" if column in ("rate", "deviation") else "left")
    for view, masks in model.drop_rates_.items():
        for mask in masks:
            layers, blocks = len(mask["mean"]), len(mask["mean"][0])
            for i in range(layers):
                for j in range(blocks):
                    place = (str(i + 1) if layers > 1 else "", str(j + 1) if blocks > 1 else "")
                    kind = "" if "a" in mask else " (fixed)"
                    rate, deviation = mask["mean"][i][j], mask["deviation"][i][j]
                    table.add_row(view, mask["mask"] + kind, *place, f"{rate:.3f}", f"{deviation:.3f}")
    Console().print(table)


def print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=2))
