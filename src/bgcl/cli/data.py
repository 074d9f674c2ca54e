"""`bgcl data`: list, download and verify data sets."""

from typing import Annotated

import typer

from bgcl.cli.options import Json, Quiet
from bgcl.cli.printing import print_json, print_table, say
from bgcl.errors import BGCLError


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
