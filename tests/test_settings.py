"""Settings: groups, defaults, presets, and errors that name the setting and its range."""

import inspect
import json
import re

import numpy as np
import pytest

import bgcl
from bgcl.augmentation.language import parse_mask
from bgcl.augmentation.masks import DropEdges
from bgcl.errors import BGCLError
from bgcl.settings import DEFAULT, GROUPS, Settings, make_settings, presets


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tau": 0}, "The setting 'tau' must be a number between 0.02 and 100. Got 0 instead."),
        ({"epochs": 0}, "The setting 'epochs' must be a whole number between 1 and 1,000,000. Got 0 instead."),
        ({"epochs": 2.5}, "The setting 'epochs' must be a whole number between 1 and 1,000,000. Got 2.5 instead."),
        (
            {"mask_temperature": float("nan")},
            "The setting 'mask_temperature' must be a number between 0.01 and 10. Got",
        ),
        ({"lr_weights": 0}, "The setting 'lr_weights' must be a number"),
        ({"mask_values": "soft"}, "The setting 'mask_values' must be 'relaxed' or 'hard'. Got 'soft' instead."),
        ({"draw_scale": 0}, "The setting 'draw_scale' must be a number above 0 and at most 1. Got 0 instead."),
        ({"draw_scale": 1.5}, "The setting 'draw_scale' must be a number above 0 and at most 1. Got 1.5 instead."),
        (
            {"shared_information": 1},
            "The setting 'shared_information' must be a number of 0 or more and below 1. Got 1 instead.",
        ),
        (
            {"rate_nodes": 1},
            "The setting 'rate_nodes' must be a whole number between 2 and 1,000,000,000,000, or None. Got 1 instead.",
        ),
        ({"clusters_per_batch": 0}, "The setting 'clusters_per_batch' must be a whole number between 1 and 10,000."),
        ({"normalize": "never"}, "The setting 'normalize' must be 'after' or 'before'. Got 'never' instead."),
        ({"row_norm": True}, "The setting 'row_norm' must be 'length' or 'sum' or 'none'. Got True instead."),
        ({"row_norm": None}, "The setting 'row_norm' must be 'length' or 'sum' or 'none'. Got None instead."),
        ({"prior": (1.0,)}, "The setting 'prior' must be 2 numbers above 0 and at most 1,000,000, or a number above 0"),
        ({"widths": ()}, "The setting 'widths' must be 1 to 16 whole numbers between 1 and 65,536. Got ()"),
        ({"widths": (16, 0)}, "The setting 'widths' must be"),
        ({"rate_start": (0, 1)}, "The setting 'rate_start' must be"),
        ({"epoch": 3}, "Unknown setting 'epoch'. Did you mean epochs?"),
        ({"preset": "coar"}, "Unknown preset 'coar'. Did you mean cora"),
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
    assert settings.with_changes(epochs=3) == Settings(tau=0.5, epochs=3)
    with pytest.raises(BGCLError, match="Unknown setting 'taux'"):
        settings.with_changes(taux=1)
    with pytest.raises(BGCLError, match="names layer 2"):
        Settings(drop="edges of layer 2").with_changes(widths=(8,))


def test_settings_that_are_none_are_left_out_of_json() -> None:
    written = Settings(loss_nodes=None, rate_nodes=5).to_json()
    assert "loss_nodes" not in written
    assert written.keys() == Settings.model_fields.keys() - {"loss_nodes"}
    assert Settings(**written) == Settings(loss_nodes=None, rate_nodes=5)


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
