"""Makes the files in `corpus/`: a small valid input for each reader. Run it again if a format changes."""

import gzip
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import bgcl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "data"))

from releases import write_release, write_wikics

from command_line import small_graph

CORPUS = Path(__file__).resolve().parent / "corpus"
NODES = (
    "id,age,town,about,member,since,label\n"
    'ann,31,Ulm,"likes red apples",true,2020-01-05,a\nbob,45,Rome,"likes, pears",false,2021-11-30,b\n'
    "eve,,Ulm,likes red pears,true,,a\ndan,27.5,Rome,red cars and trains,,2019-02-28,\n"
    "007,60,Ulm,cars,false,2018-06-01,b\nzoë,1e3,Oslo,trains and pears,true,2022-12-31,a\n"
)
EDGES = "source,target,weight\nann,bob,1\nbob,eve,2\neve,dan,0.5\ndan,007,1\n007,zoë,3\nann,zoë,1\nann,ann,1\n"
EUROPEAN = (
    "id;größe;seit;klasse\n1;1,75;05.01.2020;a\n2;1.250,5;30.11.2021;b\n3;;28.02.2019;a\n4;-2;01.06.2018;b\n"
    "5;0,5;31.12.2022;k.A.\n"
)
LONG = "node,feature,value\na,age,31\na,city,Ulm\nb,age,45\nb,city,Rome\nc,age,27.5\nc,word,2\nd,city,Ulm\nd,city,Ulm\n"
TARGET = "node_id,name,target\na,x,0\nb,y,1\nc,z,?\nd,w,0\n"
MATRIX = ",a,b,c,d\na,0,1,0,0.5\nb,1,0,1,0\nc,0,1,0,1\nd,0.5,0,1,0\n"
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="age" attr.type="double"/>
<key id="d1" for="node" attr.name="label" attr.type="string"/>
<graph edgedefault="undirected">
<node id="a"><data key="d0">1.5</data><data key="d1">x</data></node>
<node id="b"><data key="d0">2</data><data key="d1">y</data></node>
<node id="c"><data key="d0">-3</data></node>
<edge source="a" target="b"/><edge source="b" target="c"/>
</graph></graphml>
"""


def write(reader: str, **files: str | bytes) -> Path:
    folder = CORPUS / reader
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def main() -> None:
    shutil.rmtree(CORPUS, ignore_errors=True)
    tabs = NODES.replace(", ", " ").replace('"', "").replace(",", "\t")
    write("csv", nodes__csv=NODES, edges__csv=EDGES)
    write("tsv", nodes__tsv=tabs, edges__tsv=EDGES.replace(",", "\t"))
    write("edges", edges__csv=EDGES.replace("source,target", "u,v"))
    write("european", nodes__csv=EUROPEAN, edges__csv="von;nach;gewicht\n1;2;0,5\n2;3;1\n3;4;2,25\n5;1;1\n")
    write("long", edges__csv="id_1,id_2\na,b\nb,c\nc,d\n", features__csv=LONG, target__csv=TARGET)
    write("matrix", edges__csv=MATRIX, nodes__csv="id,x\na,1\nb,2\nc,3\nd,4\n")
    write("gzip", nodes__csv__gz=gzip.compress(NODES.encode(), mtime=0), edges__csv=EDGES)
    write("graphml", graph__graphml=GRAPHML)
    write("sentences", mask__txt="connections in 2 blocks of layer 1 anew per block at 0.2/0.4")
    write("sentences", part__txt="encoder diffused", setting__txt="drop=['edges at 0.1', 'entries']")
    parquet = write("parquet")
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "x": pa.array([0.5, None, 2, 3], pa.float32()),
            "v": [[1.0, 2.0], [0.0, 1.0], None, [3.0, 1.0]],
            "town": pa.array(["a", "b", "a", None]).dictionary_encode(),
            "label": ["p", "q", None, "p"],
        }
    )
    pyarrow.parquet.write_table(table, parquet / "nodes.parquet", compression="none", write_statistics=False)
    pyarrow.parquet.write_table(pa.table({"u": [1, 2, 3], "v": [2, 3, 4]}), parquet / "edges.parquet")
    small_graph(write("npz") / "graph.npz")
    write_release(write("planetoid"))
    write_wikics(write("wikics") / "data.json")
    data = bgcl.load(CORPUS / "csv")
    write("recipe", nodes__csv=NODES, edges__csv=EDGES, graph__json=data.recipe.to_json().replace(str(CORPUS), ""))
    parts = ("attributes", "encoder")
    model = bgcl.BGCL(widths=(2,), parts=parts, part_width=2, epochs=2, row_norm="length").fit(data, progress=False)
    model.recipe_ = None if model.recipe_ is None else model.recipe_.__class__(**vars(model.recipe_) | {
        "edges_file": "edges.csv", "nodes_file": "",
    })  # fmt: skip
    model.graph_ = model.graph_.__class__(**vars(model.graph_) | {"name": "csv"})  # no path of this machine
    model.save(CORPUS / "run")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
