"""A file of tensors with their SHA-256, in the format of safetensors.

It is written here and not by `safetensors`, which makes a file of its own that has no lock and that only this user may
read, or copies all tensors twice. It is read by `safetensors`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor

from bgcl.checkpoint.contents import CHECKS, checksum
from bgcl.errors import BGCLError
from bgcl.files import Spare, atomic_write

TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


def write_tensor_file(
    path: Path, tensors: Mapping[str, Tensor], checks: dict[str, str], spare: Spare | None = None
) -> None:
    """Write tensors, completely or not at all, with their checksum and some others.

    Eight bytes have the length of the header, which says where each tensor is in the rest of the file.
    """
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    order = sorted(whole, key=lambda name: (-whole[name].element_size(), name))  # so that each is aligned
    header: dict[str, Any] = {"__metadata__": {CHECKS: json.dumps({"tensors": checksum(whole)} | checks)}}
    end = 0
    for name in order:
        tensor = whole[name]
        if tensor.dtype not in TYPES:
            raise BGCLError(f"Cannot save '{name}': it has the type {str(tensor.dtype).removeprefix('torch.')}.")
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with atomic_write(path, spare) as part, part.open("r+b") as file:  # it may have the room of an older file
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(whole[name].reshape(-1).view(torch.uint8).numpy().data)
        file.truncate()


def read_tensor_file(path: Path) -> tuple[dict[str, Tensor], Any]:
    """The tensors of a file, and its checksums, which are not compared."""
    data = path.read_bytes()
    tensors = load(data)  # not `safe_open`: Ctrl-C inside its `get_tensor` becomes an error of the file
    return tensors, checks_in(data[8 : 8 + int.from_bytes(data[:8], "little")])


def read_checks(path: Path) -> Any:
    """The checksums of a file, without its tensors."""
    with path.open("rb") as file:
        return checks_in(file.read(int.from_bytes(file.read(8), "little")))


def checks_in(header: bytes) -> Any:
    """The checksums in the header of a file."""
    return json.loads(json.loads(header).get("__metadata__", {}).get(CHECKS, "{}"))
