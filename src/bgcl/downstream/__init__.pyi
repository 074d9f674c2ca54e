from .evaluation import SplitResult, evaluate_draws, summary
from .node_draws import NodeDraws
from .pipeline import Embedding
from .prediction import NodePredictions
from .splits import Split

__all__ = ["Embedding", "NodeDraws", "NodePredictions", "Split", "SplitResult", "evaluate_draws", "summary"]
