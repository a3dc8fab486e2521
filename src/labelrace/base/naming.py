"""Rows that name what they hold: features as dicts, labels as sets.

Such rows become a matrix over the names that occur in them, in order of appearance; `aligned` then brings its columns
into the order of the names that a model knows. A shell that has its own such rows gives them as `NamedRows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, Array, FloatArray

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_GROUPS = (set, frozenset, list, tuple)


class NamedRows(NamedTuple):
    """A matrix and the names of its columns."""

    matrix: AnyMatrix
    names: Sequence[str] | Array


def feature_dicts(X: Any) -> NamedRows | None:
    """Turn rows such as ``{"price": 3.5, "is_new": True}`` into a matrix; None if ``X`` is something else.

    Examples
    --------
    >>> rows = feature_dicts([{"price": 3.5, "is_new": True}, {"size": 2}])
    >>> rows.names, rows.matrix.toarray().tolist()
    (['price', 'is_new', 'size'], [[3.5, 1.0, 0.0], [0.0, 0.0, 2.0]])
    """
    if isinstance(X, NamedRows):
        return X
    if not isinstance(X, (list, tuple)) or not any(isinstance(row, Mapping) for row in X):
        return None
    for number, row in enumerate(X):
        if not isinstance(row, Mapping):
            raise ValueError(f"X has a {type(row).__name__} as row {number}, but dicts as others: give dicts only.")
    values = list(chain.from_iterable(row.values() for row in X))
    for kind in set(map(type, values)):
        if not issubclass(kind, _NUMBERS):
            name, wrong = next((name, value) for row in X for name, value in row.items() if type(value) is kind)
            raise ValueError(
                f"X holds {wrong!r} as {name!r}: features are numbers, True or False. Name the value in the feature "
                "instead, as in {'colour=red': 1}."
            )
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError("X holds a whole number that is too large to be a float.") from None
    return _matrix(X, numbers, "X", "feature")


def label_sets(Y: Any, *, named: bool = False) -> NamedRows | None:
    """Turn rows such as ``{"politics", "uk"}`` into a matrix of 0 and 1; None if ``Y`` is something else.

    Lists and tuples of names do as well. Rows that are all empty lists are sets if the labels are ``named`` anyway.
    The names of a set are taken in alphabetical order, so that their order does not depend on the run.

    Examples
    --------
    >>> rows = label_sets([{"uk", "politics"}, set(), ["sports"]])
    >>> rows.names, rows.matrix.toarray().tolist()
    (['politics', 'uk', 'sports'], [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    """
    if isinstance(Y, NamedRows):
        return Y
    rows = _listed(Y)
    if not rows or not all(isinstance(row, _GROUPS) for row in rows):
        return None
    has_sets = any(isinstance(row, (set, frozenset)) for row in rows)
    if not (has_sets or any(isinstance(row[0], str) for row in rows if row) or (named and not any(rows))):
        return None
    for name in chain.from_iterable(rows):
        _refuse_no_text(name, "y", "label")
    # A name that is in a list twice is there.
    distinct = [sorted(row) if isinstance(row, (set, frozenset)) else list(dict.fromkeys(row)) for row in rows]
    return _matrix(distinct, np.ones(sum(map(len, distinct))), "y", "label")


def _listed(Y: Any) -> Sequence[Any]:
    """List the rows of what could be a column of sets, as in a data frame; nothing for anything else."""
    if isinstance(Y, (list, tuple)):
        return Y
    if getattr(Y, "ndim", 0) == 1 and getattr(getattr(Y, "dtype", None), "kind", "") == "O":
        return list(Y)
    return ()


def _matrix(rows: Iterable[Any], values: FloatArray, argument: str, what: str) -> NamedRows:
    """Put values, listed row by row, into compressed rows; each row is an iterable of their names."""
    index: dict[str, int] = {}
    lengths = [len(row) for row in rows]
    indices = np.fromiter(_columns(chain.from_iterable(rows), index, argument, what), dtype=np.int32, count=len(values))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    matrix = scipy.sparse.csr_array((values, indices, starts), shape=(len(lengths), len(index)))
    matrix.sort_indices()
    return NamedRows(matrix, list(index))


def _columns(names: Iterable[Any], index: dict[str, int], argument: str, what: str) -> Iterator[int]:
    """Yield the column of each name; columns are numbered in the order in which their names appear."""
    for name in names:
        column = index.get(name)
        if column is None:
            _refuse_no_text(name, argument, what)
            column = index[str(name)] = len(index)
        yield column


def _refuse_no_text(name: Any, argument: str, what: str) -> None:
    if not isinstance(name, str):
        raise ValueError(f"{argument} has {name!r} as the name of a {what}: names are text.")


def aligned(
    rows: NamedRows, known: Sequence[str] | Array, index: Mapping[str, int] | None = None, *, grow: bool = True
) -> NamedRows:
    """Bring columns into the order of known names; others come behind these, or are left out.

    Known names that the rows do not have get columns of zeros. ``index`` are the columns of known names, if somebody
    remembers them: names may be 100,000, and a batch one row.

    Examples
    --------
    >>> rows = NamedRows(np.array([[1.0, 2.0]]), ["b", "c"])
    >>> aligned(rows, ["a", "b"])
    NamedRows(matrix=array([[0., 1., 2.]]), names=['a', 'b', 'c'])
    >>> aligned(rows, ["a", "b"], grow=False)
    NamedRows(matrix=array([[0., 1.]]), names=['a', 'b'])
    """
    if rows.names is known:
        return rows
    n_known, n_given = len(known), len(rows.names)
    if (n_given == n_known or (grow and n_given > n_known)) and list(rows.names[:n_known]) == list(known):
        # As they mostly are.
        return rows
    target = columns_among(rows.names, _numbered(known) if index is None else index)
    is_new = np.flatnonzero(target < 0) if grow else target[:0]
    names = [*known, *(rows.names[column] for column in is_new.tolist())] if len(is_new) else known
    target[is_new] = np.arange(n_known, len(names))
    return NamedRows(moved(rows.matrix, target, len(names)), names)


def columns_among(names: Sequence[str] | Array, known: Mapping[str, int] | Iterable[str]) -> Array:
    """Find the columns of names among known ones; -1 for others."""
    index = known if isinstance(known, Mapping) else _numbered(known)
    return np.array([index.get(name, -1) for name in names], dtype=np.int32)


def column_names(frame: Any, known: Sequence[str] | Array | None = None) -> list[str] | None:
    """Return the names of a data frame's columns as texts; None if it has none.

    Whole numbers are names, unless they only count the columns from 0, or the known names hold no whole numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame([[0, 1]], columns=[30, 10])), column_names(pd.DataFrame([[0, 1]]))
    (['30', '10'], None)
    """
    names = list(getattr(frame, "columns", ()))
    if not names or all(isinstance(name, str) for name in names):
        return list(map(str, names)) or None
    if not all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names):
        return None
    texts, others = list(map(str, names)), None if known is None else set(known)
    if names == list(range(len(names))):
        return texts if others is not None and others.issuperset(texts) else None
    return texts if others is None or any(name.lstrip("-").isdecimal() for name in others) else None


def refuse_shuffled(names: Sequence[str] | Array | None, argument: str) -> None:
    """Refuse the numbers of columns in another order than 0, 1, 2, …, where those known are only counted."""
    counted = list(map(str, range(0 if names is None else len(names))))
    if names is not None and list(names) != counted and set(names) == set(counted):
        raise ValueError(
            f"{argument} must have its columns in the order 0, 1, 2, …, as those learned, which have no names, got "
            f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}: sort them, {argument}.sort_index(axis=1)."
        )


def as_array(names: Iterable[str]) -> Array:
    """Make the array of names that a model keeps, which is not to be written to: it gets another."""
    known = names if isinstance(names, list) else list(names)
    array = np.empty(len(known), dtype=object)
    array[:] = known
    array.setflags(write=False)
    return array


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: column for column, name in enumerate(names)}


def moved(matrix: AnyMatrix, target: Array, n_columns: int) -> AnyMatrix:
    """Put columns where ``target`` says, among others that are 0; those with -1 are left out."""
    if (target < 0).any():
        matrix, target = matrix[:, np.flatnonzero(target >= 0)], target[target >= 0]
    shape = (matrix.shape[0], n_columns)
    if scipy.sparse.issparse(matrix):
        result = scipy.sparse.csr_array((matrix.data, target[matrix.indices], matrix.indptr), shape=shape)
        # Sorting is in place: what is not a copy yet must not be the caller's.
        return result.sorted_indices()
    wider = np.zeros(shape)
    wider[:, target] = matrix
    return wider
