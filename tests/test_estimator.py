"""`BGCL` as a user meets it: the contract of design and documentation, saving, loading, and what is refused."""

import re
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from torch_geometric.data import Data

import bgcl
from bgcl import BGCL, BGCLError
from bgcl import checkpoint as runs
from bgcl.data.pyg import SPARSE_BELOW

SMALL = {"widths": (8, 4), "epochs": 2, "tau": 0.4, "drop": ("connections in 2 blocks", "features")}


@pytest.fixture(scope="module")
def graph() -> Data:
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(25, 10, generator=generator)
    return Data(x=x, edge_index=torch.randint(25, (2, 60), generator=generator), y=torch.arange(25) % 3)


@pytest.fixture(scope="module")
def model(graph) -> BGCL:
    return BGCL(**SMALL).fit(graph, progress=False)


def test_draws_come_sample_axis_first(model, graph):
    assert model.sample(graph, samples=5).shape == (5, 25, 4)
    assert model.embed(graph).shape == (25, 4)


def test_the_same_seed_gives_the_same_draws_and_another_one_others(model, graph):
    assert torch.equal(model.sample(graph, 3), model.sample(graph, 3))
    assert not torch.equal(model.sample(graph, 3, seed=1), model.sample(graph, 3, seed=2))


def test_moments_equal_those_of_the_draws(model, graph):
    draws = model.sample(graph, 7)
    found = model.moments(graph, 7)
    torch.testing.assert_close(found.mean, draws.mean(0))
    torch.testing.assert_close(found.deviation, draws.std(0))
    torch.testing.assert_close(found.astd, bgcl.astd(draws))


def test_hard_draws_use_masks_of_zeros_and_ones(graph):
    """At a fixed rate of 1/2 a hard draw of a one-layer model is one of finitely many; a relaxed one is not."""
    pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
    settings = {"drop": "connections at 0.5", "mask_values": "relaxed", "draw_scale": 1.0}
    model = BGCL(widths=(3,), epochs=1, **settings).fit(pair, progress=False)
    hard = {tuple(map(float, draw.flatten().round(decimals=5))) for draw in model.sample(pair, 200, hard=True)}
    relaxed = {tuple(map(float, draw.flatten().round(decimals=5))) for draw in model.sample(pair, 200)}
    assert len(hard) <= 16  # four connections, kept or dropped
    assert len(relaxed) > 100


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_draws_are_those_of_the_network_at_the_share_of_the_rates_that_the_setting_says(graph, scale):
    model = BGCL(**SMALL, draw_scale=scale).fit(graph, progress=False)
    prepared, generator = model._prepare(bgcl.check_graph(graph)), torch.Generator().manual_seed(9)
    with torch.no_grad():
        expected = [model.network_.encode(view, prepared, generator, scale=scale) for view in "otot"]
    assert torch.equal(model.sample(graph, 4, seed=9), torch.stack(expected))


def test_the_share_of_the_rates_for_drawing_does_not_change_the_training(graph):
    """And with hard masks at next to none of the rates nothing is dropped: a draw is the deterministic embedding."""
    one, other = (BGCL(**SMALL, draw_scale=scale).fit(graph, progress=False) for scale in (1e-9, 1.0))
    assert torch.equal(one.embed(graph), other.embed(graph))
    assert one.drop_rates_ == other.drop_rates_
    torch.testing.assert_close(one.sample(graph, 2, hard=True), one.embed(graph).expand(2, -1, -1))
    assert not torch.allclose(other.sample(graph, 2, hard=True), other.embed(graph).expand(2, -1, -1))


def test_dense_and_sparse_attributes_give_the_same_model(graph):
    """The layer takes another path for sparse attributes; the numbers must not differ."""
    x = torch.where(torch.rand(25, 40, generator=torch.Generator().manual_seed(1)) < SPARSE_BELOW / 2, 1.0, 0.0)
    data = Data(x=x, edge_index=graph.edge_index)
    clean = bgcl.check_graph(data)
    assert clean.x.layout == torch.sparse_csr
    model = BGCL(**SMALL).fit(data, progress=False)
    dense = model._prepare(Data(x=x, edge_index=clean.edge_index, num_nodes=25))
    torch.testing.assert_close(model.embed(data), model.network_.encoder(dense).detach())


