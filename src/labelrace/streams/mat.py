"""MATLAB files with the arrays ``data`` (rows × features) and ``target`` (labels × rows)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from scipy.sparse import csr_array, issparse

from labelrace.exceptions import DataFormatError
from labelrace.streams._mat5 import read_matrices
from labelrace.streams._pairs import label_names_from
from labelrace.streams._source import MOST_COLUMNS, foreign, open_data, plain_path
from labelrace.streams.batch import Dataset
from labelrace.streams.stream import NumberedNames, nominal_mask
from labelrace.typing import AnyMatrix, SparseMatrix

__all__ = ["open_mat"]

_HDF_MARK = b"MATLAB 7.3"


def open_mat(path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> Dataset:
    """Read a MATLAB file, of version 7 or earlier, whole: its format does not allow to read it by rows.

    Parameters
    ----------
    path : path
    labels : sequence of str or None
        Names of the labels; by default they are numbered from 1, as in ``y1``.

    Returns
    -------
    Dataset
        With sparse X if ``data`` is sparse. In ``target``, 1 marks a label, and 0 or -1 its absence.

    Raises
    ------
    DataFormatError
        If the file cannot be read, is of version 7.3 (which is HDF5), or its arrays do not fit.
    """
    path = Path(path)
    with open_data(path) as file:
        content = file.read()
    if content.startswith(_HDF_MARK):
        raise DataFormatError(
            f"{path}: a MATLAB file of version 7.3, which labelrace cannot read; save it again by save(..., '-v7')"
        )
    with foreign(path, "MATLAB"):
        data, target = _matrices(content, path)
        X, Y = _features(data, path), _labels(target, path)
    names = NumberedNames("x", 1, X.shape[1])
    label_names = label_names_from(labels, Y.shape[1], 1, path)
    return Dataset(X, Y, names, label_names, nominal_mask(X.shape[1], {}), plain_path(path).stem)


def _matrices(content: bytes, path: Path) -> tuple[AnyMatrix, AnyMatrix]:
    found = read_matrices(content, ("data", "target"))
    for name in ("data", "target"):
        if name not in found:
            raise DataFormatError(
                f"{path}: no array {name!r}; there must be data (rows × features) and target (labels × rows)"
            )
        if found[name] is None:
            raise DataFormatError(f"{path}: {name!r} is not a matrix of real numbers; save it as one")
    data, target = cast("tuple[AnyMatrix, AnyMatrix]", (found["data"], found["target"]))
    if data.shape[0] != target.shape[1] or max(data.shape[1], target.shape[0]) > MOST_COLUMNS:
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
