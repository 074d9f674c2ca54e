"""An encoder or an objective of the user, and convolutions of PyTorch Geometric by name."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.nn import functional as F
from torch_geometric.data import Data

from bgcl import BGCL, BGCLError
from bgcl.augmentation.views import Positives
from bgcl.model.objectives.base import Objective, Outcome, Step
from trained import small_data


@pytest.fixture(scope="module")
def graph() -> Data:
    return small_data()


class Mine(torch.nn.Module):
    """An encoder that is called with the attributes and the connections."""

    def __init__(self, width_in: int = 10, width: int = 4) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width_in, width)

    def forward(self, x, edge_index, edge_weight):
        sent = x[edge_index[0]] * edge_weight[:, None]
        return self.linear(x + torch.zeros_like(x).index_add(0, edge_index[1], sent))


class Close(Objective):
    """The views of a node are drawn close to each other, by a learned scale."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, step: Step) -> Outcome:
        o, t = step.some(*(F.normalize(self.scale * step.encode(view), dim=1) for view in ("o", "t")))
        shared = (o * t).sum(1).mean() - (o.mean(0) * t.mean(0)).sum()
        return Outcome(-shared, shared, o, len(o))

    def log_likelihood(self, o, t):
        return (F.normalize(self.scale * o, dim=1) * F.normalize(self.scale * t, dim=1)).sum(1)


MODULES = {"encoder": {"encoder": Mine()}, "objective": {"objective": Close()}}
MODULES["both"] = MODULES["encoder"] | MODULES["objective"]
LAYERS = {"widths": (8, 4), "part_width": 3}  # of an encoder by name


def short(modules: dict, **settings: object) -> BGCL:
    layers = {} if "encoder" in modules else LAYERS
    return BGCL(**{"drop": "entries", "epochs": 3} | layers | modules | settings)


@pytest.mark.parametrize("given", MODULES)
def test_a_users_module_is_trained_saved_and_loaded(graph, tmp_path, given):
    modules = MODULES[given]
    before = [parameter.clone() for module in modules.values() for parameter in module.parameters()]
    model = short(modules).fit(graph, progress=False)
    for name in modules:
        assert getattr(model.settings_, name) == "module"
        assert str(model.given()[name]) == str(modules[name])
        assert getattr(model, name) is modules[name]
    after = [parameter for module in modules.values() for parameter in module.parameters()]
    assert all(torch.equal(p, q) for p, q in zip(before, after, strict=True)), "fit changed the user's module"
    losses = [record.loss for record in model.history_]
    assert all(np.isfinite(losses))
    draws = model.sample(graph, 3)
    assert draws.shape == (3, 25, sum(model.parts_))
    assert model.disagreement(graph, 4).shape == (25,)
    model.save(tmp_path)
    loaded = BGCL.load(tmp_path, **modules)
    assert all(torch.equal(p, q) for p, q in zip(before, after, strict=True)), "load changed the user's module"
    assert torch.equal(loaded.sample(graph, 3), draws)
    assert torch.equal(loaded.embed(graph), model.embed(graph))
    assert torch.equal(loaded.fit(graph, progress=False).sample(graph, 3), draws)
    for missing in modules:
        message = f"has an {missing} of your own. Give it again, as BGCL.load\\(folder, {missing}="
        with pytest.raises(BGCLError, match=message):
            BGCL.load(tmp_path, **{name: module for name, module in modules.items() if name != missing})


@pytest.mark.parametrize("given", MODULES)
def test_a_run_with_a_users_module_resumes(graph, tmp_path, given):
    modules = MODULES[given]
    uninterrupted = short(modules).fit(graph, progress=False)
    short(modules, epochs=1).fit(graph, out=tmp_path, progress=False)
    resumed = short(modules).fit(graph, out=tmp_path, resume=True, progress=False)
    assert torch.equal(resumed.sample(graph, 3), uninterrupted.sample(graph, 3))


def test_clone_and_representation_of_a_model_with_users_modules(graph):
    model = short(MODULES["both"])
    twin = clone(model)
    assert isinstance(twin.encoder, Mine)
    assert isinstance(twin.objective, Close)
    assert "Mine(" in repr(model)
    fitted = [each.fit(graph, progress=False).sample(graph, 2) for each in (model, twin)]
    assert torch.equal(*fitted)
    assert isinstance(model._repr_html_(), str)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            {"encoder": torch.nn.Linear(10, 4)},
            r"Linear cannot be an encoder: called as module\(x, edge_index, edge_weight\)",
        ),
        ({"encoder": Mine(width_in=7)}, r"Mine cannot be an encoder: .* raised RuntimeError"),
        ({"encoder": Mine}, "An encoder must be an instance of torch.nn.Module"),
        ({"encoder": 5}, "An encoder must be an instance of torch.nn.Module. Got 5"),
        ({"objective": torch.nn.Linear(4, 4)}, r"An objective must be an instance of .*Objective. Got Linear\("),
        ({"objective": Close}, "An objective must be an instance of"),
        ({"objective": 5}, "An objective must be an instance of .* Got 5"),
    ],
)
def test_a_module_that_does_not_fit_is_refused(graph, modules, message):
    with pytest.raises(BGCLError, match=message):
        short(modules).fit(graph, progress=False)


def test_loading_with_a_module_of_another_shape_is_refused(graph, tmp_path):
    short(MODULES["both"]).fit(graph, progress=False).save(tmp_path)
    with pytest.raises(BGCLError, match=r"model.safetensors does not fit model.toml: 'encoder.module.linear.bias'"):
        BGCL.load(tmp_path, encoder=Mine(width=5), objective=Close())


def test_a_users_objective_may_take_neighbors_as_positives(graph):
    seen = []

    class WithNeighbors(Close):
        takes_positives = True

        def forward(self, step: Step) -> Outcome:
            seen.append([step.draw_positives(view) for view in ("o", "t")])
            return super().forward(step)

    objective = WithNeighbors()
    short({"objective": objective}, drop=("entries", "neighbors")).fit(graph, progress=False)
    assert all(isinstance(each, Positives) for pair in seen for each in pair)
    assert len(seen) >= 3


def test_a_pyg_convolution_by_name_is_trained_saved_and_loaded(graph, tmp_path):
    model = BGCL(encoder="pyg:GraphConv", widths=(8, 4), epochs=2).fit(graph, progress=False)
    model.save(tmp_path)
    assert torch.equal(BGCL.load(tmp_path).sample(graph, 2), model.sample(graph, 2))
    with pytest.raises(BGCLError, match=r"has no convolution 'GraphConf'. Did you mean GraphConv"):
        BGCL(encoder="pyg:GraphConf", epochs=1).fit(graph, progress=False)
