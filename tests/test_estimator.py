"""`BGCL` as users see it: draws, parameters as in scikit-learn, and errors."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

import bgcl
from bgcl import BGCL, BGCLError
from bgcl.augmentation import parse_mask
from bgcl.data.pyg import SPARSE_BELOW, check_graph
from bgcl.downstream import summary
from bgcl.graph.prepared import prepare
from bgcl.model import astd
from trained import small_data, small_model


@pytest.fixture(scope="module")
def graph() -> Data:
    return small_data()


@pytest.fixture(scope="module")
def model(graph) -> BGCL:
    return small_model(graph)


def test_draws_come_sample_axis_first(model, graph):
    assert model.sample(graph, samples=5).shape == (5, 25, 4)
    assert model.embed(graph).shape == (25, 4)


def test_the_same_seed_gives_the_same_draws_and_another_seed_gives_others(model, graph):
    assert torch.equal(model.sample(graph, 3), model.sample(graph, 3))
    assert not torch.equal(model.sample(graph, 3, seed=1), model.sample(graph, 3, seed=2))


def test_moments_equal_the_moments_of_the_draws(model, graph):
    draws = model.sample(graph, 7)
    found = model.moments(graph, 7)
    torch.testing.assert_close(found.mean, draws.mean(0))
    torch.testing.assert_close(found.std, draws.std(0))
    torch.testing.assert_close(found.astd, astd(draws))


def test_hard_draws_use_masks_of_zeros_and_ones(graph):
    """A one-layer model at a fixed rate of 1/2 has finitely many hard draws, and infinitely many relaxed ones."""
    pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]))
    settings = {"drop": "connections at 0.5", "mask_values": "relaxed", "draw_scale": 1.0}
    model = BGCL(widths=(3,), epochs=1, **settings).fit(pair, progress=False)
    hard = {tuple(map(float, draw.flatten().round(decimals=5))) for draw in model.sample(pair, 200, hard=True)}
    relaxed = {tuple(map(float, draw.flatten().round(decimals=5))) for draw in model.sample(pair, 200)}
    assert len(hard) <= 16  # four connections, kept or dropped
    assert len(relaxed) > 100


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_draws_are_the_networks_at_the_fraction_of_the_rates_that_draw_scale_sets(graph, scale):
    model = small_model(graph, draw_scale=scale)
    prepared = prepare(check_graph(graph), row_norm=model.settings_.row_norm)
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        expected = [model.network_.encode(view, prepared, generator, scale=scale) for view in "otot"]
    assert torch.equal(model.sample(graph, 4, seed=9), torch.stack(expected))


def test_draw_scale_does_not_change_the_training(graph):
    """With hard masks at almost zero rates nothing is dropped, so a draw is the embedding without masks."""
    one, other = (small_model(graph, draw_scale=scale) for scale in (1e-9, 1.0))
    assert torch.equal(one.embed(graph), other.embed(graph))
    assert one.drop_rates_ == other.drop_rates_
    torch.testing.assert_close(one.sample(graph, 2, hard=True), one.embed(graph).expand(2, -1, -1))
    assert not torch.allclose(other.sample(graph, 2, hard=True), other.embed(graph).expand(2, -1, -1))


def test_dense_and_sparse_attributes_give_the_same_model(graph):
    """A layer computes sparse attributes in another way, but the result must be the same."""
    x = torch.where(torch.rand(25, 40, generator=torch.Generator().manual_seed(1)) < SPARSE_BELOW / 2, 1.0, 0.0)
    data = Data(x=x, edge_index=graph.edge_index)
    clean = check_graph(data)
    assert clean.x.layout == torch.sparse_csr
    model = small_model(data)
    dense = prepare(Data(x=x, edge_index=clean.edge_index, num_nodes=25), row_norm=model.settings_.row_norm)
    assert isinstance(dense.features, torch.Tensor)
    torch.testing.assert_close(model.embed(data), model.network_.encoder(dense).detach())


def test_a_fitted_model_embeds_another_graph_with_the_same_attributes(model):
    other = Data(x=torch.rand(9, 10), edge_index=torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert model.sample(other, 2).shape == (2, 9, 4)


def test_clone_and_parameters_follow_scikit_learn():
    model = BGCL(preset="cora", tau=0.5)
    assert clone(model).get_params() == model.get_params()
    assert (clone(model).preset, clone(model).given()) == ("cora", {"tau": 0.5})
    assert model.set_params(tau=0.6).given() == {"tau": 0.6}
    assert repr(model) == "BGCL(preset='cora', tau=0.6)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'tua'"):
        BGCL(tua=0.5)


def test_nothing_is_checked_before_fit(graph):
    model = BGCL("no preset", tau=-1, epochs="many")
    assert model.set_params(preset=None, widths=()).tau == -1
    with pytest.raises(BGCLError, match=r"The setting '(tau|epochs|widths)' must be"):
        model.fit(graph, progress=False)
    assert not hasattr(model, "network_")


def test_set_params_on_a_fitted_model_changes_neither_draws_nor_what_save_writes(graph, tmp_path):
    model = small_model(graph)
    draws, moments, scores = model.sample(graph, 3), model.moments(graph, 4), model.disagreement(graph, 4)
    model.save(tmp_path / "before")
    model.set_params(tau=3.0, draw_scale=1.0, mask_values="relaxed", seed=9, row_norm="sum", rate_draw="sample")
    assert model.tau == 3.0
    assert model.settings_.tau == 0.4
    assert torch.equal(model.sample(graph, 3), draws)
    assert torch.equal(model.sample(copy.copy(graph), 3), draws)
    assert torch.equal(model.moments(graph, 4).std, moments.std)
    np.testing.assert_array_equal(model.disagreement(graph, 4), scores)
    model.save(tmp_path / "after")
    for name in ("model.toml", "model.safetensors", "history.jsonl"):
        assert (tmp_path / "after" / name).read_bytes() == (tmp_path / "before" / name).read_bytes()
    refitted = model.fit(graph, progress=False)
    assert refitted.settings_.tau == 3.0
    assert not torch.equal(refitted.sample(graph, 3), draws)


def test_fit_does_not_change_the_parameters(graph):
    drop, widths = [parse_mask("edges"), "entries at 0.2"], [8, 4]
    given = {"drop": drop, "widths": widths, "epochs": np.int64(1), "prior": 1.5, "loss_nodes": None}
    model = BGCL("cora", **given)
    before = model.get_params()
    model.fit(graph, progress=False)
    after = model.get_params()
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    assert drop == [parse_mask("edges"), "entries at 0.2"]
    assert widths == [8, 4]
    assert model.settings_.drop == ("edges", "entries at 0.2")


def test_fitting_again_gives_the_same_model(graph):
    model = small_model(graph)
    first = model.sample(graph, 3)
    assert model.fit(graph, progress=False) is model
    assert torch.equal(model.sample(graph, 3), first)
    assert [record.epoch for record in model.history_] == [1, 2]


def test_methods_of_a_fitted_model_do_not_change_it(graph, tmp_path):
    model = small_model(graph)
    before = {name: copy.deepcopy(value) for name, value in vars(model).items() if name not in ("_memo", "network_")}
    weights = copy.deepcopy(model.network_.state_dict())
    other = Data(x=torch.rand(9, 10), edge_index=torch.tensor([[0, 1, 2], [3, 4, 5]]))
    for data in (graph, other):
        model.sample(data, 2, scale=1.0, hard=True, seed=5)
        model.moments(data, 2)
        model.disagreement(data, 4)
        model.embed(data)
    model.save(tmp_path)
    repr(model), model._repr_html_()
    assert {name: value for name, value in vars(model).items() if name not in ("_memo", "network_")} == before
    assert all(torch.equal(value, weights[name]) for name, value in model.network_.state_dict().items())


@pytest.mark.parametrize("scale", [0.1, 1.0])
@pytest.mark.parametrize("hard", [False, True])
def test_sample_at_a_scale_equals_a_model_with_that_draw_scale(graph, scale, hard):
    model, other = (
        small_model(graph, mask_values="relaxed"),
        small_model(graph, mask_values="relaxed", draw_scale=scale),
    )
    assert torch.equal(model.sample(graph, 4, scale=scale, hard=hard), other.sample(graph, 4, hard=hard))
    assert not torch.equal(model.sample(graph, 4, hard=hard), other.sample(graph, 4, hard=hard))
    assert torch.equal(model.moments(graph, 4, scale=scale, hard=hard).mean, other.moments(graph, 4, hard=hard).mean)


@pytest.mark.parametrize("scale", [0, 1.5, True, "0.5"])
def test_a_scale_out_of_range_is_refused(model, graph, scale):
    with pytest.raises(BGCLError, match="'draw_scale' must be a number above 0 and at most 1"):
        model.sample(graph, 1, scale=scale)


def test_a_copy_of_a_model_gives_the_same_draws_and_is_independent(model, graph):
    twin = copy.deepcopy(model)
    assert torch.equal(twin.sample(graph, 2), model.sample(graph, 2))
    with torch.no_grad():
        twin.network_.encoder.layers[0].weight.zero_()
    assert not torch.equal(twin.sample(graph, 2), model.sample(graph, 2))


def test_a_model_is_not_pickled(model):
    with pytest.raises(BGCLError, match=r"Save it with model.save\(folder\)"):
        pickle.dumps(model)


def test_importing_bgcl_does_not_import_torch():
    code = "import bgcl, bgcl.cli, sys; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", [BGCLError, NotFittedError, ValueError, AttributeError])
@pytest.mark.parametrize("method", ["sample", "draws", "moments", "disagreement", "embed", "check_trained_on", "save"])
def test_methods_that_need_a_fitted_model_raise_not_fitted(graph, method, kind):
    with pytest.raises(kind, match=r"not fitted yet: call fit\(data\) first"):
        getattr(BGCL(), method)(graph)


def test_scikit_learn_knows_whether_a_model_is_fitted(model):
    check_is_fitted(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(BGCL())


def test_a_graph_with_other_attributes_is_refused(model):
    with pytest.raises(BGCLError, match="has 3 attributes, but the model was trained on 10"):
        model.embed(Data(x=torch.rand(4, 3), edge_index=torch.tensor([[0], [1]])))


@pytest.mark.parametrize(("samples", "call"), [(0, "sample"), (1, "moments")])
def test_too_few_samples_are_refused(model, graph, samples, call):
    with pytest.raises(BGCLError, match=f"Got {samples} instead"):
        getattr(model, call)(graph, samples)


def test_cora_trains_better_than_its_start():
    """A short version of the experiment: a few epochs on the bundled graph already help a linear classifier."""
    data = bgcl.load("cora")
    model = BGCL(preset="cora", epochs=15, lr_weights=0.003).fit(data, progress=False)
    scores = summary([bgcl.evaluate(model, data, "grace", 3, samples=20)])
    assert scores["accuracy"]["mean"] > 0.74
