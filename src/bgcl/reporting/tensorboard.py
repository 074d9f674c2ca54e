"""A training as TensorBoard shows it."""

import importlib
import os
from typing import Any, Self

from bgcl.errors import BGCLError
from bgcl.model.training import Record
from bgcl.reporting.progress import average


class TensorBoard:
    """Writes each epoch's loss, KL, spread of the embeddings and expected drop rates for TensorBoard.

    Needs `pip install 'bgcl[tensorboard]'`. Look at it with `tensorboard --logdir FOLDER`.

    >>> import bgcl, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with bgcl.TensorBoard(folder) as board:  # doctest: +SKIP
    ...     bgcl.BGCL(epochs=2).fit(bgcl.example_graph(), progress=board)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            tensorboard: Any = importlib.import_module("torch.utils.tensorboard")
        except ImportError:
            raise BGCLError("TensorBoard is not installed: pip install 'bgcl[tensorboard]'.") from None
        self._writer = tensorboard.SummaryWriter(str(folder))

    def __call__(self, record: Record) -> None:
        for name, value in scalars(record).items():
            self._writer.add_scalar(name, value, record.epoch)
        self._writer.flush()  # so that it can be looked at while training goes on

    def close(self) -> None:
        """End the file. What was written can be read before that, too."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scalars(record: Record) -> dict[str, float]:
    """The numbers of an epoch by the names that TensorBoard groups them by."""
    found = {"training/loss": record.loss, "training/kl": record.kl, "training/spread": record.spread}
    if record.objective is not None:
        found["training/objective"] = record.objective
    for view, masks in record.rates.items():
        for i, mask in enumerate(masks, 1):
            found[f"drop rate/{view}/{i} {mask['mask']}"] = average(mask["mean"])
    return found | {"time/seconds an epoch": record.seconds}
