"""`bgcl embed`: the embedding of every node."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bgcl.cli.many import leave_to_main
from bgcl.cli.opening import kept_in, open_run_on
from bgcl.cli.options import (
    DrawSeed,
    Json,
    Keep,
    OtherGraph,
    OtherNodes,
    Processes,
    Quiet,
    RunFolder,
    Samples,
    SpreadsheetSafe,
)
from bgcl.cli.output_place import check_not_read
from bgcl.cli.printing import print_json, say
from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from bgcl.estimator import BGCL
    from bgcl.packed.ready import PackedReady


def embed(
    run: RunFolder,
    out: Annotated[
        Path,
        typer.Option(help="File to write: .npz, .csv, .parquet or .json. For a packed graph, a folder of .npy files."),
    ],
    samples: Samples = 100,
    draws: Annotated[
        bool | None,
        typer.Option(
            "--draws/--no-draws",
            help="Write every draw to the .npz file, not only mean and standard deviation. Default: --draws, and "
            "--no-draws for a packed graph.",
        ),
    ] = None,
    hard: Annotated[
        bool,
        typer.Option(
            "--hard", help="Draw masks of 0 and 1, even if the model was trained with relaxed masks. Default: off."
        ),
    ] = False,
    seed: DrawSeed = None,
    graph: OtherGraph = None,
    nodes: OtherNodes = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    processes: Processes = None,
    keep: Keep = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the mean, standard deviation and ASTD of each node's embedding.

    A .npz file also contains the draws and the embedding without masks. Of a packed graph, all of this is written in
    pieces to a folder, without the draws unless --draws is given.
    """
    from bgcl.data.output import ENDINGS, check_ending

    if out.suffix and out.suffix != ".npz":
        check_ending(out, spreadsheet_safe=spreadsheet_safe, endings=(".npz", *ENDINGS))
        if draws is not None:
            raise BGCLError(f"{out} is a table, which has no draws: leave out --draws and --no-draws, or write a .npz.")
    elif spreadsheet_safe:
        raise BGCLError(f"--spreadsheet-safe is for .csv files, not for {out}: leave it out.")
    import numpy as np

    from bgcl.data.memory import check_fits
    from bgcl.data.output import storable, write_table
    from bgcl.files import atomic_write
    from bgcl.model.posterior import RunningMoments
    from bgcl.progress import with_progress

    model, data = open_run_on(run, graph, nodes, quiet)
    check_not_read(out, run, model, graph, nodes)
    if samples < 2:
        raise BGCLError(f"A standard deviation needs 2 samples or more. Got {samples} instead.")
    if (blocks := model.in_blocks(data)) is not None:
        _in_pieces(model, blocks, out, samples, seed, draws=bool(draws), hard=hard, quiet=quiet, json=json)
        return
    if not out.suffix:
        raise BGCLError(f"{out} has no ending: name a file that ends in .npz, .csv, .parquet or .json.")
    running = RunningMoments()
    every_draw = draws is not False and out.suffix == ".npz"
    if every_draw:
        check_fits(
            8 * samples * data.num_nodes * sum(model.parts_),
            f"{samples} draws of {data.num_nodes:,} nodes, {sum(model.parts_):,} columns each,",
            "Leave out the draws with --no-draws, or lower --samples.",
        )
    drawn = []
    show = not (quiet or json)
    with kept_in(run, model, keep, not show) as kept:
        found = None if kept is None or every_draw else kept.find_moments(data, samples, seed, hard)
        if found is None:
            for draw in with_progress(
                lambda: model.draws(data, samples, hard=hard, seed=seed), samples, "draws", show=show
            ):
                running.add(draw)
                if every_draw:
                    drawn.append(draw.cpu().numpy())
            found = running.moments()
            if kept is not None:
                kept.keep_moments(data, seed, found, hard)
    leave_to_main()
    parts = {"mean": found.mean, "std": found.std, "astd": found.astd}
    arrays: dict[str, Any] = {"ids": storable(data.ids)} if "ids" in data else {}
    arrays |= {name: tensor.cpu().numpy() for name, tensor in parts.items()}
    if out.suffix == ".npz":
        arrays |= {"fixed": model.embed(data).numpy()} | ({"draws": np.stack(drawn)} if every_draw else {})
        with atomic_write(out) as part:
            np.savez(part, **arrays)
    else:
        columns = {"id": data.ids} if "ids" in data else {}
        columns |= {"node": np.arange(len(arrays["astd"])), "astd": arrays["astd"]}
        for name in ("mean", "std"):
            columns |= {f"{name}_{i}": column for i, column in enumerate(arrays[name].T)}
        write_table(out, columns, spreadsheet_safe=spreadsheet_safe)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if json:
        print_json({"file": str(out), "arrays": shapes})
    else:
        say(f"{out}: " + ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items()))


def _in_pieces(
    model: "BGCL", blocks: "PackedReady", out: Path, samples: int, seed: int | None, *, draws: bool, hard: bool,
    quiet: bool, json: bool,
) -> None:  # fmt: skip
    """Write the embeddings of a packed graph."""
    from bgcl.packed.moments import write_embeddings

    if out.suffix:
        raise BGCLError(
            f"The graph is packed, so its embeddings are written in pieces: name a folder instead of {out}."
        )
    shapes = write_embeddings(
        blocks.embedder_of(model.network_), out, samples=samples, seed=model.settings_.seed if seed is None else seed,
        scale=model.settings_.draw_scale, hard=hard, draws=draws, progress=not (quiet or json), team=model.team,
    )  # fmt: skip
    leave_to_main()
    if json:
        print_json({"folder": str(out), "arrays": {name: list(shape) for name, shape in shapes.items()}})
    else:
        say(f"{out}: " + ", ".join(f"{name} {shape}" for name, shape in shapes.items()))
