"""Settings that a command refuses: those without an effect next to the others, and those that need too much memory."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bgcl.errors import BGCLError

if TYPE_CHECKING:
    from bgcl.settings import Settings

OF_LEARNED_RATES = (
    "lr_rates", "rate_every", "rate_nodes", "rate_start", "rate_draw", "rate_rule", "prior", "kl_weight",
)  # fmt: skip


BYTES_OF_A_WEIGHT = 20  # itself, its gradient, two averages of Adam, and a copy while it is saved


def check_network_fits(settings: "Settings", attributes: int) -> None:
    """Refuse widths whose weights would not fit into memory."""
    from bgcl.data.memory import check_fits

    widths = (attributes, *settings.widths)
    weights = sum(before * after for before, after in zip(widths, settings.widths, strict=False))
    shown = ", ".join(map(str, settings.widths))
    check_fits(BYTES_OF_A_WEIGHT * weights, f"A network with the widths {shown}", "Lower 'widths'.")


def check_used(settings: "Settings", given: Iterable[str]) -> None:
    """Refuse a given setting that changes nothing: one of batches, of parts or of learned rates, if there are none."""
    fixed = all(mask.rate is not None for mask in settings.masks())
    trained = all(part.split()[0] == "encoder" for part in settings.parts)
    for name in given:
        if name == "clusters_per_batch" and settings.batches == 1:
            raise BGCLError(f"'{name}' has no effect without batches of clusters: set 'batches' too, or leave it out.")
        if name == "part_width" and trained:
            raise BGCLError(
                f"'{name}' has no effect if all parts are of the encoder: set 'parts' too, or leave it out."
            )
        if name in OF_LEARNED_RATES and fixed:
            raise BGCLError(f"'{name}' has no effect if all drop rates are fixed: leave it out, or leave out 'at'.")
