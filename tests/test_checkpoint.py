"""Saved models: the same after loading, and every damaged file is refused with one line."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

import bgcl
from bgcl import BGCL, BGCLError, Settings, checkpoint
from bgcl.checkpoint.tensors import TYPES, write_tensor_file
from bgcl.defaults import BEFORE
from bgcl.settings import GROUPS
from trained import KINDS, small_data, small_model


@pytest.fixture(scope="module")
def graph() -> Data:
    return small_data()


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def model(graph, kind) -> BGCL:
    return small_model(graph, kind)


@contextmanager
def changed_about(folder: Path) -> Iterator[dict]:
    """The contents of `model.toml`, to be changed. The file gets a right checksum."""
    about = tomllib.loads((folder / "model.toml").read_text())
    yield about
    del about["sha256"]
    (folder / "model.toml").write_text(checkpoint.with_checksum(tomli_w.dumps(about)))


@contextmanager
def changed_tensors(folder: Path) -> Iterator[dict]:
    """The tensors of a run, to be changed. The file gets a right checksum."""
    tensors = load_file(folder / "model.safetensors")
    with safe_open(folder / "model.safetensors", "pt") as file:
        checks = json.loads(file.metadata()[checkpoint.CHECKS])
    yield tensors
    checks["tensors"] = checkpoint.checksum(tensors)
    save_file(tensors, folder / "model.safetensors", {checkpoint.CHECKS: json.dumps(checks)})


def first_bias(tensors: dict) -> str:
    """The name of the first layer's bias, which depends on the number of encoders."""
    return next(name for name in tensors if name.startswith("network.encoder.") and name.endswith("layers.0.bias"))


def test_save_and_load_give_the_same_model(model, graph, tmp_path):
    model.save(tmp_path / "m")
    loaded = BGCL.load(tmp_path / "m")
    assert torch.equal(loaded.sample(graph, 3), model.sample(graph, 3))
    assert torch.equal(loaded.embed(graph), model.embed(graph))
    assert loaded.parts_ == model.parts_
    assert loaded.settings_ == model.settings_
    assert loaded.history_ == model.history_
    assert loaded.drop_rates_ == model.drop_rates_


def test_nothing_is_pickled(model, tmp_path):
    model.save(tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "fitted.safetensors",
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


@pytest.mark.parametrize("sparse", [False, True])
def test_the_scales_of_attributes_are_saved(graph, tmp_path, sparse):
    """Words have weights of their own, and dense numbers have ranks. Another graph is scaled by the saved ones."""
    data = Data(x=(graph.x < 0.15).float(), edge_index=graph.edge_index) if sparse else graph
    model = small_model(data, "default")
    model.save(tmp_path / "m")
    other = Data(x=data.x.flip(0)[:9], edge_index=torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert torch.equal(BGCL.load(tmp_path / "m").embed(other), model.embed(other))
    saved = load_file(tmp_path / "m" / "fitted.safetensors")
    assert ("network.scaling.weight" in saved) == sparse
    assert ("network.scaling.knots" in saved) == (not sparse)


@pytest.mark.parametrize("objective", ["infonce", "decorrelation", "bootstrap", "infomax"])
@pytest.mark.parametrize("encoder", ["hops", "sage", "gin", "gat", "pyg:GraphConv"])
def test_every_encoder_and_objective_is_the_same_after_loading(graph, tmp_path, encoder, objective):
    settings = {"encoder": encoder, "objective": objective, "drop": "entries", "widths": (8, 4), "epochs": 1}
    model = BGCL(**settings).fit(graph, progress=False)
    model.save(tmp_path)
    loaded = BGCL.load(tmp_path)
    assert loaded.settings_ == model.settings_
    assert torch.equal(loaded.sample(graph, 2), model.sample(graph, 2))
    assert (loaded.disagreement(graph, 4) == model.disagreement(graph, 4)).all()


@pytest.mark.parametrize("nodes", [None, 7])
@pytest.mark.parametrize("setting", ["loss_nodes", "rate_nodes"])
def test_settings_that_are_none_are_none_after_loading(graph, kind, tmp_path, setting, nodes):
    rule = {"rate_rule": "adversary"} if setting == "rate_nodes" else {}
    small_model(graph, kind, **{setting: nodes} | rule).save(tmp_path)
    loaded = BGCL.load(tmp_path)
    assert getattr(loaded.settings_, setting) == nodes
    assert loaded.get_params()[setting] == nodes


MAY_BE_NONE = [name for name in Settings.model_fields if Settings.allowed(name).endswith("None")]


@pytest.mark.parametrize("name", [n for n in Settings.model_fields if n not in MAY_BE_NONE and n not in BEFORE])
def test_a_missing_setting_is_refused(model, tmp_path, name):
    """A file of another version may have other defaults, so a default would be a guess.

    What a setting was before it existed is known; see `tests/older_runs`.
    """
    model.save(tmp_path)
    with changed_about(tmp_path) as about:
        [group] = [values for values in about["settings"].values() if name in values]
        del group[name]
    with pytest.raises(BGCLError, match=f"The setting '{name}' must be .* Got None instead"):
        BGCL.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("tau", {}),
        ("projection", {}),
        ("negatives", {}),
        ("hops", {"encoder": "hops"}),
        ("heads", {"encoder": "gat"}),
        ("decorrelation_weight", {"objective": "decorrelation"}),
        ("momentum", {"objective": "bootstrap"}),
    ],
)
def test_a_missing_setting_of_the_encoder_or_objective_is_refused(graph, tmp_path, name, settings):
    BGCL(**{"drop": "entries", "widths": (8, 4), "epochs": 1} | settings).fit(graph, progress=False).save(tmp_path)
    with changed_about(tmp_path) as about:
        [group] = [values for values in about["settings"].values() if name in values]
        del group[name]
    owner = next(iter(settings.values()), "infonce")
    with pytest.raises(BGCLError, match=f"'{owner}' needs the setting '{name}'"):
        BGCL.load(tmp_path)


