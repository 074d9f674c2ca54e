"""A setting that was given and has no effect next to the others is refused, in Python and by the command."""

import pytest
import torch
from sklearn.base import clone

from bgcl import BGCL, BGCLError, Settings
from bgcl.unused_settings import check_used
from test_own_modules import Mine
from trained import small_data

LAYERS = {"widths": (8, 4), "activation": "prelu", "norm": "none", "skip": False, "jump": "last"}
GCN, ONE = {"encoder": "gcn", "widths": (8, 4)}, {"widths": (4,)}
FIXED = {"drop": ["entries at 0.2"]}
RATES = {"rate_start": (1, 2), "rate_draw": "median", "prior": 2, "rate_rule": "evidence"}
FEW = {"encoder": "gcn", "objective": "infomax", "widths": (8, 4)}
# Settings, the name of the one without effect, and the reason.
UNUSED = [
    *(({"encoder": Mine(), name: value}, name, "an encoder of your own") for name, value in LAYERS.items()),
    ({**FEW, "loss_nodes": 10}, "loss_nodes", "always has all nodes"),
    ({**FEW, "rate_nodes": 10}, "rate_nodes", "always has all nodes"),
    ({**FEW, "memory_budget": 64}, "memory_budget", "no other one keeps similarities"),
    ({"clusters_per_batch": 5}, "clusters_per_batch", "without batches of clusters"),
    ({"clusters_per_batch": 5, "batch": "full"}, "clusters_per_batch", "without batches of clusters"),
    ({**GCN, "part_width": 3}, "part_width", "all parts are of the encoder"),
    *(({**FIXED, name: value}, name, "all drop rates are fixed") for name, value in RATES.items()),
    ({**ONE, "skip": True}, "skip", "one layer"),
    ({**ONE, "jump": "concatenate"}, "jump", "one layer"),
    ({**ONE, "activation": "prelu"}, "activation", "ends without them"),
    ({**ONE, "norm": "batch"}, "norm", "ends without them"),
    ({**FIXED, "mask_temperature": 1.0}, "mask_temperature", "masks are hard"),
    ({"rate_rule": "evidence", "mask_temperature": 1.0}, "mask_temperature", "masks are hard"),
    ({**GCN, "drop": ["entries"], "normalize": "after"}, "normalize", "no connections are masked"),
]
ADVERSARY = {"rate_rule": "adversary"}
MASKS = [
    (
        {"drop": ["edges"], **ADVERSARY},
        r"rate of the mask 'edges' cannot be learned: the encoder 'mlp' .* 'edges at 0.3'",
    ),
    ({"drop": ["entries", "connections in 2 blocks"], **ADVERSARY}, "'connections in 2 blocks at 0.3'"),
    ({"drop": ["nodes at 0.3"], "parts": ["encoder"]}, "mask 'nodes at 0.3' has no effect"),
    ({"drop": ["edges"], "parts": ["encoder", "encoder diffused among alike"]}, "has no effect"),
    ({"drop": ["edges"], "parts": ["attributes"], "rate_rule": "evidence"}, "has no effect"),
    ({"drop": ["connections of layer 1 at 0.3"]}, "does not look at the neighbors in layer 1"),
    ({"encoder": "hops", "widths": (8, 4), "drop": ["connections of layer 1"]}, "in layer 1"),
]
USED = [
    {"drop": ["edges at 0.3"]},
    {"drop": ["edges"], "rate_rule": "evidence"},
    {"encoder": "hops", "widths": (8, 4), "drop": ["connections of layer 2"]},
    {**FIXED, "mask_values": "relaxed", "mask_temperature": 1.0},
    {"objective": "decorrelation", "loss_nodes": 10},
    {**GCN, "parts": ["encoder", "attributes"], "part_width": 3},
    {"batch": "clusters", "clusters_per_batch": 5},
]


@pytest.mark.parametrize(("settings", "name", "why"), UNUSED, ids=[f"{n}-{i}" for i, (_, n, _) in enumerate(UNUSED)])
def test_a_given_setting_without_effect_is_refused(settings, name, why):
    with pytest.raises(BGCLError, match=f"^'{name}' has no effect .*{why}.*[^.]\\.$"):
        BGCL(**settings, epochs=1).fit(small_data(), progress=False)


@pytest.mark.parametrize(("settings", "message"), MASKS, ids=str)
def test_a_mask_that_nothing_depends_on_is_refused(settings, message):
    with pytest.raises(BGCLError, match=message):
        BGCL(**settings, epochs=1).fit(small_data(), progress=False)


@pytest.mark.parametrize("settings", USED, ids=str)
def test_a_setting_with_an_effect_is_accepted(settings):
    check_used(Settings(**settings), settings)


def test_a_mask_of_connections_changes_the_draws_of_the_default_if_its_rate_is_fixed():
    """Why 'edges at 0.3' is accepted with the encoder 'mlp': parts of the embedding are propagated along edges."""
    data, few = small_data(), {"widths": (8, 4), "part_width": 3, "epochs": 1, "draw_scale": 1.0}
    kept, dropped = (
        BGCL(**few, drop=[f"edges at {rate}"]).fit(data, progress=False).sample(data, 1) for rate in (0.0, 0.9)
    )
    assert not torch.allclose(kept, dropped)


@pytest.mark.parametrize("given", [{"encoder": Mine()}, {**GCN}, {}], ids=["module", "gcn", "mlp"])
def test_all_settings_of_another_model_are_accepted(given, tmp_path):
    """A loaded model has all settings, also those without effect. It is trained again, and a clone of it too."""
    data = small_data()
    model = BGCL(**given, epochs=1).fit(data, progress=False)
    model.save(tmp_path)
    modules = {name: value for name, value in given.items() if not isinstance(value, str | tuple)}
    loaded = BGCL.load(tmp_path, **modules)
    for each in (loaded, clone(loaded)):
        assert torch.equal(each.fit(data, progress=False).embed(data), model.embed(data))
