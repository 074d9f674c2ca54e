"""Which settings go together."""

from typing import TYPE_CHECKING

from bgcl.defaults import ENCODERS, OBJECTIVES, PYG, SPECIFIC, TAKES_POSITIVES
from bgcl.errors import BGCLError, nearest

if TYPE_CHECKING:
    from bgcl.settings import Settings


def check_combination(settings: "Settings") -> None:
    """Refuse unknown names, and settings that contradict each other or belong to another encoder or objective."""
    if settings.encoder not in ENCODERS and not settings.encoder.startswith(PYG):
        raise BGCLError(f"Unknown encoder '{settings.encoder}'. {nearest(settings.encoder, ENCODERS)}")
    if settings.objective not in OBJECTIVES:
        raise BGCLError(f"Unknown objective '{settings.objective}'. {nearest(settings.objective, OBJECTIVES)}")
    for owner, names in SPECIFIC.items():
        kind = "encoder" if owner in ENCODERS else "objective" if owner in OBJECTIVES else "rate_rule"
        chosen = getattr(settings, kind)
        for name in names:
            if (getattr(settings, name) is None) == (chosen == owner):
                verb = "needs" if chosen == owner else "does not have"
                shown = kind.replace("_", " ")
                raise BGCLError(f"The {shown} '{chosen}' {verb} the setting '{name}'. It belongs to '{owner}'.")
    if settings.rate_rule == "evidence" and settings.rate_nodes is not None:
        raise BGCLError("The rate rule 'evidence' does not have the setting 'rate_nodes'. It belongs to 'adversary'.")
    if settings.rate_rule == "adversary" and settings.draw_scale is None:
        raise BGCLError("The rate rule 'adversary' does not infer rates for draws: give 'draw_scale', such as 0.4.")
    if settings.encoder in ("hops", "module") and (settings.skip or settings.jump != "last"):
        raise BGCLError(f"The encoder '{settings.encoder}' does not have the settings 'skip' and 'jump'.")
    if settings.members > 1 and "module" in (settings.encoder, settings.objective):
        raise BGCLError("An encoder or an objective of your own is there once: leave out 'members'.")
    if settings.neighbors is not None and (settings.encoder == "mlp" or settings.batch_nodes is None):
        raise BGCLError(
            "'neighbors' needs an encoder with layers that look at neighbors, such as 'gcn', and the number of "
            "seeds in a batch, 'batch_nodes'."
        )
    if settings.neighbors is not None and settings.objective == "infomax":
        raise BGCLError("The objective 'infomax' compares nodes with all others, so it cannot take 'neighbors'.")
    if settings.batch_nodes is not None and settings.encoder != "mlp" and settings.neighbors is None:
        raise BGCLError(
            f"'batch_nodes' needs an encoder that looks at one node at a time (mlp), not '{settings.encoder}'. Give "
            "'neighbors' too, such as [10, 10], or use 'batches' instead."
        )
    if settings.until_settled and settings.batch_nodes is None:
        raise BGCLError("'until_settled' needs batches of random nodes ('batch_nodes'): give 'epochs' instead.")
    if settings.batch_nodes is not None and settings.batches > 1:
        raise BGCLError("Give either 'batch_nodes' or 'batches', not both.")
    if any(mask.on == "positives" for mask in settings.masks()) and settings.objective not in TAKES_POSITIVES:
        raise BGCLError(
            f"The objective '{settings.objective}' has no positive pairs, so 'neighbors' cannot be dropped."
        )
