"""`bgcl train`: train on a graph."""

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli import options
from bgcl.cli.many import in_processes
from bgcl.cli.network_size import check_network_fits
from bgcl.cli.opening import graph_of, is_graph_of, load_graph
from bgcl.cli.printing import print_all_rates, print_json, rates_as_json, say
from bgcl.errors import BGCLError, InterruptedRunError, LostProcessError
from bgcl.processes.joining import check_device_of_team, joined

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from bgcl.estimator import BGCL


LONGEST = 4000  # characters of a value in --set


def train(
    graph: options.Graph,
    out: Annotated[Path, typer.Option(help="Folder for the run.")] = Path("run"),
    preset: Annotated[
        str | None,
        typer.Option(
            help="Named settings to start from, those of the paper: paper-cora, paper-citeseer, paper-amazon-photo, "
            "paper-amazon-computers, paper-wikics or paper-coauthor-cs. Default: none, which suits every graph."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs. Default: as in the preset, or until training settles.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random number. Default: 0.")] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="What a view drops: connections, edges, neighbors, nodes, subgraph, features or entries, perhaps with "
            "a rate, such as 'edges at 0.3'. Repeat the option for several masks. Default: as in the preset."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting, such as tau=0.5. Repeat the option for several settings. Default: as in the "
            "preset.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            help="What a batch is: full (the whole graph), clusters, neighbors (random nodes with sampled neighbors), "
            "or auto, which chooses and says why. Default: random nodes for the encoder mlp, else the whole graph."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder. Default: off.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in the folder. Default: off.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Processes on this machine that share the batches of a step. If one dies, all start again from the "
            "last epoch. Default: 1, or as many as torchrun has started."
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for TensorBoard to follow the training. Default: none.")
    ] = None,
    nodes: options.Nodes = None, label: options.Label = None, id_: options.Id = None,
    source: options.Source = None, target: options.Target = None, ignore: options.Ignore = None,
    categorical: options.Categorical = None, text: options.Text = None, words: options.WordLimit = None,
    skip_unknown: options.SkipUnknown = False, labels: options.Labels = None, weight: options.Weight = None,
    bipartite: options.Bipartite = None, missing_label: options.MissingLabel = None, exact: options.Exact = False,
    feature: options.Feature = None, value_: options.Value = None, delimiter: options.Delimiter = None,
    header: options.Header = None, no_header: options.NoHeader = None, decimal: options.Decimal = None,
    dates: options.Dates = None, directed: options.Directed = False, edge_type: options.EdgeType = None,
    node_type: options.NodeType = None, task: options.Task = None, many_labels: options.ManyLabels = None,
    quiet: options.Quiet = False, json: options.Json = False,
) -> None:  # fmt: skip
    """Train a model on a graph, without using its labels."""
    for text_ in drop or []:
        _check_encoding("--drop", text_)
    if (code := in_processes(processes)) is not None:
        raise typer.Exit(code)
    own: dict[str, Any] = {"epochs": epochs, "seed": seed, "drop": drop, "batch": batch}
    given = {name: value for name, value in own.items() if value is not None}
    for name, value in (parse_setting(pair) for pair in set_ or []):
        if name in given:
            raise BGCLError(f"The setting '{name}' is given twice, and only one can count. Give it once.")
        given[name] = value
    if resume and (preset or overwrite):
        raise BGCLError("--resume continues the run as it is: leave out --preset and --overwrite.")
    if resume and given.get("batch") is not None:
        raise BGCLError("--resume continues the run with its batches: leave out --batch.")
    how: dict[str, Any] = {
        "label": label, "id": id_, "source": source, "target": target, "ignore": ignore, "categorical": categorical,
        "text": text, "words": words, "skip_unknown": skip_unknown, "weight": weight, "bipartite": bipartite,
        "missing_label": missing_label, "exact": exact, "feature": feature, "value": value_, "delimiter": delimiter,
        "header": header, "no_header": no_header, "decimal": decimal, "dates": dates, "directed": directed,
        "edge_type": edge_type, "node_type": node_type, "task": task,
        "many_labels": many_labels,
    }  # fmt: skip
    said = [name for name, each in {**how, "labels": labels}.items() if each not in (None, False, [])]
    if resume and said:
        wrong = " and ".join(f"--{name.replace('_', '-')}" for name in said)
        raise BGCLError(f"--resume reads the graph as the run did: leave out {wrong}.")
    from bgcl import checkpoint
    from bgcl.batching import choose
    from bgcl.cli.begun import open_or_begin
    from bgcl.estimator import BGCL
    from bgcl.graph_settings import describe, describe_batches
    from bgcl.model.training import how_long
    from bgcl.ready_graph import check_device
    from bgcl.settings import make_settings
    from bgcl.unused_settings import check_used

    with joined() as team, contextlib.ExitStack() as stack:
        show = team.is_main and not quiet
        run = open_or_begin(team, out, stack, resume=resume, overwrite=overwrite)
        with team.agreed():
            if run is not None:
                model = run.model(given)
                same = nodes is None and is_graph_of(run.recipe, graph)
                data = graph_of(model, out, None if same else graph, nodes, not show)
            else:
                given |= {} if team.size == 1 else {"batches_per_step": given.get("batches_per_step", team.size)}
                settings = make_settings(preset, **given)  # a wrong setting is reported before the graph is read
                check_used(settings, given)
                check_device(settings.device)
                model = BGCL(preset, **given)
                data, _ = load_graph(graph, nodes, not show, labels, **how)
            chosen = model.settings_for(data)
            check_device_of_team(team, chosen.device)
            check_network_fits(chosen, data.x.shape[1])
        if show and run is None:
            print(describe(data, chosen), file=sys.stderr)
            print(describe_batches(data, chosen), file=sys.stderr)
            if batch is not None:
                print(f"Batches: {choose(data, settings)[1]}.", file=sys.stderr)
        fit_and_save(model, data, out, graph, resume=run is not None, show=show, tensorboard=tensorboard)
        if team.is_main:
            checkpoint.forget_older(out)
    if not team.is_main:
        return
    last = model.history_[-1] if model.history_ else None
    epoch, loss = (model.settings_.epochs, float("nan")) if last is None else (last.epoch, last.loss)
    if json:
        print_json({"run": str(out), "epoch": epoch, "loss": loss, "drop_rates": rates_as_json(model.drop_rates_)})
    else:
        say(f"{out}: epochs {how_long(model.history_, model.settings_) if last else epoch}, loss {loss:.4f}")
        print_all_rates(model)


def fit_and_save(
    model: "BGCL", data: "Data", out: Path, graph: str, *, resume: bool = False, show: bool = True,
    tensorboard: Path | None = None,
) -> None:  # fmt: skip
    """Train and save every epoch. If the user interrupts, report which epoch was saved and how to continue."""
    progress: list[Any] = [show]
    if tensorboard is not None:
        from bgcl.reporting.tensorboard import TensorBoard

        progress.append(TensorBoard(tensorboard))
    try:
        model.fit(data, out=out, resume=resume, progress=progress)
    except (KeyboardInterrupt, LostProcessError) as end:
        if not getattr(model, "history_", None):
            raise
        again = shlex.join(["bgcl", "train", graph, "--out", str(out), "--resume"])
        saved = f"{out} contains epoch {model.history_[-1].epoch}. Continue with: {again}"
        if isinstance(end, LostProcessError):
            raise LostProcessError(f"{end} {saved}") from end
        raise InterruptedRunError(saved) from None


def parse_setting(pair: str) -> tuple[str, Any]:
    """Name and value of `NAME=VALUE`. The value is TOML, or `none`; anything else is a string."""
    import tomllib

    from bgcl.errors import nearest
    from bgcl.settings import Settings

    _check_encoding("--set", pair)
    name, equals, value = pair.partition("=")
    if not equals:
        raise BGCLError(f"Cannot read --set '{pair}': write NAME=VALUE, such as tau=0.5.")
    if len(value) > LONGEST:
        raise BGCLError(
            f"Cannot read --set '{name[:40]}': the value has {len(value):,} characters, more than any needs."
        )
    if name == "preset":
        raise BGCLError("'preset' is not a setting. Name a preset with --preset.")
    if name not in Settings.model_fields:
        raise BGCLError(f"Unknown setting '{name}'. {nearest(name, Settings.model_fields)}")
    if value.lower() == "none" and name not in ("row_norm", "norm"):
        return name, None
    if name in ("encoder", "objective") and value.strip("\"'") == "module":
        raise BGCLError(f"An {name} of your own can be given only in Python: bgcl.BGCL({name}=module).")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists in lists
        raise BGCLError(f"Cannot read --set '{name}': no setting takes such a value.") from None


def _check_encoding(option: str, value: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # bytes that Python could not decode
        raise BGCLError(f"Cannot read {option} '{value[:40]}': it is not valid UTF-8.") from None
