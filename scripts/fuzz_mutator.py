"""Changes files at random, for `scripts/fuzz.py`. The same seed gives the same changes."""

import gzip
import hashlib
import io
import random
import re
import zipfile

LARGEST = 1 << 16  # bytes of an input
WORDS = [
    b"", b"\0", b"\r", b"\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\x28", b",", b'"', b"\t", b"NaN", b"inf", b"-1", b"0",
    b"1e308", b"1e400", b"9" * 20, b"9" * 400, b"18446744073709551615", b"-9223372036854775808", b"null", b"{}",
    b"[]", b"[" * 500, b"{" * 500, b"None", b"id", b"source", b"target", b"label", b"x" * 5000, b"\xe2\x80\xae", b"<",
    b"&a;", b"\x80\x04", b"\x93NUMPY", b"PK\x03\x04", b"PAR1", b"<!DOCTYPE a [<!ENTITY a 'b'>]>", b"0x10", b"1_0",
]  # fmt: skip


class Mutator:
    """Changes bytes at random: flips, cuts, repeats, splices, and words that readers stumble over."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def change(self, name: str, data: bytes, others: list[bytes]) -> bytes:
        """A changed file. Half of the packed files are changed inside, so that their checksums stay right."""
        if name.endswith(".gz") and self.random.random() < 0.6:
            return gzip.compress(self.bytes(gzip.decompress(data), others), 1)
        if name.endswith(".npz") and self.random.random() < 0.6:
            return self._in_zip(data)
        changed = self.bytes(data, others)
        if name == "model.toml" and self.random.random() < 0.7:
            changed = _with_checksum(changed)
        return changed

    def bytes(self, data: bytes, others: list[bytes]) -> bytes:
        """Data after one to four changes."""
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            data = self.random.choice(self._changes)(self, data, others)
        return data[:LARGEST]

    def _place(self, data: bytes) -> tuple[int, int]:
        start = self.random.randrange(len(data) + 1)
        return start, min(len(data), start + self.random.choice((0, 1, 1, 2, 4, 16, 100)))

    def _flip(self, data: bytes, _: list[bytes]) -> bytes:
        found = bytearray(data)
        for _i in range(self.random.choice((1, 1, 2, 8)) if data else 0):
            found[self.random.randrange(len(found))] ^= 1 << self.random.randrange(8)
        return bytes(found)

    def _cut(self, data: bytes, _: list[bytes]) -> bytes:
        return data[: self.random.randrange(len(data) + 1)]

    def _remove(self, data: bytes, _: list[bytes]) -> bytes:
        start, end = self._place(data)
        return data[:start] + data[end:]

    def _repeat(self, data: bytes, _: list[bytes]) -> bytes:
        start, end = self._place(data)
        return data[:end] + data[start:end] * self.random.choice((1, 2, 10, 300)) + data[end:]

    def _word(self, data: bytes, _: list[bytes]) -> bytes:
        start, end = self._place(data)
        return data[:start] + self.random.choice(WORDS) + data[self.random.choice((start, end)) :]

    def _number(self, data: bytes, _: list[bytes]) -> bytes:
        """Another number in the place of one."""
        places = list(re.finditer(rb"-?[0-9][0-9.e+-]*", data))
        if not places:
            return data
        chosen = self.random.choice(places)
        new = self.random.choice((b"-1", b"0", b"1e400", b"NaN", b"1.5", b"2", b"9" * 20, b"9" * 5000, b"4294967296"))
        return data[: chosen.start()] + new + data[chosen.end() :]

    def _splice(self, data: bytes, others: list[bytes]) -> bytes:
        other = self.random.choice(others)
        return data[: self._place(data)[0]] + other[self._place(other)[0] :]

    _changes = (_flip, _flip, _cut, _remove, _repeat, _word, _word, _number, _number, _splice)

    def _in_zip(self, data: bytes) -> bytes:
        """Another member of an archive: changed, removed, or under another name."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = self.random.choice(list(members))
        action = self.random.random()
        member = members.pop(name)
        if action < 0.8:
            members[name] = self.bytes(member, list(members.values()) or [b""])
        elif action < 0.9 and members:
            members[self.random.choice(list(members))] = member
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for key, value in members.items():
                archive.writestr(key, value)
        return packed.getvalue()


def _with_checksum(data: bytes) -> bytes:
    """The text of `model.toml` with the right checksum in its first line, as a forger would write it."""
    rest = data.partition(b"\n")[2]
    return b'sha256 = "' + hashlib.sha256(rest).hexdigest().encode() + b'"\n' + rest
