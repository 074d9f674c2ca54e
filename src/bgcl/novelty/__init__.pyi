from .detector import Novelty
from .found import NodeNovelty
from .predicted import energy
from .propagation import propagated

__all__ = ["NodeNovelty", "Novelty", "energy", "propagated"]
