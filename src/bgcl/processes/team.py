"""The processes that work on one model together, and what they tell each other over `torch.distributed`.

Sums of gradients go over the backend of their device: gloo on CPUs, nccl on GPUs. Texts and tensors of the main process
go over gloo. No object is pickled.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor

from bgcl.errors import BGCLError, LostProcessError, SaidElsewhereError

T = TypeVar("T")


class Team:
    """Processes that do the same work. Each has a rank from 0 on, and the one of rank 0 is the main process.

    Args:
        rank: the rank of this process.
        size: how many processes there are.

    Attributes:
        sent: bytes of gradients that this process has handed to sums.

    >>> team = Team.current()
    >>> team.size, team.is_main, team.share(["a", "b"])
    (1, True, ['a', 'b'])
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size, self.sent = rank, size, 0

    @classmethod
    def current(cls) -> "Team":
        """The processes of `torch.distributed`, if it is in use; else this process alone."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.rank == 0

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """The items of this process: a piece of the sequence, as long as that of every other process, or one longer."""
        return items[self._start(len(items), self.rank) : self._start(len(items), self.rank + 1)]

    def _start(self, items: int, rank: int) -> int:
        return rank * items // self.size

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            self.sent += tensor.nbytes
            with _connected():
                dist.all_reduce(tensor)
        return tensor

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes, one process after the other. Each may have another number of rows."""
        if self.size == 1:
            return rows
        counts = [int(text) for text in self.texts(str(len(rows)))]
        found = [rows.new_empty(count, *rows.shape[1:]) for count in counts]
        found[self.rank] = rows.contiguous()
        self.sent += rows.nbytes
        with _connected():
            for rank, piece in enumerate(found):
                dist.broadcast(piece, rank)
        return torch.cat(found)

    def texts(self, text: str) -> list[str]:
        """The texts of all processes."""
        if self.size == 1:
            return [text]
        own = torch.from_numpy(np.frombuffer(text.encode(), np.uint8).copy())
        with _connected():
            lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
            dist.all_gather(lengths, torch.tensor([len(own)]))
            longest = max(max(map(int, lengths)), 1)
            found = [torch.zeros(longest, dtype=torch.uint8) for _ in range(self.size)]
            dist.all_gather(found, torch.nn.functional.pad(own, (0, longest - len(own))))
        return [bytes(piece[: int(n)].tolist()).decode() for piece, n in zip(found, lengths, strict=True)]

    def from_main(self, text: str, tensors: dict[str, Tensor] | None = None) -> tuple[str, dict[str, Tensor]]:
        """A text and tensors of the main process. What the others give is not used."""
        return self._from(0, text, tensors or {})

    def arrays_of_all(self, own: Sequence[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """What each process has a list of, arrays by name, one process after the other. All of them get it."""
        every = {
            f"{i}.{name}": torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))
            for i, arrays in enumerate(own)
            for name, array in arrays.items()
        }
        found = []
        for rank in range(self.size):
            count, theirs = self._from(rank, str(len(own)), every)
            found += [
                {key.partition(".")[2]: t.numpy() for key, t in theirs.items() if key.partition(".")[0] == str(i)}
                for i in range(int(count))
            ]
        return found

    def _from(self, rank: int, text: str, tensors: dict[str, Tensor]) -> tuple[str, dict[str, Tensor]]:
        """A text and tensors of one process. What the others give is not used."""
        if self.size == 1:
            return text, tensors
        data = safetensors.torch.save(tensors, {"text": json.dumps(text)}) if self.rank == rank else b""
        with _connected():
            length = torch.tensor([len(data)])
            dist.broadcast(length, rank)
            found = torch.from_numpy(np.frombuffer(data, np.uint8).copy()) if data else None
            found = torch.empty(int(length), dtype=torch.uint8) if found is None else found
            dist.broadcast(found, rank)
        if self.rank == rank:
            return text, tensors
        received = found.numpy().tobytes()
        header = json.loads(received[8 : 8 + int.from_bytes(received[:8], "little")])
        return json.loads(header["__metadata__"]["text"]), safetensors.torch.load(received)

    def number_from_main(self, number: float) -> float:
        """A number of the main process."""
        return float.fromhex(self.from_main(float(number).hex())[0])

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """Work that fails in all processes if it fails in one. In it, nothing may be sent.

        Raises:
            BGCLError: the error of the first process that has one. All but the main process raise the subclass
                `SaidElsewhereError`, so that the error is printed once.
        """
        found: BGCLError | OSError | MemoryError | None = None
        try:
            yield
        except (BGCLError, OSError, MemoryError) as error:
            if self.size == 1:
                raise
            found = error
        if self.size == 1:
            return
        errors = self.texts("" if found is None else str(found) or type(found).__name__)
        rank, text = next(((rank, text) for rank, text in enumerate(errors) if text), (0, ""))
        if text:
            text = text if all(errors) else f"Process {rank}: {text}"
            raise (BGCLError if self.is_main else SaidElsewhereError)(text) from found

    def check_same(self, what: dict[str, str]) -> None:
        """Raise an error in all processes if one has other values than the main process.

        Args:
            what: values by the names that the error gives them.
        """
        if self.size == 1:
            return
        every: list[dict[str, str]] = [json.loads(text) for text in self.texts(json.dumps(what))]
        with self.agreed():
            for rank, values in enumerate(every):
                other = [name for name in every[0] | values if values.get(name) != every[0].get(name)]
                if other:
                    raise BGCLError(
                        f"Process {rank} does not agree with process 0 about {' and '.join(other)}, so all have "
                        "stopped. Start all with the same command, on the same files and versions."
                    )

    def dealt(self, items: Sequence[T]) -> Sequence[T]:
        """The items of this process: every n-th of them, if there are n processes."""
        return items[self.rank :: self.size]

    def in_turn(
        self, count: int, make: Callable[[Iterable[int]], Iterable[Tensor]], shape: Sequence[int], device: str = "cpu"
    ) -> Iterator[Tensor]:
        """`count` tensors in their order, in every process. Each process makes those whose numbers it gets.

        Args:
            count: how many tensors.
            make: makes the tensors of some numbers.
            shape: the shape of each.
            device: where they are made.
        """
        if self.size == 1:
            yield from make(range(count))
            return
        own = iter(make(self.dealt(range(count))))
        for first in range(0, count, self.size):
            mine = next(own).contiguous() if first + self.rank < count else None
            for rank in range(min(self.size, count - first)):
                found = mine if rank == self.rank and mine is not None else torch.empty(*shape, device=device)
                with _connected():
                    dist.broadcast(found, rank)
                yield found


class PairwiseSum:
    """The sum of vectors in pairs, of pairs in pairs, and so on: as several processes add up their shares of them.

    So one process and two have the same sum, bit for bit, if the number of vectors is a power of two.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[int, Tensor]] = []  # how many vectors are in each, and their sum

    def add(self, vector: Tensor) -> None:
        """Add one vector, which is overwritten."""
        count = 1
        while self._pieces and self._pieces[-1][0] == count:
            _, before = self._pieces.pop()
            vector, count = before.add_(vector), 2 * count
        self._pieces.append((count, vector))

    def total(self) -> Tensor | None:
        """The sum; None if there is nothing in it."""
        found: Tensor | None = None
        for _, piece in reversed(self._pieces):
            found = piece if found is None else found + piece
        return found


@contextmanager
def _connected() -> Iterator[None]:
    """Turn an error of the connection into a `LostProcessError`."""
    try:
        yield
    except RuntimeError as error:
        if "allocate memory" in str(error) or "out of memory" in str(error):
            raise
        raise LostProcessError("Another process of this work has ended.") from error
