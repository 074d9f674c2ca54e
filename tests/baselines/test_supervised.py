"""Supervised networks on tiny graphs: against dense matrices and plain loops, and which labels they use."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from bgcl import BGCLError, splits, uncertainty
from bgcl.baselines.scoring import evaluate_classifier
from bgcl.baselines.supervised import (
    GCN,
    Classifier,
    EnsembleGCN,
    MCDropoutGCN,
    Task,
    derived_seed,
    dropout_masks,
    train,
)
from bgcl.downstream.evaluation import SplitResult
from bgcl.downstream.splits import Split
from communities import communities, split_of
from small import dense_connections, dense_features, dense_normalize, random_graph

METHODS = [
    GCN(width=8, epochs=20),
    MCDropoutGCN(width=8, epochs=20, samples=7),
    EnsembleGCN(width=8, epochs=20, members=3),
]
by_name = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)


@by_name
@pytest.mark.parametrize("sparse", [True, False])
def test_draws_are_probabilities_with_the_sample_axis_first(method, sparse):
    data = communities(sparse=sparse)
    found = method.fit(data, split_of(data))
    assert found.shape == (getattr(method, "samples", getattr(method, "members", 1)), 60, 3)
    assert found.dtype == np.float32
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(2), 1, atol=1e-5)


@by_name
def test_the_result_depends_on_the_seed_and_not_on_the_global_generator(method):
    data = communities()
    torch.manual_seed(1)
    one = method.fit(data, split_of(data))
    torch.manual_seed(2)
    np.testing.assert_array_equal(one, method.fit(data, split_of(data)))
    assert not np.array_equal(one, method.with_changes(seed=1).fit(data, split_of(data)))


@by_name
@pytest.mark.parametrize("validation", [0, 15])
def test_labels_of_test_nodes_are_not_used(method, validation):
    data = communities()
    split = split_of(data, validation)
    other = data.clone()
    other.y[split.test] = torch.as_tensor((data.y.numpy()[split.test] + 1) % 3)
    np.testing.assert_array_equal(method.fit(data, split), method.fit(other, split))
    other.y[split.test] = -1
    np.testing.assert_array_equal(method.fit(data, split), method.fit(other, split))


def test_labels_of_the_training_nodes_are_used():
    data, method = communities(), METHODS[0]
    split = split_of(data)
    other = data.clone()
    other.y[split.train] = (data.y[split.train] + 1) % 3
    assert not np.array_equal(method.fit(data, split), method.fit(other, split))


@pytest.mark.parametrize(
    "method", [GCN(epochs=60), MCDropoutGCN(epochs=60, samples=20), EnsembleGCN(epochs=60, members=3)],
    ids=lambda method: type(method).__name__,
)  # fmt: skip
def test_planted_communities_are_learned(method):
    data = communities()
    (result,) = evaluate_classifier(lambda: method, data, [split_of(data)])
    assert result.scores()["accuracy"] > 0.9


def test_classes_are_in_ascending_order():
    data = communities()
    split = split_of(data)
    renamed = data.clone()
    renamed.y = torch.tensor([7, 40, 11])[data.y]  # the second class is now the last
    one, other = GCN(epochs=40).fit(data, split), GCN(epochs=40).fit(renamed, split)
    labels = renamed.y.numpy()
    assert (np.array([7, 11, 40])[other[0].argmax(1)] == labels).mean() > 0.9
    assert (one[0].argmax(1) == data.y.numpy()).mean() > 0.9
    (result,) = evaluate_classifier(lambda: GCN(epochs=40), renamed, [split])
    np.testing.assert_array_equal(result.classes, [7, 11, 40])
    assert result.scores()["accuracy"] > 0.9


@pytest.mark.parametrize("sparse", [True, False])
def test_the_network_equals_products_of_dense_matrices(sparse):
    graph = random_graph(8, 5, sparse=sparse)
    network = Classifier((5, 4, 3)).double()
    network.reset_parameters(torch.Generator().manual_seed(0))
    P, X = dense_normalize(dense_connections(graph)), dense_features(graph)
    (W1, W2), (b1, b2) = (
        [getattr(layer, name).detach().numpy() for layer in network.layers] for name in ("weight", "bias")
    )
    expected = P @ np.maximum(P @ X @ W1 + b1, 0) @ W2 + b2
    assert (expected < 0).any(), "the last layer must have no activation"
    np.testing.assert_allclose(network(graph).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("sparse", [True, False])
def test_dropout_zeroes_a_share_and_keeps_the_mean(sparse):
    graph = random_graph(40, 50, sparse=sparse, double=False)
    network = Classifier((50, 30, 3))
    masks = dropout_masks(network, graph, 0.3, torch.Generator().manual_seed(0))
    assert len(masks) == 2
    for mask in masks:
        assert set(np.unique(mask.entries.numpy())) == {np.float32(0), np.float32(1 / 0.7)}
        assert mask.entries.mean() == pytest.approx(1, abs=0.1)
        assert mask.connections is None
    assert masks[0].entries.shape == (graph.features.values.shape if sparse else (40, 50))
    assert masks[1].entries.shape == (40, 30)
    assert dropout_masks(network, graph, 0.0, torch.Generator()) is None


def test_training_without_dropout_equals_a_loop_with_the_layers_of_pytorch_geometric():
    data = communities(sparse=False)
    split, method = split_of(data), GCN(width=6, dropout=0.0, epochs=12)
    start = Classifier((12, 6, 3))
    start.reset_parameters(torch.Generator().manual_seed(method.seed))
    layers = [GCNConv(12, 6), GCNConv(6, 3)]
    with torch.no_grad():
        for theirs, ours in zip(layers, start.layers, strict=True):
            theirs.lin.weight.copy_(ours.weight.T)
            theirs.bias.zero_()
    x = data.x / data.x.sum(1, keepdim=True)
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    nodes = torch.as_tensor(split.train)

    def forward() -> torch.Tensor:
        return layers[1](layers[0](x, data.edge_index).relu(), data.edge_index).log_softmax(1)

    for _ in range(12):
        optimizer.zero_grad()
        log_probability = forward()
        # Weight decay d W_1 is the gradient of d/2 |W_1|^2.
        loss = 5e-4 / 2 * layers[0].lin.weight.square().sum()
        for v in nodes.tolist():
            loss = loss - log_probability[v, int(data.y[v])] / len(nodes)
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(method.fit(data, split)[0], forward().exp().detach().numpy(), atol=1e-4)


def test_validation_keeps_the_best_epoch_and_does_not_change_training():
    weight = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(weight.weight, 0.0)
    optimizer = torch.optim.SGD(weight.parameters(), lr=1.0)
    path = []

    def objective(epoch: int) -> torch.Tensor:
        return -weight.weight.sum()  # each epoch adds 1

    def validation_loss() -> float:
        path.append(weight.weight.item())
        return abs(path[-1] - 4.4)

    train(weight, optimizer, objective, 7, validation_loss, every=2)
    assert path == [2, 4, 6, 7]
    assert weight.weight.item() == 4


def test_validation_loss_is_the_cross_entropy_of_the_mean_probability():
    data = communities()
    task = Task.of(data, split_of(data, 10), row_norm="sum")
    random = torch.Generator().manual_seed(0)
    draws = [torch.randn(60, 3, generator=random) for _ in range(4)]
    mean = np.mean([draw.softmax(1).numpy() for draw in draws], axis=0)
    nodes, codes = (part.numpy() for part in task.validation)
    expected = -np.mean([np.log(mean[v, c]) for v, c in zip(nodes, codes, strict=True)])
    assert task.validation_loss(lambda: iter(draws))() == pytest.approx(expected, rel=1e-5)
    assert Task.of(data, split_of(data), row_norm="sum").validation_loss(lambda: iter(draws)) is None


def test_validation_labels_choose_the_epoch():
    data, method = communities(), GCN(width=8, epochs=60, lr=0.05)
    split = split_of(data, 15)
    wrong = data.clone()
    wrong.y[split.validation] = (data.y[split.validation] + 1) % 3  # the loss is lowest at the start of training
    kept, early = method.fit(data, split), method.fit(wrong, split)
    right = data.y.numpy()[split.test]
    at = np.arange(len(right))
    assert kept[0][split.test][at, right].mean() > early[0][split.test][at, right].mean() + 0.2


def test_an_ensemble_equals_its_members_fitted_one_by_one():
    data, method = communities(), METHODS[2]
    split = split_of(data)
    together = method.fit(data, split)
    alone = [GCN(width=8, epochs=20, seed=derived_seed(0, i)).fit(data, split)[0] for i in range(3)]
    np.testing.assert_array_equal(together, np.stack(alone))
    assert uncertainty(together).probability == pytest.approx(np.mean(alone, axis=0), abs=1e-6)
    assert len({member.tobytes() for member in alone}) == 3


def test_dropout_at_prediction_varies_around_the_same_network():
    data = communities()
    split = split_of(data)
    plain = GCN(width=16, epochs=40).fit(data, split)
    draws = MCDropoutGCN(width=16, epochs=40, samples=300).fit(data, split)
    assert draws.std(0).max() > 0.02
    assert np.abs(draws.mean(0) - plain[0]).mean() < 0.1
    still = MCDropoutGCN(width=16, epochs=40, dropout=0.0, samples=2).fit(data, split)
    np.testing.assert_array_equal(still[0], still[1])
    np.testing.assert_array_equal(still[0], GCN(width=16, epochs=40, dropout=0.0).fit(data, split)[0])


def test_each_split_is_fitted_with_its_own_seed():
    data, method = communities(), MCDropoutGCN(width=8, epochs=10, samples=5, seed=3)
    chosen = [split_of(data, seed=0), split_of(data, seed=1)]
    found = evaluate_classifier(lambda: method, data, chosen)
    for number, (split, result) in enumerate(zip(chosen, found, strict=True)):
        samples = method.with_changes(seed=derived_seed(3, number)).fit(data, split)[:, split.test]
        expected = SplitResult(split.test, np.arange(3), data.y.numpy()[split.test], uncertainty(samples), None)
        assert result.scores() == pytest.approx(expected.scores(), nan_ok=True)
        assert result.scores()["accuracy"] == (samples.mean(0).argmax(1) == data.y.numpy()[split.test]).mean()
    assert len({derived_seed(seed, number) for seed in range(50) for number in range(50)}) == 2500


def test_unlabeled_nodes_are_predicted_but_not_learned_from():
    data = communities()
    data.y[::10] = -1
    (split,) = splits(data, "bgrl", 1)
    assert GCN(width=4, epochs=2).fit(data, split).shape == (1, 60, 3)
    bad = Split(np.array([0, 1, 2]), np.array([], dtype=int), np.array([3]))
    with pytest.raises(BGCLError, match=r"Node 0 of the split has no label"):
        GCN().fit(data, bad)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GCN(width=0), "'width' must be a whole number of 1 or more. Got 0"),
        (lambda: GCN(dropout=1.0), "'dropout' must be a number of 0 or more and below 1. Got 1.0"),
        (lambda: GCN(lr=float("nan")), "'lr' must be a number of 0 or more. Got nan"),
        (lambda: MCDropoutGCN(samples=0), "'samples' must be a whole number of 1 or more. Got 0"),
        (lambda: EnsembleGCN(members=0), "'members' must be a whole number of 1 or more. Got 0"),
    ],
)
def test_settings_out_of_range_are_refused(make, message):
    with pytest.raises(BGCLError, match=message):
        make()


def test_splits_that_cannot_be_fitted_are_refused():
    data = communities()
    none = np.array([], dtype=int)
    with pytest.raises(BGCLError, match="no training node"):
        GCN().fit(data, Split(none, none, np.arange(3)))
    data.y[:] = 1
    with pytest.raises(BGCLError, match="of one class"):
        GCN().fit(data, Split(np.arange(3), none, np.arange(3)))
    with pytest.raises(BGCLError, match="diverged in epoch"):
        GCN(lr=1e30).fit(communities(), split_of(communities()))
