"""Pictures of an evaluation, each a matplotlib `Figure`: shown by a notebook as it is, kept with `figure.savefig`.

Those of a training are methods of the model: `model.plot_training()` and `model.plot_drop_rates()`.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from bgcl.downstream.evaluation import SplitResult
from bgcl.errors import BGCLError
from bgcl.measures.uncertainty import MEASURES, RECOMMENDED
from bgcl.reporting import evaluation_plots as pictures

Results = Sequence[SplitResult]


def plot_pavpu(results: Results | Mapping[str, Results], measure: str = "predictive_entropy") -> Figure:
    """PAvPU and its two parts by the threshold of certainty; a line for each method if `results` is a dict of them.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> [axis.get_title("left") for axis in bgcl.plot_pavpu(results).axes]
    ['PAvPU', 'p(accurate | certain)', 'p(uncertain | inaccurate)']
    """
    methods = dict(results) if isinstance(results, Mapping) else {"BGCL": results}
    for found in methods.values():
        _check(found, measure)
    return pictures.pavpu_figure(methods, measure)


def plot_reliability(results: Results) -> Figure:
    """How often a prediction is right, by how sure it is.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> bgcl.plot_reliability(results).axes[0].get_ylabel()
    'share that is right'
    """
    _check(results)
    return pictures.reliability_figure(results)


def plot_risk_coverage(results: Results) -> Figure:
    """The share of errors among the nodes that are kept, the most certain first, for each measure of uncertainty.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> bgcl.plot_risk_coverage(results).axes[0].get_ylabel()
    'risk'
    """
    _check(results)
    return pictures.risk_coverage_figure(results)


def plot_uncertainty(results: Results, measure: str = RECOMMENDED) -> Figure:
    """The uncertainty of each class's nodes, those predicted right beside those predicted wrong.

    >>> import bgcl
    >>> data = bgcl.example_graph()
    >>> model = bgcl.BGCL(widths=(16, 8), epochs=2).fit(data, progress=False)
    >>> results = bgcl.evaluate_model(model, data, "bgrl", count=2, samples=8, training_draws=4)
    >>> bgcl.plot_uncertainty(results, "mutual_information").axes[0].get_ylabel()
    'mutual information'
    """
    _check(results, measure)
    return pictures.by_class_figure(results, measure)


def _check(results: Results, measure: str = RECOMMENDED) -> None:
    if not isinstance(results, Sequence) or not results or not isinstance(results[0], SplitResult):
        raise BGCLError("There is nothing to plot: give what bgcl.evaluate or bgcl.evaluate_model returned.")
    if measure not in MEASURES:
        raise BGCLError(f"Unknown measure '{measure}'. Known: {', '.join(MEASURES)}.")