def test_save_and_load_give_the_same_model(model, graph, tmp_path):
    model.save(tmp_path / "m")
    loaded = BGCL.load(tmp_path / "m")
    assert torch.equal(loaded.sample(graph, 3), model.sample(graph, 3))
    assert loaded.settings == model.settings
    assert loaded.history_ == model.history_
    assert loaded.drop_rates_ == model.drop_rates_


def test_nothing_is_pickled(model, tmp_path):
    model.save(tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "history.jsonl",
        "model.safetensors",
        "model.toml",
    ]


def test_a_fitted_model_embeds_another_graph_with_the_same_attributes(model):
    other = Data(x=torch.rand(9, 10), edge_index=torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert model.sample(other, 2).shape == (2, 9, 4)


def test_clone_and_parameters_follow_scikit_learn():
    model = BGCL(preset="cora", tau=0.5)
    assert clone(model).get_params() == {"preset": "cora", "tau": 0.5}
    assert model.set_params(tau=0.6).settings.tau == 0.6
    assert repr(model) == "BGCL(preset='cora', tau=0.6)"


def test_importing_bgcl_does_not_import_torch():
    code = "import bgcl, bgcl.cli, sys; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_needs_a_fit_says_so(graph):
    with pytest.raises(BGCLError, match="not fitted yet"):
        BGCL().embed(graph)


def test_a_graph_with_other_attributes_is_refused(model):
    with pytest.raises(BGCLError, match="has 3 attributes, but the model was trained on 10"):
        model.embed(Data(x=torch.rand(4, 3), edge_index=torch.tensor([[0], [1]])))


@pytest.mark.parametrize(("samples", "call"), [(0, "sample"), (1, "moments")])
def test_too_few_samples_are_refused(model, graph, samples, call):
    with pytest.raises(BGCLError, match=f"Got {samples} instead"):
        getattr(model, call)(graph, samples)


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
        self.refused(folder, "unknown tensor 'weights'")

    def test_settings_that_are_no_toml(self, folder):
        (folder / "model.toml").write_text("format = ")
        self.refused(folder, "model.toml is damaged")

    def test_settings_of_a_later_format(self, folder):
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(re.sub(r"format = \d+", "format = 99", text))
        self.refused(folder, f"has format 99; this version reads format {runs.FORMAT}")

    def test_settings_out_of_range(self, folder):
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(text.replace("tau = 0.4", "tau = -1"))
        self.refused(folder, "'tau' must be a number between 0.02 and 100")

    def test_a_model_saved_without_its_training_cannot_be_resumed(self, folder, graph):
        with pytest.raises(BGCLError, match="cannot be resumed"):
            BGCL(**SMALL).fit(graph, out=folder, resume=True, progress=False)


def test_saving_over_a_full_or_missing_place_is_one_clear_error(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BGCLError, match="Cannot write"):
        model.save(tmp_path / "file" / "m")


def test_a_full_disk_is_one_clear_error_and_leaves_the_old_file(model, tmp_path, monkeypatch):
    from safetensors import SafetensorError

    model.save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()

    def full(tensors, path):
        path.write_bytes(b"half")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(runs, "save_file", full)
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

    monkeypatch.setattr(runs, "save_file", fail)
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "m")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    assert len(list((tmp_path / "m").iterdir())) == 3
    shutil.rmtree(tmp_path / "m")


def test_cora_trains_better_than_its_start():
    """A quick version of the experiment: a few epochs on the bundled graph already help a linear classifier."""
    data = bgcl.load("cora")
    model = BGCL(preset="cora", epochs=15, lr_weights=0.003).fit(data, progress=False)
    scores = bgcl.summary([bgcl.evaluate_model(model, data, "grace", 3, samples=20)])
    assert scores["accuracy"]["mean"] > 0.74
