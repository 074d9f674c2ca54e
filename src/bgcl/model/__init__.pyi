from .encoders.base import Encoder
from .objectives.base import Objective, Outcome, Step
from .posterior import Moments, astd
from .training import Record

__all__ = ["Encoder", "Moments", "Objective", "Outcome", "Record", "Step", "astd"]
