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
from torch_geometric.nn import GCNConv

import bgcl
from bgcl import BGCL, BGCLError, example_graph
from bgcl.augmentation import parse_mask
from bgcl.augmentation.noise import CountedNoise
from bgcl.data.pyg import SPARSE_BELOW, check_graph
from bgcl.downstream import summary
from bgcl.graph.prepared import prepare
from bgcl.model import astd
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


def test_draws_come_sample_axis_first(model, graph):
    assert model.sample(graph, samples=5).shape == (5, 25, sum(model.parts_))
    assert model.embed(graph).shape == (25, sum(model.parts_))


def test_the_widths_of_the_parts_are_known(graph):
    assert small_model(graph).parts_ == (4,)
    parts = ("attributes hop 1", "encoder", "structure")
    assert small_model(graph, "default", parts=parts).parts_ == (3, 8, 3)  # two members
    with pytest.raises(NotFittedError):
        _ = BGCL().parts_


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
    model = BGCL(encoder="gcn", widths=(3,), epochs=1, **settings).fit(pair, progress=False)
    hard = {tuple(map(float, draw.flatten().round(decimals=5))) for draw in model.sample(pair, 200, hard=True)}
    relaxed = {tuple(map(float, draw.flatten().round(decimals=5))) for draw in model.sample(pair, 200)}
    assert len(hard) <= 16  # four connections, kept or dropped
    assert len(relaxed) > 100


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_draws_are_the_networks_at_the_fraction_of_the_rates_that_draw_scale_sets(graph, kind, scale):
    model = small_model(graph, kind, draw_scale=scale)
    scaled = model.network_.scaling(prepare(check_graph(graph), row_norm="none"))
    with torch.no_grad():
        expected = [
            model.network_.draw(view, scaled, CountedNoise.of_draw(9, i), scale=scale) for i, view in enumerate("otot")
        ]
    assert torch.equal(model.sample(graph, 4, seed=9), torch.stack(expected))


def test_the_papers_draws_are_the_output_of_its_encoder_on_rows_of_length_one(graph):
    model = small_model(graph, draw_scale=0.3)
    prepared = prepare(check_graph(graph), row_norm="length")
    with torch.no_grad():
        expected = [
            model.network_.encode(view, prepared, CountedNoise.of_draw(9, i), scale=0.3)
            for i, view in enumerate("otot")
        ]
    assert torch.equal(model.sample(graph, 4, seed=9), torch.stack(expected))


def test_draw_scale_does_not_change_the_training(graph, kind):
    """With hard masks at almost zero rates nothing is dropped, so a draw is the embedding without masks."""
    one, other = (small_model(graph, kind, draw_scale=scale) for scale in (1e-9, 1.0))
    assert torch.equal(one.embed(graph), other.embed(graph))
    assert one.drop_rates_ == other.drop_rates_
    torch.testing.assert_close(one.sample(graph, 2, hard=True), one.embed(graph).expand(2, -1, -1))
    assert not torch.allclose(other.sample(graph, 2, hard=True), other.embed(graph).expand(2, -1, -1))


def test_dense_and_sparse_attributes_give_the_same_model(graph, kind):
    """A layer computes sparse attributes in another way, but the result must be the same."""
    x = torch.where(torch.rand(25, 40, generator=torch.Generator().manual_seed(1)) < SPARSE_BELOW / 2, 1.0, 0.0)
    data = Data(x=x, edge_index=graph.edge_index)
    clean = check_graph(data)
    assert clean.x.layout == torch.sparse_csr
    model = small_model(data, kind)
    dense = prepare(Data(x=x, edge_index=clean.edge_index, num_nodes=25), row_norm="none")
    assert isinstance(dense.features, torch.Tensor)
    with torch.no_grad():
        expected = model.network_.embed(model.network_.scaling(dense))
    torch.testing.assert_close(model.embed(data), expected)


