"""Graphs whose edges carry the signal in their weights, directions or types, and the accuracy of a model on them."""

from pathlib import Path

import numpy as np
import pandas
import torch
from torch_geometric.data import Data

import bgcl


def words_of(label: np.ndarray, random: np.random.Generator) -> torch.Tensor:
    """Words of a topic, `(N, 12 C)`, which is the class of two thirds of the nodes, and random for the others."""
    topic = np.where(random.random(len(label)) < 0.5, label, random.permutation(label))
    own = np.arange(12 * (label.max() + 1)) % (label.max() + 1) == topic[:, None]
    return torch.as_tensor(random.random(own.shape) < np.where(own, 0.4, 0.03), dtype=torch.float32)


def weighted_graph(nodes: int = 240, classes: int = 3, *, seed: int = 0) -> Data:
    """As many edges between classes as within them, but those within a class are heavy."""
    random = np.random.default_rng(seed)
    label = np.arange(nodes) % classes
    source, target = random.integers(nodes, size=(2, 40 * nodes))
    same = label[source] == label[target]
    within, between = np.flatnonzero(same)[: 3 * nodes], np.flatnonzero(~same)[: 6 * nodes]
    chosen = np.concatenate([within, between])
    weight = np.where(same[chosen], 10.0, 1.0) * random.lognormal(0, 0.3, len(chosen))
    return Data(
        x=words_of(label, random),
        edge_index=torch.as_tensor(np.stack([source, target])[:, chosen]),
        edge_weight=torch.as_tensor(weight),
        y=torch.as_tensor(label),
    )


def directed_graph(nodes: int = 240, classes: int = 3, *, seed: int = 0) -> Data:
    """Edges lead from each class to the next one, so without directions all classes have the same neighbors."""
    random = np.random.default_rng(seed)
    label = np.arange(nodes) % classes
    source, target = random.integers(nodes, size=(2, 30 * nodes))
    chosen = np.flatnonzero((label[target] == (label[source] + 1) % classes) | (random.random(30 * nodes) < 0.1))
    edges = np.stack([source, target])[:, chosen[: 10 * nodes]]
    return Data(x=words_of(label, random), edge_index=torch.as_tensor(edges), y=torch.as_tensor(label))


def typed_graph(nodes: int = 240, classes: int = 3, *, seed: int = 0) -> Data:
    """Edges of type 0 are within a class and those of type 1 between classes. Without types they say nothing."""
    random = np.random.default_rng(seed)
    label = np.arange(nodes) % classes
    source, target = random.integers(nodes, size=(2, 40 * nodes))
    same = label[source] == label[target]
    within, between = np.flatnonzero(same)[: 5 * nodes], np.flatnonzero(~same)[: 10 * nodes]
    chosen = random.permutation(np.concatenate([within, between]))
    return Data(
        x=words_of(label, random),
        edge_index=torch.as_tensor(np.stack([source, target])[:, chosen]),
        edge_type=torch.as_tensor((~same[chosen]).astype(np.int64)),
        y=torch.as_tensor(label),
    )


def graph_of_two_kinds(nodes: int = 240, classes: int = 3, *, seed: int = 0) -> Data:
    """Edges between two types of nodes are within a class, those within a type are between classes."""
    data = typed_graph(nodes, classes, seed=seed)
    kind = np.random.default_rng(seed).integers(2, size=nodes)
    source, target = data.edge_index.numpy()
    across = kind[source] != kind[target]
    data.edge_index = data.edge_index[:, torch.as_tensor(across == (data.edge_type.numpy() == 0))]
    del data.edge_type
    data.node_type, data.node_type_names = torch.as_tensor(kind), ["user", "film"]
    return data


def write_tables(data: Data, folder: Path, carried: str | None) -> None:
    """Write the edges and nodes as CSV, with what the edges carry in a column of this name."""
    folder.mkdir(exist_ok=True)
    source, target = data.edge_index.numpy()
    edges = {"source": source, "target": target}
    if carried is not None:
        edges["carried"] = data[carried].numpy()
    pandas.DataFrame(edges).to_csv(folder / "edges.csv", index=False)
    words = {f"word {i}": data.x[:, i].int().numpy() for i in range(data.x.shape[1])}
    nodes = {"id": np.arange(data.num_nodes), **words, "label": [f"class {each}" for each in data.y.tolist()]}
    pandas.DataFrame(nodes).to_csv(folder / "nodes.csv", index=False)


def accuracy(data: Data, **settings: object) -> float:
    """The accuracy on the other nodes with the labels of every fourth node."""
    torch.manual_seed(0)
    of_parts = {} if "encoder" in settings else {"part_width": 32, "batch_nodes": 128}
    model = bgcl.BGCL(**({"epochs": 20, "widths": [64, 32]} | of_parts | settings))
    draws = model.fit(data, progress=False).sample(data, samples=8)
    train = np.random.default_rng(0).random(data.num_nodes) < 0.25
    labels = data.y.numpy()
    head = bgcl.MixtureClassifier(parts=model.parts_).fit(draws[:, train], labels[train])
    return float((head.predict_proba(draws).argmax(1)[~train] == labels[~train]).mean())
