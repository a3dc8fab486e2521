"""labelrace's own compact format: NumPy arrays in a zip file, dense or as compressed rows, and the schema.

The arrays are ``X``, or ``X_data``, ``X_indices`` and ``X_indptr`` if X is sparse; ``Y_indices`` and ``Y_indptr``;
and ``schema``, the bytes of the JSON text that `labelrace.streams.schema` writes. There are no pickles.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_array, issparse

from labelrace.base import limits
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Dataset, Stream, canonical_rows, nominal_mask
from labelrace.streams.files import as_format_errors, new_data, plain_path, seekable_data
from labelrace.streams.schema import schema_from, schema_text
from labelrace.typing import AnyMatrix, Array, SparseMatrix


def open_npz(path: str | os.PathLike[str], labels: None = None) -> Dataset:
    """Read a whole file that `labelrace.streams.write_dataset` wrote; the format cannot be read by rows.

    Parameters
    ----------
    path : path
    labels : None, default=None
        Must be None, as the file contains the names of its labels.
    """
    path = Path(path)
    if labels is not None:
        raise ValueError(f"{path}: an .npz file says itself what its labels are; leave labels= out")
    with seekable_data(path) as file, as_format_errors(path, ".npz"):
        _check_sizes(file, path)
        with np.load(file, allow_pickle=False) as content:
            if not isinstance(content, np.lib.npyio.NpzFile) or "schema" not in content:
                raise DataFormatError(f"{path}: not an .npz file that labelrace wrote; it has no schema in it")
            arrays = dict(content)
        schema = schema_from(_array(arrays, "schema", 1, "u").astype(np.uint8).tobytes(), path)
        if "X" in arrays:
            X: AnyMatrix = _array(arrays, "X", 2, "f").astype(np.float64, copy=False)
        else:
            values = _array(arrays, "X_data", 1, "f").astype(np.float64, copy=False)
            X = _sparse(arrays, "X", values, len(schema.features))
        _check_values(X, schema.nominal)
        Y = _sparse(arrays, "Y", np.ones(arrays["Y_indices"].size, dtype=np.int8), len(schema.labels))
        mask = nominal_mask(len(schema.features), schema.nominal)
        return Dataset(X, Y, schema.features, schema.labels, mask, plain_path(path).stem, schema.nominal)


def _check_sizes(file: IO[bytes], path: Path) -> None:
    """Refuse arrays that claim to be larger than they are, or that are larger than the limit of memory."""
    with zipfile.ZipFile(file) as archive:
        limits.BYTES.check(sum(info.file_size for info in archive.infolist()), f"{path}")
        for info in archive.infolist():
            with archive.open(info) as member:
                version = npy.read_magic(member)
                read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, _, dtype = read(member)
                if not dtype.hasobject and prod(shape) * dtype.itemsize != info.file_size - member.tell():
                    raise ValueError(f"{info.filename} does not hold as much as it says")
    file.seek(0)


def _array(arrays: dict[str, Array], name: str, ndim: int, kind: str) -> Array:
    array = arrays[name]
    if array.ndim != ndim or array.dtype.kind != kind:
        raise ValueError(f"{name} has {array.ndim} axes and type {array.dtype}")
    return array


def _check_values(X: AnyMatrix, nominal: Mapping[int, tuple[str, ...]]) -> None:
    """Refuse infinite numbers, and codes of nominal features that have no value."""
    if np.isinf(X.data if issparse(X) else X).any():
        raise ValueError("X holds infinite numbers")
    by_column = X.tocsc() if issparse(X) and nominal else X
    for column, texts in nominal.items():
        codes = by_column[:, [column]].data if issparse(X) else X[:, column]
        if not (np.isnan(codes) | np.isin(codes, np.arange(len(texts)))).all():
            raise ValueError(f"nominal column {column} holds what is none of its {len(texts)} values")


def _sparse(arrays: dict[str, Array], name: str, values: Array, width: int) -> SparseMatrix:
    indices, indptr = _array(arrays, f"{name}_indices", 1, "i"), _array(arrays, f"{name}_indptr", 1, "i")
    matrix = csr_array((values, indices, indptr), shape=(len(indptr) - 1, width))
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        raise ValueError(f"{name} has columns out of order or twice")
    return matrix


class _Spools:
    """Arrays that grow in temporary files until their lengths are known, so that writing takes bounded memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._types: dict[str, np.dtype[Any]] = {}

    def append(self, name: str, rows: Array, dtype: str) -> int:
        """Add rows to the array called `name`; return how many it had before."""
        self._types[name] = np.dtype(dtype)
        with (self._folder / name).open("ab") as file:
            file.write(np.ascontiguousarray(rows, dtype=dtype).tobytes())
        before, *rest = self._shapes.get(name, (0, *rows.shape[1:]))
        self._shapes[name] = (before + len(rows), *rest)
        return before

    def append_sparse(self, name: str, matrix: SparseMatrix) -> None:
        """Add the rows of a sparse matrix without their values."""
        before = self.append(f"{name}_indices", matrix.indices, "<i4")
        self.append(f"{name}_indptr", matrix.indptr[1:].astype(np.int64) + before, "<i8")

    def store(self, file: IO[bytes]) -> None:
        """Write all the arrays as an ``.npz`` file."""
        # Without seek(), as a compressed file cannot seek (though gzip's says that it can).
        forward: Any = SimpleNamespace(write=file.write, flush=file.flush)
        with zipfile.ZipFile(forward, "w") as archive:
            for name, shape in self._shapes.items():
                # ZipInfo has a fixed date, so that the same data makes the same file.
                info = zipfile.ZipInfo(f"{name}.npy")
                info.compress_type = zipfile.ZIP_DEFLATED
                header = {"descr": npy.dtype_to_descr(self._types[name]), "fortran_order": False, "shape": shape}
                with (self._folder / name).open("rb") as spool, archive.open(info, "w", force_zip64=True) as member:
                    npy.write_array_header_2_0(member, header)
                    shutil.copyfileobj(spool, member)


def write_npz(stream: Stream, path: Path, batch_size: int) -> int:
    """Write a stream as an ``.npz`` file; return the number of rows."""
    schema = np.frombuffer(schema_text(stream), dtype=np.uint8)
    rows = 0
    with new_data(path) as file, tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as folder:
        spools = _Spools(Path(folder))
        spools.append("schema", schema, "|u1")
        spools.append("Y_indptr", np.zeros(1), "<i8")
        spools.append("Y_indices", np.empty(0), "<i4")
        for X, Y in stream.batches(batch_size):
            if rows == 0 and issparse(X):
                spools.append("X_indptr", np.zeros(1), "<i8")
            rows += X.shape[0]
            if issparse(X):
                X = canonical_rows(X)
                spools.append("X_data", X.data, "<f8")
                spools.append_sparse("X", X)
            else:
                spools.append("X", X, "<f8")
            spools.append_sparse("Y", canonical_rows(Y))
        if rows == 0:
            spools.append("X", np.empty((0, stream.n_features)), "<f8")
        spools.store(file)
    return rows
