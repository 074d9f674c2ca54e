"""Structural attributes equal those of plain loops."""

import numpy as np
import pyarrow as pa
from people import dense

import bgcl
from bgcl.data.structure import COLUMNS, DEGREES, hashes


def test_structural_attributes_equal_a_plain_loop(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\nann,bob\nbob,eve\nbob,dan\n")
    data = bgcl.load(tmp_path / "e.csv")
    column = [int(h) % COLUMNS for h in hashes(pa.array(data.ids.tolist()))]
    expected = np.zeros((4, COLUMNS + DEGREES))
    for i in range(4):
        neighbors = data.edge_index[1][data.edge_index[0] == i].tolist()
        for node in [i, *neighbors]:
            expected[i, column[node]] += 1
        expected[i, COLUMNS + {1: 1, 3: 2}[len(neighbors)]] = 1  # classes: 0, 1, 2 to 3, ...
    np.testing.assert_array_equal(dense(data), expected)
    assert data.attribute_names[COLUMNS : COLUMNS + 3] == ["degree 0", "degree 1", "degree 2 to 3"]


def test_the_attributes_of_a_node_do_not_change_when_other_nodes_come(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\nann,bob\nbob,eve\n")
    before = bgcl.load(tmp_path / "e.csv")
    (tmp_path / "e.csv").write_text("a,b\nzoe,dan\nann,bob\nbob,eve\n")
    after = bgcl.load(tmp_path / "e.csv")
    for i, name in enumerate(before.ids):
        np.testing.assert_array_equal(dense(before)[i], dense(after)[list(after.ids).index(name)])


def test_hashes_of_text_equal_a_plain_loop():
    def plain(text: str) -> int:
        value, power, bits = 0, 1, (1 << 64) - 1
        for byte in text.encode():
            power = power * 0x100000001B3 & bits
            value = value + (byte + 1) * power & bits
        value = value + 0x9E3779B97F4A7C15 & bits
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & bits
        value = (value ^ value >> 27) * 0x94D049BB133111EB & bits
        return value ^ value >> 31

    names = ["ann", "a", "übermaß", "x" * 40]
    assert hashes(pa.array(names)).tolist() == [plain(name) for name in names]
    assert hashes(pa.array(["-", *names]).slice(1)).tolist() == [plain(name) for name in names]
