"""Nothing is computed in float64 on the model's device, because the device mps has no float64."""

import re
from pathlib import Path

import pytest
import torch

import bgcl
from bgcl.graph.spectrum import right_directions
from bgcl.measures.criteria import effective_rank
from bgcl.measures.disagreement import disagreement
from bgcl.model.scaling import normal_scores
from bgcl.model.structure import orthonormal_turn
from small import seeded

PACKAGE = Path(bgcl.__file__).parent


class OnDevice(torch.Tensor):
    """A tensor that refuses float64, as tensors of mps do, until `cpu` makes it a plain one."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cpu:
            return args[0].as_subclass(torch.Tensor)
        found = super().__torch_function__(function, types, args, kwargs or {})
        for each in found if isinstance(found, tuple) else (found,):
            if isinstance(each, OnDevice) and each.dtype == torch.float64:
                raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support it.")
        return found


def directions(matrix: torch.Tensor) -> torch.Tensor:
    return right_directions(lambda q: matrix @ q, lambda y: matrix.T @ y, matrix.shape[1], 3, seeded(1))


FUNCTIONS = {
    "positions": lambda matrix: orthonormal_turn(matrix.T @ matrix),
    "directions": directions,
    "scores of ranks": lambda matrix: torch.cat(normal_scores(matrix[:, 0])),
    "effective rank": lambda matrix: torch.tensor(effective_rank(matrix)),
    "disagreement": lambda matrix: torch.as_tensor(disagreement(iter(-matrix.abs()))),
}


def test_the_device_of_this_test_has_no_float64():
    with pytest.raises(TypeError, match="float64"):
        torch.ones(2).as_subclass(OnDevice).double()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64_is_computed_on_the_cpu_and_the_result_is_the_same(name):
    matrix = torch.randn(30, 6, generator=seeded(0))
    found = FUNCTIONS[name](matrix.as_subclass(OnDevice))
    assert torch.equal(found.as_subclass(torch.Tensor), FUNCTIONS[name](matrix))


@pytest.mark.parametrize("room", ["graph", "model", "measures"])
def test_every_conversion_to_float64_is_after_one_to_the_cpu(room):
    wrong = [
        f"{path.name}: {line.strip()}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"(?<!\.cpu\(\))\.double\(\)", line)
    ]
    assert wrong == []