def test_the_settings_that_may_be_none_are_tested_here():
    """Those of one encoder or objective in the test before; epochs, batch_nodes and the like after loading."""
    of_one = {"tau", "projection", "negatives", "hops", "heads", "decorrelation_weight", "momentum"}
    of_one |= {"shared_information", "kl_weight", "lr_rates", "rate_every"}
    assert set(MAY_BE_NONE) == of_one | {
        "epochs",
        "batch",
        "batch_nodes",
        "neighbors",
        "batches_per_step",
        "loss_nodes",
        "rate_nodes",
        "precision",
        "draw_scale",
    }


def test_an_unknown_setting_is_refused(model, tmp_path):
    model.save(tmp_path)
    with changed_about(tmp_path) as about:
        about["settings"]["sampling"]["draw_scales"] = 0.5
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
        with changed_tensors(folder) as tensors:
            tensors[first_bias(tensors)] = torch.zeros(9)
        self.refused(folder, r"'encoder.*layers.0.bias' should be \(8,\) of float32, but is \(9,\) of float32")

    def test_tensors_of_another_type(self, folder):
        with changed_tensors(folder) as tensors:
            tensors[first_bias(tensors)] = torch.zeros(8, dtype=torch.int8)
        self.refused(folder, r"'encoder.*layers.0.bias' should be \(8,\) of float32, but is \(8,\) of int8")

    def test_tensors_that_are_not_finite(self, folder):
        with changed_tensors(folder) as tensors:
            tensors[first_bias(tensors)][0] = torch.nan
        self.refused(folder, "'encoder.*layers.0.bias' is not finite")

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

    def test_a_model_saved_without_its_training_cannot_resume(self, folder, graph, kind):
        with pytest.raises(BGCLError, match="it cannot resume"):
            BGCL(**KINDS[kind]).fit(graph, out=folder, resume=True, progress=False)

    def test_settings_of_the_format_before_encoders(self, folder):
        text = (folder / "model.toml").read_text()
        assert checkpoint.FORMAT == 7
        (folder / "model.toml").write_text(text.replace("format = 7", "format = 3"))
        self.refused(folder, "has format 3, and this version of bgcl reads format 7. Train again.")


def test_saving_below_a_file_is_one_clear_error(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BGCLError, match="Cannot write"):
        model.save(tmp_path / "file" / "m")


