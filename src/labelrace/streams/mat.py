"""MATLAB files, versions 5 to 7, with the arrays ``data`` (rows × features) and ``target`` (labels × rows).

SciPy's `loadmat` reads much more, but a damaged file makes it crash the whole process. `read_matrices` reads only plain
and sparse matrices of real numbers, and checks every length before it uses it: a damaged file is a ValueError (or
zlib's own error).

A file is a header of 128 bytes, followed by elements: a tag with the type and the length, then as many bytes. A matrix
is an element made of elements: flags, shape, name and numbers; a sparse one has rows and column starts before the
numbers.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from labelrace.base import limits
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Dataset, nominal_mask
from labelrace.streams.files import MAX_COLUMNS, as_format_errors, open_data, plain_path, read_all
from labelrace.streams.schema import NumberedNames, label_names_from
from labelrace.typing import AnyMatrix, Array, SparseMatrix

_HDF_MARK = b"MATLAB 7.3"
_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SPARSE, _DENSE = 5, range(6, 16)
_COMPLEX = 0x800


def open_mat(path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> Dataset:
    """Read a whole MATLAB file of version 5 to 7; the format cannot be read by rows.

    Parameters
    ----------
    path : path
    labels : sequence of str or None, default=None
        Names of the labels; by default they are numbered from 1, as in ``y1``.

    Returns
    -------
    Dataset
        With sparse X if ``data`` is sparse. In ``target``, 1 marks a label, and 0 or -1 its absence.
    """
    path = Path(path)
    with open_data(path, has_lines=False) as file:
        content = read_all(file, path)
    if content.startswith(_HDF_MARK):
        raise DataFormatError(
            f"{path}: a MATLAB file of version 7.3, which labelrace cannot read; save it again by save(..., '-v7')"
        )
    with as_format_errors(path, "MATLAB"):
        data, target = _matrices(content, path)
        X, Y = _features(data, path), _labels(target, path)
    names = NumberedNames("x", 1, X.shape[1])
    label_names = label_names_from(labels, Y.shape[1], 1, path)
    return Dataset(X, Y, names, label_names, nominal_mask(X.shape[1], {}), plain_path(path).stem)


def _matrices(content: bytes, path: Path) -> tuple[AnyMatrix, AnyMatrix]:
    matrices = read_matrices(content, ("data", "target"))
    for name in ("data", "target"):
        if name not in matrices:
            raise DataFormatError(
                f"{path}: no array {name!r}; there must be data (rows × features) and target (labels × rows)"
            )
        if matrices[name] is None:
            raise DataFormatError(f"{path}: {name!r} is not a matrix of real numbers; save it as one")
    data, target = cast("tuple[AnyMatrix, AnyMatrix]", (matrices["data"], matrices["target"]))
    if data.shape[0] != target.shape[1] or max(data.shape[1], target.shape[0]) > MAX_COLUMNS:
        raise DataFormatError(
            f"{path}: data is {data.shape[0]} × {data.shape[1]} and target {target.shape[0]} × {target.shape[1]}; "
            "target must be labels × rows, so transpose it if it is the other way round"
        )
    return data, target


def _features(data: AnyMatrix, path: Path) -> AnyMatrix:
    X: AnyMatrix = csr_array(data, dtype=np.float64) if issparse(data) else np.ascontiguousarray(data, dtype=np.float64)
    infinite = np.isinf(X.data if issparse(X) else X)
    if infinite.any():
        raise DataFormatError(f"{path}: data holds infinite numbers; make them finite, or NaN where missing")
    if issparse(X):
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def _labels(target: AnyMatrix, path: Path) -> SparseMatrix:
    """Return the labels, one row per column of `target`."""
    values = target.data if issparse(target) else target
    wrong = ~np.isin(values, (-1, 0, 1))
    if wrong.any():
        raise DataFormatError(f"{path}: target holds {values[wrong][0]}, but must be 0 or 1, or -1 or 1")
    Y = csr_array((target == 1).T, dtype=np.int8)
    Y.sum_duplicates()
    return Y


class _Element(NamedTuple):
    kind: int
    data: memoryview


def read_matrices(content: bytes, names: tuple[str, ...]) -> dict[str, AnyMatrix | None]:
    """Return the variables of these names that the file has, None for one that is not a matrix of real numbers."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None or struct.unpack(f"{order}H", content[124:126])[0] >> 8 != 1:
        raise ValueError("not of version 5, 6 or 7")
    matrices: dict[str, AnyMatrix | None] = {}
    for element in _elements(memoryview(content)[_HEADER:], order):
        if element.kind == _COMPRESSED:
            (element,) = _elements(memoryview(_unpacked(element.data)), order)
        if element.kind == _MATRIX:
            parts = _elements(element.data, order)
            flags, sizes, name = (_numbers(next(parts, _Element(0, element.data)), order) for _ in range(3))
            text = bytes(name.astype(np.uint8)).decode("latin-1")
            if text in names:
                matrices[text] = _matrix(int(flags[0]), tuple(sizes.tolist()), parts, order)
    return matrices


def _unpacked(data: memoryview) -> bytes:
    """Unpack an element, unless it is larger than the limit of memory."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(data, limits.BYTES.value + 1)
    limits.BYTES.check(len(content), "an array")
    if not unpacking.eof:
        raise ValueError("it ends within a compressed array")
    return content


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """Yield the elements that fill the data."""
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise ValueError("it ends within a tag")
        kind, length = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:
            # A short element: type and length share one number, and the data stands where the length would be.
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
    # When the matrix is transposed, empty rows take memory too.
    limits.BYTES.check(8 * max(shape), "an array")
    # The arrays may be longer than the number of values.
    stored = int(starts[-1])
    matrix = csc_array((values[:stored], rows[:stored], starts), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
