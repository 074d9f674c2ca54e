"""Measure how well a model embeds nodes that were not in its training graph.

A tenth of the nodes of Cora is held out, with their edges. One model is trained without them, another one with the same
seed on the whole graph. Both embed the whole graph. Heads learn from the same labeled nodes and predict the held-out
nodes.
"""

import argparse
import json

import numpy as np
import torch
from torch_geometric.data import Data

import bgcl


def without(data: Data, nodes: np.ndarray) -> Data:
    """The graph without these nodes and their edges."""
    kept = np.setdiff1d(np.arange(data.num_nodes), nodes)
    number = torch.full((data.num_nodes,), -1)
    number[kept] = torch.arange(len(kept))
    edges = number[data.edge_index]
    return Data(x=data.x.to_dense()[kept], edge_index=edges[:, (edges >= 0).all(0)], y=data.y[kept])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=250, help="epochs to train; default: 250")
    parser.add_argument("--seed", type=int, default=0, help="seed of the held-out nodes and the models; default: 0")
    parser.add_argument("--heads", type=int, default=5, help="random sets of labeled nodes to average over; default: 5")
    arguments = parser.parse_args()
    data = bgcl.load("cora")
    random = np.random.default_rng(arguments.seed)
    held = np.sort(random.choice(data.num_nodes, data.num_nodes // 10, replace=False))
    rest, labels = np.setdiff1d(np.arange(data.num_nodes), held), data.y.numpy()
    scores = {}
    for name, graph in (("trained without", without(data, held)), ("trained with", data)):
        model = bgcl.BGCL(preset="paper-cora", epochs=arguments.epochs, seed=arguments.seed).fit(graph, progress=False)
        draws = model.sample(data, samples=60).numpy()
        found = []
        for i in range(arguments.heads):
            train = np.random.default_rng((arguments.seed, i)).choice(rest, len(rest) // 10, replace=False)
            head = bgcl.MixtureClassifier().fit(draws[:10, train], labels[train])
            found.append(float((head.predict(draws[10:, held]) == labels[held]).mean()))
        scores[name] = {"accuracy": float(np.mean(found)), "heads": found}
        print(json.dumps({name: scores[name]}), flush=True)
    lost = scores["trained with"]["accuracy"] - scores["trained without"]["accuracy"]
    print(f"{len(held)} nodes were held out; accuracy on them is {100 * lost:.2f} points lower")


if __name__ == "__main__":
    main()
