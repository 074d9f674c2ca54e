"""Refuse settings whose network needs too much memory."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bgcl.settings import Settings

BYTES_OF_A_WEIGHT = 20  # itself, its gradient, two averages of Adam, and a copy while it is saved


def check_network_fits(settings: "Settings", attributes: int) -> None:
    """Refuse widths whose weights would not fit into memory."""
    from bgcl.data.memory import check_fits

    widths = (attributes, *settings.widths)
    weights = settings.members * sum(before * after for before, after in zip(widths, settings.widths, strict=False))
    shown = ", ".join(map(str, settings.widths))
    check_fits(BYTES_OF_A_WEIGHT * weights, f"A network with the widths {shown}", "Lower 'widths'.")
