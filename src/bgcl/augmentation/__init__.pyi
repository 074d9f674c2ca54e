from .drop_rates import RatePosterior
from .language import parse_mask
from .masks import Mask

__all__ = ["Mask", "RatePosterior", "parse_mask"]
