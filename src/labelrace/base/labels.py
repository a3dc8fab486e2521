"""The labels of a batch: a matrix of 0 and 1, with the names of its columns if they have any.

They come as a matrix, dense or sparse, as a data frame or as sets of names. A later batch may bring labels that the
model does not know: they come behind those that it knows, and the state grows by them (`labelrace.base.growth`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import type_of_target

from labelrace.base import limits, naming
from labelrace.base.naming import NamedRows
from labelrace.base.schema import Schema
from labelrace.base.sparse import canonical, why_malformed, with_values
from labelrace.typing import AnyMatrix, Array, FloatArray

_TWO = "a row for each of X and a column for each label"


class Labels(NamedTuple):
    """The labels of a batch, the names of the columns or None, and the form in which they came."""

    matrix: AnyMatrix
    names: Array | None
    is_sparse: bool
    dtype: np.dtype[Any]


def first_labels(Y: Any, n_rows: int, given: Any, *, allow_missing: bool = False) -> Labels:
    """Check the labels of a first batch; ``given`` are names for columns that have none of their own, or None."""
    names = None if given is None else _given_names(given)
    sets = naming.label_sets(Y, named=names is not None)
    if sets is not None:
        named = naming.aligned(sets, names or [])
        if len(named.names) == 0:
            raise ValueError("y must name at least one label in a first batch of sets, got none: give label_names.")
        _refuse_other_rows(named.matrix, n_rows)
        return Labels(named.matrix, naming.as_array(named.names), True, np.dtype(np.int8))
    matrix = check_label_matrix(Y, n_rows, allow_missing=allow_missing)
    limits.LABELS.check(matrix.shape[1], "y")
    known = matrix.data if scipy.sparse.issparse(matrix) else matrix
    # What a sparse matrix does not store is known to be absent.
    if allow_missing and n_rows and known.size == np.prod(matrix.shape) and np.isnan(known).all():
        raise ValueError("y contains NaN only: a first batch must have at least one known label.")
    columns_of_y = _label_columns(Y, names)
    if columns_of_y is None and names is not None and len(names) != matrix.shape[1]:
        raise ValueError(f"label_names has {len(names)} names, but y has {matrix.shape[1]} labels.")
    found = columns_of_y or names
    dtype = getattr(Y, "dtype", None) if not hasattr(Y, "columns") else None
    dtype = dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(np.int64)
    return Labels(matrix, None if found is None else naming.as_array(found), scipy.sparse.issparse(matrix), dtype)


def next_labels(Y: Any, n_rows: int, schema: Schema, *, allow_missing: bool = False) -> Labels:
    """Check the labels of a later batch and bring them into the order of those known, the new ones behind them.

    Known names that are not there are absent labels.
    """
    known = schema.label_names
    # Plain matrices, which most are, need not be asked for names.
    is_plain = type(Y) in (np.ndarray, scipy.sparse.csr_array) and Y.ndim == 2
    sets = None if is_plain else naming.label_sets(Y, named=known is not None)
    if sets is not None:
        if known is None:
            raise ValueError("y holds names of labels, but the labels learned so far have none: give a matrix, (n, l).")
        _refuse_other_rows(sets.matrix, n_rows)
        return _aligned(sets, schema, known)
    matrix = check_label_matrix(Y, n_rows, allow_missing=allow_missing)
    columns_of_y = None if is_plain else _label_columns(Y, known)
    if columns_of_y is not None and known is not None:
        return _aligned(NamedRows(matrix, columns_of_y), schema, known)
    n_labels, n_known = matrix.shape[1], schema.n_labels
    if n_labels < n_known:
        raise ValueError(
            f"y has {n_labels} labels, but the model has learned with {n_known}: give every batch the same columns, "
            "and new labels behind them; a data frame or sets of names may leave labels out."
        )
    if n_labels > n_known and known is not None:
        raise ValueError(
            f"y has {n_labels} labels, but the model has learned with {n_known}, which have names: give new ones names "
            "too, by a data frame, by sets of names, or by add_labels."
        )
    if n_labels > n_known:
        limits.LABELS.check(n_labels, "y")
    names = known
    if columns_of_y is not None:
        naming.refuse_shuffled(columns_of_y, "y")
        names = naming.as_array(columns_of_y)
        warnings.warn(
            "y has names of labels, but the labels learned so far have none: its columns are taken in their order. "
            "Give label_names, or a data frame from the start.",
            UserWarning,
            stacklevel=2,
        )
    return Labels(matrix, names, scipy.sparse.issparse(matrix), matrix.dtype)


def _aligned(rows: NamedRows, schema: Schema, known: Array) -> Labels:
    matrix, names = naming.aligned(rows, known, schema.label_index)
    names = known if len(names) == len(known) else naming.as_array(names)
    return Labels(matrix, names, scipy.sparse.issparse(matrix), matrix.dtype)


def _refuse_other_rows(Y: AnyMatrix, n_rows: int) -> None:
    if Y.shape[0] != n_rows:
        raise ValueError(f"X and y must have the same number of rows, got {n_rows} and {Y.shape[0]}.")


def check_label_matrix(Y: Any, n_rows: int, *, allow_missing: bool = False) -> AnyMatrix:
    """Turn ``Y`` into a dense float or compressed-row matrix of 0 and 1, with ``n_rows`` rows.

    NaN, and what is masked in a masked array, is a missing label, if that is allowed.
    """
    if Y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None: give the labels, (n, l).")
    if isinstance(Y, np.ma.MaskedArray):
        Y = np.ma.filled(Y.astype(np.float64), np.nan)
    elif hasattr(Y, "to_numpy"):
        # Missing values of pandas' own types become NaN; objects become numbers below, or an error.
        missing = np.asarray(Y.isna()) if allow_missing and hasattr(Y, "isna") else np.False_
        # Not by na_value: that fails on frames whose numbers pandas holds read-only.
        Y = np.where(missing, np.nan, Y.to_numpy(dtype=object)) if missing.any() else Y.to_numpy()
    make = _sparse_labels if scipy.sparse.issparse(Y) else _dense_labels
    Y = make(Y, allow_missing)
    _refuse_other_rows(Y, n_rows)
    if Y.shape[1] == 0:
        raise ValueError("y must have at least one label, got no columns.")
    return Y


def _sparse_labels(Y: Any, allow_missing: bool) -> AnyMatrix:
    if Y.ndim != 2:
        raise ValueError(f"y must have two dimensions, {_TWO}, got {Y.ndim}.")
    reason = why_malformed(Y)
    if reason:
        raise ValueError(f"y is not a valid sparse matrix: {reason}.")
    Y = canonical(Y)
    if Y.dtype.kind not in "biuf" or not (Y.data == 1).all():
        Y = Y.copy()
        Y.eliminate_zeros()
        _refuse_values(Y.data, allow_missing)
    # Floats, as counts of bytes would overflow.
    return Y if Y.dtype == np.float64 else with_values(Y, Y.data.astype(np.float64))


def _dense_labels(Y: Any, allow_missing: bool) -> FloatArray:
    try:
        Y = np.asarray(Y)
    except ValueError:
        raise ValueError(
            "y must be a matrix of 0 and 1, got rows that differ in length: give sets or lists of names, or a matrix."
        ) from None
    if Y.ndim == 1:
        hint = "To name labels, give a set of names for each row; missing labels are NaN in a matrix."
        if Y.dtype.kind not in "OUS":
            hint = f"Only binary classification is supported, of each label by itself, got type {type_of_target(Y)}."
        _refuse_rows_without_a_set(Y)
        raise ValueError(f"y must have two dimensions, {_TWO}, got 1. {hint} For a single label use y.reshape(-1, 1).")
    if Y.ndim != 2:
        raise ValueError(f"y must have two dimensions, {_TWO}, got {Y.ndim}.")
    if Y.dtype.kind in "OUS":
        try:
            Y = Y.astype(float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                "y must hold 0 and 1, got text or objects: give a set of names for each row, for labels by name."
            ) from None
    _refuse_values(Y, allow_missing)
    return Y.astype(np.float64)


def _refuse_rows_without_a_set(Y: Array) -> None:
    """Name the first row that has no set of names, where others have one."""
    others = [row for row, given in enumerate(Y) if not isinstance(given, (set, frozenset, list, tuple))]
    if 0 < len(others) < len(Y):
        raise ValueError(
            f"y must have a set of names for each row, got {Y[others[0]]!r:.80} in row {others[0]}: leave out rows "
            "whose labels are not known."
        )


def _refuse_values(values: Array, allow_missing: bool) -> None:
    """Refuse labels other than 0 and 1, and NaN where that is allowed."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"y must hold 0 and 1, got values of type {values.dtype}.")
    if values.dtype.kind in "biu":
        if values.size and (values.min() < 0 or values.max() > 1):
            wrong = values[(values != 0) & (values != 1)]
            raise ValueError(f"y must hold 0 and 1, got {wrong.flat[0]}.")
        return
    # Counting is quicker than asking whether all are so.
    if np.count_nonzero(values == values.astype(bool)) == values.size:
        return
    is_wrong = ~((values == 0) | (values == 1))
    wrong = values[is_wrong & ~np.isnan(values) if allow_missing else is_wrong]
    if len(wrong):
        if np.isnan(wrong).any():
            raise ValueError(
                "y contains NaN, and this model cannot learn rows with missing labels: leave out rows with NaN, or use "
                "the model 'race', which can."
            )
        what = "infinity" if np.isinf(wrong).any() else f"{wrong.flat[0]:g}"
        raise ValueError(f"y must hold 0 and 1, got {what}: continuous targets are not labels.")


