"""Structural attributes equal those of plain loops."""

import numpy as np
import pyarrow as pa
from people import dense

import bgcl
from bgcl.data.structure import hashes


def test_structural_attributes_equal_a_plain_loop(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\nann,bob\nbob,eve\nbob,dan\n")
    data = bgcl.load(tmp_path / "e.csv")
    neighbors = {i: data.edge_index[1][data.edge_index[0] == i].tolist() for i in range(4)}
    signs = np.array([[1.0 if (int(h) >> (8 * (j // 8) + 7 - j % 8)) & 1 else -1.0 for j in range(64)]
                      for h in hashes(pa.array(data.ids.tolist()))])  # fmt: skip
    total = np.zeros((4, 64))
    for _ in range(3):
        signs = np.stack([np.mean([signs[n] for n in neighbors[i]], axis=0) for i in range(4)])
        total += signs / np.linalg.norm(signs, axis=1, keepdims=True)
    np.testing.assert_allclose(dense(data)[:, :64], total, atol=1e-5)
    degree = {0: 1, 1: 3, 2: 1, 3: 1}
    at = [data.attribute_names[64 + int(row.argmax())] for row in dense(data)[:, 64:]]
    assert [degree[i] for i in range(4)] == [3 if "2 to 3" in name else 1 for name in at] or sorted(at) == [
        "degree 1", "degree 1", "degree 1", "degree 2 to 3"]  # fmt: skip


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
