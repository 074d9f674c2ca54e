"""Training curves for TensorBoard."""

import importlib
import os
from typing import Any, Self

from bgcl.errors import BGCLError
from bgcl.model.training import Record


class TensorBoard:
    """Writes the loss, KL divergence, spread of the embeddings and expected drop rates of each epoch for TensorBoard.

    Pass it to `fit` as `progress`. It needs `pip install 'bgcl[tensorboard]'`. To look at the curves, also during
    training, run `tensorboard --logdir FOLDER`.

    Args:
        folder: the folder to write to.

    Raises:
        BGCLError: TensorBoard is not installed.

    >>> import bgcl, tempfile
    >>> from bgcl.reporting import TensorBoard
    >>> folder = tempfile.mkdtemp()
    >>> with TensorBoard(folder) as board:  # doctest: +SKIP
    ...     bgcl.BGCL(epochs=2).fit(bgcl.example_graph(), progress=board)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            tensorboard: Any = importlib.import_module("torch.utils.tensorboard")
        except ImportError:
            raise BGCLError("TensorBoard is not installed. Install it with: pip install 'bgcl[tensorboard]'.") from None
        self._writer = tensorboard.SummaryWriter(str(folder))

    def __call__(self, record: Record) -> None:
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, record.epoch)
        self._writer.flush()  # so that TensorBoard can show the epoch at once

    def close(self) -> None:
        """Close the file. TensorBoard can also read it before."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scalars(record: Record) -> dict[str, float]:
    """The numbers of an epoch by name. TensorBoard groups names by the part before the slash."""
    found = {"training/loss": record.loss, "training/kl": record.kl, "training/spread": record.spread}
    if record.objective is not None:
        found["training/objective"] = record.objective
    for view, masks in record.rates.items():
        for i, rate in enumerate(masks, 1):
            found[f"drop rate/{view}/{i} {rate.mask}"] = rate.average
    return found | {"time/seconds an epoch": record.seconds}
