"""A cell of a table: one method on one data set with one training seed. It is the unit that is computed and cached."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 1  # version of a cell's result; a new number makes all cached results invalid


@dataclass(frozen=True)
class Cell:
    """What to compute.

    Attributes:
        method: name of the method.
        dataset: name of the data set.
        seed: training seed.
        protocol: protocol of the splits.
        splits: number of splits.
        settings: settings of the method that differ from its defaults.
        evaluation: arguments of the evaluation: samples, training_draws, set_size, head ("pool" is the head of the
            default, for embeddings of other methods); spread_labels, whether the head uses labels of near
            nodes; masks, False for embeddings
            without masks; measure, whether time and memory of training are measured.
        noise: arguments of a noise experiment, nodes and std; empty for other cells.
        label: name of the variant in tables. It does not change the result.
    """

    method: str
    dataset: str
    seed: int
    protocol: str
    splits: int
    settings: dict[str, Any] = field(default_factory=dict)
    evaluation: dict[str, Any] = field(default_factory=dict)
    noise: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    def key(self, digest: str, settings: dict[str, Any]) -> str:
        """The key of the result in the cache. Two cells have the same key only if they have the same result.

        Args:
            digest: digest of the data.
            settings: all settings of the method, defaults included.
        """
        content = asdict(self) | {"data": digest, "settings": settings, "format": FORMAT}
        del content["label"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    def place(self) -> tuple[str, str, str, int]:
        """The place of the cell in a result file: method, label, data set and seed."""
        return self.method, self.label, self.dataset, self.seed

    def __str__(self) -> str:
        variant = f" ({self.label})" if self.label else ""
        return f"{self.method}{variant}, {self.dataset}, seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Cell":
        return cls(**values)
