"""`bgcl reproduce`: the paper's tables and figures, its numbers beside ours."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.cli.common import Json, Quiet, print_json
from bgcl.errors import BGCLError, InterruptedRunError, nearest

NAMES = ("table1", "table2", "pavpu", "astd", "ablations")


def reproduce(
    what: Annotated[str, typer.Argument(metavar="|".join((*NAMES, "all")), help="Which table or figure.")],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="The first data set, few epochs and splits: tests the pipeline in minutes, not the method.",
        ),
    ] = False,
    datasets: Annotated[str | None, typer.Option(help="Data sets, with commas between them.")] = None,
    methods: Annotated[str | None, typer.Option(help="Methods, with commas between them.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of training seeds; by itself 5, or 3 on larger graphs, 2 for ablations, 1 for astd; "
            "most baselines have one.",
        ),
    ] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Number of splits, instead of the usual.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the files of results.")] = Path("results"),
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder where what was computed is kept.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compute the paper's tables and figures. What was computed before is not computed again."""
    if what not in (*NAMES, "all"):
        raise BGCLError(f"There is no table or figure '{what}'. {nearest(what, (*NAMES, 'all'))}")
    from bgcl.reproduce import experiments, pages, results
    from bgcl.reproduce.cache import Cache, default_folder
    from bgcl.reproduce.live import live
    from bgcl.reproduce.run import run

    chosen = NAMES if what == "all" else (what,)
    kept = Cache(cache or default_folder())
    folder = out / "quick" if quick else out
    wanted: dict[str, Any] = {"methods": _list(methods), "datasets": _list(datasets)}
    if what == "all":
        _check_known(wanted)
    files = {}
    for name in chosen:
        only = wanted if what != "all" else {key: _those_of(name, key, given) for key, given in wanted.items()}
        if any(given == [] for given in only.values()):
            continue
        cells = experiments.cells(name, seeds=seeds, splits=splits, quick=quick, **only)
        path = results.path_of(folder, name)
        try:
            with live(name, cells, show=not quiet and not json) as table:
                for cell, result, reason in run(cells, kept, jobs=jobs, begins=table.begins):
                    if result is not None:
                        results.write(path, name, [result])
                    table.ends(cell, result, reason)
        except KeyboardInterrupt:
            raise InterruptedRunError("what was finished is kept; the same command goes on from there.") from None
        files[name] = str(path)
        if not json:
            print(pages.text(name, results.read(path)))
    if json:
        print_json({"files": files, "quick": quick})


def _list(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def _those_of(experiment: str, key: str, given: list[str] | None) -> list[str] | None:
    """Those of the names that an experiment has; all where none were given."""
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
