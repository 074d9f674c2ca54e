"""Saved models: the same after loading, and every damaged file is refused with one line."""

import re
import tomllib

import pytest
import tomli_w
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError, Settings, checkpoint
from bgcl.settings import GROUPS
from trained import SMALL, small_data, small_model


@pytest.fixture(scope="module")
def graph() -> Data:
    return small_data()


@pytest.fixture(scope="module")
def model(graph) -> BGCL:
    return small_model(graph)


def test_save_and_load_give_the_same_model(model, graph, tmp_path):
    model.save(tmp_path / "m")
    loaded = BGCL.load(tmp_path / "m")
    assert torch.equal(loaded.sample(graph, 3), model.sample(graph, 3))
    assert loaded.settings_ == model.settings_
    assert loaded.history_ == model.history_
    assert loaded.drop_rates_ == model.drop_rates_


def test_nothing_is_pickled(model, tmp_path):
    model.save(tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "history.jsonl",
        "model.safetensors",
        "model.toml",
    ]


def test_settings_are_saved_in_their_groups_and_without_defaults_of_the_reader(model, tmp_path):
    model.save(tmp_path)
    written = tomllib.loads((tmp_path / "model.toml").read_text())["settings"]
    assert list(written) == list(GROUPS)
    for group, values in written.items():
        expected = {name for name in GROUPS[group].model_fields if getattr(model.settings_, name) is not None}
        assert set(values) == expected


@pytest.mark.parametrize("nodes", [None, 7])
@pytest.mark.parametrize("setting", ["loss_nodes", "rate_nodes"])
def test_settings_that_are_none_are_none_after_loading(graph, tmp_path, setting, nodes):
    small_model(graph, **{setting: nodes}).save(tmp_path)
    loaded = BGCL.load(tmp_path)
    assert getattr(loaded.settings_, setting) == nodes
    assert loaded.get_params()[setting] == nodes


@pytest.mark.parametrize("name", [name for name in Settings.model_fields if not name.endswith("_nodes")])
def test_a_missing_setting_is_refused(model, tmp_path, name):
    """A file of another version may have other defaults, so a default would be a guess."""
    model.save(tmp_path)
    about = tomllib.loads((tmp_path / "model.toml").read_text())
    [group] = [values for values in about["settings"].values() if name in values]
    del group[name]
    (tmp_path / "model.toml").write_text(tomli_w.dumps(about))
    with pytest.raises(BGCLError, match=f"The setting '{name}' must be .* Got None instead"):
        BGCL.load(tmp_path)


def test_a_missing_setting_that_may_be_none_is_none_and_not_its_default(model, tmp_path):
    model.save(tmp_path)
    about = tomllib.loads((tmp_path / "model.toml").read_text())
    assert about["settings"]["batching"].pop("rate_nodes") == Settings().rate_nodes == 1024
    (tmp_path / "model.toml").write_text(tomli_w.dumps(about))
    assert BGCL.load(tmp_path).settings_.rate_nodes is None


def test_an_unknown_setting_is_refused(model, tmp_path):
    model.save(tmp_path)
    about = tomllib.loads((tmp_path / "model.toml").read_text())
    about["settings"]["sampling"]["draw_scales"] = 0.5
    (tmp_path / "model.toml").write_text(tomli_w.dumps(about))
    with pytest.raises(BGCLError, match=r"Unknown setting 'draw_scales'. Did you mean draw_scale"):
        BGCL.load(tmp_path)


class TestDamagedModels:
    """Each part of a saved model is checked, and the error names the file."""

    @pytest.fixture
    def folder(self, model, tmp_path):
        model.save(tmp_path / "m")
        return tmp_path / "m"

    def refused(self, folder, message):
        with pytest.raises(BGCLError, match=message) as caught:
            BGCL.load(folder)
        assert "\n" not in str(caught.value)

    def test_a_folder_that_is_not_a_run(self, tmp_path):
        self.refused(tmp_path, "is not a run: it has no model.toml")

    def test_a_cut_off_tensor_file(self, folder):
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-50])
        self.refused(folder, "model.safetensors is damaged")

    def test_a_file_of_other_bytes(self, folder):
        (folder / "model.safetensors").write_bytes(b"not a model")
        self.refused(folder, "model.safetensors is damaged")

    def test_no_tensor_file(self, folder):
        (folder / "model.safetensors").unlink()
        self.refused(folder, "model.safetensors is missing")

    def test_tensors_of_another_shape(self, folder):
        tensors = load_file(folder / "model.safetensors")
        tensors["network.encoder.layers.0.bias"] = torch.zeros(9)
        save_file(tensors, folder / "model.safetensors")
        self.refused(folder, r"'encoder.layers.0.bias' should be \(8,\), but is \(9,\)")

    def test_tensors_that_are_not_finite(self, folder):
        tensors = load_file(folder / "model.safetensors")
        tensors["network.encoder.layers.0.bias"][0] = torch.nan
        save_file(tensors, folder / "model.safetensors")
        self.refused(folder, "'encoder.layers.0.bias' is not finite")

    def test_a_tensor_of_another_program(self, folder):
        save_file({"weights": torch.zeros(1)}, folder / "model.safetensors")
        self.refused(folder, "has an unknown tensor 'weights'")

    def test_settings_that_are_no_toml(self, folder):
        (folder / "model.toml").write_text("format = ")
        self.refused(folder, "model.toml is damaged")

    def test_settings_of_a_later_format(self, folder):
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(re.sub(r"format = \d+", "format = 99", text))
        self.refused(folder, f"has format 99, and this version of bgcl reads format {checkpoint.FORMAT}")

    def test_settings_out_of_range(self, folder):
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(text.replace("tau = 0.4", "tau = -1"))
        self.refused(folder, "'tau' must be a number between 0.02 and 100")

    def test_a_model_saved_without_its_training_cannot_resume(self, folder, graph):
        with pytest.raises(BGCLError, match="it cannot resume"):
            BGCL(**SMALL).fit(graph, out=folder, resume=True, progress=False)


def test_saving_below_a_file_is_one_clear_error(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BGCLError, match="Cannot write"):
        model.save(tmp_path / "file" / "m")


def test_a_full_disk_is_one_clear_error_and_leaves_the_old_file(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()

    def full(tensors, path):
        path.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(BGCLError, match=r"Cannot write .*No space left on device"):
        model.save(tmp_path / "m")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    assert len(list((tmp_path / "m").iterdir())) == 3


def test_an_interrupted_save_leaves_the_old_file(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()

    def fail(tensors, path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "m")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    assert len(list((tmp_path / "m").iterdir())) == 3
