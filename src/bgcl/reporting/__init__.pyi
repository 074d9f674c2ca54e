from .plots import plot_drop_rates, plot_pavpu, plot_reliability, plot_risk_coverage, plot_training, plot_uncertainty
from .tensorboard import TensorBoard

__all__ = [
    "TensorBoard",
    "plot_drop_rates",
    "plot_pavpu",
    "plot_reliability",
    "plot_risk_coverage",
    "plot_training",
    "plot_uncertainty",
]
