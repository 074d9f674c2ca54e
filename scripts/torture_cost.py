"""What a checkpoint with checksums and fsync costs, as a share of an epoch on Cora."""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bgcl
import bgcl.checkpoint
from bgcl.model.training import Training
from torture_children import start, wait

EPOCHS = 15
PRESETS = {"the default settings": None, "the paper's settings": "paper-cora"}


def cost(folder: Path) -> dict[str, dict[str, float]]:
    """For each kind of settings, the share of time and of the processor's time that checkpoints take."""
    found = {}
    for title, preset in PRESETS.items():
        code, text = wait(start(lambda preset=preset: print(json.dumps(_measured(preset))), folder))
        if code != 0:
            raise RuntimeError(text)
        found[title] = json.loads(text)
    return found


def _measured(preset: str | None) -> dict[str, float]:
    epochs, saves = _Times(Training.step), _Times(bgcl.checkpoint.save_epoch)
    Training.step = lambda training: epochs(training)
    bgcl.checkpoint.save_epoch = saves
    bgcl.BGCL(preset, epochs=EPOCHS).fit(bgcl.load("cora"), out=f"cost {preset}", progress=False)
    return {
        "share of time": round(saves.median(0) / epochs.median(0), 4),
        "share of processor time": round(saves.median(1) / epochs.median(1), 4),
    }


class _Times:
    """A function, and how long each of its calls took."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seconds = function, list[tuple[float, float]]()

    def __call__(self, *given: Any) -> Any:
        before = time.perf_counter(), time.process_time()
        found = self.function(*given)
        self.seconds.append((time.perf_counter() - before[0], time.process_time() - before[1]))
        return found

    def median(self, clock: int) -> float:
        return statistics.median(pair[clock] for pair in self.seconds)
