"""The run that a training continues: what it is, in every process, though only the main process reads it."""

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bgcl import checkpoint
from bgcl.data.facts import GraphFacts
from bgcl.data.recipe import Recipe
from bgcl.errors import BGCLError
from bgcl.estimator import BGCL
from bgcl.files import sole_use
from bgcl.processes.joining import restarts
from bgcl.processes.team import Team
from bgcl.settings import Settings
from bgcl.validation import checked_json


@dataclass(frozen=True)
class BegunRun:
    """What a training needs of the run that it continues, before it reads the graph."""

    settings: Settings
    graph: GraphFacts
    recipe: Recipe | None

    def model(self, changes: dict[str, Any]) -> BGCL:
        """A model with the settings of the run, and some changes."""
        model = BGCL(**dict(self.settings.with_changes(**changes)))
        model.recipe_, model.graph_ = self.recipe, self.graph
        return model

    def to_text(self) -> str:
        recipe = None if self.recipe is None else self.recipe.to_json()
        return json.dumps([self.settings.to_json(), vars(self.graph), recipe])

    @classmethod
    def from_text(cls, text: str) -> "BegunRun":
        settings, graph, recipe = json.loads(text)
        every = dict.fromkeys(Settings.model_fields) | settings
        facts = checked_json(GraphFacts, json.dumps(graph))
        return cls(Settings(**every), facts, None if recipe is None else Recipe.from_json(recipe, "the run"))


def open_or_begin(
    team: Team, out: Path, stack: contextlib.ExitStack, *, resume: bool, overwrite: bool
) -> BegunRun | None:
    """Keep the folder of the run to this training, and return the run that is to be continued.

    If torchrun has started all processes again, the run that they had begun is continued, also without --resume.

    Args:
        team: the processes.
        out: the folder.
        stack: where the folder is given back at the end.
        resume, overwrite: what the user asked for.
    """
    text = ""
    with team.agreed():
        if team.is_main:
            stack.enter_context(sole_use(out))  # from the start: of two trainings, one is refused before it reads
            if _goes_on(out, resume=resume, overwrite=overwrite):
                saved = checkpoint.read(out)
                text = BegunRun(saved.settings, saved.graph, saved.recipe).to_text()
                if restarts():
                    epoch = len(saved.history)
                    print(f"A process had ended, so all go on from epoch {epoch}.", file=sys.stderr)
    text, _ = team.from_main(text)
    return BegunRun.from_text(text) if text else None


def _goes_on(out: Path, *, resume: bool, overwrite: bool) -> bool:
    if resume:
        return True
    there = checkpoint.is_run(out)
    if restarts():
        return there and not (overwrite and checkpoint.is_older(out))
    if there and not overwrite:
        raise BGCLError(
            f"{out} already holds a run: continue it with --resume, replace it with --overwrite, or name another "
            "folder."
        )
    if there:
        checkpoint.remember_older(out)
    return False
