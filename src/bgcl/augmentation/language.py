"""The language of masks: sentences such as `connections in 8 blocks`, `edges at 0.2/0.4`, `features of every layer`."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bgcl.augmentation.masks import DropConnections, Mask
from bgcl.errors import BGCLError, nearest

GRAMMAR = (
    "KIND [in N blocks] [of layer N | of every layer] [shared | anew] "
    "[per view | per layer | per block | per relation] [at RATE | at RATE/RATE]"
)

# Each phrase, the field of the mask that it sets, and the value of the field.
_PHRASES: tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], Any]], ...] = (
    (re.compile(r"in (\d+) blocks?\b"), "blocks", lambda found: int(found[1])),
    (re.compile(r"of layer (\d+)\b"), "layer", lambda found: int(found[1])),
    (re.compile(r"of every layer\b"), "layer", lambda found: None),
    (re.compile(r"shared\b"), "shared", lambda found: True),
    (re.compile(r"anew\b"), "shared", lambda found: False),
    (re.compile(r"per (view|layer|block|relation)\b"), "per", lambda found: found[1]),
    (
        re.compile(r"at (\d\S*?)(?:/(\d\S*))?(?=\s|$)"),
        "rate",
        lambda found: (float(found[1]), float(found[2] or found[1])),
    ),
)


def parse_mask(sentence: str) -> Mask:
    """Read the mask that a sentence describes. `str(mask)` is the shortest such sentence.

    Args:
        sentence: a kind of mask, then phrases in any order: `KIND [in N blocks] [of layer N | of every layer]
            [shared | anew] [per view | per layer | per block | per relation] [at RATE | at RATE/RATE]`.

    Returns:
        The mask.

    Raises:
        BGCLError: the sentence cannot be read, or its mask makes no sense.

    >>> parse_mask("connections in 8 blocks shared").blocks
    8
    >>> str(parse_mask("edges at 0.2/0.4"))
    'edges at 0.2/0.4'
    """
    kind, _, rest = sentence.strip().partition(" ")
    if kind not in Mask.kinds:
        raise BGCLError(f"Unknown mask '{kind}' in '{sentence}'. {nearest(kind, Mask.kinds)}")
    values: dict[str, Any] = {}
    while rest := rest.strip():
        for phrase, field, value in _PHRASES:
            if (found := phrase.match(rest)) and field not in values:
                try:
                    values[field] = value(found)
                except ValueError:
                    continue
                rest = rest[found.end() :]
                break
        else:
            raise BGCLError(f"Cannot read '{rest}' in the mask '{sentence}'. Write it as: {GRAMMAR}.")
    return check_mask(replace(Mask.kinds[kind](), **values))


def check_mask(mask: Mask) -> Mask:
    """Return the mask, or raise a `BGCLError` if its fields contradict each other."""
    if mask.rate is not None and not all(0 <= rate <= 1 for rate in mask.rate):
        raise BGCLError(f"The drop rate of the mask '{mask}' must be between 0 and 1.")
    if mask.blocks < 1 or (mask.blocks > 1 and not isinstance(mask, DropConnections)):
        raise BGCLError(f"The mask '{mask}' is not valid: only connections have blocks, and at least 1.")
    if mask.layer is not None and mask.layer < 1:
        raise BGCLError(f"The mask '{mask}' is not valid: layers are counted from 1.")
    if mask.on == "positives" and mask.layer is not None:
        raise BGCLError(f"The mask '{mask}' is not valid: positive pairs do not belong to a layer.")
    if mask.on == "positives" and mask.per not in ("view", "relation"):
        raise BGCLError(f"The mask '{mask}' is not valid: positive pairs have one drop rate per view or relation.")
    if mask.per == "relation" and (mask.on not in ("connections", "positives") or mask.blocks > 1):
        raise BGCLError(f"The mask '{mask}' is not valid: only connections without blocks have a rate per relation.")
    if mask.shared and mask.on in ("columns", "entries") and mask.layer is None:
        raise BGCLError(f"The mask '{mask}' is not valid: layers of different widths cannot share a mask of features.")
    if mask.per == "block" and mask.on != "connections":
        raise BGCLError(f"The mask '{mask}' is not valid: only connections have a rate per block.")
    return mask
