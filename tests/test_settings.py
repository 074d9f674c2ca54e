"""Settings: groups, defaults, presets, and errors that name the setting and its range."""

import inspect
import json
import re

import numpy as np
import pytest

import bgcl
from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.masks import DropEdges
from bgcl.defaults import ENCODERS, FOR_OTHER_ADVERSARIES, FOR_OTHER_ENCODERS, OBJECTIVES, SPECIFIC
from bgcl.errors import BGCLError
from bgcl.model.network import Network
from bgcl.settings import DEFAULT, GROUPS, Settings, make_settings, presets


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tau": 0}, "The setting 'tau' must be a number between 0.02 and 100, or None. Got 0 instead."),
        ({"epochs": 0}, "The setting 'epochs' must be a whole number between 1 and 1,000,000, or None. Got 0 instead."),
        (
            {"epochs": 2.5},
            "The setting 'epochs' must be a whole number between 1 and 1,000,000, or None. Got 2.5 instead.",
        ),
        (
            {"mask_temperature": float("nan")},
            "The setting 'mask_temperature' must be a number between 0.01 and 10. Got",
        ),
        ({"lr_weights": 0}, "The setting 'lr_weights' must be a number"),
        ({"mask_values": "soft"}, "The setting 'mask_values' must be 'relaxed' or 'hard'. Got 'soft' instead."),
        ({"draw_scale": 0}, "The setting 'draw_scale' must be a number above 0 and at most 1, or None. Got 0 instead."),
        (
            {"draw_scale": 1.5},
            "The setting 'draw_scale' must be a number above 0 and at most 1, or None. Got 1.5 instead.",
        ),
        (
            {"shared_information": 1},
            "The setting 'shared_information' must be a number of 0 or more and below 1, or None. Got 1 instead.",
        ),
        (
            {"rate_nodes": 1},
            "The setting 'rate_nodes' must be a whole number between 2 and 1,000,000,000,000, or None. Got 1 instead.",
        ),
        ({"clusters_per_batch": 0}, "The setting 'clusters_per_batch' must be a whole number between 1 and 10,000."),
        ({"normalize": "never"}, "The setting 'normalize' must be 'after' or 'before'. Got 'never' instead."),
        ({"row_norm": True}, "The setting 'row_norm' must be 'auto' or 'length' or 'sum' or 'none'. Got True instead."),
        ({"row_norm": None}, "The setting 'row_norm' must be 'auto' or 'length' or 'sum' or 'none'. Got None instead."),
        ({"norm": "group"}, "The setting 'norm' must be 'none' or 'layer' or 'batch'. Got 'group' instead."),
        ({"jump": "first"}, "The setting 'jump' must be 'last' or 'concatenate' or 'max'. Got 'first' instead."),
        ({"skip": "perhaps"}, "The setting 'skip' must be true or false. Got 'perhaps' instead."),
        ({"parts": ()}, "The setting 'parts' must be the parts of the embedding"),
        ({"parts": "encoder"}, "The setting 'parts' must be the parts of the embedding"),
        ({"part_width": 0}, "The setting 'part_width' must be a whole number between 1 and 65,536. Got 0 instead."),
        (
            {"rate_every": 0},
            "The setting 'rate_every' must be a whole number between 1 and 1,000,000, or None. Got 0 instead.",
        ),
        ({"batch_nodes": 1}, "The setting 'batch_nodes' must be a whole number between 2 and"),
        ({"encoder": "sgae"}, "Unknown encoder 'sgae'. Did you mean sage"),
        ({"encoder": "transformer"}, "Unknown encoder 'transformer'. Known: mlp, gcn, hops, sage, gin, gat, module."),
        ({"encoder": 5}, "The setting 'encoder' must be mlp, gcn, hops, sage, gin or gat"),
        ({"encoder": ["gcn"]}, "The setting 'encoder' must be mlp, gcn, hops, sage, gin or gat"),
        ({"encoder": None}, "The setting 'encoder' must be mlp, gcn, hops, sage, gin or gat"),
        ({"objective": "infonec"}, "Unknown objective 'infonec'. Did you mean infonce"),
        ({"objective": "hinge"}, "Unknown objective 'hinge'. Known: infonce, decorrelation, bootstrap, infomax"),
        ({"objective": ["infonce"]}, "The setting 'objective' must be infonce, decorrelation, bootstrap or infomax"),
        ({"objective": None}, "The setting 'objective' must be infonce, decorrelation, bootstrap or infomax"),
        ({"hops": 2}, "The encoder 'mlp' does not have the setting 'hops'. It belongs to 'hops'."),
        ({"encoder": "gcn", "heads": 4}, "The encoder 'gcn' does not have the setting 'heads'. It belongs to 'gat'."),
        (
            {"encoder": "hops", "hops": 0},
            "The setting 'hops' must be a whole number between 1 and 64, or None. Got 0 instead.",
        ),
        ({"encoder": "hops", "hops": None}, "The encoder 'hops' needs the setting 'hops'."),
        ({"encoder": "gat", "heads": None}, "The encoder 'gat' needs the setting 'heads'."),
        ({"tau": None}, "The objective 'infonce' needs the setting 'tau'."),
        (
            {"objective": "decorrelation", "tau": 0.4},
            "The objective 'decorrelation' does not have the setting 'tau'. It belongs to 'infonce'.",
        ),
        (
            {"objective": "infomax", "projection": True},
            "The objective 'infomax' does not have the setting 'projection'. It belongs to 'infonce'.",
        ),
        ({"momentum": 0.9}, "The objective 'infonce' does not have the setting 'momentum'. It belongs to 'bootstrap'."),
        (
            {"decorrelation_weight": 0.1},
            "The objective 'infonce' does not have the setting 'decorrelation_weight'. It belongs to 'decorrelation'.",
        ),
        ({"objective": "bootstrap", "momentum": 1}, "The setting 'momentum' must be"),
        (
            {"encoder": "gcn", "batch_nodes": 512},
            "'batch_nodes' needs an encoder that looks at one node at a time (mlp), not 'gcn'. Give 'neighbors' too, "
            "such as [10, 10], or use 'batches' instead.",
        ),
        ({"encoder": "hops", "skip": True}, "The encoder 'hops' does not have the settings 'skip' and 'jump'."),
        ({"batch_nodes": 64, "batches": 3}, "Give either 'batch_nodes' or 'batches', not both."),
        (
            {"objective": "decorrelation", "drop": "neighbors"},
            "The objective 'decorrelation' has no positive pairs, so 'neighbors' cannot be dropped.",
        ),
        (
            {"encoder": "gcn", "objective": "infomax", "drop": ("edges", "neighbors at 0.2")},
            "The objective 'infomax' has no positive pairs, so 'neighbors' cannot be dropped.",
        ),
        ({"prior": (1.0,)}, "The setting 'prior' must be 2 numbers between 0.001 and 1,000, or a number between 0.001"),
        ({"widths": ()}, "The setting 'widths' must be 1 to 16 whole numbers between 1 and 65,536. Got ()"),
        ({"widths": (16, 0)}, "The setting 'widths' must be"),
        ({"rate_start": (0, 1)}, "The setting 'rate_start' must be"),
        ({"rate_start": (1e-300, 1e6)}, "The setting 'rate_start' must be 2 numbers between 0.001 and 1,000"),
        ({"epoch": 3}, "Unknown setting 'epoch'. Did you mean epochs?"),
        ({"preset": "paper-coar"}, "Unknown preset 'paper-coar'. Did you mean paper-cora"),
        ({"preset": "cora"}, "Unknown preset 'cora'. Known: paper-cora, paper-citeseer"),
        ({"drop": "egdes"}, "Unknown mask 'egdes' in 'egdes'. Did you mean edges"),
        ({"drop": (5,)}, "The setting 'drop' must be what a view drops"),
        ({"drop": 5}, "The setting 'drop' must be what a view drops"),
        ({"drop": None}, "The setting 'drop' must be what a view drops"),
        (
            {"drop": ("connections in 2 blocks", "connections in 3 blocks")},
            "All masks with blocks must have the same number of blocks. Got [2, 3].",
        ),
        (
            {"drop": "edges of layer 3"},
            "The mask 'edges of layer 3' names layer 3, but the model has only 2.",
        ),
        ({"prior": 1.0, "widths": (8,)}, "The setting 'prior' is one number, which needs two layers or more."),
    ],
)
def test_an_error_names_the_setting_and_the_allowed_values(given: dict[str, object], message: str) -> None:
    with pytest.raises(BGCLError, match=re.escape(message)) as caught:
        make_settings(**given)
    assert "\n" not in str(caught.value)
    if "preset" not in given:  # the class itself raises the same error
        with pytest.raises(BGCLError, match=re.escape(str(caught.value))):
            bgcl.Settings(**given)


