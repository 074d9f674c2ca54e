from .evaluation import SplitResult, evaluate_draws, summary
from .kept_results import KeptResults
from .label_set_results import LabelSetResult, PredictedLabelSets
from .label_sets import evaluate_label_sets, predict_label_sets
from .label_spreading import LabelSpreading
from .new_nodes import NewNodes
from .node_draws import NodeDraws
from .node_predictions import NodePredictions
from .number_results import NumberResult, PredictedNumbers
from .numbers import evaluate_numbers, predict_numbers
from .parts import BestPartClassifier
from .pipeline import Embedding
from .shift_evaluation import evaluate_shift
from .small_classes import settle_classes
from .splits import Split

__all__ = [
    "BestPartClassifier",
    "Embedding",
    "KeptResults",
    "LabelSetResult",
    "LabelSpreading",
    "NewNodes",
    "NodeDraws",
    "NodePredictions",
    "NumberResult",
    "PredictedLabelSets",
    "PredictedNumbers",
    "Split",
    "SplitResult",
    "evaluate_draws",
    "evaluate_label_sets",
    "evaluate_numbers",
    "evaluate_shift",
    "predict_label_sets",
    "predict_numbers",
    "settle_classes",
    "summary",
]
