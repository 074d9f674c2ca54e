"""Bayesian graph contrastive learning: node embeddings that know what they do not know.

Names are imported when they are first used: `import bgcl` alone does not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bgcl.errors import BGCLError

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bgcl.augmentation.language import parse_mask
    from bgcl.augmentation.masks import Mask
    from bgcl.data import check_graph, graph_from, load
    from bgcl.data.example import example_graph
    from bgcl.data.inspection import inspect
    from bgcl.downstream.classifier import MixtureClassifier
    from bgcl.downstream.evaluation import evaluate, evaluate_model, summary
    from bgcl.downstream.node_draws import NodeDraws
    from bgcl.downstream.pipeline import Embedding
    from bgcl.downstream.prediction import predict_nodes
    from bgcl.downstream.regressor import MixtureRegressor
    from bgcl.downstream.splits import splits
    from bgcl.estimator import BGCL
    from bgcl.measures.acquisition import acquire, rank
    from bgcl.measures.uncertainty import uncertainty
    from bgcl.model.posterior import Moments, astd
    from bgcl.reporting.plots import plot_pavpu, plot_reliability, plot_risk_coverage, plot_uncertainty
    from bgcl.reporting.report.page import report
    from bgcl.reporting.tensorboard import TensorBoard
    from bgcl.reproduce.noise_experiment import noise_experiment
    from bgcl.settings import Settings, presets

# Where each name lives.
_HOME = {
    "BGCL": "estimator",
    "Embedding": "downstream.pipeline",
    "Mask": "augmentation.masks",
    "MixtureClassifier": "downstream.classifier",
    "MixtureRegressor": "downstream.regressor",
    "Moments": "model.posterior",
    "NodeDraws": "downstream.node_draws",
    "Settings": "settings",
    "TensorBoard": "reporting.tensorboard",
    "acquire": "measures.acquisition",
    "astd": "model.posterior",
    "check_graph": "data",
    "evaluate": "downstream.evaluation",
    "evaluate_model": "downstream.evaluation",
    "example_graph": "data.example",
    "graph_from": "data",
    "inspect": "data.inspection",
    "load": "data",
    "noise_experiment": "reproduce.noise_experiment",
    "parse_mask": "augmentation.language",
    "plot_pavpu": "reporting.plots",
    "plot_reliability": "reporting.plots",
    "plot_risk_coverage": "reporting.plots",
    "plot_uncertainty": "reporting.plots",
    "predict_nodes": "downstream.prediction",
    "presets": "settings",
    "rank": "measures.acquisition",
    "report": "reporting.report.page",
    "splits": "downstream.splits",
    "summary": "downstream.evaluation",
    "uncertainty": "measures.uncertainty",
}

__all__ = [
    "BGCL", "BGCLError", "Embedding", "Mask", "MixtureClassifier", "MixtureRegressor", "Moments", "NodeDraws",
    "Settings", "TensorBoard", "__version__", "acquire", "astd", "check_graph", "evaluate", "evaluate_model",
    "example_graph", "graph_from", "inspect", "load", "noise_experiment", "parse_mask", "plot_pavpu",
    "plot_reliability", "plot_risk_coverage", "plot_uncertainty", "predict_nodes", "presets", "rank",
    "report", "splits", "summary", "uncertainty",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bgcl' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bgcl.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