def _label_columns(Y: Any, known: list[str] | Array | None) -> list[str] | None:
    """Take the names of a data frame's columns; None if it has none, or if they only count the columns."""
    names = naming.column_names(Y, known)
    return None if names is None else _distinct(names)


def _given_names(given: Any) -> list[str]:
    """Check the parameter ``label_names``."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"label_names must be a list of names, one for each label, got {given!r}.")
    return _distinct([str(name) for name in given])


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("Label names must be distinct: a name occurs twice.")
    return names


def added_names(new: Any, n_known: int, known: Array | None) -> tuple[int, Array | None]:
    """Check how many labels are to be added, or their names; return how many there are then, and all names."""
    if isinstance(new, str) or not (isinstance(new, (int, np.integer)) or hasattr(new, "__iter__")):
        raise ValueError(f"new must be a whole number or a list of names, got {new!r}.")
    names = [str(name) for name in new] if hasattr(new, "__iter__") else None
    count = int(new) if names is None else len(names)
    if count < 1 or isinstance(new, bool):
        raise ValueError(f"new must be at least one label, got {new!r}.")
    limits.LABELS.check(n_known + count, "The model")
    if (names is None) != (known is None):
        need = "names, as the model's labels have names" if names is None else "a number, as the labels have no names"
        raise ValueError(f"new must be {need}, got {new!r}.")
    if names is None or known is None:
        return n_known + count, None
    if len({*names, *known}) < count + len(known):
        raise ValueError("new must be names that are distinct and that the model does not know yet.")
    return n_known + count, naming.as_array([*known, *names])


def renamed(known: Array | None, names: Mapping[str, str]) -> Array:
    """Give labels other names; ``names`` are from old to new ones."""
    if not isinstance(names, Mapping) or not all(isinstance(new, str) for new in names.values()):
        raise ValueError(f"names must be a dict from old to new name, got {names!r:.80}.")
    before = [] if known is None else list(known)
    unknown = [old for old in names if old not in before]
    if unknown:
        raise ValueError(f"names must be of labels that the model knows, got {unknown[0]!r}.")
    after = [names.get(name, name) for name in before]
    if len(set(after)) < len(after):
        raise ValueError(f"names must be distinct and new, got {names!r:.80}.")
    return naming.as_array(after)
