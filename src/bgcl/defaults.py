"""Defaults that depend on the encoder, the objective and the rate rule, and which of them has which settings."""

from typing import Any

ENCODERS = ("mlp", "gcn", "hops", "sage", "gin", "gat", "module")
PYG = "pyg:"
OBJECTIVES = ("infonce", "decorrelation", "bootstrap", "infomax", "module")
TAKES_POSITIVES = ("infonce", "module")
RATE_RULES = ("evidence", "adversary")
# Settings that only one encoder, objective or rate rule has, and their defaults.
SPECIFIC: dict[str, dict[str, Any]] = {
    "hops": {"hops": 2},
    "gat": {"heads": 4},
    "infonce": {"tau": 0.4, "projection": True, "negatives": "both views"},
    "decorrelation": {"decorrelation_weight": 1e-3},
    "bootstrap": {"momentum": 0.99},
    "adversary": {"shared_information": 0.2, "kl_weight": 1.0, "lr_rates": 0.02, "rate_every": 4},
}
# Defaults of all encoders but the default one: the paper's.
FOR_OTHER_ENCODERS: dict[str, Any] = {
    "drop": ("edges", "entries"),
    "widths": (256, 128),
    "norm": "none",
    "row_norm": "length",
    "parts": ("encoder",),
    "members": 1,
    "epochs": 300,
    "lr_weights": 0.001,
    "weight_decay": 5e-9,
    "batch_nodes": None,
}
# What a saved run was trained with that does not have a setting, because it is older than the setting.
BEFORE: dict[str, Any] = {"members": 1}
ADVERSARY: dict[str, Any] = {"rate_draw": "median", "rate_nodes": 1024, "draw_scale": 0.05}
FOR_OTHER_ADVERSARIES: dict[str, Any] = {
    "shared_information": 0.3, "lr_rates": 0.01, "rate_every": 1, "draw_scale": 0.4,
}  # fmt: skip


def fill(values: dict[str, Any]) -> dict[str, Any]:
    """The given values, and the defaults that depend on encoder, objective and rate rule."""
    encoder, objective = values.get("encoder", "mlp"), values.get("objective", "infonce")
    rule = values.get("rate_rule", "evidence" if encoder == "mlp" else "adversary")
    own: dict[str, Any] = {"rate_rule": rule} | (dict(FOR_OTHER_ENCODERS) if encoder != "mlp" else {})
    own |= {name: None for settings in SPECIFIC.values() for name in settings}
    for name in (encoder, objective, rule):
        own |= SPECIFIC.get(name, {}) if isinstance(name, str) else {}
    if rule == "adversary":
        own |= ADVERSARY | (FOR_OTHER_ADVERSARIES if encoder != "mlp" else {})
    if objective == "infonce" and encoder == "mlp":
        own |= {"tau": 0.15, "projection": False, "negatives": "other view"}
    elif encoder == "mlp":
        own["drop"] = ("entries",)
    if values.get("batches", 1) != 1:
        own["batch_nodes"] = None
    if "module" in (encoder, objective):
        own["members"] = 1
    found = own | values
    of_random_nodes = found.get("batch_nodes", True) is not None and found.get("neighbors") is None
    return {"until_settled": of_random_nodes and values.get("epochs") is None} | found
