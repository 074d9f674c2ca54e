"""Nodes that were not there at training: kept model, new graph, no training again.

python examples/new_nodes.py [EPOCHS]
"""

import sys
import tempfile

import numpy as np

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 300

# Today's graph is the first 200 nodes of tomorrow's.
tomorrow = bgcl.example_graph(nodes=240)
people = {"id": np.arange(240), **{f"word{i}": tomorrow.x[:, i].numpy() > 0 for i in range(tomorrow.x.shape[1])}}
people["label"] = [f"group {c}" if i < 200 else None for i, c in enumerate(tomorrow.y.tolist())]
source, target = tomorrow.edge_index.numpy()
old = (source < 200) & (target < 200)
today = bgcl.graph_from(
    {"source": source[old], "target": target[old]}, {name: column[:200] for name, column in people.items()}
)

folder = tempfile.mkdtemp()
bgcl.BGCL(preset="auto", epochs=epochs).fit(today).save(folder)

# Later, elsewhere: new nodes come with the nodes that they are joined to.
model = bgcl.BGCL.load(folder)
grown = bgcl.graph_from({"source": source, "target": target}, people)
found = bgcl.predict_nodes(model, grown, samples=40, labels_from=today)
names = found.columns()["predicted"][200:]
right = names == np.array([f"group {c}" for c in tomorrow.y[200:].tolist()])
print(f"of the {len(right)} nodes that were not there, {right.mean():.0%} are put in the right group")