def test_a_fitted_model_embeds_another_graph_with_the_same_attributes(model):
    other = Data(x=torch.rand(9, 10), edge_index=torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert model.sample(other, 2).shape == (2, 9, sum(model.parts_))


def test_nodes_of_a_component_have_the_same_embedding_if_the_graph_grows_elsewhere(graph, kind):
    """Scales and directions are those of the training graph, so nothing but the neighborhood of a node matters.

    Parts among alike nodes are the exception: all nodes of the graph may be alike.
    """
    model = small_model(graph, kind)
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([graph.x, torch.rand(7, 10, generator=generator)])
    new = torch.randint(25, 32, (2, 15), generator=generator)
    grown = Data(x=x, edge_index=torch.cat([graph.edge_index, new], dim=1))
    pairs = zip(*(model.embed(data)[:25].split(model.parts_, dim=1) for data in (graph, grown)), strict=True)
    for sentence, (before, after) in zip(model.settings_.parts, pairs, strict=True):
        same = torch.allclose(after, before, atol=1e-4, rtol=1e-3)
        assert same != ("among alike" in sentence), sentence


def test_a_graph_without_edges_is_refused_and_one_with_a_single_edge_is_enough(kind):
    x = torch.rand(12, 6, generator=torch.Generator().manual_seed(0))
    for edge_index in (torch.zeros(2, 0).long(), torch.tensor([[3], [3]])):
        with pytest.raises(BGCLError, match="the graph is empty, it has no edges between different nodes"):
            small_model(Data(x=x, edge_index=edge_index), kind)
    for attributes in (x, (x < 0.3).float()):
        data = Data(x=attributes, edge_index=torch.tensor([[3], [4]]))
        model = small_model(data, kind)
        assert torch.isfinite(model.sample(data, 3)).all()
        assert np.isfinite([record.loss for record in model.history_]).all()


def test_a_graph_without_attributes_is_refused_and_constant_ones_are_enough(graph, kind):
    """The structure is a part of the default, so that it can tell nodes apart which have no attributes."""
    with pytest.raises(BGCLError, match=r"data.x must have the shape \(nodes, attributes\). Got \(25, 0\) instead"):
        small_model(Data(x=torch.zeros(25, 0), edge_index=graph.edge_index), kind)
    data = Data(x=torch.ones(25, 1), edge_index=graph.edge_index, y=graph.y)
    model = small_model(data, kind)
    draws = model.sample(data, 8)
    assert torch.isfinite(draws).all()
    if kind == "default":
        assert draws[0].unique(dim=0).shape[0] > 20
        predicted = bgcl.predict(model, data, samples=8)
        assert np.isfinite(predicted.uncertainty.probability).all()


def test_clone_and_parameters_follow_scikit_learn():
    model = BGCL(preset="paper-cora", tau=0.5)
    assert clone(model).get_params() == model.get_params()
    assert (clone(model).preset, clone(model).given()) == ("paper-cora", {"tau": 0.5})
    assert model.set_params(tau=0.6).given() == {"tau": 0.6}
    assert repr(model) == "BGCL(preset='paper-cora', tau=0.6)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'tua'"):
        BGCL(tua=0.5)


def test_nothing_is_checked_before_fit(graph):
    model = BGCL("no preset", tau=-1, epochs="many")
    assert model.set_params(preset=None, widths=()).tau == -1
    with pytest.raises(BGCLError, match=r"The setting '(tau|epochs|widths)' must be"):
        model.fit(graph, progress=False)
    assert not hasattr(model, "network_")


def test_set_params_on_a_fitted_model_changes_neither_draws_nor_what_save_writes(graph, kind, tmp_path):
    model = small_model(graph, kind)
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
    model = BGCL("paper-cora", **given)
    before = model.get_params()
    model.fit(graph, progress=False)
    after = model.get_params()
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    assert drop == [parse_mask("edges"), "entries at 0.2"]
    assert widths == [8, 4]
    assert model.settings_.drop == ("edges", "entries at 0.2")


def test_fitting_again_gives_the_same_model(graph, kind):
    model = small_model(graph, kind)
    first = model.sample(graph, 3)
    assert model.fit(graph, progress=False) is model
    assert torch.equal(model.sample(graph, 3), first)
    assert [record.epoch for record in model.history_] == [1, 2]


