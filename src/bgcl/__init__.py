"""Bayesian graph contrastive learning: node embeddings that know what they do not know.

Names are imported when they are first used: `import bgcl` alone does not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bgcl.errors import BGCLError

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bgcl.acquisition import acquire, rank
    from bgcl.data import check_graph, graph_from, load
    from bgcl.embeddings import Moments, astd
    from bgcl.estimator import BGCL
    from bgcl.evaluation import evaluate, evaluate_model, summary
    from bgcl.example import example_graph
    from bgcl.inspection import inspect
    from bgcl.masks import Mask
    from bgcl.measures import uncertainty
    from bgcl.mixture import MixtureClassifier
    from bgcl.mixture_regression import MixtureRegressor
    from bgcl.node_draws import NodeDraws
    from bgcl.pipeline import Embedding
    from bgcl.plots import plot_pavpu, plot_reliability, plot_risk_coverage, plot_uncertainty
    from bgcl.prediction import predict_nodes
    from bgcl.protocols import splits
    from bgcl.reporting.page import report
    from bgcl.representation import noise_experiment
    from bgcl.sentences import parse_mask
    from bgcl.settings import Settings, presets
    from bgcl.tensorboard import TensorBoard

# Where each name lives.
_HOME = {
    "BGCL": "estimator",
    "Embedding": "pipeline",
    "Mask": "masks",
    "MixtureClassifier": "mixture",
    "MixtureRegressor": "mixture_regression",
    "Moments": "embeddings",
    "NodeDraws": "node_draws",
    "Settings": "settings",
    "TensorBoard": "tensorboard",
    "acquire": "acquisition",
    "astd": "embeddings",
    "check_graph": "data",
    "evaluate": "evaluation",
    "evaluate_model": "evaluation",
    "example_graph": "example",
    "graph_from": "data",
    "inspect": "inspection",
    "load": "data",
    "noise_experiment": "representation",
    "parse_mask": "sentences",
    "plot_pavpu": "plots",
    "plot_reliability": "plots",
    "plot_risk_coverage": "plots",
    "plot_uncertainty": "plots",
    "predict_nodes": "prediction",
    "presets": "settings",
    "rank": "acquisition",
    "report": "reporting.page",
    "splits": "protocols",
    "summary": "evaluation",
    "uncertainty": "measures",
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