NUMBERS = [name for name in Settings.model_fields if "number" in Settings.allowed(name)]


@pytest.mark.parametrize("wrong", [True, False, np.True_, "1", "0.5"], ids=repr)
@pytest.mark.parametrize("name", NUMBERS)
def test_bools_and_numbers_in_quotes_are_not_numbers(name: str, wrong: object) -> None:
    with pytest.raises(BGCLError, match=f"The setting '{name}' must be"):
        Settings(**{name: wrong})
    if name == "prior":
        with pytest.raises(BGCLError, match="The setting 'prior' must be"):
            Settings(prior=(1.0, wrong))


def test_numbers_are_the_settings_that_have_a_range() -> None:
    assert {"tau", "epochs", "seed", "prior", "loss_nodes", "draw_scale", "memory_budget"} <= set(NUMBERS)
    assert not {"drop", "device", "activation"} & set(NUMBERS)


def test_numpy_numbers_are_accepted_as_the_same_plain_numbers() -> None:
    given = {"tau": np.float64(0.5), "epochs": np.int64(7), "seed": np.uint8(3), "widths": (np.int32(8), np.int64(4))}
    given |= {"prior": (np.float32(0.5), np.int8(2)), "loss_nodes": np.int16(9)}
    settings = Settings(**given)
    expected = Settings(tau=0.5, epochs=7, seed=3, widths=(8, 4), prior=(0.5, 2.0), loss_nodes=9)
    assert settings == expected
    assert json.loads(json.dumps(settings.to_json())) == expected.to_json()
    assert [type(value) for value in (settings.tau, settings.epochs, *settings.widths)] == [float, int, int, int]


