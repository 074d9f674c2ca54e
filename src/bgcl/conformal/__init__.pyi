from .classifier import ConformalClassifier
from .diffusion import ScoreDiffusion

__all__ = ["ConformalClassifier", "ScoreDiffusion"]
