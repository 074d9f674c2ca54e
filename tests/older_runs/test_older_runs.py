"""Runs that older versions saved: they load, give the embeddings that they gave, and go on to the same end.

`before_members` was trained for three epochs by the last version without the setting `members` (commit bca343a), on
`example_graph(60)` with the settings below. `expected.safetensors` has what this version computed: the embeddings after
three epochs and after six, and the mean of 200 draws after three.
"""

import shutil
import tomllib
from pathlib import Path

import pytest
import tomli_w
import torch
from safetensors.torch import load_file

import bgcl
from bgcl import BGCL, BGCLError, checkpoint
from bgcl.defaults import BEFORE

HERE = Path(__file__).parent
SETTINGS = {"seed": 0, "widths": (6, 4), "part_width": 3, "until_settled": False, "batch_nodes": 30}


@pytest.fixture
def graph():
    return bgcl.example_graph(60)


@pytest.fixture
def expected():
    return load_file(HERE / "expected.safetensors")


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(HERE / "before_members", tmp_path / "run"))


def test_a_run_without_members_has_one_encoder_and_its_embeddings(run, graph, expected):
    model = BGCL.load(run)
    assert model.settings_.members == BEFORE["members"] == 1
    assert torch.allclose(model.embed(graph), expected["three"], atol=1e-5)


def test_draws_of_a_run_without_counted_noise_have_the_same_mean(run, graph, expected):
    """They are other draws from the same distribution: the noise of a draw is a hash now."""
    found = BGCL.load(run).moments(graph, 200)
    error = found.std * (2 / 200) ** 0.5  # of the difference of two means
    assert ((found.mean - expected["mean"]).abs() <= 6 * error + 1e-4).all()


def test_a_run_without_members_goes_on_to_where_its_version_ended(run, graph, expected):
    model = BGCL(epochs=6, members=1, **SETTINGS).fit(graph, out=run, resume=True, progress=False)
    assert torch.allclose(model.embed(graph), expected["six"], atol=1e-3)
    assert tomllib.loads((run / "model.toml").read_text())["settings"]["encoder"]["members"] == 1
    assert torch.equal(BGCL.load(run).embed(graph), model.embed(graph))


def test_a_resumed_run_that_saved_no_epoch_yet_loads(run, graph, expected):
    """Its settings are rewritten with `members`, but its tensors are still those of the older version."""
    BGCL(epochs=3, members=1, **SETTINGS).fit(graph, out=run, resume=True, progress=False)
    assert "members" in (run / "model.toml").read_text()
    assert torch.allclose(BGCL.load(run).embed(graph), expected["three"], atol=1e-5)


def test_a_run_without_members_does_not_go_on_with_two_encoders(run, graph):
    with pytest.raises(BGCLError, match=r"was trained with other settings \(members\): it cannot resume"):
        BGCL(epochs=6, **SETTINGS).fit(graph, out=run, resume=True, progress=False)


def test_a_run_of_two_encoders_whose_setting_was_removed_is_refused(graph, tmp_path):
    """The tensors say with which settings they were trained, so a missing one is no way to get around them."""
    BGCL(epochs=1, **SETTINGS).fit(graph, out=tmp_path, progress=False)
    about = tomllib.loads((tmp_path / "model.toml").read_text())
    del about["sha256"], about["settings"]["encoder"]["members"]
    (tmp_path / "model.toml").write_text(checkpoint.with_checksum(tomli_w.dumps(about)))
    with pytest.raises(BGCLError, match=r"does not fit model\.toml: it belongs to a run with other settings"):
        BGCL.load(tmp_path)
