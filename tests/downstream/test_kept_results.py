"""What commands keep in a run: the same, bit for bit, as new draws would give, and only for what it belongs to."""

import inspect
import json
import os
import threading

import numpy as np
import pytest
import torch

import bgcl
from bgcl import BGCL
from bgcl.checkpoint import CHECKS
from bgcl.checkpoint.tensors import read_tensor_file, write_tensor_file
from bgcl.data import check_graph
from bgcl.downstream import KeptResults
from bgcl.downstream.kept_results import digest, moments_of
from bgcl.model.posterior import Moments

DRAWS = {"samples": 8, "training_draws": 4}


@pytest.fixture(scope="module")
def data():
    return bgcl.example_graph()


@pytest.fixture(scope="module")
def model(data):
    return BGCL(encoder="gcn", widths=(16, 8), epochs=2).fit(data, progress=False)


@pytest.fixture
def no_draws(monkeypatch):
    """A function after whose call no draws can be made."""

    def refuse(*_, **__):
        raise AssertionError("draws were made")

    return lambda: monkeypatch.setattr(BGCL, "draws", refuse)


def assert_same(one: bgcl.downstream.NodePredictions, other: bgcl.downstream.NodePredictions) -> None:
    assert one.columns().keys() == other.columns().keys()
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name], err_msg=name)
        assert column.dtype == other.columns()[name].dtype


def test_predictions_that_were_kept_are_those_of_new_draws_bit_for_bit(model, data, tmp_path, no_draws):
    fresh = bgcl.predict(model, data, **DRAWS)
    kept = KeptResults(tmp_path, model)
    assert_same(bgcl.predict(model, data, **DRAWS, kept=kept), fresh)
    no_draws()
    assert_same(bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path, model)), fresh)


def test_after_an_evaluation_predictions_need_no_draws(model, data, tmp_path, no_draws):
    fresh, plain = bgcl.predict(model, data, samples=8), bgcl.evaluate(model, data, "bgrl", 2, samples=8)
    kept = KeptResults(tmp_path, model)
    results = bgcl.evaluate(model, data, "bgrl", 2, samples=8, kept=kept)
    for one, other in zip(results, plain, strict=True):
        np.testing.assert_array_equal(one.uncertainty.probability, other.uncertainty.probability)
    no_draws()
    assert_same(bgcl.predict(model, data, samples=8, kept=kept), fresh)


def test_an_evaluation_does_not_predict_what_was_kept_before(model, data, tmp_path, monkeypatch):
    kept = KeptResults(tmp_path, model)
    bgcl.predict(model, data, samples=8, kept=kept)
    monkeypatch.setattr("bgcl.downstream.prediction.Prediction.watch", lambda *_: pytest.fail("predicted again"))
    bgcl.evaluate(model, data, "bgrl", 2, samples=8, kept=kept)


@pytest.mark.parametrize("samples", [2, 8])
def test_moments_that_were_kept_are_those_of_new_draws(model, data, tmp_path, no_draws, samples):
    fresh = model.moments(data, samples, seed=3)
    kept = KeptResults(tmp_path, model)
    for i in range(2):
        found = moments_of(model, data, samples, seed=3, kept=kept, progress=False)
        torch.testing.assert_close(found.mean, fresh.mean, rtol=0, atol=0)
        torch.testing.assert_close(found.std, fresh.std, rtol=0, atol=0)
        if i == 0:
            no_draws()


def test_predictions_and_new_labels_share_the_moments(model, data, tmp_path, no_draws):
    """The draws do not depend on the labels."""
    kept = KeptResults(tmp_path, model)
    bgcl.predict(model, data, **DRAWS, kept=kept)
    relabeled = data.clone()
    relabeled.y = torch.where(torch.arange(data.num_nodes) % 2 == 0, data.y, -1)
    no_draws()
    assert moments_of(model, relabeled, 8, seed=None, kept=kept, progress=False).samples == 8


def other_labels(data):
    changed = data.clone()
    changed.y = data.y.clone()
    changed.y[0] = -1
    return {"data": changed}


def other_ids(data):
    changed = data.clone()
    changed.ids = [f"node {i}" for i in range(data.num_nodes)]
    return {"data": changed}


def weights(data):
    changed = data.clone()
    changed.edge_weight = torch.rand(data.edge_index.shape[1])
    return {"data": changed}


def relations(data):
    changed = data.clone()
    changed.edge_type = torch.arange(data.edge_index.shape[1]) % 2
    return {"data": changed}


# For each argument of `predict` besides the model, something that gives other predictions.
CHANGES = {
    "data": (other_labels, other_ids, weights, relations),
    "samples": (lambda _: {"samples": 9},),
    "training_draws": (lambda _: {"training_draws": 3},),
    "folds": (lambda _: {"folds": 3},),
    "seed": (lambda _: {"seed": 1},),
    "labels_from": (lambda data: {"labels_from": other_labels(data)["data"]},),
    "spread_labels": (lambda _: {"spread_labels": True},),
}


@pytest.mark.parametrize("change", [change for changes in CHANGES.values() for change in changes])
def test_predictions_are_not_found_if_anything_else_is_asked_for(model, data, tmp_path, no_draws, change):
    kept = KeptResults(tmp_path, model)
    bgcl.predict(model, data, **DRAWS, kept=kept)
    no_draws()
    with pytest.raises(AssertionError, match="draws were made"):
        bgcl.predict(model, **{"data": data, **DRAWS, **change(data)}, kept=kept)


