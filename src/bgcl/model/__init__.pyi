from .posterior import Moments, astd
from .training import Record

__all__ = ["Moments", "Record", "astd"]
