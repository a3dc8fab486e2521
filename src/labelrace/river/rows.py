"""Rows of named values, as in River, and the columns of the names.

A row is read as names and values; then the names are replaced by columns. Rows of most streams have the same names in
the same order, so their columns are looked up once.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Cells up to which a matrix is dense whatever it holds, and the share of filled ones from which it is, however large.
_FEW_CELLS, _FILLED = 2**12, 0.3
_PLAIN_MARKS = frozenset({False, True})


class Named(NamedTuple):
    """The values of a row by name."""

    names: tuple[Hashable, ...]
    values: FloatArray


class Row(NamedTuple):
    """The values of a row by column."""

    columns: IntArray
    values: FloatArray


class Columns:
    """The columns of names, in order of appearance.

    Names that appear in the same row get their columns in alphabetical order, so that the order of a dict or a set does
    not matter.

    Parameters
    ----------
    names : iterable
        Names that have the first columns, in this order.

    Attributes
    ----------
    columns : dict
        The column of each name.
    texts : dict
        The names as text, in order; the values are None.
    """

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.columns: dict[Hashable, int] = {name: column for column, name in enumerate(names)}
        self.texts: dict[str, None] = dict.fromkeys(map(str, self.columns))
        self._last: tuple[tuple[Hashable, ...], IntArray, bool] = ((), np.zeros(0, dtype=np.intp), True)

    def __len__(self) -> int:
        return len(self.columns)

    def knows(self, names: tuple[Hashable, ...]) -> bool:
        """Return whether all names have columns."""
        return self._find(names)[1]

    def new(self, names: Iterable[Hashable], what: str) -> list[Hashable]:
        """Return the names without a column, sorted; two names that are the same as text are refused."""
        new = sorted((name for name in names if name not in self.columns), key=str)
        texts = dict.fromkeys(map(str, new))
        if len(texts) < len(new) or not texts.keys().isdisjoint(self.texts.keys()):
            clash = next(name for i, name in enumerate(new) if str(name) in [*self.texts, *map(str, new[:i])])
            raise ValueError(f"The name {clash!r} of a {what} is, as text, the name of another: use one kind of names.")
        return new

    def add(self, new: list[Hashable]) -> None:
        """Give columns to the names that `new` returned."""
        self.texts.update(dict.fromkeys(map(str, new)))
        self.columns.update((name, column) for column, name in enumerate(new, len(self.columns)))
        self._last = ((), np.zeros(0, dtype=np.intp), True)

    def used_by(self, rows: Sequence[Row], n_kept: int) -> tuple[Columns, list[Row]]:
        """Return the first ``n_kept`` columns and those that rows have, and the rows in these columns."""
        is_kept = np.arange(len(self)) < n_kept
        for row in rows:
            is_kept[row.columns] = True
        columns, places = Columns(compress(self.columns, is_kept)), np.cumsum(is_kept) - 1
        return columns, [Row(places[row.columns], row.values) for row in rows]

    def row(self, named: Named, width: int | None = None) -> Row:
        """Put values into columns, leaving out names that have none among the first ``width``."""
        columns, is_known = self._find(named.names)
        width = len(self.columns) if width is None else width
        if is_known and width == len(self.columns):
            return Row(columns, named.values)
        mask = (columns >= 0) & (columns < width)
        return Row(columns[mask], named.values[mask])

    def _find(self, names: tuple[Hashable, ...]) -> tuple[IntArray, bool]:
        """Look up the columns of names, -1 for none, and whether all have one."""
        last, columns, is_known = self._last
        if names != last:
            columns = np.fromiter((self.columns.get(name, -1) for name in names), dtype=np.intp, count=len(names))
            is_known = bool((columns >= 0).all())
            self._last = names, columns, is_known
        return columns, is_known


def read_features(x: Any) -> Named:
    """Read a dict of numbers; text becomes a feature of its own, and None a missing value.

    Examples
    --------
    >>> read_features({"price": 3.5, "colour": "red", "size": None})
    Named(names=('price', 'colour=red', 'size'), values=array([3.5, 1. , nan]))
    """
    try:
        return Named(tuple(x), np.frombuffer(array("d", list(x.values()))))
    except (AttributeError, TypeError, OverflowError):
        # Not all are numbers.
        if not isinstance(x, Mapping):
            raise ValueError(f"x must be a dict, {{name: value}}, but it is of type {type(x).__name__}.") from None
    numbers = dict(_as_number(name, value) for name, value in x.items())
    return Named(tuple(numbers), np.array(list(numbers.values())))


def _as_number(name: Hashable, value: Any) -> tuple[Hashable, float]:
    if isinstance(value, str):
        return f"{name}={value}", 1.0
    if value is None:
        return name, np.nan
    try:
        return name, float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"x must hold numbers, True, False, text, or None for missing values, got {value!r} as {name!r}."
        ) from None


def read_labels(y: Any, *, allow_missing: bool) -> Named:
    """Read a set of labels, or a dict that tells which are present; None is a label that is not known, if allowed.

    Examples
    --------
    >>> read_labels({"uk", "politics"}, allow_missing=False).values
    array([1., 1.])
    >>> read_labels({"uk": True, "sports": False, "politics": None}, allow_missing=True)
    Named(names=('uk', 'sports', 'politics'), values=array([ 1.,  0., nan]))
    """
    if isinstance(y, (set, frozenset, list, tuple)):
        try:
            names = tuple(dict.fromkeys(y))
        except TypeError:
            raise ValueError(f"y must hold labels, which are text or numbers, got {y!r:.80}.") from None
        return Named(names, np.ones(len(names)))
    if not isinstance(y, Mapping):
        raise ValueError(f"y must be a dict, {{label: True or False}}, or a set of labels, but it is {y!r}.")
    if _is_plain(y):
        return Named(tuple(y), np.frombuffer(array("d", list(y.values()))))
    return Named(tuple(y), np.array([_mark(name, value, allow_missing) for name, value in y.items()]))


def _is_plain(y: Mapping[Hashable, Any]) -> bool:
    try:
        return _PLAIN_MARKS.issuperset(y.values())
    except TypeError:
        return False


def _mark(name: Hashable, value: Any, allow_missing: bool) -> float:
    if isinstance(value, Hashable) and value in _PLAIN_MARKS:
        return float(value)
    is_unknown = value is None or (isinstance(value, (float, np.floating)) and np.isnan(value))
    if is_unknown and allow_missing:
        return np.nan
    hint = " This model cannot learn rows of which some labels are not known; 'race' can." if is_unknown else ""
    raise ValueError(f"y must hold True or False for each label, got {value!r} as {name!r}.{hint}")


def matrix(rows: Sequence[Row], width: int) -> AnyMatrix:
    """Make a matrix of rows: dense if it is small or mostly filled, else in compressed rows."""
    if len(rows) == 1 and not _is_sparse(len(rows[0].values), width):
        dense = np.zeros((1, width))
        dense[0, rows[0].columns] = rows[0].values
        return dense
    lengths = np.array([len(row.values) for row in rows])
    columns, values = np.concatenate([row.columns for row in rows]), np.concatenate([row.values for row in rows])
    if not _is_sparse(len(values), len(rows) * width):
        dense = np.zeros((len(rows), width))
        dense[np.repeat(np.arange(len(rows)), lengths), columns] = values
        return dense
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    sparse = scipy.sparse.csr_array((values, columns.astype(np.int32), starts), shape=(len(rows), width))
    sparse.sort_indices()
    sparse.eliminate_zeros()
    return sparse


def _is_sparse(n_filled: int, n_cells: int) -> bool:
    return n_cells > _FEW_CELLS and n_filled <= _FILLED * n_cells
