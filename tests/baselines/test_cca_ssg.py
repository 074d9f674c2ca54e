"""CCA-SSG: its loss against a plain loop, its encoders, and the authors' settings."""

import numpy as np
import pytest
import torch

from bgcl.baselines import baseline, published
from bgcl.baselines.cca_ssg import cca_loss, standardized
from planted import leave_one_out_accuracy, planted_graph


def test_the_loss_equals_loops_over_columns() -> None:
    views = [torch.randn(9, 4, dtype=torch.float64) for _ in range(2)]
    columns = [(view.numpy() - view.numpy().mean(0)) / view.numpy().std(0, ddof=1) for view in views]
    expected = 0.0
    for i in range(4):
        expected -= sum(columns[0][n, i] * columns[1][n, i] for n in range(9)) / 9
        for view in columns:
            for j in range(4):
                correlation = sum(view[n, i] * view[n, j] for n in range(9)) / 9
                expected += 0.01 * (correlation - (i == j)) ** 2
    assert float(cca_loss(*views, 0.01)) == pytest.approx(expected, rel=1e-10)


def test_a_constant_column_gives_no_gradient_that_is_not_finite() -> None:
    view = torch.randn(6, 3)
    view[:, 1] = 2.0
    view.requires_grad_()
    assert not standardized(view)[:, 1].any()
    cca_loss(view, view.detach(), 0.1).backward()
    assert torch.isfinite(view.grad).all()


def test_the_last_layer_has_no_activation() -> None:
    for encoder in ("gcn", "mlp"):
        assert (baseline("cca-ssg", widths=(8, 4), epochs=1, encoder=encoder).fit(planted_graph()) < 0).any()


@pytest.mark.parametrize("sparse", [True, False])
def test_the_mlp_does_not_look_at_edges_and_the_same_seed_gives_the_same_result(sparse: bool) -> None:
    graph, method = planted_graph(sparse=sparse), baseline("cca-ssg", widths=(16, 8), epochs=40, encoder="mlp", lr=0.01)
    first = method.fit(graph)
    assert leave_one_out_accuracy(first, graph.y.numpy()) > 0.65
    np.testing.assert_array_equal(first, method.fit(graph))
    graph.edge_index = graph.edge_index[:, :4]
    np.testing.assert_array_equal(first, method.fit(graph))


def test_published_settings_equal_those_of_the_authors() -> None:
    """A row is epochs, lambda, drop rates of features and edges, widths, encoder."""
    table = {
        "cora": (50, 1e-3, 0.1, 0.4, (512, 512), "gcn"),
        "citeseer": (20, 5e-4, 0.0, 0.4, (512,), "gcn"),
        "pubmed": (100, 1e-3, 0.3, 0.5, (512, 512), "gcn"),
        "amazon-computers": (50, 5e-4, 0.1, 0.3, (512, 512), "gcn"),
        "amazon-photo": (50, 1e-3, 0.2, 0.3, (512, 512), "gcn"),
        "coauthor-cs": (50, 1e-3, 0.2, 0.2, (512, 512), "mlp"),
        "coauthor-physics": (100, 1e-3, 0.5, 0.5, (512, 512), "gcn"),
        "wikics": (100, 1e-3, 0.2, 0.2, (512, 512), "gcn"),
    }
    for name, row in table.items():
        m = published("cca-ssg", name)
        assert (m.epochs, m.decorrelation, m.features, m.edges, m.widths, m.encoder) == row, name
        assert m.lr == 1e-3
        assert m.row_norm == ("none" if name.startswith(("amazon", "coauthor")) else "sum")
