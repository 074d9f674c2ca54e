"""A pack is trained, embedded and classified with less memory than its attributes take."""

import sys
from pathlib import Path
from subprocess import run

import pytest
import torch
from torch_geometric.data import Data

from bgcl.data.packing import pack_data
from bgcl.data.pyg import check_graph

NODES, ATTRIBUTES = 12_000, 1000  # 48 MB; scaled, 144 MB
ROOM = 110  # MB, beyond what the libraries take

IN_LITTLE_MEMORY = """
import resource, sys
import torch
torch.set_num_threads(1)
import bgcl, bgcl.estimator, bgcl.downstream
from bgcl.packed import slabs
slabs.BLOCK_BYTES = 1 << 22
data = bgcl.load(sys.argv[1]) if sys.argv[3] == "pack" else None
small = bgcl.BGCL(widths=(8, 4), part_width=4, epochs=1, drop=("entries at 0.2",))
small.fit(bgcl.example_graph(), progress=False)  # loads what is loaded on first use
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData"))
limit = 1024 * used + int(sys.argv[2]) * 10**6
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
if data is None:  # what a graph in memory would need
    pack = bgcl.load(sys.argv[1])
    data = type(pack)(x=pack.x.clone(), edge_index=pack.edge_index.clone(), y=pack.y.clone())
model = bgcl.BGCL(widths=(16, 8), part_width=8, epochs=1, batch_nodes=64, until_settled=False,
    drop=("entries at 0.2", "neighbors at 0.2"), parts=("attributes",
    "attributes hop 1", "structure hop 1", "encoder", "encoder diffused"))
model.fit(data, progress=False)
result, = bgcl.evaluate(model, data, "grace", 1, samples=4)
print(result.scores()["accuracy"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (NODES,), generator=generator)
    x = torch.randn(NODES, ATTRIBUTES, generator=generator)
    x[:, :90] += torch.nn.functional.one_hot(y, 3).repeat(1, 30)
    edges = torch.randint(NODES, (2, 3 * NODES), generator=generator)
    return pack_data(check_graph(Data(x=x, y=y, edge_index=edges)), tmp_path_factory.mktemp("wide") / "pack").folder


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is that of Linux")
def test_a_pack_larger_than_the_memory_is_trained_and_classified(folder: Path):
    done = run([sys.executable, "-c", IN_LITTLE_MEMORY, folder, str(ROOM), "pack"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) > 0.9


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is that of Linux")
def test_the_same_graph_in_memory_does_not_fit(folder: Path):
    done = run([sys.executable, "-c", IN_LITTLE_MEMORY, folder, str(ROOM), "memory"], capture_output=True, text=True)
    assert done.returncode != 0
    assert any(word in done.stderr for word in ("not enough memory", "MemoryError", "can't allocate", "would need"))