def fail_in_tensors(monkeypatch, error: BaseException) -> None:
    """Let an error end the write of model.safetensors when a part of it is written."""
    real = Path.open

    def fail(path, *given, **more):
        if path.name.startswith(".model.safetensors."):
            with real(path, "w") as file:
                file.write("half")
            raise error
        return real(path, *given, **more)

    monkeypatch.setattr(Path, "open", fail)


def test_a_full_disk_is_one_clear_error_and_leaves_the_old_file(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()

    fail_in_tensors(monkeypatch, OSError(28, os.strerror(28)))
    with pytest.raises(BGCLError, match=r"Cannot write .*No space left on device"):
        model.save(tmp_path / "m")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    assert len(list((tmp_path / "m").iterdir())) == 4


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_every_file_has_the_permissions_that_the_users_umask_leaves(model, tmp_path, umask):
    before = os.umask(umask)
    try:
        model.save(tmp_path / "m")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "m").iterdir()} == {0o666 & ~umask}


def test_an_interrupted_save_leaves_the_old_file(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()

    fail_in_tensors(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "m")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    assert len(list((tmp_path / "m").iterdir())) == 4


def test_a_file_of_tensors_is_what_safetensors_reads(tmp_path):
    """Of every type, also if a tensor is empty, has no axis or is transposed; each is aligned."""
    tensors = {f"network.{dtype}": torch.arange(7).to(dtype) for dtype in TYPES}
    tensors |= {"network.empty": torch.zeros(0, 3), "network.none": torch.tensor(2.5), "a": torch.rand(3, 5).T}
    write_tensor_file(tmp_path / "x", tensors, {})
    found = load_file(tmp_path / "x")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    with safe_open(tmp_path / "x", "pt") as file:
        assert json.loads(file.metadata()[checkpoint.CHECKS]) == {"tensors": checkpoint.checksum(tensors)}
    with pytest.raises(BGCLError, match="Cannot save 'z': it has the type complex64"):
        write_tensor_file(tmp_path / "x", {"z": torch.zeros(1, dtype=torch.complex64)}, {})


def test_an_epoch_does_not_write_again_what_training_does_not_change(graph, tmp_path):
    """Positions take 1 KB a node, so in a large graph they would be most of what an epoch writes."""
    seen = []
    BGCL(**KINDS["default"] | {"epochs": 3}).fit(
        graph, out=tmp_path, progress=lambda record: seen.append((tmp_path / "fitted.safetensors").stat().st_ino)
    )
    assert len(seen) == 3
    assert len(set(seen)) == 1
    learned = load_file(tmp_path / "model.safetensors")
    assert not any(name.startswith(("network.parts", "network.scaling")) for name in learned)


def test_an_older_run_stays_until_the_new_one_is_whole(graph, tmp_path, monkeypatch):
    """Wherever the first epoch of a new run is cut short, the folder has the older run or the new one."""
    old, new = small_model(graph), small_model(graph, tau=0.3)
    cuts, replace = 0, os.replace

    def cut_at(number):
        left = iter(range(number))

        def cut(*names):
            if next(left, None) is None:
                raise KeyboardInterrupt
            replace(*names)

        monkeypatch.setattr(os, "replace", cut)
        monkeypatch.setattr(os, "rename", cut)

    while True:
        folder = tmp_path / str(cuts)
        old.save(folder)
        cut_at(cuts)
        try:
            new.save(folder)
            break
        except KeyboardInterrupt:
            monkeypatch.undo()
            assert BGCL.load(folder).settings_ in (old.settings_, new.settings_)
            new.save(folder)
            assert BGCL.load(folder).settings_ == new.settings_
            assert len(list(folder.iterdir())) == 4
            cuts += 1
    assert cuts == 9  # four files, their folder, and again four files


class TestChecksums:
    """A flipped bit, a file of another run and a cut history are noticed, or have no effect."""

    @pytest.fixture
    def folder(self, tmp_path):
        """A run that can resume, from tables."""
        random = np.random.default_rng(0)
        edges = {"from": random.integers(0, 30, 90), "to": random.integers(0, 30, 90)}
        nodes = {"id": np.arange(30), "age": random.random(30), "city": random.choice(["a", "b"], 30)}
        data = bgcl.graph_from(edges, nodes)
        BGCL(widths=(8, 4), part_width=4, epochs=3).fit(data, out=tmp_path / "r", progress=False)
        return tmp_path / "r"

    def test_a_whole_run_is_read(self, folder):
        saved = checkpoint.read(folder)
        assert len(saved.history) == int(saved.training["epoch"]) == 3
        assert saved.recipe is not None

    @pytest.mark.parametrize(
        "name", ["model.toml", "model.safetensors", "fitted.safetensors", "history.jsonl", "graph.json"]
    )
    def test_flipped_bits_are_noticed_or_have_no_effect(self, folder, name):
        before, whole = checkpoint.read(folder), (folder / name).read_bytes()
        random = np.random.default_rng(0)
        noticed = 0
        for bit in random.choice(8 * len(whole), 60, replace=False):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << (bit % 8)
            (folder / name).write_bytes(flipped)
            after = read_or_error(folder)
            if isinstance(after, str):
                assert name in after
                assert "\n" not in after
                noticed += 1
            else:
                assert same_run(before, after)
        assert noticed >= 50

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda lines: [], "does not fit model.safetensors: epochs are missing, or were changed"),
            (lambda lines: lines[:2], "does not fit model.safetensors: epochs are missing, or were changed"),
            (lambda lines: lines[::-1], r"is damaged \(line 1 has epoch 3\)"),
        ],
    )
    def test_a_history_that_was_emptied_cut_or_reordered(self, folder, change, message):
        lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
        (folder / "history.jsonl").write_text("".join(change(lines)))
        with pytest.raises(BGCLError, match=f"history.jsonl {message}"):
            BGCL.load(folder)

    def test_tensors_or_tables_of_another_run(self, folder, graph, tmp_path):
        other = BGCL(widths=(8, 4), part_width=4, epochs=3, tau=0.3).fit(graph, out=tmp_path / "q", progress=False)
        other.save(tmp_path / "q")
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes((tmp_path / "q" / "model.safetensors").read_bytes())
        with pytest.raises(BGCLError, match=r"model.safetensors does not fit model.toml: it belongs to a run"):
            BGCL.load(folder)
        (folder / "model.safetensors").write_bytes(whole)
        whole = (folder / "fitted.safetensors").read_bytes()
        (folder / "fitted.safetensors").write_bytes((tmp_path / "q" / "fitted.safetensors").read_bytes())
        with pytest.raises(BGCLError, match=r"fitted.safetensors does not fit model.safetensors: it is of another run"):
            BGCL.load(folder)
        (folder / "fitted.safetensors").unlink()
        with pytest.raises(BGCLError, match=r"Cannot read .*fitted.safetensors: .*[Nn]o such file"):
            BGCL.load(folder)
        (folder / "fitted.safetensors").write_bytes(whole)
        (folder / "graph.json").unlink()
        with pytest.raises(BGCLError, match=r"graph.json does not fit model.toml: it is missing, was changed"):
            BGCL.load(folder)

    @pytest.mark.parametrize("epoch", [-5, 0, 2, 99])
    def test_a_wrong_number_of_epochs(self, folder, epoch):
        with changed_tensors(folder) as tensors:
            tensors["training.epoch"] = torch.tensor(epoch)
        message = "history.jsonl does not fit model" if epoch > 0 else "is damaged .its number of epochs is"
        with pytest.raises(BGCLError, match=message):
            checkpoint.read(folder)

    def test_a_changed_model_toml(self, folder):
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(text.replace("epochs = ", "epochs = 1"))
        with pytest.raises(BGCLError, match=r"model.toml is damaged \(its checksum is wrong\)"):
            BGCL.load(folder)


def read_or_error(folder: Path) -> checkpoint.SavedRun | str:
    try:
        return checkpoint.read(folder)
    except BGCLError as error:
        return str(error)


def same_run(one: checkpoint.SavedRun, other: checkpoint.SavedRun) -> bool:
    tensors = all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
        for a, b in ((one.network, other.network), (one.training, other.training))
    )
    facts = [(run.settings, run.graph, run.history, run.recipe) for run in (one, other)]
    return tensors and facts[0] == facts[1]
