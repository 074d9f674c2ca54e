"""How each method of the experiment `trust` is fitted, and how it judges the nodes of any graph.

A method is fitted to a graph and a split. What it returns is a function that judges the nodes of a graph with the same
attributes: class probabilities of S draws, and scores that are greater for nodes that look less known. Networks that
are trained once may be used in several ways, so there may be several variants, each with its judgment.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from bgcl.baselines import published
from bgcl.baselines.gdc import GDCGCN
from bgcl.baselines.gnnsafe import GNNSafe
from bgcl.baselines.gpn import GPN, mean_probability
from bgcl.baselines.propagated import PropagatedFeatures
from bgcl.baselines.supervised import (
    GCN,
    Classifier,
    EnsembleGCN,
    MCDropoutGCN,
    Task,
    derived_seed,
    dropout_masks,
    probabilities,
)
from bgcl.data.pyg import check_graph
from bgcl.downstream.classifier import MixtureClassifier
from bgcl.downstream.evaluation import SplitResult
from bgcl.downstream.shift_evaluation import SplitHeads
from bgcl.downstream.splits import Split, labels_of
from bgcl.estimator import BGCL
from bgcl.graph.prepared import PreparedGraph, RowNorm, prepare
from bgcl.measures.uncertainty import Uncertainty, uncertainty
from bgcl.novelty.detector import Novelty
from bgcl.novelty.predicted import energy

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = npt.NDArray[Any]

SINGLE, DROPOUT, ENSEMBLE = "gcn", "mc-dropout-gcn", "ensemble-gcn"
ENTROPY, INFORMATION, CONFIDENCE = "predictive entropy", "mutual information", "least confidence"
NOVELTY, LABEL_FREE = "novelty", "novelty without labels"
ENERGY, SPREAD_ENERGY, EVIDENCE = "energy", "spread energy", "little evidence"


@dataclass(frozen=True)
class Judgment:
    """What a method says about each node of a graph.

    Attributes:
        uncertainty: mean class probabilities and measures of uncertainty.
        scores: scores by name, `(N,)` each; greater for nodes that look less known.
    """

    uncertainty: Uncertainty
    scores: dict[str, Array]

    @classmethod
    def of_samples(cls, samples: Array, **scores: Array) -> "Judgment":
        """Judge by class probabilities of S draws, `(S, N, C)`, and by other scores."""
        return cls.of(uncertainty(samples), draws=len(samples), **scores)

    @classmethod
    def of(cls, found: Uncertainty, *, draws: int, **scores: Array) -> "Judgment":
        """Judge by the entropy of the mean, by the disagreement of draws if there are several, and by other scores."""
        by_head = {ENTROPY: found.predictive_entropy, CONFIDENCE: found.least_confidence}
        if draws > 1:
            by_head[INFORMATION] = found.mutual_information
        return cls(found, by_head | scores)


Judge = Callable[["Data"], dict[str, Judgment]]


def fit_gcns(data: "Data", split: Split, dataset: str, seed: int, **changes: Any) -> Judge:
    """GCNs: one of them alone, the same with dropout at prediction, and all together as an ensemble."""
    ensemble: EnsembleGCN = published(ENSEMBLE, dataset, seed).with_changes(**changes)
    task = Task.of(data, split, row_norm=ensemble.row_norm)
    members = [ensemble.member(number) for number in range(ensemble.members)]
    networks = [_trained(member, task) for member in members]
    dropout: MCDropoutGCN = published(DROPOUT, dataset, seed)

    def judge(other: "Data") -> dict[str, Judgment]:
        graph = _prepared(other, ensemble.row_norm)
        generator = torch.Generator().manual_seed(derived_seed(seed, 1))
        with torch.no_grad():
            first = networks[0](graph)
            single = Judgment.of_samples(probabilities(iter((first,))), **{ENERGY: energy(first.double().numpy())})
            masked = (
                networks[0](graph, dropout_masks(networks[0], graph, ensemble.dropout, generator))
                for _ in range(dropout.samples)
            )
            dropped = Judgment.of_samples(probabilities(masked))
            together = Judgment.of_samples(probabilities(network(graph) for network in networks))
        return {SINGLE: single, DROPOUT: dropped, ENSEMBLE: together}

    return judge


def _trained(member: GCN, task: Task) -> Classifier:
    return member._train(task, torch.Generator().manual_seed(member.seed))


def fit_gdc(data: "Data", split: Split, dataset: str, seed: int, **changes: Any) -> Judge:
    """The Bayesian GCN with Graph DropConnect."""
    method: GDCGCN = published("gdc-gcn", dataset, seed).with_changes(**changes)
    task, generator = Task.of(data, split, row_norm=method.row_norm), torch.Generator().manual_seed(seed)
    network = method.train(task, generator)

    def judge(other: "Data") -> dict[str, Judgment]:
        drawn = torch.Generator().manual_seed(derived_seed(seed, 1))
        with torch.no_grad():
            samples = probabilities(network.draws(_prepared(other, method.row_norm), method.samples, drawn))
        return {"gdc-gcn": Judgment.of_samples(samples)}

    return judge


def fit_gnnsafe(data: "Data", split: Split, dataset: str, seed: int, **changes: Any) -> Judge:
    """GNNSafe: the energy of a GCN with batch normalization, spread along the edges."""
    method: GNNSafe = published("gnnsafe", dataset, seed).with_changes(**changes)
    network = method.train(Task.of(data, split, row_norm=method.row_norm))

    def judge(other: "Data") -> dict[str, Judgment]:
        graph = _prepared(other, method.row_norm)
        with torch.no_grad():
            logits = network(graph)
        own = energy(logits.double().numpy())
        scores = {ENERGY: own, SPREAD_ENERGY: method.propagated(own, graph)}
        return {"gnnsafe": Judgment.of_samples(probabilities(iter((logits,))), **scores)}

    return judge


def fit_gpn(data: "Data", split: Split, dataset: str, seed: int, **changes: Any) -> Judge:
    """The Graph Posterior Network: how little evidence a node has."""
    method: GPN = published("gpn", dataset, seed).with_changes(**changes)
    network = method.train(Task.of(data, split, row_norm=method.row_norm))

    def judge(other: "Data") -> dict[str, Judgment]:
        with torch.no_grad():
            alpha = network(_prepared(other, method.row_norm))
        little = -torch.log(alpha.double().sum(1)).numpy()
        return {"gpn": Judgment.of_samples(mean_probability(alpha)[None], **{EVIDENCE: little})}

    return judge


def fit_propagated(data: "Data", split: Split, dataset: str, seed: int, **changes: Any) -> Judge:
    """Propagated attributes without training, in the principal directions of the graph, with the library's head."""
    method = PropagatedFeatures(seed=seed, **changes)
    checked, labels = check_graph(data), labels_of(data)
    basis = method.basis(checked)
    embeddings = method.project(checked, basis)
    head = MixtureClassifier(parts=tuple(part.shape[1] for part in basis), kernel=True)
    head.fit(embeddings[None, split.train], labels[split.train])

    def judge(other: "Data") -> dict[str, Judgment]:
        samples = head.predict_samples(method.project(check_graph(other), basis)[None])
        return {"propagated-features": Judgment.of_samples(samples)}

    return judge


