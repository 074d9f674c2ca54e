"""Downloads: three attempts with pauses, refusals are final, and a failure leaves nothing behind."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bgcl.data import DATASETS, fetch

CONTENT = bytes(range(256)) * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next planned answer: a status, an address to go to, or what is wrong."""

    plan: list[int | str]
    agents: list[str]

    def do_GET(self) -> None:
        self.agents.append(self.headers["User-Agent"])
        answer = self.plan.pop(0)
        if isinstance(answer, str) and "://" in answer:
            self.send_response(302)
            self.send_header("Location", answer)
            self.end_headers()
            return
        if isinstance(answer, int) and answer != 200:
            self.send_error(answer)
            return
        self.send_response(200)
        if answer == "strange length":
            self.send_header("Content-Length", "abc")
        elif answer != "no length":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if answer == "broken" else CONTENT)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, type[Handler]]]:
    """The address of a file, and the handler that answers requests."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "INSECURE", ())  # the local server has no certificate
    handler = type("PlannedHandler", (Handler,), {"plan": [], "agents": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/folder/file.bin", handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which take no time."""
    found: list[float] = []
    monkeypatch.setattr(fetch.time, "sleep", found.append)
    return found


@pytest.mark.parametrize("failures", [[], [503], ["broken"], [500, "broken"]])
def test_a_download_succeeds_at_the_latest_in_the_third_attempt(failures, server, pauses, tmp_path: Path):
    address, handler = server
    handler.plan[:] = [*failures, 200]
    fetch.download([address], tmp_path, quiet=True)
    assert [file.name for file in tmp_path.iterdir()] == ["file.bin"]
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert pauses == [1.0, 2.0][: len(failures)]
    assert set(handler.agents) == {"bgcl"}


@pytest.mark.parametrize(
    ("answer", "attempts", "says"),
    [
        (404, 1, "the server answered 404, Not Found"),
        (403, 1, "the server answered 403, Forbidden"),
        (503, 3, "the server answered 503, Service Unavailable"),
        ("broken", 3, f"only {len(CONTENT) // 2} of {len(CONTENT)} bytes arrived"),
    ],
)
def test_a_failure_is_a_one_line_error_and_leaves_nothing(answer, attempts, says, server, pauses, tmp_path: Path):
    address, handler = server
    handler.plan[:] = [answer] * 5
    with pytest.raises(fetch.DownloadError) as error:
        fetch.download([address], tmp_path, quiet=True)
    assert str(error.value) == f"{address} could not be downloaded ({says})"
    assert len(handler.agents) == attempts
    assert pauses == [1.0, 2.0][: attempts - 1]
    assert list(tmp_path.iterdir()) == []


def test_the_error_has_the_first_cause_only(pauses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "INSECURE", ())
    with pytest.raises(fetch.DownloadError, match=r"downloaded \(\[Errno \d+\] Connection refused\)$"):
        fetch.download(["http://127.0.0.1:9/file.bin"], tmp_path, quiet=True)
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize("answer", ["no length", "strange length"])
def test_a_server_need_not_announce_the_length(answer, server, tmp_path: Path):
    address, handler = server
    handler.plan[:] = [answer]
    fetch.download([address], tmp_path, quiet=True)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("quiet", [True, False])
def test_only_a_download_that_is_not_quiet_shows_progress(
    quiet, server, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    address, handler = server
    handler.plan[:] = [200]
    fetch.download([address], tmp_path, quiet=quiet)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "" if quiet else "file.bin" in err


def test_only_https_is_used(tmp_path: Path):
    with pytest.raises(
        fetch.DownloadError, match=r"http://127.0.0.1:9/x is not downloaded: it does not begin with https"
    ):
        fetch.download(["http://127.0.0.1:9/x"], tmp_path, quiet=True)


def test_only_https_is_used_after_a_redirect(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    address, handler = server
    monkeypatch.setattr(fetch, "INSECURE", ("http://localhost",))  # stands for every address without a certificate
    handler.plan[:] = ["http://localhost:9/elsewhere.bin"]
    with pytest.raises(fetch.DownloadError, match=r"http://localhost:9/elsewhere.bin is not downloaded"):
        fetch.download([address], tmp_path, quiet=True)
    assert len(handler.agents) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", [200, "no length"])
@pytest.mark.parametrize(
    ("limit", "says"), [("MOST_BYTES", "it has more than"), ("MOST_SECONDS", "it takes more than")]
)
def test_a_download_has_limits(answer, limit, says, server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    address, handler = server
    monkeypatch.setattr(fetch, limit, 0.0)
    handler.plan[:] = [answer]
    with pytest.raises(fetch.DownloadError, match=says):
        fetch.download([address], tmp_path, quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_every_file_of_the_catalog_has_a_secure_address_and_a_checksum():
    assert all(address.startswith("https://") for dataset in DATASETS.values() for address in dataset.addresses)
    assert all(len(dataset.addresses) == len(dataset.file_ids) for dataset in DATASETS.values())
