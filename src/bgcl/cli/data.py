"""`bgcl data`: list, download and verify data sets, make large random graphs, and pack graphs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bgcl.cli.opening import load_graph, without_label
from bgcl.cli.options import Graph, Json, MissingLabel, Quiet
from bgcl.cli.printing import print_json, print_table, say
from bgcl.errors import BGCLError
from bgcl.progress import stage


def data_list(quiet: Quiet = False, json: Json = False) -> None:
    """List the data sets and where each is stored."""
    from bgcl.data.catalog import DATASETS
    from bgcl.data.store import locate

    facts = [
        {"name": name, "nodes": d.nodes, "edges": d.edges, "attributes": d.num_attributes, "classes": d.classes,
         "where": str(locate(name)[0])}
        for name, d in DATASETS.items()
    ]  # fmt: skip
    if json:
        print_json(facts)
        return
    print_table(facts)


def data_get(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of data sets, see 'bgcl data list'.")],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Download data sets into the cache."""
    from bgcl.data.store import get

    found = {name: str(get(name, quiet=quiet or json)) for name in names}
    if json:
        print_json(found)
    else:
        for name, path in found.items():
            say(f"{name}: {path}")


def data_verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Names of data sets. Default: all on this machine.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare the data sets on this machine with what is published.

    WikiCS has no published digest. It is verified only if the publisher's data.json is in the folder $BGCL_DATA.
    The exit code is 2 if a data set is wrong or cannot be verified.
    """
    from bgcl.data.catalog import DATASETS
    from bgcl.data.store import Place, locate
    from bgcl.data.verification import verify

    names = names or [name for name in DATASETS if locate(name)[0] != Place.ABSENT]
    found = [verify(name) for name in names]
    if json:
        print_json(
            [
                {"name": v.name, "where": str(v.place), "digest": v.digest, "note": v.note, "verified": v.verified}
                for v in found
            ]
        )
    else:
        for v in found:
            print(f"{v.name}: {v.note} ({v.place}, {v.digest[:12]})")
    if unknown := [v.name for v in found if not v.verified]:
        raise BGCLError(f"Not all data sets could be verified: no digest is published for {', '.join(unknown)}.")


def data_make(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    nodes: Annotated[float, typer.Option(help="Number of nodes, such as 1e6. Default: 10,000.")] = 10_000,
    degree: Annotated[float | None, typer.Option(help="Average degree. Default: 20.")] = None,
    attributes: Annotated[int | None, typer.Option(help="Attributes of a node. Default: 128.")] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes. Default: 40.")] = None,
    within: Annotated[float | None, typer.Option(help="Share of edges within a class. Default: 0.6.")] = None,
    local: Annotated[
        float | None, typer.Option(help="Share of edges within a small circle of a class. Default: 0.3.")
    ] = None,
    exponent: Annotated[float | None, typer.Option(help="Exponent of the power law of degrees. Default: 2.5.")] = None,
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of the noise in the attributes. Default: 4.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random number. Default: 0.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make a large random graph with communities, as a folder of Parquet files that every command can read."""
    from bgcl.data.generator import GraphPlan, write_parquet

    if not nodes.is_integer():
        raise BGCLError(f"--nodes must be a whole number, such as 1e6. Got {nodes:g} instead.")
    given: dict[str, Any] = {
        "degree": degree, "attributes": attributes, "classes": classes, "within": within, "local": local,
        "exponent": exponent, "noise": noise, "seed": seed,
    }  # fmt: skip
    plan = GraphPlan(nodes=int(nodes), **{name: value for name, value in given.items() if value is not None})
    made = write_parquet(plan, out)
    if json:
        print_json({"folder": str(out), **made})
    else:
        say(f"{out}: {made['nodes']:,} nodes, {made['edges']:,} edges")


def data_pack(
    graph: Graph,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write.")],
    parts: Annotated[int | None, typer.Option(help="Number of clusters. Default: one for 200 nodes.")] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of the nodes with their classes. Default: label, if there is one.")
    ] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Column of the nodes with their ids. Default: id.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Column of the edges with the first node. Default: source.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of the edges with the second node. Default: target.")
    ] = None,
    missing_label: MissingLabel = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Pack a graph for commands that compute in blocks: arrays on disk, rows in the order of clusters.

    A folder with nodes.parquet and edges.parquet, whose ids and attributes are numbers, is read in pieces and never as
    a whole. Any other graph is read into memory first. Every command takes the folder as GRAPH.
    """
    from bgcl.data.folder import refuse_graph
    from bgcl.data.packing import NAMES, pack_data, pack_rows
    from bgcl.data.packing_parquet import can_stream, parquet_rows
    from bgcl.files import sole_use
    from bgcl.folders import refuse_files

    columns = {"label": label, "id": id_, "source": source, "target": target}
    with sole_use(out):
        refuse_files(out, NAMES)
        refuse_graph(out)
        if can_stream(graph):
            with stage("reading the tables"):
                missing = None if missing_label is None else without_label(missing_label)
                rows = parquet_rows(
                    Path(graph), id_=id_, label=label, source=source, target=target, missing_label=missing
                )
            found = pack_rows(rows, out, parts)
        else:
            if not (quiet or json):
                say("The graph is read into memory, because it is no folder with nodes.parquet and edges.parquet.")
            data, _ = load_graph(graph, None, quiet or json, **columns, missing_label=missing_label)
            found = pack_data(data, out, parts)
    facts = {
        "folder": str(out), "nodes": found.nodes, "edges": found.edges, "attributes": found.num_attributes,
        "clusters": found.parts,
    }  # fmt: skip
    if json:
        print_json(facts)
    else:
        say(f"{out}: {found.nodes:,} nodes, {found.edges:,} edges, {found.parts:,} clusters")
