"""Bad input is one clear line and exit code 2 in every command."""

import pytest

from command_line import check_refused

BAD = {
    "unknown data set": (["train", "coar"], "Unknown data set 'coar'. Did you mean cora?"),
    "unknown preset": (
        ["train", "cora", "--preset", "paper-corra"],
        "Unknown preset 'paper-corra'. Did you mean paper-cora or ",
    ),
    "setting out of range": (
        ["train", "cora", "--set", "tau=0"],
        "'tau' must be a number between 0.02 and 100, or None. Got 0",
    ),
    "epochs out of range": (["train", "cora", "--epochs", "-1"], "'epochs' must be a whole number between 1 and"),
    "unknown setting": (["train", "cora", "--set", "tua=1"], "Unknown setting 'tua'. Did you mean tau?"),
    "no equals sign": (["train", "cora", "--set", "tau"], "write NAME=VALUE"),
    "unknown encoder": (["train", "cora", "--set", "encoder=gat2"], "Unknown encoder 'gat2'. Did you mean gat?"),
    "a list as an encoder": (["train", "cora", "--set", "encoder=[1]"], "'encoder' must be mlp, gcn, hops"),
    "setting of another encoder": (["train", "cora", "--set", "hops=3"], "'mlp' does not have the setting 'hops'"),
    "unknown mask": (["train", "cora", "--drop", "edgse at 0.1"], "Unknown mask 'edgse'"),
    "rate out of range": (["train", "cora", "--drop", "edges at 1.5"], "must be between 0 and 1"),
    "not a run": (["embed", "nowhere", "--out", "e.npz"], "nowhere is not a run"),
    "resume of nothing": (["train", "cora", "--resume", "--out", "nowhere"], "nowhere is not a run"),
    "wrong ending": (["embed", "nowhere", "--out", "e.txt"], "must end in .npz, .csv, .parquet or .json"),
    "unknown command": (["trian"], "No such command 'trian'"),
    "unknown option": (["train", "cora", "--bogus"], "No such option"),
    "missing argument": (["train"], "Missing argument"),
    "a file that does not exist": (["train", "missing.npz"], "missing.npz"),
    "no epochs": (["train", "cora", "--epochs", "0"], "'epochs' must be a whole number between 1 and"),
    "nothing to drop": (["train", "cora", "--set", "drop=[]"], "'drop' must be"),
    "a preset as a setting": (["train", "cora", "--set", "preset=paper-cora"], "Name a preset with --preset"),
    "resume with a preset": (
        ["train", "cora", "--resume", "--preset", "paper-cora"],
        "leave out --preset and --overwrite",
    ),
    "a name that is far too long": (["train", "x" * 5000], "x"),
    "a device that does not exist": (["train", "cora", "--set", "device=moon"], "device"),
    "a device that cannot compute": (["train", "cora", "--set", "device=meta"], "must be cpu, cuda, mps or xpu"),
    "too many blocks": (
        ["train", "cora", "--set", "encoder=gcn", "--drop", "connections in 1000000000 blocks"],
        "at most 1,024 blocks",
    ),
    "a network that does not fit": (["train", "cora", "--set", f"widths={[65536] * 16}", "-q"], "Lower 'widths'"),
    "lists in lists": (["train", "cora", "--set", "drop=" + "[" * 1500], "no setting takes such a value"),
    "thousands of digits": (["train", "cora", "--set", "seed=" + "9" * 4500], "4,500 characters"),
    "a setting that is no UTF-8": (["train", "cora", "--set", "drop=\udcff"], "'drop=\\udcff': it is not valid UTF-8"),
    "a mask that is no UTF-8": (["train", "cora", "--drop", "\udcff"], "--drop '\\udcff': it is not valid UTF-8"),
    "a setting twice": (["train", "cora", "--set", "tau=1", "--set", "tau=2"], "'tau' is given twice"),
    "a setting as option and as --set": (["train", "cora", "--epochs", "1", "--set", "epochs=2"], "given twice"),
    "an option twice": (["train", "cora", "--epochs", "1", "--epochs", "2"], "--epochs is given 2 times"),
    "an option and its opposite": (["embed", "r", "--out", "e.npz", "--draws", "--no-draws"], "given 2 times"),
    "an empty folder": (["train", "cora", "--out", ""], "The value of --out is empty"),
    "an empty graph": (["train", " "], "The value of GRAPH is empty"),
    "an empty column": (["inspect", "cora", "--ignore="], "The value of --ignore is empty"),
    "an empty name": (["data", "get", ""], "The value of NAME is empty"),
    "words of a data set": (["inspect", "cora", "--words", "2000"], "cora is not a table"),
    "nodes without a graph": (["embed", "r", "--out", "e.csv", "--nodes", "n.csv"], "give --graph too"),
    "a run twice": (["evaluate", "r", "./r"], "is named twice"),
    "a trillion samples": (["predict", "r", "--out", "p.csv", "--samples", str(10**12)], "at most 10,000"),
    "a seed beyond 64 bits": (["rank", "r", "--by", "disagreement", "--seed", str(2**64)], "The seed must be"),
    "clusters without batches": (["train", "cora", "--set", "clusters_per_batch=5"], "has no effect without batches"),
    "rates that are not learned": (["train", "cora", "--drop", "entries at 0.1", "--set", "prior=2"], "are fixed"),
    "parts of the encoder alone": (["train", "cora", "--set", "encoder=gcn", "--set", "part_width=9"], "no effect if"),
    "a safe form of a table that has none": (
        ["predict", "r", "--out", "p.json", "--spreadsheet-safe"],
        "for .csv files",
    ),
    "a safe form of no file": (["rank", "r", "--spreadsheet-safe"], "name one with --out"),
    "seeds of a quick test": (["reproduce", "table1", "--quick", "--seeds", "3"], "leave out --seeds"),
    "splits of a figure without": (["reproduce", "astd", "--splits", "3"], "leave out --splits"),
    "seeds of a method without": (["reproduce", "table1", "--methods", "dgi", "--seeds", "3"], "leave out --seeds"),
    "a list of no names": (["reproduce", "table1", "--datasets", ","], "--datasets has no name"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(run, name):
    arguments, message = BAD[name]
    check_refused(run(*arguments), message)