def test_every_argument_of_predict_has_a_change():
    assert set(inspect.signature(bgcl.predict).parameters) == {"model", "progress", "kept", *CHANGES}


def test_the_digest_of_a_graph_does_not_depend_on_where_it_was_read_from(data):
    moved = data.clone()
    moved.name, moved.recipe = "elsewhere", object()
    assert digest(moved) == digest(data)


def test_the_names_of_relations_change_the_digest(data):
    typed = relations(data)["data"]
    typed.edge_type_names = ["cites", "writes"]
    renamed = typed.clone()
    renamed.edge_type_names = ["writes", "cites"]
    checked, other = check_graph(typed), check_graph(renamed)
    assert checked.relations != other.relations
    assert len({digest(each) for each in (data, typed, renamed, checked, other)}) == 5


def test_another_model_finds_nothing_and_removes_what_is_stale(model, data, tmp_path):
    bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path, model))
    before = {path.name for path in tmp_path.rglob("*.safetensors")}
    other = BGCL(encoder="gcn", widths=(16, 8), epochs=2, seed=1).fit(data, progress=False)
    assert_same(bgcl.predict(other, data, **DRAWS, kept=KeptResults(tmp_path, other)),
                bgcl.predict(other, data, **DRAWS))  # fmt: skip
    after = {path.name for path in tmp_path.rglob("*.safetensors")}
    assert len(before) == len(after) == 2
    assert not before & after


@pytest.mark.parametrize("damage", [lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b[:40], lambda _: b""])
def test_a_file_that_was_changed_is_not_used_but_written_again(model, data, tmp_path, damage):
    fresh = bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path, model))
    files = list(tmp_path.rglob("*.safetensors"))
    whole = [path.read_bytes() for path in files]
    for path in files:
        path.write_bytes(damage(path.read_bytes()))
    assert_same(bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path, model)), fresh)
    assert [path.read_bytes() for path in files] == whole


def with_header(text: str):
    """Damage that replaces the checksums in the header of a file."""
    header = json.dumps({"__metadata__": {CHECKS: text}}).encode()
    return lambda _: len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "7", "{}"])
def test_a_file_with_a_forged_header_is_not_used(model, data, tmp_path, text):
    test_a_file_that_was_changed_is_not_used_but_written_again(model, data, tmp_path, with_header(text))


def test_a_file_with_other_arrays_and_right_checksums_is_not_used(model, data, tmp_path):
    fresh = bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path, model))
    for path in tmp_path.rglob("*.safetensors"):
        checks = read_tensor_file(path)[1]
        write_tensor_file(path, {"other": torch.zeros(3)}, {"key": checks["key"]})
    assert_same(bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path, model)), fresh)


def test_a_result_under_the_name_of_another_is_not_used(model, data, tmp_path, no_draws):
    kept = KeptResults(tmp_path, model)
    for seed in (1, 2):
        bgcl.predict(model, data, **DRAWS, seed=seed, kept=kept)
    one, other = sorted(tmp_path.rglob("predictions-*"))
    other.write_bytes(one.read_bytes())
    no_draws()
    found = 0
    for seed in (1, 2):
        try:
            bgcl.predict(model, data, **DRAWS, seed=seed, kept=kept)
            found += 1
        except AssertionError:
            pass
    assert found == 1


def moments(size: int, samples: int) -> Moments:
    return Moments(torch.zeros(size, 128), torch.zeros(size, 128), samples)


def test_what_is_too_large_is_not_kept_and_said_once(model, data, tmp_path):
    kept = KeptResults(tmp_path, model, most=2 << 20)
    kept.keep_moments(data, None, moments(4096, 8))
    assert kept.notes == [
        "The moments of draws need 4 MB, so they are not kept: a run keeps 2 MB at most.",
    ]
    assert kept.find_moments(data, 8, None) is None


def test_the_results_that_were_used_last_stay_when_there_is_no_room(model, data, tmp_path):
    kept = KeptResults(tmp_path, model, most=(2 << 20) + 4096)
    for samples in (2, 3):
        kept.keep_moments(data, None, moments(1024, samples))  # 1 MB each
    for age, path in enumerate(tmp_path.rglob("*.safetensors")):
        os.utime(path, ns=(age, age))
    assert kept.find_moments(data, 2, None) is not None  # so it is the last that was used
    kept.keep_moments(data, None, moments(1024, 4))
    assert [kept.find_moments(data, samples, None) is not None for samples in (2, 3, 4)] == [True, False, True]
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.safetensors")) <= kept.store.most


def test_a_folder_that_cannot_be_written_is_a_note(model, data, tmp_path):
    (tmp_path / "kept").write_text("a file in the way")
    kept = KeptResults(tmp_path, model)
    assert_same(bgcl.predict(model, data, **DRAWS, kept=kept), bgcl.predict(model, data, **DRAWS))
    assert kept.notes
    assert all("not kept: Cannot write" in note for note in kept.notes)


def test_two_at_once_keep_the_same_files(model, data, tmp_path):
    found: list[bgcl.downstream.NodePredictions] = []
    for name in ("one", "two"):
        threads = [
            threading.Thread(
                target=lambda: found.append(
                    bgcl.predict(model, data, **DRAWS, kept=KeptResults(tmp_path / name, model))  # noqa: B023
                )
            )
            for _ in range(1 if name == "one" else 3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for other in found[1:]:
        assert_same(found[0], other)
    one, two = (sorted((tmp_path / name / "kept").iterdir()) for name in ("one", "two"))
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
