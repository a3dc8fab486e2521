"""Checked inputs: whatever the caller holds becomes one sparse form of labels, one dense form of scores.

Labels are a CSR array in canonical form (sorted indices, no duplicates) that stores exactly the ones. Sets of names,
dense and sparse matrices then share every line of what follows, and nothing sparse is ever made dense.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from labelrace.base.sparse import entry_rows, sparse_marks, why_malformed
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray, SparseMatrix


def are_label_sets(Y: Any) -> bool:
    """Return whether labels are given as a set or list of names for each row, rather than as a matrix.

    Examples
    --------
    >>> are_label_sets([{"uk", "politics"}, set()]), are_label_sets([["uk"], []]), are_label_sets([[0, 1], [1, 0]])
    (True, True, False)
    """
    rows = _rows(Y)
    return rows is not None and any(
        isinstance(row, (set, frozenset)) or (isinstance(row, (list, tuple)) and row and isinstance(row[0], str))
        for row in rows
    )


def sorted_names(*sides: Any, without: Sequence[Any] = ()) -> list[Any]:
    """Return the names that occur in lists of label sets, in order, numbers before texts, without some of them.

    Texts are written as taggers write tags, so that tags may be compared with those predicted.
    """
    names = {name for rows in sides for row in rows for name in row}.difference(without)
    return sorted(set(map(_name, names)).difference(without), key=lambda name: (isinstance(name, str), name))


def _name(name: Any) -> Any:
    from labelrace.tables.cells import as_name  # here, as importing tables is slow and matrices need none

    return as_name(name) if isinstance(name, str) else name


def as_label_matrices(
    Y_true: Any, Y_pred: Any, scores: Any = None, label_names: Sequence[Any] | None = None
) -> tuple[AnyMatrix, AnyMatrix, Any]:
    """Return labels that are given as sets of names as matrices with the same columns, and others as they are.

    The columns are `label_names`, by default the names that occur, sorted. Data frames, also of scores, get their
    columns in the same order.
    """
    if not (are_label_sets(Y_true) or are_label_sets(Y_pred)):
        if label_names is not None:
            raise ValueError(
                "label_names must be left out where labels are given as matrices, whose columns are in order"
            )
        known = list(getattr(Y_true, "columns", ()))
        return Y_true, in_order_of(known, Y_pred, "Y_pred"), in_order_of(known, scores, "scores")
    given = {"Y_true": Y_true, "Y_pred": Y_pred} if Y_pred is not None else {"Y_true": Y_true}
    rows = {name: _rows(Y) for name, Y in given.items()}
    for name, side in rows.items():
        # Rows that are all empty lists are taken as empty sets.
        if side is None or not (are_label_sets(side) or not any(map(len, side))):
            raise ValueError(
                f"{name} must be sets of label names, as the other labels are, got {type(given[name]).__name__}; "
                "give both as sets or both as matrices"
            )
    names = sorted_names(*rows.values()) if label_names is None else list(label_names)
    truth, predicted = rows["Y_true"], rows.get("Y_pred")
    return (
        _from_sets(truth, names, "Y_true"),
        None if predicted is None else _from_sets(predicted, names, "Y_pred"),
        in_order_of(names, scores, "scores", "label_names"),
    )


def in_order_of(known: list[Any], other: Any, what: str, whose: str = "the columns of Y_true") -> Any:
    """Return a data frame with its columns in the order of known names; others, and columns without names, as they are.

    Columns that are only counted, 0, 1, 2, …, have no names, unless these are the known ones.
    """
    columns = list(getattr(other, "columns", ()))
    given, names = _texts(columns), _texts(known)
    if not given or given == names:
        return other
    is_counted, numbers = columns == list(range(len(columns))), list(map(str, range(len(columns))))
    if names and sorted(names) == sorted(given) and len(set(names)) == len(names):
        return other[[columns[given.index(name)] for name in names]]
    if is_counted:
        return other
    if names and known != list(range(len(known))):
        raise ValueError(f"{what} must have {whose}, got others: name the labels alike.")
    if set(given) == set(numbers):
        raise ValueError(f"{what} must have its columns in the order 0, 1, 2, …, as Y_true has no names: sort them.")
    warnings.warn(
        f"{what} has names of labels, but Y_true has none: its columns are taken in their order. Give Y_true as a data "
        "frame with the same names.",
        UserWarning,
        stacklevel=4,
    )
    return other


def _texts(names: list[Any]) -> list[str]:
    """Write names that are texts or whole numbers as texts; none if there are others."""
    are_names = all(isinstance(name, (str, int, np.integer)) for name in names)
    return list(map(str, names)) if are_names else []


def _rows(Y: Any) -> Sequence[Any] | None:
    """Return what may hold a collection for each row: a list, a tuple, or a column of objects; None for a matrix."""
    if isinstance(Y, (list, tuple)):
        return Y
    is_column = getattr(Y, "ndim", None) == 1 and getattr(Y, "dtype", None) == np.object_
    return list(Y) if is_column else None


def _from_sets(rows: Any, names: Sequence[Any], what: str) -> SparseMatrix:
    column_of = {name: column for column, name in enumerate(names)}
    written = dict[Any, int]()

    def column(name: Any) -> int:
        """Find the column of a name, also if it is written in another form."""
        if name not in column_of:
            if not written:
                written.update((_name(one), number) for number, one in reversed(list(enumerate(names))))
            column_of[name] = written[_name(name)]
        return column_of[name]

    try:
        indices = [sorted({column(name) for name in row}) for row in rows]
    except KeyError:
        unknown = next(name for row in rows for name in row if name not in column_of)
        raise ValueError(f"{what} must hold labels of label_names, got {unknown!r}; add it to label_names") from None
    indptr = np.cumsum([0, *map(len, indices)])
    columns = np.array([column for row in indices for column in row], dtype=np.intp)
    return _ones_at(columns, indptr, (len(indices), len(names)))


def as_labels(Y: AnyMatrix, name: str, shape: tuple[int, int] | None = None) -> SparseMatrix:
    """Return the label matrix `Y` as a canonical CSR array of ones; errors call it `name`, and it must have `shape`.

    Rows and columns of a DataFrame count by position. A sparse matrix means what its `toarray()` says: duplicates add
    up, and a sum of 2 is no label.
    """
    if sparse.issparse(Y):
        return _from_sparse(Y, name, shape)
    return _from_dense(np.asarray(Y), name, shape)


def as_labels_with_missing(Y: AnyMatrix, name: str) -> tuple[SparseMatrix, IntArray]:
    """Return the label matrix `Y` as `as_labels` does, and the cells that are NaN, which are missing.

    Missing labels are zero in the matrix; their cells are counted row by row.
    """
    if sparse.issparse(Y):
        _check_shape(Y.shape, name, None)
        # A copy, because the clean-up below works in place and the matrix is the caller's.
        stored = sparse.csr_array(Y, copy=True)
        stored.sum_duplicates()
        gaps = np.isnan(stored.data)
        rows = entry_rows(stored)
        stored.data[gaps] = 0
        missing = rows[gaps] * stored.shape[1] + stored.indices[gaps]
        return as_labels(stored, name), missing.astype(np.intp)
    dense = np.ma.filled(Y.astype(float), np.nan) if np.ma.isMaskedArray(Y) else np.asarray(Y)
    if dense.dtype.kind not in "biu":
        dense = _as_float(dense, f"{name} must hold only 0, 1 and NaN")
        gaps = np.isnan(dense)
        return as_labels(np.where(gaps, 0.0, dense), name), np.flatnonzero(gaps)
    return as_labels(dense, name), np.zeros(0, dtype=np.intp)


def as_scores(scores: AnyMatrix, shape: tuple[int, int]) -> FloatArray:
    """Return `scores` as a float64 array of the given shape; infinities may stay, NaN may not."""
    values = _as_dense(scores, "scores", "score", shape, "Y_true")
    # The minimum of an array with a NaN is NaN.
    if np.isnan(values.min()):
        raise ValueError("scores must be numbers, got NaN, which has no rank")
    return values


def as_top(top: Any, shape: tuple[int, int]) -> IntArray:
    """Return lists of the best labels, for true labels of the given shape, as an array of columns; -1 is no label."""
    best = np.asarray(top)
    n, n_labels = shape
    if best.ndim != 2 or len(best) != n:
        raise ValueError(f"top must have a list of labels for each of {n} rows, got the shape {best.shape}")
    if best.dtype.kind not in "iu" or (best.size and not -1 <= best.min() <= best.max() < n_labels):
        raise ValueError(f"top must hold columns of labels, from 0 to {n_labels - 1}, or -1 for none; see predict_top")
    ordered = np.sort(best, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise ValueError("top must list a label once in a row, got one twice")
    return best.astype(np.intp)


def as_probabilities(P: AnyMatrix, shape: tuple[int, int]) -> FloatArray:
    """Return `P` as a float64 array of the given shape, that of `Y`, with values from 0 to 1."""
    values = _as_dense(P, "P", "probability", shape, "Y")
    low, high = values.min(), values.max()
    # A NaN makes both comparisons false.
    if not (low >= 0 and high <= 1):
        shown = "NaN" if np.isnan(low) else f"values from {low:.6g} to {high:.6g}"
        raise ValueError(f"P must hold probabilities, from 0 to 1, got {shown}")
    return values


def _as_dense(values: AnyMatrix, name: str, what: str, shape: tuple[int, int], other: str) -> FloatArray:
    if sparse.issparse(values):
        raise ValueError(f"{name} must be dense: a cell that a sparse matrix leaves out has no {what}")
    dense = np.asarray(values)
    _check_shape(dense.shape, name, shape, other)
    return _as_float(dense, f"{name} must be real numbers")


def _check_shape(actual: tuple[int, ...], name: str, expected: tuple[int, int] | None, other: str = "Y_true") -> None:
    if len(actual) != 2:
        raise ValueError(f"{name} must be two-dimensional, examples × labels, got the shape {actual}")
    if expected is not None and actual != expected:
        raise ValueError(f"{name} must have the shape of {other}, {expected}, got {actual}")
    if 0 in actual:
        raise ValueError(f"{name} must have examples and labels, got the shape {actual}")


def _from_sparse(Y: SparseMatrix, name: str, shape: tuple[int, int] | None) -> SparseMatrix:
    _check_shape(Y.shape, name, shape)
    reason = why_malformed(Y)
    if reason:
        raise ValueError(f"{name} is not a valid sparse matrix: {reason}")
    # A copy, because the clean-up below works in place and the matrix is the caller's.
    labels = sparse.csr_array(Y, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    if (labels.data != 1).any():
        raise ValueError(f"{name} must hold only 0 and 1")
    return _ones_at(labels.indices, labels.indptr, labels.shape)


def _from_dense(Y: Array, name: str, shape: tuple[int, int] | None) -> SparseMatrix:
    _check_shape(Y.shape, name, shape)
    if Y.dtype != np.bool_:
        if Y.dtype.kind not in "iuf":
            Y = _as_float(Y, f"{name} must hold only 0 and 1")
        present = Y == 1
        if not (present | (Y == 0)).all():
            raise ValueError(f"{name} must hold only 0 and 1")
        Y = present
    return sparse_marks(np.ascontiguousarray(Y))


def _ones_at(indices: Array, indptr: Array, shape: tuple[int, int]) -> SparseMatrix:
    return sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=shape)


def _as_float(values: Array, message: str) -> FloatArray:
    # Text would be parsed and complex numbers cut to their real part, both without a word. Object arrays are
    # what a DataFrame of mixed or nullable columns gives.
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{message}, got the dtype {values.dtype}")
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{message}: {error}") from error
