"""The files in the folder of a run.

- `model.toml`: settings, graph and versions;
- `model.safetensors`: the tensors of the network and of the training, in one file so that they always fit together;
- `fitted.safetensors`: the tensors that are found before the training and written once: scales, directions, positions;
- `history.jsonl`: one line for each epoch;
- `graph.json`: how the graph was read, if it was read from tables.

Every file is checked when it is read. `model.toml` begins with the SHA-256 of what follows, and names that of
`graph.json`. A file of tensors has their SHA-256, and `model.safetensors` also has that of the history up to its epoch,
of the fitted tensors, and of the settings and the graph that all belong to. So a changed bit, a file of another run and
a cut history are noticed.

A new run is written into a hidden folder, which gets the name `.whole` when all of its files are on the disk. Then they
replace the files of an older run. A file in `.whole` counts more than the file beside it. So whenever the process or
the power ends, the folder has the older run or the new one.
"""

from bgcl.checkpoint.contents import (
    ABOUT,
    CHECKS,
    FITTED,
    FORMAT,
    HISTORY,
    RECIPE,
    TENSORS,
    SavedRun,
    checksum,
    with_checksum,
)
from bgcl.checkpoint.older import forget_older, is_older, remember_older
from bgcl.checkpoint.reading import is_run, read
from bgcl.checkpoint.restoring import check_same_graph, load_network, network_of, resume
from bgcl.checkpoint.writing import save, save_epoch, write_history, write_tensors

__all__ = [
    "ABOUT",
    "CHECKS",
    "FITTED",
    "FORMAT",
    "HISTORY",
    "RECIPE",
    "TENSORS",
    "SavedRun",
    "check_same_graph",
    "checksum",
    "forget_older",
    "is_older",
    "is_run",
    "load_network",
    "network_of",
    "read",
    "remember_older",
    "resume",
    "save",
    "save_epoch",
    "with_checksum",
    "write_history",
    "write_tensors",
]
