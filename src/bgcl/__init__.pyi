# The public names. Each is imported when it is first used, so that `import bgcl` does not import torch.
from .conformal.classifier import ConformalClassifier
from .data.example import example_graph
from .data.inspection import inspect
from .data.own import graph_from
from .data.store import load
from .downstream.classifier import MixtureClassifier
from .downstream.evaluation import evaluate
from .downstream.prediction import predict
from .downstream.regressor import MixtureRegressor
from .downstream.splits import splits
from .errors import BGCLError
from .estimator import BGCL
from .measures.acquisition import rank
from .measures.uncertainty import uncertainty
from .novelty.detector import Novelty
from .reporting.report.page import report
from .settings import Settings, presets

__version__: str

__all__ = [
    "BGCL",
    "BGCLError",
    "ConformalClassifier",
    "MixtureClassifier",
    "MixtureRegressor",
    "Novelty",
    "Settings",
    "__version__",
    "evaluate",
    "example_graph",
    "graph_from",
    "inspect",
    "load",
    "predict",
    "presets",
    "rank",
    "report",
    "splits",
    "uncertainty",
]
