"""Settings: every error names the setting and its range, and the prior is the paper's."""

import re

import pytest

from bgcl.augmentation.language import parse_mask
from bgcl.errors import BGCLError
from bgcl.settings import Settings, make_settings, presets


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tau": 0}, "The setting 'tau' must be a number between 0.02 and 100. Got 0 instead."),
        ({"epochs": 0}, "The setting 'epochs' must be a whole number between 1 and 1e+06. Got 0 instead."),
        ({"epochs": 2.5}, "The setting 'epochs' must be a whole number between 1 and 1e+06. Got 2.5 instead."),
        ({"temperature": float("nan")}, "The setting 'temperature' must be a number between 0.01 and 10. Got nan"),
        ({"lr_weights": 0}, "The setting 'lr_weights' must be a number"),
        ({"mask_values": "soft"}, "The setting 'mask_values' must be 'relaxed' or 'hard'. Got 'soft' instead."),
        ({"draw_scale": 0}, "The setting 'draw_scale' must be a number above 0 and at most 1. Got 0 instead."),
        ({"draw_scale": 1.5}, "The setting 'draw_scale' must be a number above 0 and at most 1. Got 1.5 instead."),
        ({"keep": 1}, "The setting 'keep' must be a number from 0 to below 1. Got 1 instead."),
        ({"rate_nodes": 1}, "The setting 'rate_nodes' must be a whole number between 2 and"),
        ({"clusters_per_batch": 0}, "The setting 'clusters_per_batch' must be a whole number between 1 and 10000."),
        ({"normalise": "never"}, "The setting 'normalise' must be 'after' or 'before'. Got 'never' instead."),
        ({"normalise_rows": "perhaps"}, "The setting 'normalise_rows' must be true or false. Got 'perhaps' instead."),
        ({"widths": ()}, "The setting 'widths' must be output width of each layer, such as"),
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
            "All masks must come in the same number of blocks, or in one. Got [2, 3].",
        ),
        (
            {"drop": "edges of layer 3"},
            "The mask 'edges of layer 3' is of a layer that a model of 2 layers lacks.",
        ),
        ({"prior_c": 1.0, "widths": (8,)}, "The setting 'prior_c' needs two layers or more"),
    ],
)
def test_an_error_names_the_setting_and_what_it_may_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(BGCLError, match=re.escape(message)) as caught:
        make_settings(**given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("layers", [2, 3, 5])
def test_the_prior_is_that_of_the_paper_for_c_and_the_number_of_layers(layers: int) -> None:
    alpha, beta = make_settings(prior_c=1.5, widths=(8,) * layers).beta_prior()
    assert alpha / (alpha + beta) == pytest.approx(1 / layers)  # its mean
    assert alpha + beta == pytest.approx(1.5)


def test_the_prior_is_as_given_where_there_is_no_c() -> None:
    assert make_settings().beta_prior() == (1, 1)
    assert make_settings(prior=(2.0, 0.5)).beta_prior() == (2.0, 0.5)


def test_masks_may_be_given_as_a_sentence_or_a_mask_or_several_of_either() -> None:
    expected = [parse_mask("edges at 0.2")]
    for drop in ("edges at 0.2", expected[0], ["edges at 0.2"], (expected[0],)):
        settings = make_settings(drop=drop)
        assert settings.drop == ("edges at 0.2",)
        assert settings.masks() == expected


def test_masks_in_blocks_may_stand_beside_masks_in_one() -> None:
    settings = make_settings(drop=("connections in 4 blocks", "edges", "features"))
    assert [mask.blocks for mask in settings.masks()] == [4, 1, 1]


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_preset_is_valid_and_gives_way_to_what_is_given(name: str) -> None:
    settings = make_settings(name).model_dump(mode="json")
    for setting, value in presets()[name].items():
        assert settings[setting] == ([value] if setting == "drop" and isinstance(value, str) else value)
    assert make_settings(name, tau=0.91).tau == 0.91
    assert make_settings(name, epochs=7).epochs == 7


def test_settings_cannot_be_changed_and_survive_a_round_trip() -> None:
    settings = make_settings(drop="edges at 0.2/0.4", widths=[8, 4], seed=3)
    assert make_settings(**settings.model_dump()) == settings
    with pytest.raises(ValueError, match="frozen"):
        settings.tau = 1.0
    assert isinstance(settings, Settings)
