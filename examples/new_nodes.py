"""New nodes: predict nodes that were not in the training graph.

A model is trained on 200 people and saved. Later, 40 new people join the graph. The saved model embeds the larger graph
without training again, and a classifier trained on the old labels predicts the new people.
"""

import sys
import tempfile

import numpy as np

import bgcl

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else None

# Make a graph of 240 people. Only the first 200 are known today, with their labels.
later = bgcl.example_graph(nodes=240)
people = {"id": np.arange(240), **{f"word{i}": later.x[:, i].numpy() > 0 for i in range(later.x.shape[1])}}
people["label"] = [f"group {c}" if i < 200 else None for i, c in enumerate(later.y.tolist())]
source, target = later.edge_index.numpy()
known = (source < 200) & (target < 200)
today = bgcl.graph_from(
    {"source": source[known], "target": target[known]}, {name: column[:200] for name, column in people.items()}
)

# Train on today's graph and save the model.
folder = tempfile.mkdtemp()
bgcl.BGCL(epochs=epochs).fit(today).save(folder)

# Later: load the model and predict the larger graph. The new nodes come with their edges.
model = bgcl.BGCL.load(folder)
grown = bgcl.graph_from({"source": source, "target": target}, people)
found = bgcl.predict(model, grown, samples=40, labels_from=today)
predicted = found.columns()["predicted"][200:]
correct = predicted == np.array([f"group {c}" for c in later.y[200:].tolist()])
print(f"{correct.mean():.0%} of the {len(correct)} new nodes are predicted correctly")
