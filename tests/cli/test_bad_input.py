"""Bad input is one clear line and exit code 2 in every command."""

import pytest

from command_line import check_refused

BAD = {
    "unknown data set": (["train", "coar"], "Unknown data set 'coar'. Did you mean cora?"),
    "unknown preset": (["train", "cora", "--preset", "corra"], "Unknown preset 'corra'. Did you mean cora?"),
    "setting out of range": (["train", "cora", "--set", "tau=0"], "'tau' must be a number between 0.02 and 100. Got 0"),
    "epochs out of range": (["train", "cora", "--epochs", "-1"], "'epochs' must be a whole number between 1 and"),
    "unknown setting": (["train", "cora", "--set", "tua=1"], "Unknown setting 'tua'. Did you mean tau?"),
    "no equals sign": (["train", "cora", "--set", "tau"], "write NAME=VALUE"),
    "unknown mask": (["train", "cora", "--drop", "edgse at 0.1"], "Unknown mask 'edgse'"),
    "rate out of range": (["train", "cora", "--drop", "edges at 1.5"], "must be between 0 and 1"),
    "not a run": (["embed", "nowhere", "--out", "e.npz"], "nowhere is not a run"),
    "resume of nothing": (["train", "cora", "--resume", "--out", "nowhere"], "nowhere is not a run"),
    "wrong ending": (["embed", "nowhere", "--out", "e.txt"], "must end in .csv, .parquet or .json"),
    "unknown command": (["trian"], "No such command 'trian'"),
    "unknown option": (["train", "cora", "--bogus"], "No such option"),
    "missing argument": (["train"], "Missing argument"),
    "a file that does not exist": (["train", "missing.npz"], "missing.npz"),
    "no epochs": (["train", "cora", "--epochs", "0"], "'epochs' must be a whole number between 1 and"),
    "nothing to drop": (["train", "cora", "--set", "drop=[]"], "'drop' must be"),
    "a preset as a setting": (["train", "cora", "--set", "preset=cora"], "Name a preset with --preset"),
    "resume with a preset": (["train", "cora", "--resume", "--preset", "cora"], "leave out --preset and --overwrite"),
    "a name that is far too long": (["train", "x" * 5000], "x"),
    "a device that does not exist": (["train", "cora", "--set", "device=moon"], "device"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(run, name):
    arguments, message = BAD[name]
    check_refused(run(*arguments), message)
