"""A cell: one method on one data set with one training seed. It is what is computed, kept and taken up again."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 1  # of a cell's result; another number, and what was kept is computed anew


@dataclass(frozen=True)
class Cell:
    """What to compute. `label` is what tables call the variant; all else decides the result."""

    method: str
    dataset: str
    seed: int
    protocol: str
    splits: int
    settings: dict[str, Any] = field(default_factory=dict)  # of the method, beside those that it takes by itself
    evaluation: dict[str, Any] = field(default_factory=dict)  # samples, training_draws, set_size, head
    noise: dict[str, Any] = field(default_factory=dict)  # nodes, deviation: the cell is a noise experiment
    label: str = ""

    def key(self, digest: str, settings: dict[str, Any]) -> str:
        """A name for the result: the same cell on the same data with the same `settings`, all of them, has the same,
        and no other has it.
        """
        content = asdict(self) | {"data": digest, "settings": settings, "format": FORMAT}
        del content["label"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    def place(self) -> tuple[str, str, str, int]:
        """Where it stands in a file of results: a later cell of the same place takes its place."""
        return self.method, self.label, self.dataset, self.seed

    def __str__(self) -> str:
        variant = f" ({self.label})" if self.label else ""
        return f"{self.method}{variant}, {self.dataset}, seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Cell":
        return cls(**values)
