"""Objectives, one file each: what the encoder minimizes and the augmentation maximizes."""

from typing import TYPE_CHECKING

from bgcl.settings import Settings

if TYPE_CHECKING:
    from bgcl.model.encoders.base import Encoder
    from bgcl.model.objectives.base import Objective


def make_objective(encoder: "Encoder", settings: Settings, given: "Objective | None" = None) -> "Objective":
    """The objective that the settings name, or the one that the user gave."""
    if settings.objective == "module":
        return _given(given)
    if settings.members == 1:
        return _objective(encoder, settings)
    from bgcl.model.objectives.members import OfMembers

    return OfMembers([_objective(member, settings) for member in encoder.encoders])  # type: ignore[union-attr]


def _objective(encoder: "Encoder", settings: Settings) -> "Objective":
    """The objective of one encoder."""
    width = encoder.width
    if settings.objective == "decorrelation":
        from bgcl.model.objectives.decorrelation import Decorrelation

        assert settings.decorrelation_weight is not None
        return Decorrelation(width, weight=settings.decorrelation_weight)
    if settings.objective == "bootstrap":
        from bgcl.model.objectives.bootstrap import Bootstrap

        assert settings.momentum is not None
        return Bootstrap(width, encoder, momentum=settings.momentum)
    if settings.objective == "infomax":
        from bgcl.model.objectives.infomax import Infomax

        return Infomax(width)
    from bgcl.model.objectives.infonce import InfoNCE

    assert settings.tau is not None
    assert settings.negatives is not None
    return InfoNCE(
        width, tau=settings.tau, projection=bool(settings.projection), negatives=settings.negatives,
        budget=settings.memory_budget << 20,
    )  # fmt: skip


def _given(objective: "Objective | None") -> "Objective":
    from bgcl.errors import BGCLError
    from bgcl.model.objectives.base import Objective

    if objective is None:
        raise BGCLError(
            "This model has an objective of your own. Give it again, as BGCL.load(folder, objective=objective)."
        )
    if not isinstance(objective, Objective):
        raise BGCLError(f"An objective must be an instance of bgcl.model.objectives.base.Objective. Got {objective!r}.")
    return objective
