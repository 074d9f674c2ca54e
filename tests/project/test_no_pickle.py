"""No module reads or writes a pickle, except the restricted reader of the Planetoid files."""

import ast
from pathlib import Path

import pytest

import bgcl

SOURCE = Path(bgcl.__file__).parent
ALLOWED = {"data/planetoid.py"}
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
# What calls pickle under another name. A keyword that says `allow_pickle=False` or `weights_only=True` does not help a
# reader of the code to be sure, so torch's functions are not used at all.
FUNCTIONS = {("torch", "save"), ("torch", "load")}


def pickles(source: str) -> list[str]:
    """Every use of a pickle in a source text: imports, functions of torch, and `allow_pickle` that is not False."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found += [module] if module.split(".")[0] in MODULES else []
            found += [f"{module}.{name.name}" for name in node.names if (module.split(".")[0], name.name) in FUNCTIONS]
        elif isinstance(node, ast.Attribute):
            first = ast.unparse(node.value).split(".")[0]
            found += [ast.unparse(node)] * ((first, node.attr) in FUNCTIONS or "pickle" in node.attr)
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            is_false = isinstance(node.value, ast.Constant) and node.value.value is False
            found += [] if is_false else ["allow_pickle"]
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_module_has_no_pickle(path):
    found = pickles(path.read_text("utf-8"))
    assert bool(found) == (path.relative_to(SOURCE).as_posix() in ALLOWED), found


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load(f)",
        "torch.save(x, f)",
        "np.load(f, allow_pickle=True)",
        "from torch import load",
        "torch.serialization.load(f)",
        "pandas.read_pickle(f)",
        "frame.to_pickle(f)",
    ],
)
def test_a_pickle_is_found(line):
    assert pickles(line)
    assert not pickles("np.load(f, allow_pickle=False)")
