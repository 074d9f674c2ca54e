"""What processes tell each other, and sums in pairs."""

import pytest
import torch
import works

from bgcl import BGCLError
from bgcl.processes.team import PairwiseSum, Team


def test_every_message_arrives(pair):
    found = pair.run(works.tell)
    for rank, (total, rows, texts, sent, number, drawn, share) in enumerate(found):
        assert total == [3.0, 30.0]
        assert rows == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
        assert texts == ["", "é"]
        assert sent == ("text of 0", [0, 1, 2], 1.0)
        assert number == 0.1
        assert drawn == [[float(i)] * 2 for i in range(5)]
        assert share == [[1], [2, 3]][rank]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [((0,), "Process 0: this is wrong in 0"), ((1,), "Process 1: this is wrong in 1"), ((0, 1), "this is wrong in 0")],
)
def test_an_error_of_one_process_is_an_error_of_all_and_is_said_once(pair, ranks, text):
    assert pair.run(works.fail, ranks) == [("BGCLError", text), ("SaidElsewhereError", text)]
    assert pair.run(works.fail, ()) == ["done", "done"]  # they still understand each other


def test_a_process_alone_sends_nothing():
    team = Team()
    tensor = torch.ones(3)
    assert team.sum(tensor) is tensor
    assert team.gather(tensor) is tensor
    assert team.texts("a") == ["a"]
    assert list(team.in_turn(3, lambda numbers: [torch.tensor(i) for i in numbers], ())) == [0, 1, 2]
    with pytest.raises(BGCLError, match="as it is"), team.agreed():
        raise BGCLError("as it is")
    assert team.sent == 0


@pytest.mark.parametrize("count", range(9))
def test_shares_are_whole_in_order_and_differ_by_one_at_most(count):
    for size in range(1, 6):
        shares = [Team(rank, size).share(list(range(count))) for rank in range(size)]
        assert [item for share in shares for item in share] == list(range(count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("count", range(1, 18))
def test_a_sum_in_pairs_is_the_sum(count):
    vectors = torch.randn(count, 50, generator=torch.Generator().manual_seed(count), dtype=torch.float64)
    total = PairwiseSum()
    for vector in vectors.clone():
        total.add(vector)
    torch.testing.assert_close(total.total(), vectors.sum(0))


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_the_sums_of_two_halves_add_up_to_the_sum_bit_for_bit(count):
    vectors = torch.randn(count, 1000, generator=torch.Generator().manual_seed(count))

    def total(some: torch.Tensor) -> torch.Tensor:
        found = PairwiseSum()
        for vector in some.clone():
            found.add(vector)
        return found.total()

    assert torch.equal(total(vectors), total(vectors[: count // 2]) + total(vectors[count // 2 :]))
    if count > 4:
        assert not torch.equal(total(vectors), sum(vectors)), "any order would do"


def test_nothing_has_no_sum():
    assert PairwiseSum().total() is None
