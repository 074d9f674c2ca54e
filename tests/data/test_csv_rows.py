"""Errors count the rows of a CSV as a spreadsheet or an editor does: with the empty ones."""

import gzip
import random

import pytest
from people import EDGES, NODES, write

import bgcl
from bgcl import BGCLError

# The edges or the nodes of a graph, and the row that the error must name.
WRONG = {
    "an id that is missing": ("edges", "from,to\nann,bob\n\n\nann,\n", 5),
    "an unknown id": ("edges", "from,to\n\nann,bob\n\nbob,zoe\n", 5),
    "too many cells": ("edges", "from,to\nann,bob\n\n\nbob,eve,dan\n", 5),
    "too many cells, without a header": ("edges", "1,2\n\n\n\n2,3,4\n", 5),
    "blank lines before the header": ("edges", "\n\nfrom,to\nann,bob\n\nbob,eve,dan\n", 6),
    "ends of lines of Windows": ("edges", "from,to\r\nann,bob\r\n\r\nbob,zoe\r\n", 4),
    "ends of lines of an old Mac": ("edges", "from,to\rann,bob\r\rbob,zoe\r", 4),
    "a value of two lines is one row": ("edges", 'from,to,note\nann,bob,"x\n\ny"\n\nbob,zoe,z\n', 4),
    "an id that is there twice": ("nodes", "id,age\nann,1\n\nbob,2\neve,3\ndan,4\n\nann,5\n", 8),
    "a quote that does not end": ("nodes", 'id,bio\nann,x\n\nbob,y\neve,z\n\ndan,"v\n', 7),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("name", WRONG)
def test_an_error_counts_empty_rows(tmp_path, name, packed):
    table, text, row = WRONG[name]
    texts = {"edges": EDGES, "nodes": NODES} | {table: text}
    folder = write(tmp_path / "g", texts["edges"], texts["nodes"])
    if packed:
        path = folder / f"{table}.csv"
        (folder / f"{table}.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    with pytest.raises(BGCLError, match=rf"{table}\.csv(\.gz)?, row {row}\b"):
        bgcl.load(folder)


@pytest.mark.parametrize("seed", range(10))
def test_the_row_is_that_of_the_file_wherever_empty_lines_are(tmp_path, seed):
    chance = random.Random(seed)
    lines = ["from,to", *(f"n{i},n{i + 1}" for i in range(20)), "n1,zoe", "n2,n3"]
    spread = [part for line in lines for part in ("",) * chance.randrange(4) + (line,)]
    folder = write(tmp_path / "g", "\n".join(spread) + "\n", "id,age\n" + "".join(f"n{i},{i}\n" for i in range(21)))
    with pytest.raises(BGCLError, match=f"row {spread.index('n1,zoe') + 1}, column 'to': no node has the id 'zoe'"):
        bgcl.load(folder)
