"""Batches of any form, put together and taken apart.

A batch is a tuple of what ``partial_fit`` takes: features and labels for a classifier, a table with its tags for a
tagger. Its parts may be tables, arrays, sparse arrays, data frames, rows with names, or lists.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from labelrace.base import sparse
from labelrace.base.naming import NamedRows
from labelrace.streams.dataset import row_count
from labelrace.tables import Tagger
from labelrace.tables.merge import as_one_batch
from labelrace.tables.read import Table, stack_tables
from labelrace.tables.state import f1
from labelrace.typing import IntArray

Batch: TypeAlias = tuple[Any, ...]


def n_rows(batch: Batch) -> int:
    """Count the rows of a batch."""
    return int(batch[0].n_rows) if isinstance(batch[0], Table) else row_count(batch[0])


def take(batch: Batch, rows: IntArray) -> Batch:
    """Return some rows of a batch."""
    return tuple(_take(part, rows) for part in batch)


def stack(batches: list[Batch]) -> Batch:
    """Put batches one below the other."""
    return batches[0] if len(batches) == 1 else tuple(_stack(list(parts)) for parts in zip(*batches, strict=True))


def groups(
    batches: Iterator[tuple[int, Batch]], size: int, *, at_least: bool = False
) -> Iterator[list[tuple[int, Batch]]]:
    """Group batches that follow one another, each with the number of its piece, into groups of at most ``size`` rows.

    Batches of other columns begin a new group. A batch that is larger is a group of its own. With ``at_least``, groups
    end where they have that many rows.
    """
    group, total = list[tuple[int, Batch]](), 0
    for piece, batch in batches:
        n = n_rows(batch)
        is_full = total >= size if at_least else total + n > size
        if group and (is_full or not all(map(_are_alike, group[0][1], batch))):
            yield group
            group, total = [], 0
        group.append((piece, batch))
        total += n
    if group:
        yield group


def touched_features(batch: Batch) -> IntArray | None:
    """Return the features that occur in a batch of sparse rows; None for others."""
    return np.unique(batch[0].indices) if isinstance(batch[0], scipy.sparse.csr_array) else None


def example_f1(model: Any, batch: Batch) -> list[float]:
    """Predict a batch; return the F1 of each row whose labels are known."""
    if isinstance(model, Tagger):
        table, tags = as_one_batch(model, *batch)
        names = model.state.names
        pairs = zip(model.predict(table), tags, strict=True)
        return [f1(names.current(true), predicted) for predicted, true in pairs if true is not None]
    known = None if model.label_names_ is None else list(model.label_names_)
    truth = _label_sets(batch[1], known)
    return [f1(t, set(map(str, p))) for p, t in zip(model.predict_labels(batch[0]), truth, strict=True)]


def _take(part: Any, rows: IntArray) -> Any:
    if isinstance(part, Table):
        return part.take(rows.tolist())
    if isinstance(part, NamedRows):
        return part._replace(matrix=part.matrix[rows])
    if hasattr(part, "iloc"):
        return part.iloc[rows]
    return [part[row] for row in rows.tolist()] if isinstance(part, (list, tuple)) else part[rows]


def _are_alike(one: Any, other: Any) -> bool:
    """Return whether parts of two batches have the same columns, so that one may be put below the other as it is."""
    if type(one) is not type(other):
        return False
    if isinstance(one, NamedRows):
        return list(one.names) == list(other.names) and _are_alike(one.matrix, other.matrix)
    if hasattr(one, "iloc"):
        return list(one.columns) == list(other.columns)
    return isinstance(one, (Table, list, tuple)) or (one.shape[1:], one.dtype) == (other.shape[1:], other.dtype)


def _stack(parts: list[Any]) -> Any:
    """Put parts of the same type one below the other."""
    first = parts[0]
    if isinstance(first, Table):
        return stack_tables(parts)
    if isinstance(first, NamedRows):
        if all(_are_alike(first, part) for part in parts):
            return NamedRows(_stack([part.matrix for part in parts]), first.names)
        return [row for part in parts for row in _label_sets(part, None)]
    if isinstance(first, (list, tuple)):
        return [row for part in parts for row in part]
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return sparse.stacked(parts)


def _label_sets(y: Any, names: list[Any] | None) -> list[set[str]]:
    """Return labels as sets of names, or of columns as texts."""
    if isinstance(y, NamedRows):
        matrix, names = scipy.sparse.csr_array(y.matrix), list(y.names)
    elif isinstance(y, (list, tuple)):
        return [set(map(str, row)) for row in y]
    elif hasattr(y, "iloc"):
        matrix, names = scipy.sparse.csr_array(np.nan_to_num(y.to_numpy(dtype=float))), list(y.columns)
    else:
        matrix = scipy.sparse.csr_array(y)
    matrix.eliminate_zeros()
    rows = [matrix.indices[first:last].tolist() for first, last in itertools.pairwise(matrix.indptr)]
    return [{str(j if names is None or j >= len(names) else names[j]) for j in row} for row in rows]