def test_the_groups_hold_every_setting_once() -> None:
    names = [name for group in GROUPS.values() for name in group.model_fields]
    assert len(names) == len(set(names))
    assert names == list(Settings.model_fields)


def test_every_setting_has_a_description_and_a_default_that_is_valid() -> None:
    assert Settings() == Settings(**dict(Settings()))
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert not field.is_required(), name


def test_the_arguments_of_bgcl_are_the_settings_and_a_preset_each_with_one_default() -> None:
    arguments = inspect.signature(bgcl.BGCL).parameters
    assert list(arguments) == ["preset", *Settings.model_fields]
    assert arguments["preset"].default is None
    assert {argument.default for name, argument in arguments.items() if name != "preset"} == {DEFAULT}
    assert all(argument.kind is argument.KEYWORD_ONLY for name, argument in arguments.items() if name != "preset")
    listed = inspect.getdoc(bgcl.BGCL).split("Attributes:")[0]
    assert re.findall(r"^ {4}(\w+): ", listed, re.MULTILINE) == list(arguments)


def test_changed_settings_are_checked_again() -> None:
    settings = Settings(tau=0.5)
    assert settings.with_changes(lr_weights=0.1) == Settings(tau=0.5, lr_weights=0.1)
    # Training that ends when it settles is what the settings say, also if the greatest number of epochs changes.
    assert settings.with_changes(epochs=3) == Settings(tau=0.5, epochs=3, until_settled=True)
    with pytest.raises(BGCLError, match="Unknown setting 'taux'"):
        settings.with_changes(taux=1)
    with pytest.raises(BGCLError, match="names layer 2"):
        Settings(drop="edges of layer 2").with_changes(widths=(8,))


def test_settings_that_are_none_are_left_out_of_json() -> None:
    settings = Settings(rate_rule="adversary", loss_nodes=None, rate_nodes=5)
    written = settings.to_json()
    assert "loss_nodes" not in written
    of_others = {"hops", "heads", "decorrelation_weight", "momentum"}
    assert (
        written.keys()
        == Settings.model_fields.keys()
        - {"loss_nodes", "epochs", "batch", "neighbors", "batches_per_step", "precision"}
        - of_others
    )
    assert Settings(**written) == settings


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if name != "module"])
@pytest.mark.parametrize("encoder", [*(name for name in ENCODERS if name != "module"), "pyg:GraphConv"])
def test_every_encoder_goes_with_every_objective_by_default(encoder: str, objective: str) -> None:
    settings = Settings(encoder=encoder, objective=objective)
    assert settings == Settings(**dict(settings))
    for owner, own in SPECIFIC.items():
        for name, default in own.items():
            has = owner in (encoder, objective, settings.rate_rule)
            assert (getattr(settings, name) is not None) == has
            if has and (owner, encoder) != ("infonce", "mlp"):
                others = FOR_OTHER_ADVERSARIES if owner == "adversary" and encoder != "mlp" else {}
                assert getattr(settings, name) == others.get(name, default)
    takes_positives = any(mask.on == "positives" for mask in settings.masks())
    assert takes_positives == (encoder == "mlp" and objective == "infonce")


