"""What a fitted model plots of its training: its loss, and its drop rates."""

from typing import TYPE_CHECKING

from bgcl.errors import BGCLError
from bgcl.model.training import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class HistoryPlots:
    """The plots of a model that has a history."""

    history_: list[Record]

    def plot_training(self) -> "Figure":
        """The loss and the expected drop rates by epoch, as a matplotlib `Figure`."""
        from bgcl.reporting.plots import plot_training

        return plot_training(self._history())

    def plot_drop_rates(self) -> "Figure":
        """The posterior of each learned drop rate in both views, as a matplotlib `Figure`."""
        from bgcl.reporting.plots import plot_drop_rates

        return plot_drop_rates(self._history())

    def _fitted(self) -> object:
        raise NotImplementedError

    def _history(self) -> list[Record]:
        self._fitted()
        if not self.history_:
            raise BGCLError("This model was loaded without the history of its training: there is nothing to plot.")
        return self.history_
