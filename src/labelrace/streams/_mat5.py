"""Matrices of real numbers out of MATLAB files of versions 5 to 7.

SciPy's `loadmat` reads far more, but a damaged file can crash the whole process in it. This reads plain and sparse
matrices only, and looks before it steps: whatever is wrong is a ValueError (or zlib's own error).

A file is a header of 128 bytes and then elements: a tag of type and length, then as many bytes. A matrix is an
element made of elements: flags, sizes, name, and numbers; a sparse one has rows and column starts before the numbers.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array

from labelrace.typing import AnyMatrix, Array

__all__ = ["read_matrices"]

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SPARSE, _DENSE = 5, range(6, 16)
_COMPLEX = 0x800


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_matrices(content: bytes, names: tuple[str, ...]) -> dict[str, AnyMatrix | None]:
    """Return the variables of these names that the file has, None in the place of one that is no matrix of numbers.

    Parameters
    ----------
    content : bytes
        The whole file.
    names : tuple of str
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None or struct.unpack(f"{order}H", content[124:126])[0] >> 8 != 1:
        raise ValueError("not of version 5, 6 or 7")
    found: dict[str, AnyMatrix | None] = {}
    for element in _elements(memoryview(content)[_HEADER:], order):
        if element.kind == _COMPRESSED:
            (element,) = _elements(memoryview(zlib.decompress(element.data)), order)
        if element.kind == _MATRIX:
            parts = _elements(element.data, order)
            flags, sizes, name = (_numbers(next(parts, _Element(0, element.data)), order) for _ in range(3))
            text = bytes(name.astype(np.uint8)).decode("latin-1")
            if text in names:
                found[text] = _matrix(int(flags[0]), tuple(sizes.tolist()), parts, order)
    return found


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """Yield the elements that fill the data."""
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise ValueError("it ends within a tag")
        kind, length = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:
            # A short element: type and length share one number, and the data are where the length would be.
            kind, length, start, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if length > 4:
                raise ValueError("a short element is too long")
        else:
            start = at + 8
            after = start + length + (0 if kind == _COMPRESSED else -length % 8)
        if start + length > len(data):
            raise ValueError("it ends within an element")
        yield _Element(kind, data[start : start + length])
        at = after


def _numbers(element: _Element, order: str) -> Array:
    if element.kind not in _NUMBERS:
        raise ValueError(f"an element of type {element.kind} where numbers should be")
    numbers: Array = np.frombuffer(element.data, dtype=order + _NUMBERS[element.kind])
    return numbers.astype(numbers.dtype.newbyteorder("="))


def _matrix(flags: int, shape: tuple[int, ...], parts: Iterator[_Element], order: str) -> AnyMatrix | None:
    kind = flags & 0xFF
    if len(shape) != 2 or min(shape) < 0 or flags & _COMPLEX or not (kind == _SPARSE or kind in _DENSE):
        return None
    arrays = [_numbers(part, order) for part in parts]
    if kind != _SPARSE:
        if len(arrays) != 1 or arrays[0].size != prod(shape):
            raise ValueError(f"not as many numbers as a matrix of {shape[0]} × {shape[1]} has")
        return arrays[0].reshape(shape, order="F")
    rows, starts, values = arrays
    if starts.size != shape[1] + 1:
        raise ValueError(f"not as many column starts as a matrix of {shape[0]} × {shape[1]} has")
    # There may be room for more numbers than there are.
    stored = int(starts[-1])
    matrix = csc_array((values[:stored], rows[:stored], starts), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
