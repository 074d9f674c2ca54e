"""How well nodes are embedded that were not there at training: hold out a tenth of Cora's nodes with their edges.

Two models of the same seed, one trained on the other nodes alone, one on all of them. Both then embed the whole graph,
heads learn from the same labelled nodes, and predict the held-out ones.
"""

import argparse
import json

import numpy as np
import torch
from torch_geometric.data import Data

import bgcl


def without(data: Data, nodes: np.ndarray) -> Data:
    """The graph that the other nodes induce."""
    kept = np.setdiff1d(np.arange(data.num_nodes), nodes)
    number = torch.full((data.num_nodes,), -1)
    number[kept] = torch.arange(len(kept))
    edges = number[data.edge_index]
    return Data(x=data.x.to_dense()[kept], edge_index=edges[:, (edges >= 0).all(0)], y=data.y[kept])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--heads", type=int, default=5, help="random sets of labelled nodes to average over")
    arguments = parser.parse_args()
    data = bgcl.load("cora")
    random = np.random.default_rng(arguments.seed)
    held = np.sort(random.choice(data.num_nodes, data.num_nodes // 10, replace=False))
    rest, labels = np.setdiff1d(np.arange(data.num_nodes), held), data.y.numpy()
    scores = {}
    for name, graph in (("without them", without(data, held)), ("with all", data)):
        model = bgcl.BGCL(preset="cora", epochs=arguments.epochs, seed=arguments.seed).fit(graph, progress=False)
        draws = model.sample(data, samples=60).numpy()
        found = []
        for i in range(arguments.heads):
            train = np.random.default_rng((arguments.seed, i)).choice(rest, len(rest) // 10, replace=False)
            head = bgcl.MixtureClassifier().fit(draws[:10, train], labels[train])
            found.append(float((head.predict(draws[10:, held]) == labels[held]).mean()))
        scores[name] = {"accuracy": float(np.mean(found)), "heads": found}
        print(json.dumps({name: scores[name]}), flush=True)
    lost = scores["with all"]["accuracy"] - scores["without them"]["accuracy"]
    print(f"held out {len(held)} nodes; {100 * lost:.2f} points lost")


if __name__ == "__main__":
    main()
