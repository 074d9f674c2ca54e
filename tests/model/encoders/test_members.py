"""Members: encoders of one kind side by side, each with an objective of its own."""

import pytest
import torch
from torch.nn import functional as F

import bgcl
from bgcl.augmentation.noise import NoiseStream
from bgcl.errors import BGCLError
from bgcl.model.encoders import make_encoder
from bgcl.model.encoders.members import Members, with_members
from bgcl.model.encoders.mlp import MLPEncoder
from bgcl.model.network import Network
from bgcl.model.objectives.members import OfMembers
from bgcl.model.parts import Parts
from bgcl.settings import Settings
from masked import randomize
from small import random_graph, seeded

OBJECTIVES = ["infonce", "decorrelation", "bootstrap"]  # infomax shuffles nodes anew for each member


def small_network(objective: str = "infonce", members: int = 2) -> Network:
    settings = Settings(
        encoder="gcn", objective=objective, widths=(6, 4), members=members, drop=("entries at 0.3",)
    )  # fmt: skip
    network = Network(5, settings)
    network.reset_parameters(seeded(0))
    return network.double()


def test_one_member_is_the_encoder_as_it_is() -> None:
    assert isinstance(with_members(lambda: MLPEncoder((5, 4, 3)), 1), MLPEncoder)


def test_outputs_are_side_by_side_and_come_from_different_starts() -> None:
    graph = random_graph(7, 5)
    encoder = randomize(Members([MLPEncoder((5, 4, 3)), MLPEncoder((5, 4, 3))]))
    found = encoder(graph)
    assert encoder.width == found.shape[1] == 6
    for member, part in zip(encoder.encoders, found.chunk(2, 1), strict=True):
        assert torch.equal(part, member(graph))
    encoder.reset_parameters(seeded(0))
    first, second = encoder(graph).chunk(2, 1)
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_member_has_the_gradient_that_it_would_have_alone(objective: str) -> None:
    """The same masks, members one after the other: M times the gradient of the mean is that of each loss."""
    graph, network = random_graph(9, 5), small_network(objective)
    assert isinstance(network.objective, OfMembers)
    assert isinstance(network.encoder, Members)
    network.outcome(graph, seeded(1)).loss.backward()
    for i, member in enumerate(network.encoder.encoders):
        together = [parameter.grad.clone() for parameter in member.parameters() if parameter.grad is not None]
        alone = small_network(objective, members=1)
        alone.encoder.load_state_dict(member.state_dict())
        alone.objective.load_state_dict(network.objective.objectives[i].state_dict())
        alone.outcome(graph, seeded(1)).loss.backward()
        grads = [parameter.grad for parameter in alone.encoder.parameters() if parameter.grad is not None]
        assert len(grads) == len(together) > 0
        for ours, theirs in zip(together, grads, strict=True):
            torch.testing.assert_close(2 * ours, theirs)


def test_the_likelihood_is_the_mean_over_members() -> None:
    graph, network = random_graph(9, 5), small_network()
    o, t = (network.encode(view, graph, NoiseStream(seeded(2))) for view in ("o", "t"))
    objective = network.objective
    views = list(zip(o.chunk(2, 1), t.chunk(2, 1), strict=True))
    parts = [each.log_likelihood(*own) for each, own in zip(objective.objectives, views, strict=True)]
    torch.testing.assert_close(objective.log_likelihood(o, t), (parts[0] + parts[1]) / 2)
    many = list(objective.log_likelihoods(o, t, iter([t, o])))
    each = [list(own.log_likelihoods(x, y, [y, x])) for own, (x, y) in zip(objective.objectives, views, strict=True)]
    for found, first, second in zip(many, *each, strict=True):
        torch.testing.assert_close(found, (first + second) / 2)


def test_each_member_adds_as_much_to_the_cosine_of_two_nodes() -> None:
    parts = Parts(("encoder",), 5, 8, 4, members=2)
    encoded = torch.randn(6, 8, generator=seeded(3), dtype=torch.float64) * torch.tensor([1.0] * 4 + [100.0] * 4)
    unit = parts.unit(encoded)
    cosines = [F.normalize(part, dim=1) @ F.normalize(part, dim=1).T for part in encoded.chunk(2, 1)]
    torch.testing.assert_close(unit @ unit.T, (cosines[0] + cosines[1]) / 2)


def test_more_members_widen_the_parts_of_the_encoder_alone() -> None:
    data = bgcl.example_graph()
    one, two = (bgcl.BGCL(widths=(16, 8), members=m, epochs=1).fit(data, progress=False) for m in (1, 2))
    assert one.parts_[:4] == two.parts_[:4]
    assert [2 * width for width in one.parts_[4:]] == list(two.parts_[4:])


def test_a_saved_model_has_its_members(tmp_path) -> None:
    data = bgcl.example_graph()
    model = bgcl.BGCL(widths=(16, 8), members=3, epochs=1).fit(data, progress=False)
    model.save(tmp_path / "run")
    assert torch.equal(bgcl.BGCL.load(tmp_path / "run").embed(data), model.embed(data))


def test_relations_and_members_go_together() -> None:
    encoder = make_encoder(5, Settings(encoder="gcn", widths=(6, 4), members=2), relations=2)
    assert isinstance(encoder, Members)
    assert encoder.width == 8
    assert encoder.masked_layers == len(encoder.weight_matrices())


def test_an_encoder_of_ones_own_is_there_once() -> None:
    with pytest.raises(BGCLError, match="leave out 'members'"):
        bgcl.BGCL(encoder=torch.nn.Linear(5, 4), members=2).fit(bgcl.example_graph(), progress=False)
