"""What a process does to the disk, one step after another: to end it at any step, or to cut the power there.

Content of a file is safe after fsync of the file, and a name is safe after fsync of its folder. A power cut may keep
or lose everything else: each name, and each block of a content. A file that was renamed may have its old name, its new
name or both, because a folder says nothing of the names in another one. It has one of them, as on every file system
with a journal. Content that was safe stays so until the file is opened to be written: what nobody writes, nobody tears.
"""

import builtins
import io
import json
import os
import random
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bgcl.checkpoint

BLOCK = 512  # bytes that a disk writes as a whole, or not at all
STEPS = ("mkdir", "rmdir", "unlink", "rename", "replace", "link", "open", "fsync")


class Watch:
    """Counts the steps of this process on the disk below the current folder, and hands each on before it is done.

    A step is a dictionary: what is done, the paths relative to the folder, and the content of a file at its fsync. A
    step that fails is followed by the step "failed", which has no number.
    """

    def __init__(self, before: Callable[[int, dict[str, Any]], None]) -> None:
        self.before, self.count, self.folder = before, 0, Path.cwd()
        self.synced: dict[int, int] = {}  # the length of each file at its last fsync

    def install(self) -> None:
        for name in STEPS:
            setattr(os, name, self._watched(name, getattr(os, name)))
        builtins.open = io.open = self._watched_open(io.open)  # type: ignore[assignment]
        save_epoch = bgcl.checkpoint.save_epoch

        def saved(*given: Any) -> None:
            save_epoch(*given)
            self._step("saved", [])

        bgcl.checkpoint.save_epoch = saved

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **more: Any) -> Any:
            if name == "open":
                flags = given[1] if len(given) > 1 else more["flags"]
                if not flags & os.O_CREAT:
                    if flags & (os.O_WRONLY | os.O_RDWR):
                        self._step("content", [self._path(given[0], more)])
                    return real(*given, **more)
            paths = given[:2] if name in ("rename", "replace", "link") else given[:1]
            counted = self._step("rename" if name == "replace" else name, [self._path(each, more) for each in paths])
            try:
                return real(*given, **more)
            except OSError:
                if counted:
                    self.before(-1, {"do": "failed"})
                raise

        return watched

    def _watched_open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(path: Any, mode: str = "r", *given: Any, **more: Any) -> Any:
            if set(mode) & set("wax+") and not isinstance(path, int):
                self._step("content", [self._path(path, {})])
            return real(path, mode, *given, **more)

        return watched

    def _path(self, path: Any, more: dict[str, Any]) -> str:
        if isinstance(path, int):
            return os.readlink(f"/proc/self/fd/{path}")
        if more.get("dir_fd") is not None:
            return os.path.join(os.readlink(f"/proc/self/fd/{more['dir_fd']}"), path)
        return os.path.abspath(path)

    def _step(self, name: str, paths: list[str]) -> bool:
        """Hand a step on, and say whether it is one below the folder."""
        if not all(path == str(self.folder) or path.startswith(f"{self.folder}{os.sep}") for path in paths):
            return False
        step: dict[str, Any] = {"do": name, "paths": [os.path.relpath(path, self.folder) for path in paths]}
        if name == "fsync" and stat.S_ISREG((about := os.stat(paths[0])).st_mode):
            with io.FileIO(paths[0]) as file:
                step["content"] = file.readall().hex()
            step["before"] = self.synced.get(about.st_ino, 0)
            self.synced[about.st_ino] = about.st_size
        self.before(self.count, step)
        self.count += 1
        return True


def record(file: str) -> None:
    """Write every step of this process to a file outside of the folder, one line each."""
    handle = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    Watch(lambda _, step: os.write(handle, json.dumps(step).encode() + b"\n")).install()


def recorded(file: str) -> list[dict[str, Any]]:
    """The steps in a file. One that failed has no effect."""
    steps: list[dict[str, Any]] = []
    for line in Path(file).read_text().splitlines():
        step = json.loads(line)
        if step["do"] == "failed":
            steps[-1] = step | {"paths": []}
        else:
            steps.append(step)
    return steps


def end_at(number: int, torn: float | None) -> None:
    """End this process before its step of a number. If that is an fsync, only a share of what is new is written."""

    def before(count: int, step: dict[str, Any]) -> None:
        if count == number:
            if torn is not None and "content" in step:
                length, old = len(step["content"]) // 2, step["before"]
                os.truncate(step["paths"][0], old + int(torn * (length - old)))
            os.kill(os.getpid(), signal.SIGKILL)

    Watch(before).install()


@dataclass
class _File:
    safe: bytes = b""  # the content at the last fsync
    later: list[tuple[int, bytes]] = field(default_factory=list)  # the contents at all of them, with their steps
    begun: list[int] = field(default_factory=list)  # the steps at which it was opened to be written
    new: bool = False  # whether one of the steps made it


