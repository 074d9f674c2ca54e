"""Settings that would change nothing next to the others. They are refused, so that nobody relies on one in vain."""

from collections.abc import Callable, Collection

from bgcl.augmentation.masks import Mask
from bgcl.errors import BGCLError
from bgcl.model.parts import parse_part
from bgcl.settings import Settings

LAYERS = ("widths", "activation", "norm", "skip", "jump")
OF_LEARNED_RATES = (
    "lr_rates", "rate_every", "rate_nodes", "rate_start", "rate_draw", "rate_rule", "prior", "kl_weight",
)  # fmt: skip


def _only_trained(settings: Settings) -> bool:
    return all(parse_part(part).source == "encoder" for part in settings.parts)


def _fixed(settings: Settings) -> bool:
    return all(mask.rate is not None for mask in settings.masks())


def _without_gradient(settings: Settings) -> bool:
    """Whether masks are 0 or 1, and no drop rate learns from their gradient."""
    return settings.mask_values == "hard" and (_fixed(settings) or settings.rate_rule == "evidence")


# Names of settings, when they have no effect, and the end of the error's first sentence.
_RULES: tuple[tuple[tuple[str, ...], Callable[[Settings], bool], str], ...] = (
    (("clusters_per_batch",), lambda s: s.batches == 1 and s.batch not in ("auto", "clusters"),
     "without batches of clusters: set 'batches' too, or leave it out"),
    (("part_width",), _only_trained, "if all parts are of the encoder: set 'parts' too, or leave it out"),
    (OF_LEARNED_RATES, _fixed, "if all drop rates are fixed: leave it out, or leave out 'at'"),
    (LAYERS, lambda s: s.encoder == "module", "with an encoder of your own, which has its own layers: leave it out"),
    (("skip", "jump"), lambda s: len(s.widths) == 1, "with one layer: give 'widths' of two or more, or leave it out"),
    (("activation", "norm"), lambda s: s.encoder == "mlp" and len(s.widths) == 1,
     "with one layer of the encoder 'mlp', which ends without them: give more 'widths', or leave it out"),
    (("loss_nodes", "rate_nodes"), lambda s: s.objective == "infomax",
     "with the objective 'infomax', whose loss always has all nodes: leave it out"),
    (("memory_budget",), lambda s: s.objective != "infonce",
     "without the objective 'infonce', because no other one keeps similarities: leave it out"),
    (("mask_temperature",), _without_gradient,
     "if masks are hard and no drop rate is learned in training: leave it out, or set mask_values = 'relaxed'"),
    (("normalize",), lambda s: all(mask.on != "connections" for mask in s.masks()),
     "if no connections are masked: leave it out"),
)  # fmt: skip


def check_used(settings: Settings, given: Collection[str]) -> None:
    """Refuse a mask without effect, and every setting in `given` that has none.

    All settings at once, as in `BGCL(**dict(settings))`, are those of another model. Nobody chose one of them.
    """
    if set(given) >= Settings.model_fields.keys():
        return
    for mask in settings.masks():
        _check_mask(mask, settings)
    for names, unused, why in _RULES:
        for name in names:
            if name in given and unused(settings):
                raise BGCLError(f"'{name}' has no effect {why}.")


def _check_mask(mask: Mask, settings: Settings) -> None:
    """Refuse a mask of connections that nothing depends on, or whose rate has nothing to learn from."""
    if mask.on != "connections" or _in_encoder(mask, settings):
        return
    why = f"the encoder '{settings.encoder}' does not look at the neighbors"
    why += "" if mask.layer is None else f" in layer {mask.layer}"
    if not _in_parts(mask, settings):
        raise BGCLError(
            f"The mask '{mask}' has no effect: {why}, and no part of the embedding does so under this mask. Drop "
            "something else, such as 'entries', or choose another encoder, such as 'gcn'."
        )
    if mask.rate is None and settings.rate_rule == "adversary":
        raise BGCLError(
            f"The rate of the mask '{mask}' cannot be learned: {why}. Fix it, such as '{mask} at 0.3', drop "
            "'neighbors' instead, or choose another encoder, such as 'gcn'."
        )


def _in_encoder(mask: Mask, settings: Settings) -> bool:
    """Whether the encoder uses the connections of a layer that the mask acts on."""
    if settings.encoder == "mlp":
        return False
    before = len(settings.widths) - 1 if settings.encoder == "hops" else 0  # layers that look at one node at a time
    return mask.layer is None or mask.layer > before


def _in_parts(mask: Mask, settings: Settings) -> bool:
    """Whether a part of the embedding is propagated along connections that the mask drops: those of the last layer."""
    parts = [parse_part(part) for part in settings.parts]
    return mask.layer in (None, settings.layers) and any(part.among is None and part.hops != 0 for part in parts)
