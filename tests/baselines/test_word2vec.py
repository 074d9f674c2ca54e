"""DeepWalk and node2vec: the same result in every process, and the two parts of DeepWalk with attributes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bgcl import BGCLError
from bgcl.baselines import baseline
from planted import planted_graph

SMALL = {"width": 8, "walks": 2, "length": 10, "window": 3}

IN_ANOTHER_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from planted import planted_graph
from bgcl.baselines import baseline
for name in ("deepwalk", "node2vec"):
    sys.stdout.write(baseline(name, width=8, walks=2, length=10, window=3, seed=3).fit(planted_graph()).tobytes().hex())
"""


def test_the_hash_seed_of_the_process_changes_nothing() -> None:
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # another one than in this process
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(Path(__file__).parents[1])]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    there = subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout
    here = [baseline(name, **SMALL, seed=3).fit(planted_graph()) for name in ("deepwalk", "node2vec")]
    assert there == "".join(each.tobytes().hex() for each in here)


def test_deepwalk_with_attributes_gives_both_parts_the_same_weight() -> None:
    graph = planted_graph()
    both = baseline("deepwalk-features", **SMALL, seed=1).fit(graph).astype(float)
    parts = [baseline("deepwalk", **SMALL, seed=1).fit(graph), baseline("raw-features").fit(graph)]
    for part, half in zip(parts, (both[:, :8], both[:, 8:]), strict=True):
        assert np.mean([row @ row for row in half]) == pytest.approx(0.5, rel=1e-5)
        scale = half.ravel() @ part.ravel() / np.square(part, dtype=float).sum()
        np.testing.assert_allclose(half, scale * part, atol=1e-6)
    unscaled = baseline("deepwalk-features", **SMALL, seed=1, balanced=False).fit(graph)
    np.testing.assert_array_equal(unscaled, np.hstack(parts))


def test_without_gensim_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(BGCLError, match=r"need gensim: pip install bgcl\[baselines\]"):
        baseline("deepwalk", **SMALL).fit(planted_graph())
