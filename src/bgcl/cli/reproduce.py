"""`bgcl reproduce`: the tables and figures of the paper with its numbers next to ours, and a comparison with others."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.cli.options import Json, Quiet
from bgcl.cli.printing import print_json
from bgcl.errors import BGCLError, InterruptedRunError, nearest

NAMES = ("table1", "table2", "pavpu", "astd", "ablations", "field", "rates", "draws", "trust")


def reproduce(
    what: Annotated[str, typer.Argument(metavar="|".join((*NAMES, "all")), help="Table or figure to compute.")],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Compute only the first data set, with few epochs and splits. It takes minutes and tests the program, "
            "not the method. Default: off.",
        ),
    ] = False,
    datasets: Annotated[str | None, typer.Option(help="Names of data sets, separated by commas. Default: all.")] = None,
    methods: Annotated[str | None, typer.Option(help="Names of methods, separated by commas. Default: all.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of training seeds. Default: 5, or 3 on larger graphs, 2 for ablations, 1 for astd, for most "
            "baselines, and for all methods but the default in field.",
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Number of splits. Default: as in the protocol.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes that compute at the same time.")] = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the result files.")] = Path("results"),
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder that keeps finished results. Default: a folder in the user's cache."),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compute the paper's tables and figures, or compare BGCL with other methods (field).

    Finished results are kept and not computed again. Four graphs of field have to be in the folder $BGCL_DATA.
    """
    if what not in (*NAMES, "all"):
        raise BGCLError(f"There is no table or figure '{what}'. {nearest(what, (*NAMES, 'all'))}")
    if quick and seeds is not None:
        raise BGCLError("--quick trains with one seed: leave out --seeds.")
    if what == "astd" and splits is not None:
        raise BGCLError("'astd' has no splits: leave out --splits.")
    from bgcl.reproduce import experiments, pages, results
    from bgcl.reproduce.cache import Cache, default_folder
    from bgcl.reproduce.live_table import live_table
    from bgcl.reproduce.run import run

    chosen = NAMES if what == "all" else (what,)
    kept = Cache(cache or default_folder())
    folder = out / "quick" if quick else out
    wanted: dict[str, Any] = {"methods": _list("--methods", methods), "datasets": _list("--datasets", datasets)}
    if what == "all":
        _check_known(wanted)
    files = {}
    for name in chosen:
        only = wanted if what != "all" else {key: _those_of(name, key, given) for key, given in wanted.items()}
        if any(given == [] for given in only.values()):
            continue
        cells = experiments.cells(name, seeds=seeds, splits=splits, quick=quick, **only)
        if not cells:  # the experiment has both, but not together
            continue
        if seeds is not None and what != "all" and 1 + max((cell.seed for cell in cells), default=0) < seeds:
            raise BGCLError(f"These methods of '{name}' are trained with one seed: leave out --seeds.")
        path = results.path_of(folder, name)
        try:
            with live_table(name, cells, show=not quiet and not json) as table:
                for cell, result, reason in run(cells, kept, jobs=jobs, begins=table.begins):
                    if result is not None:
                        results.write(path, name, [result])
                    table.ends(cell, result, reason)
        except KeyboardInterrupt:
            raise InterruptedRunError("finished results are kept. Run the same command to continue.") from None
        files[name] = str(path)
        if not json:
            print(pages.text(name, results.read(path)))
    if not files:
        raise BGCLError("No table or figure has these methods on these data sets. Leave out --methods or --datasets.")
    if json:
        print_json({"files": files, "quick": quick})


def _list(option: str, names: str | None) -> list[str] | None:
    if names is None:
        return None
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise BGCLError(f"{option} has no name, only '{names}'. Give one, or leave out the option.")
    return found


def _those_of(experiment: str, key: str, given: list[str] | None) -> list[str] | None:
    """The given names that an experiment has; None, which means all, if no names were given."""
    from bgcl.reproduce.experiments import EXPERIMENTS

    return None if given is None else [name for name in given if name in getattr(EXPERIMENTS[experiment], key)]


def _check_known(wanted: dict[str, list[str] | None]) -> None:
    from bgcl.reproduce.experiments import EXPERIMENTS

    for key, given in wanted.items():
        known = sorted({name for experiment in EXPERIMENTS.values() for name in getattr(experiment, key)})
        for name in given or ():
            if name not in known:
                raise BGCLError(
                    f"There is no {'method' if key == 'methods' else 'data set'} '{name}'. {nearest(name, known)}"
                )
