"""What a view drops, as sentences: `connections in 8 blocks`, `edges shared at 0.2/0.4`, `features of every layer`."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bgcl.augmentation.masks import DropConnections, Mask
from bgcl.errors import BGCLError, nearest

GRAMMAR = (
    "KIND [in N blocks] [of layer N | of every layer] [shared | anew] [per view | per layer | per block] "
    "[at RATE | at RATE/RATE]"
)

# A phrase, the field of the mask that it sets, and how.
_PHRASES: tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], Any]], ...] = (
    (re.compile(r"in (\d+) blocks?\b"), "blocks", lambda found: int(found[1])),
    (re.compile(r"of layer (\d+)\b"), "layer", lambda found: int(found[1])),
    (re.compile(r"of every layer\b"), "layer", lambda found: None),
    (re.compile(r"shared\b"), "shared", lambda found: True),
    (re.compile(r"anew\b"), "shared", lambda found: False),
    (re.compile(r"per (view|layer|block)\b"), "per", lambda found: found[1]),
    (
        re.compile(r"at (\d\S*?)(?:/(\d\S*))?(?=\s|$)"),
        "rate",
        lambda found: (float(found[1]), float(found[2] or found[1])),
    ),
)


def parse_mask(sentence: str) -> Mask:
    """The mask that a sentence describes; `str(mask)` gives the sentence back.

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
            raise BGCLError(f"Cannot read '{rest}' in the mask '{sentence}'. The form is: {GRAMMAR}.")
    return check_mask(replace(Mask.kinds[kind](), **values))


def check_mask(mask: Mask) -> Mask:
    """`mask`, if it makes sense."""
    if mask.rate is not None and not all(0 <= rate <= 1 for rate in mask.rate):
        raise BGCLError(f"The drop rate of the mask '{mask}' must be between 0 and 1.")
    if mask.blocks < 1 or (mask.blocks > 1 and not isinstance(mask, DropConnections)):
        raise BGCLError(f"The mask '{mask}': only connections come in blocks, 1 or more.")
    if mask.layer is not None and mask.layer < 1:
        raise BGCLError(f"The mask '{mask}': layers are counted from 1.")
    if mask.shared and mask.on != "connections" and mask.layer is None:
        raise BGCLError(f"The mask '{mask}': layers differ in width and cannot share a mask of features.")
    if mask.per == "block" and mask.on != "connections":
        raise BGCLError(f"The mask '{mask}': only masks of connections have blocks.")
    return mask