def test_the_default_of_a_setting_depends_on_the_encoder() -> None:
    for encoder in ("gcn", "hops", "sage", "gin", "gat", "module", "pyg:GraphConv"):
        settings = Settings(encoder=encoder)
        for name, default in FOR_OTHER_ENCODERS.items():
            assert getattr(settings, name) == default
        assert (settings.tau, settings.projection) == (0.4, True)
    assert Settings() == Settings(encoder="mlp", objective="infonce")
    for name, field in Settings.model_fields.items():
        assert getattr(Settings(), name) == field.default, name


def test_a_given_setting_comes_before_the_default_of_the_encoder() -> None:
    given = {"drop": ("nodes",), "widths": (9, 5), "norm": "batch", "row_norm": "sum", "epochs": 7, "tau": 0.9}
    settings = Settings(encoder="gcn", **given)
    assert {name: getattr(settings, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "layers"),
    [
        ({}, 2),
        ({"widths": (8,)}, 1),
        ({"encoder": "gcn", "widths": (8, 8, 8)}, 3),
        ({"encoder": "hops", "widths": (8, 8)}, 3),
        ({"encoder": "hops", "widths": (8,), "hops": 5}, 5),
        ({"encoder": "module"}, 1),
        ({"encoder": "pyg:GraphConv", "widths": (8,)}, 1),
    ],
)
def test_masks_reach_as_many_layers_as_the_encoder_has(given: dict[str, object], layers: int) -> None:
    settings = Settings(**given, drop=f"features of layer {layers}")
    assert settings.layers == layers
    if settings.encoder != "module":  # whose layer is only known together with the module
        network = Network(12, settings)
        assert network.encoder.masked_layers == layers
    with pytest.raises(BGCLError, match=f"names layer {layers + 1}, but the model has only {layers}"):
        Settings(**given, drop=f"features of layer {layers + 1}")


def test_a_mask_that_no_sentence_describes_is_refused() -> None:
    class Twice(DropEdges):
        pass

    with pytest.raises(BGCLError, match="The mask Twice cannot be written as a sentence: 'edges' is another mask"):
        Settings(drop=Twice())


@pytest.mark.parametrize("layers", [2, 3, 5])
def test_a_prior_of_one_number_is_the_papers_for_the_number_of_layers(layers: int) -> None:
    alpha, beta = make_settings(prior=1.5, widths=(8,) * layers).beta_prior()
    assert alpha / (alpha + beta) == pytest.approx(1 / layers)  # its mean
    assert alpha + beta == pytest.approx(1.5)


def test_a_prior_of_two_numbers_is_used_as_given() -> None:
    assert make_settings().beta_prior() == (1, 1)
    assert make_settings(prior=(2.0, 0.5)).beta_prior() == (2.0, 0.5)


def test_drop_accepts_a_sentence_or_a_mask_or_a_sequence_of_them() -> None:
    expected = [parse_mask("edges at 0.2")]
    for drop in ("edges at 0.2", expected[0], ["edges at 0.2"], (expected[0],)):
        settings = make_settings(drop=drop)
        assert settings.drop == ("edges at 0.2",)
        assert settings.masks() == expected


def test_masks_with_blocks_can_be_combined_with_masks_without() -> None:
    settings = make_settings(drop=("connections in 4 blocks", "edges", "features"))
    assert [mask.blocks for mask in settings.masks()] == [4, 1, 1]


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_preset_is_valid_and_given_settings_replace_it(name: str) -> None:
    settings = make_settings(name).model_dump(mode="json")
    for setting, value in presets()[name].items():
        assert settings[setting] == ([value] if setting == "drop" and isinstance(value, str) else value)
    assert make_settings(name, tau=0.91).tau == 0.91
    assert make_settings(name, epochs=7).epochs == 7


def test_settings_are_frozen_and_equal_after_a_round_trip() -> None:
    settings = make_settings(drop="edges at 0.2/0.4", widths=[8, 4], seed=3)
    assert make_settings(**settings.model_dump()) == settings
    with pytest.raises(ValueError, match="frozen"):
        settings.tau = 1.0
    assert isinstance(settings, Settings)
