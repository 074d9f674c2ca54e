from .abstention import Abstention
from .classifier import ConformalClassifier
from .diffusion import ScoreDiffusion
from .exchangeability import Drift
from .node_sets import NodeSets, node_sets

__all__ = ["Abstention", "ConformalClassifier", "Drift", "NodeSets", "ScoreDiffusion", "node_sets"]
