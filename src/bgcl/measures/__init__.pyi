from .acquisition import acquire
from .metrics import PAvPU, Reliability, RiskCoverage, pavpu, reliability, risk_coverage
from .uncertainty import Uncertainty

__all__ = ["PAvPU", "Reliability", "RiskCoverage", "Uncertainty", "acquire", "pavpu", "reliability", "risk_coverage"]