FITS: dict[str, Callable[..., Judge]] = {
    ENSEMBLE: fit_gcns,
    "gdc-gcn": fit_gdc,
    "gnnsafe": fit_gnnsafe,
    "gpn": fit_gpn,
    "propagated-features": fit_propagated,
}


def fit_bgcl(model: BGCL, data: "Data", split: Split, samples: int) -> Judge:
    """The default of this library: the pooled head, and the novelty of nodes. All splits share the encoder.

    The head learns from the labels of the training nodes. Validation nodes, which it has not seen, say what is usual.
    """
    heads, every = SplitHeads(model, data, [split], samples), [np.arange(data.num_nodes)]
    (usual,) = heads.predict(data, every)
    with_labels = Novelty(model).fit(data, usual, known=split.validation, labeled=split.train)
    without = Novelty(model).fit(data)

    def judge(other: "Data") -> dict[str, Judgment]:
        found = usual if other is data else heads.predict(other, every)[0]
        novelty = with_labels.score(other, found)
        scores = {NOVELTY: novelty.strangeness, LABEL_FREE: without.score(other).strangeness}
        parts = {name: known_only(values) for name, values in novelty.scores.items()}
        return {"bgcl-default": Judgment.of(found, draws=heads.left, **scores, **parts)}

    return judge


def known_only(values: Array) -> Array:
    """A score whose mean stands where it says nothing about a node (NaN), `(N,)`."""
    missing = np.isnan(values)
    return np.where(missing, values[~missing].mean() if not missing.all() else 0.0, values)


def _prepared(data: "Data", row_norm: RowNorm) -> PreparedGraph:
    return prepare(check_graph(data).cpu(), row_norm=row_norm)


def known_scores(
    judged: dict[str, Judgment], split: Split, nodes: Array, labels: Array
) -> Iterator[tuple[str, dict[str, float]]]:
    """The scores of each variant for some nodes. Nodes of classes that it does not know are left out."""
    for variant, judgment in judged.items():
        classes = np.unique(labels[labels >= 0])
        if judgment.uncertainty.probability.shape[1] < len(classes):  # a head knows the classes of its training nodes
            classes = np.unique(labels[split.train])
        test = nodes[np.isin(labels[nodes], classes)]
        codes = np.searchsorted(classes, labels[test])
        scores = SplitResult(test, classes, codes, judgment.uncertainty.of(test)).scores()
        yield variant, {name: score for name, score in scores.items() if name in KNOWN}


KNOWN = (
    "accuracy", "ece", "auroc:least_confidence", "pavpu:predictive_entropy", "pavpu:mutual_information",
)  # fmt: skip
