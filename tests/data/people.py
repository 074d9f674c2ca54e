"""Tables of four people and their friends, and how to write them into a folder."""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

EDGES = "from,to,weight\nann,bob,1\nbob,eve,2\neve,ann,1\ndan,ann,3\ndan,dan,1\nbob,ann,1\n"
NODES = """id,age,city,bio,active,label
ann,31,Ulm,likes graphs and cats,true,x
bob,45,Rome,likes dogs,false,y
eve,,Ulm,paints dogs,true,
dan,27,Rome,"reads, writes graphs",,x
"""


def write(folder: Path, edges: str | bytes = EDGES, nodes: str | bytes | None = NODES, ending: str = "csv") -> Path:
    """Write `edges` and `nodes` into a folder; None: no such file."""
    folder.mkdir(exist_ok=True)
    for name, content in (("edges", edges), ("nodes", nodes)):
        if content is not None:
            (folder / f"{name}.{ending}").write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def dense(data: Data) -> np.ndarray:
    """The attributes as a NumPy array."""
    return data.x.to_dense().numpy()