@dataclass
class Disk:
    """The disk in the course of some steps."""

    names: dict[str, _File | None]  # what the process sees; None: a folder
    safe: dict[str, _File | None] = field(default_factory=dict)  # what the disk is sure to have
    pending: list[tuple[str, list[str], _File | None]] = field(default_factory=list)
    saved: int = 0  # epochs that the process took for saved

    @classmethod
    def of(cls, folder: Path) -> "Disk":
        """The disk before the first step."""
        paths = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
        names = {name: _File(path.read_bytes()) if path.is_file() else None for name, path in paths.items()}
        return cls(names, dict(names))

    def run(self, steps: list[dict[str, Any]], until: int) -> None:
        """Take the first steps. The later ones say what was about to be written."""
        for number, step in enumerate(steps):
            if number == until:  # from here on, only to know what the contents would have become
                cut = (dict(self.safe), list(self.pending), self.saved)
                contents = [(file, file.safe) for file in self._files()]
            self._take(number, step)
        if until < len(steps):
            self.safe, self.pending, self.saved = cut
            for file, content in contents:
                file.safe = content

    def _files(self) -> list[_File]:
        files = [*self.names.values(), *self.safe.values(), *(file for *_, file in self.pending)]
        return [file for file in files if file is not None]

    def _take(self, number: int, step: dict[str, Any]) -> None:
        do, paths = step["do"], step["paths"]
        if do == "saved":
            self.saved += 1
        elif do == "content":
            self._file(paths[0]).begun.append(number)
        elif do == "fsync" and "content" in step:
            file = self._file(paths[0])
            file.safe = bytes.fromhex(step["content"])
            file.later.append((number, file.safe))
        elif do == "fsync":
            self._sync_names("" if paths[0] == "." else paths[0])
        elif do != "failed" and not (do == "open" and paths[0] in self.names):
            op = (do, paths, _File(new=True) if do == "open" else None)
            _apply(self.names, *op)
            self.pending.append(op)

    def _file(self, name: str) -> _File:
        """The file of a name. One that is not there yet is made: some libraries open files unseen."""
        file = self.names.get(name)
        if file is None:
            file = _File(new=True)
            op = ("open", [name], file)
            _apply(self.names, *op)
            self.pending.append(op)
        return file

    def _sync_names(self, folder: str) -> None:
        """What fsync of a folder makes safe: its names. The old name of what was moved out of another one may stay."""
        pending = []
        for do, paths, file in self.pending:
            if all(os.path.dirname(path) != folder for path in paths):
                pending.append((do, paths, file))
            elif do == "rename" and os.path.dirname(paths[0]) != folder and self.safe.get(paths[0]) is not None:
                _apply(self.safe, "link", paths, None)
                pending.append(("unlink", paths[:1], None))
            else:
                _apply(self.safe, do, paths, file)
        self.pending = pending

    def after_cut(self, step: int, chance: random.Random) -> dict[str, bytes | None]:
        """One of the states that a power cut may leave: the contents of files, None for folders."""
        names = dict(self.safe)
        how = chance.choice(("none", "all", "first", "any"))
        first = chance.randint(0, len(self.pending)) if how == "first" else len(self.pending) * (how != "none")
        for do, paths, file in self.pending[:first]:
            if how != "any" or chance.random() < 0.5:
                both = do == "rename" and names.get(paths[0]) is not None and chance.random() < 0.25
                _apply(names, "link" if both else do, paths, file)
        found: dict[str, bytes | None] = {}
        for name, file in sorted(names.items()):
            if all(str(parent) in names for parent in list(Path(name).parents)[:-1]):
                found[name] = None if file is None else _content(file, step, chance)
        return found


def _apply(names: dict[str, _File | None], do: str, paths: list[str], file: _File | None) -> None:
    """Do a step on names. What it needs may have been lost, then nothing happens."""
    if do in ("unlink", "rmdir"):
        for name in [name for name in names if name == paths[0] or name.startswith(f"{paths[0]}/")]:
            del names[name]
    elif do in ("open", "mkdir"):
        names.setdefault(paths[0], file)
    elif do == "link":
        if paths[0] in names:
            names[paths[1]] = names[paths[0]]
    elif paths[0] in names:
        below = [name for name in names if name == paths[0] or name.startswith(f"{paths[0]}/")]
        for name in below:
            names[paths[1] + name.removeprefix(paths[0])] = names.pop(name)


def _content(file: _File, step: int, chance: random.Random) -> bytes:
    """What a power cut leaves of a file: the safe content, or something on the way to the next one.

    A file that was not opened since its last fsync is not on the way. It may be overwritten later, as a spare.
    """
    synced = max((number for number, _ in file.later if number < step), default=-1)
    if not (file.new and synced < 0) and not any(synced <= number < step for number in file.begun):
        return file.safe
    after = next((content for number, content in file.later if number >= step), file.safe)
    if after == file.safe:
        return file.safe
    common = next((i for i, (a, b) in enumerate(zip(file.safe, after, strict=False)) if a != b), len(file.safe))
    common = min(common, len(after))
    torn = after[: chance.randint(common, len(after))]
    zeros = after[:common] + bytes(len(after) - common)
    return chance.choice((file.safe, torn, after, zeros, _mixed(file.safe, after, chance)))


def _mixed(old: bytes, new: bytes, chance: random.Random) -> bytes:
    """A content of which any block may be old or new, or zero where the old one has none, and so may the length."""
    size = chance.choice((len(old), len(new)))
    chosen = [chance.choice((old, new))[i : i + BLOCK] for i in range(0, size, BLOCK)]
    return b"".join(block[: size - i * BLOCK].ljust(BLOCK, b"\0") for i, block in enumerate(chosen))[:size]
