"""Fixtures: a machine without data, a local server, and the folder with the larger data sets."""

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bgcl.data import fetch, store

LARGER = Path(os.environ["BGCL_DATA"]) if os.environ.get("BGCL_DATA") else None


@pytest.fixture
def larger() -> Path:
    """The folder with the larger data sets."""
    if LARGER is None:
        pytest.skip("$BGCL_DATA is not set")
    return LARGER


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without $BGCL_DATA and with an empty cache. Downloads do not pause. Returns the cache folder."""
    monkeypatch.delenv("BGCL_DATA", raising=False)
    cache = tmp_path / "cache" / "bgcl"
    monkeypatch.setattr(store, "cache_folder", lambda: cache)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(fetch, "INSECURE", ())  # the local server has no certificate
    return cache


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of a local server for its files."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Announces twice the length of files with `broken` in their name, as if the connection broke off."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == "Content-Length" and "broken" in self.path:
            value = str(2 * int(value))
        super().send_header(keyword, value)
