"""The randomized singular vectors against NumPy's."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bgcl import BGCLError
from bgcl.graph.spectrum import EXTRA, right_directions
from small import seeded


def directions_of(matrix: np.ndarray, rank: int, seed: int = 0) -> np.ndarray:
    M = torch.as_tensor(matrix).float()
    return right_directions(lambda Q: M @ Q, lambda Y: M.t() @ Y, M.shape[1], rank, seeded(seed)).double().numpy()


def with_spectrum(rows: int, values: np.ndarray, seed: int = 0) -> np.ndarray:
    """A matrix with as many columns as singular values."""
    random = np.random.default_rng(seed)
    left, _ = np.linalg.qr(random.normal(size=(rows, len(values))))
    right, _ = np.linalg.qr(random.normal(size=(len(values), len(values))))
    return left * values @ right


@pytest.mark.parametrize(
    ("rows", "columns", "rank"),
    [(30, 12, 5), (30, 12, 12), (8, 12, 8), (200, 100, 6), (60, 60, 10), (5, 100, 5), (9, 1, 1)],
)
@pytest.mark.parametrize("seed", range(2))
def test_directions_are_the_first_right_singular_vectors_up_to_sign(rows, columns, rank, seed):
    """Also if there are more columns than the randomized basis has, because the values fall off."""
    values = 1.5 ** -np.arange(columns)
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, columns)) * values if rows < columns else with_spectrum(rows, values, seed)
    found = directions_of(matrix, rank)
    _, singular, V = np.linalg.svd(matrix, full_matrices=False)
    assert found.shape == (columns, rank)
    np.testing.assert_allclose(found.T @ found, np.eye(rank), atol=1e-5)
    clear = singular[:rank] > 1e-3 * singular[0]  # in float32, directions of tiny values are lost
    cosines = np.abs((V[:rank] * found.T).sum(1))
    np.testing.assert_allclose(cosines[clear], 1, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(matrix @ found, axis=0)[clear], singular[:rank][clear], rtol=1e-3)


def test_a_flat_spectrum_is_captured_almost_as_well_as_possible():
    """Without a gap the single vectors are arbitrary, but their span must hold nearly as much as the best one."""
    matrix = np.random.default_rng(0).normal(size=(300, 120))
    singular = np.linalg.svd(matrix, compute_uv=False)
    found = directions_of(matrix, 20)
    held = np.square(matrix @ found).sum()
    assert 20 + EXTRA < 120
    assert 0.9 * np.square(singular[:20]).sum() < held <= np.square(singular[:20]).sum() * (1 + 1e-6)


def test_the_greatest_entry_of_a_direction_is_positive():
    found = directions_of(np.random.default_rng(1).normal(size=(40, 9)), 9)
    assert (found[np.abs(found).argmax(0), np.arange(9)] > 0).all()


def test_signs_and_directions_do_not_depend_on_the_random_start():
    matrix = with_spectrum(40, 2.0 ** -np.arange(8))
    np.testing.assert_allclose(directions_of(matrix, 4, seed=0), directions_of(matrix, 4, seed=1), atol=1e-4)


def test_the_same_generator_gives_the_same_bits():
    matrix = np.random.default_rng(2).normal(size=(50, 60))
    assert np.array_equal(directions_of(matrix, 7), directions_of(matrix, 7))


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_a_matrix_of_lower_rank_is_fully_held(rank):
    """Directions beyond the rank are arbitrary, but orthonormal, and hold nothing."""
    random = np.random.default_rng(3)
    matrix = random.normal(size=(30, rank)) @ random.normal(size=(rank, 50))
    found = directions_of(matrix, 8)
    np.testing.assert_allclose(found.T @ found, np.eye(8), atol=1e-4)
    np.testing.assert_allclose(matrix @ found @ found.T, matrix, atol=1e-3)
    np.testing.assert_allclose((matrix @ found)[:, rank:], 0, atol=1e-2)


def test_a_matrix_of_zeros_has_finite_directions():
    assert np.isfinite(directions_of(np.zeros((6, 4)), 3)).all()


def test_the_matrix_is_only_multiplied_with_thin_matrices():
    M, widths = torch.randn(50, 200, generator=seeded(0)), []

    def times(Q: Tensor) -> Tensor:
        widths.append(Q.shape[1])
        return M @ Q

    def transposed_times(Y: Tensor) -> Tensor:
        widths.append(Y.shape[1])
        return M.t() @ Y

    right_directions(times, transposed_times, 200, 10, seeded(0))
    assert set(widths) == {10 + EXTRA}


def test_very_large_numbers_have_the_same_directions():
    matrix = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    found = []
    for scale in (1.0, 2.0**64, 2.0**100):
        large = matrix * scale
        found.append(
            right_directions(
                lambda q, m=large: m @ q, lambda y, m=large: m.T @ y, 8, 4, torch.Generator().manual_seed(1)
            )
        )
    torch.testing.assert_close(found[0], found[1], atol=1e-4, rtol=0)
    torch.testing.assert_close(found[0], found[2], atol=1e-4, rtol=0)


def test_sums_that_are_not_finite_are_refused():
    huge = torch.full((4, 3), 3e38)
    with pytest.raises(BGCLError, match="their sums are not finite"):
        right_directions(lambda q: huge @ q.abs() * 3, lambda y: huge.T @ y, 3, 2, torch.Generator().manual_seed(1))
