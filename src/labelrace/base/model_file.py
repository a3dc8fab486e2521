"""The file of a model or tagger: safetensors with a JSON header, and a checksum over all of it that tells damage.

The same header and arrays give the same bytes, and arrays that are made part by part are written so: the library
promises neither, so files are written here, and read by the library. A file is written whole or not at all.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from labelrace import __version__
from labelrace.base.files import atomic_file
from labelrace.exceptions import ModelFileError
from labelrace.typing import Array

# Raise this when older versions of the library could misread what is written.
FORMAT = 1
_HEADER, _CHECKSUM = "labelrace", "checksum"
TYPES = {
    "b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "f2": "F16", "u4": "U32", "i4": "I32", "f4": "F32",
    "u8": "U64", "i8": "I64", "f8": "F64",
}  # fmt: skip
"""The names that the safetensors format has for NumPy's types."""


def new_header(class_name: str) -> dict[str, Any]:
    """Begin the header of a file that holds an object of one of labelrace's public classes."""
    return {"format": FORMAT, "version": __version__, "class": class_name}


def write(path: str | os.PathLike[str], header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Write a header and arrays to a file, whole or not at all."""
    with atomic_file(path) as file:
        for part in file_parts(header, tensors):
            file.write(part)


def file_parts(header: dict[str, Any], tensors: dict[str, Array]) -> Iterator[Any]:
    """Yield the parts of a safetensors file: a JSON header with its length before it, then the arrays.

    Always in one order: the same model gives the same bytes.
    """
    text = json.dumps(header)
    ordered = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    arrays = {name: _in_order(tensors[name]) for name in ordered}
    entries: dict[str, Any] = {"__metadata__": {_HEADER: text, _CHECKSUM: checksum(text, arrays)}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        kind = TYPES[array.dtype.str[1:]]
        entries[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, end]}
    opening = json.dumps(entries, separators=(",", ":")).encode()
    # Spaces up to a multiple of eight, so that the arrays begin at one.
    opening += b" " * (-len(opening) % 8)
    yield struct.pack("<Q", len(opening))
    yield opening
    for array in arrays.values():
        yield from _parts(array)


def size(header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Compute how many bytes the file of a header and arrays has.

    >>> size(new_header("Tagger"), {"state.sums": np.zeros(1000)}) > 8000
    True
    """
    return sum(memoryview(part).nbytes for part in file_parts(header, tensors))


def _in_order(tensor: Any) -> Any:
    """Bring an array into the order of the file; a table is brought part by part, when it is written."""
    return tensor if has_parts(tensor) else np.asarray(tensor, tensor.dtype.newbyteorder("<"), order="C")


def has_parts(tensor: Any) -> bool:
    """Return whether a value is a table that yields its rows some at a time, by a method ``parts``, and no array."""
    return hasattr(tensor, "parts")


def _parts(tensor: Any) -> Iterator[Any]:
    """Yield the bytes of an array at once, and those of a table some rows at a time."""
    for part in tensor.parts() if has_parts(tensor) else (tensor,):
        ordered = _in_order(part)
        yield ordered.data if ordered.size else b""


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read header and arrays, refusing what is not a model of this or an older format."""
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if _HEADER not in metadata:
            raise ModelFileError(f"{path} is a safetensors file, but not a labelrace model.")
        header = json.loads(metadata[_HEADER])
        if not isinstance(header, dict) or not isinstance(header.get("format"), int):
            raise ModelFileError(f"{path} is damaged: its header cannot be read.")
        if header["format"] > FORMAT:
            raise ModelFileError(
                f"{path} was written by labelrace {header.get('version')}, in a newer format than this version "
                f"({__version__}) reads: upgrade labelrace."
            )
        # A copy each: the file may be replaced while the model is in use.
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if metadata.get(_CHECKSUM) != checksum(metadata[_HEADER], tensors):
        raise ModelFileError(f"{path} is damaged: its contents do not fit its checksum.")
    return header, tensors


def checksum(header: str, tensors: dict[str, Array]) -> str:
    """Sum up a file's header and its arrays with their names, types and shapes."""
    total = zlib.crc32(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = zlib.crc32(f"{name} {tensor.dtype.str} {tensor.shape}".encode(), total)
        for part in _parts(tensor):
            total = zlib.crc32(part, total)
    return f"{total:08x}"