def test_methods_of_a_fitted_model_do_not_change_it(graph, kind, tmp_path):
    model = small_model(graph, kind)
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
def test_sample_at_a_scale_equals_a_model_with_that_draw_scale(graph, kind, scale, hard):
    model, other = (
        small_model(graph, kind, mask_values="relaxed", draw_scale=0.4),
        small_model(graph, kind, mask_values="relaxed", draw_scale=scale),
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
        next(twin.network_.encoder.parameters()).zero_()
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
    model = BGCL(preset="paper-cora", epochs=15, lr_weights=0.003).fit(data, progress=False)
    scores = summary([bgcl.evaluate(model, data, "grace", 3, samples=20)])
    assert scores["accuracy"]["mean"] > 0.74


def test_the_default_is_good_on_cora_after_a_few_epochs():
    data = bgcl.load("cora")
    model = BGCL(epochs=5).fit(data, progress=False)
    (result,) = bgcl.evaluate(model, data, "grace", 1, samples=6)
    assert result.scores()["accuracy"] > 0.8


def test_embeddings_that_are_asked_for_during_training_change_nothing():
    """Which nodes are alike is found by the encoder at that time, and found again later."""
    data, settings = example_graph(60), {"epochs": 6, "widths": (8, 4), "part_width": 4}
    watched = BGCL(**settings)
    watched.fit(data, progress=lambda record: watched.embed(data) if record.epoch == 1 else None)
    quiet = BGCL(**settings).fit(data, progress=False)
    torch.testing.assert_close(watched.embed(data), quiet.embed(data), rtol=0, atol=0)


def test_a_dense_model_takes_a_graph_whose_attributes_are_mostly_zero():
    dense = example_graph(60)
    dense.x = torch.rand(60, 6, generator=torch.Generator().manual_seed(0)) + 0.1
    model = BGCL(epochs=1, widths=(8, 4), part_width=4).fit(dense, progress=False)
    zeros = dense.clone()
    zeros.x[:, 1:] = 0
    assert model.embed(zeros).isfinite().all()


def test_an_encoder_with_dropout_is_reproducible_and_does_not_drop_when_it_embeds():
    def make() -> BGCL:
        encoder = GCNConv(7, 4)
        return BGCL(encoder=WithDropout(encoder), epochs=3, drop="entries")

    data = example_graph(60)
    data.x = data.x[:, :7].clone()
    data.x[:, 0] = 1
    one, same = (make().fit(data, progress=False) for _ in range(2))
    assert [record.loss for record in one.history_] == [record.loss for record in same.history_]
    torch.testing.assert_close(one.embed(data), one.embed(data), rtol=0, atol=0)


class WithDropout(torch.nn.Module):
    def __init__(self, convolution: GCNConv) -> None:
        super().__init__()
        self.convolution, self.dropout = convolution, torch.nn.Dropout(0.5)

    def forward(self, x, edge_index, edge_weight=None):
        return self.convolution(self.dropout(x), edge_index, edge_weight)


@pytest.mark.parametrize("trained_with_ids", [False, True])
def test_a_graph_in_which_no_node_is_known_by_its_id_is_reported(caplog, trained_with_ids):
    plain = example_graph(60)
    named = plain.clone()
    named.ids = [f"n{i}" for i in range(60)]
    first, other = (named, plain) if trained_with_ids else (plain, named)
    model = BGCL(epochs=1, widths=(8, 4), part_width=4).fit(first, progress=False)
    model.embed(other)
    assert "No node of this graph was in the training graph" in caplog.text


def test_a_module_is_refused_for_a_saved_model_that_had_none(tmp_path):
    BGCL(epochs=1, widths=(8, 4), part_width=4).fit(example_graph(60), progress=False).save(tmp_path / "saved")
    with pytest.raises(BGCLError, match="The saved model has the encoder 'mlp': do not give another one"):
        BGCL.load(tmp_path / "saved", encoder=WithDropout(GCNConv(7, 4)))
