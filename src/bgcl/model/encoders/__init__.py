"""Encoders, one file each: they turn a graph and masks into vectors."""

import importlib
from typing import TYPE_CHECKING, Any

from bgcl.defaults import PYG
from bgcl.errors import BGCLError
from bgcl.settings import Settings

if TYPE_CHECKING:
    from torch import nn

    from bgcl.model.encoders.base import Encoder

# Module and class of each encoder, and the settings that it has.
LAYERS = ("activation", "norm", "skip", "jump")
FOUND: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "mlp": ("mlp", "MLPEncoder", LAYERS),
    "gcn": ("gcn", "GCNEncoder", LAYERS),
    "hops": ("hops", "HopsEncoder", ("activation", "norm", "hops")),
    "sage": ("sage", "SAGEEncoder", LAYERS),
    "gin": ("gin", "GINEncoder", LAYERS),
    "gat": ("gat", "GATEncoder", (*LAYERS, "heads")),
    PYG: ("pyg", "PyGEncoder", LAYERS),
}


def make_encoder(width_in: int, settings: Settings, module: "nn.Module | None" = None, relations: int = 1) -> "Encoder":
    """The encoder that the settings name.

    Args:
        width_in: number of attributes.
        settings: the settings.
        module: a module of the user, if the settings name "module".
        relations: number of relations of the graph.
    """
    word, more = settings.encoder, dict[str, Any]()
    if settings.normalize == "before" and word != "gcn":
        raise BGCLError(f"The encoder '{word}' normalizes after masking: leave out normalize = 'before'.")
    if word == "module":
        from bgcl.model.encoders.pyg import ModuleEncoder

        if module is None:
            raise BGCLError(
                "This model has an encoder of your own. Give it again, as BGCL.load(folder, encoder=module)."
            )
        return ModuleEncoder(module, width_in)
    if word.startswith(PYG):
        word, more = PYG, {"convolution": word.removeprefix(PYG)}
    elif word == "gcn":
        more = {"normalize_after": settings.normalize == "after"}
    file, name, own = FOUND[word]

    def make() -> "Encoder":
        encoder: Encoder = getattr(importlib.import_module(f"bgcl.model.encoders.{file}"), name)(
            (width_in, *settings.widths), **{each: getattr(settings, each) for each in own}, **more
        )
        return encoder

    from bgcl.model.encoders.members import with_members
    from bgcl.model.encoders.relational import for_relations

    return with_members(lambda: for_relations(make, relations), settings.members)
