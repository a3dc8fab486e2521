"""The columns of words and values in the matrix: a bounded table from 64-bit hashes to columns.

A word gets a column when it has been in enough rows; until then it is counted in a small filter. When all columns are
used, new words take the columns of words that have not been seen for longest. A `Vocabulary` is a value: learning
returns a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelrace.typing import FloatArray, IntArray

Hashes = npt.NDArray[np.uint64]

# Number of counters of the filter, as a power of 2. A word has two of them; its count is the smaller one.
_FILTER_BITS = 20
# Share of counters in use from which all are halved, so that rare words are forgotten.
_MAX_USED = 0.3
# Number of rows without a word after which its column may be reused.
_UNSEEN = 1000


class Vocabulary(NamedTuple):
    """The columns of words and values."""

    keys: Hashes  # the hashes of words and values, sorted
    columns: IntArray  # the column of each hash
    names: list[str]  # the name of each column; must not be modified
    rows: FloatArray  # number of rows of the word of each column
    seen: FloatArray  # when the word of each column was last seen: the number of the last row of that batch
    counters: npt.NDArray[np.uint8]  # the filter
    n_rows: float  # rows learned


class Keys(NamedTuple):
    """The distinct words and values of a batch."""

    hashes: Hashes
    names: Sequence[str]
    rows: FloatArray  # number of rows of the batch that have each
    needed: FloatArray  # number of rows that each must occur in to get a column


def empty() -> Vocabulary:
    """Make a vocabulary without words."""
    none = np.zeros(0)
    counters = np.zeros(1 << _FILTER_BITS, dtype=np.uint8)
    return Vocabulary(np.zeros(0, np.uint64), np.zeros(0, np.intp), [], none, none, counters, 0.0)


def check(vocabulary: Vocabulary) -> Vocabulary:
    """Return a vocabulary that was read from a file, or raise ValueError if it is invalid."""
    keys, columns, names, rows, seen, counters, _ = vocabulary
    n_words = len(keys)
    if not keys.shape == columns.shape == rows.shape == seen.shape == (len(names),):
        raise ValueError("its words do not fit one another")
    if [array.dtype for array in (keys, rows, seen, counters)] != [np.uint64, np.float64, np.float64, np.uint8]:
        raise ValueError("its words have wrong types")
    if (keys[1:] <= keys[:-1]).any() or (np.sort(columns) != np.arange(n_words)).any():
        raise ValueError("its words are not in order")
    if len(counters) != 1 << _FILTER_BITS or counters.ndim != 1:
        raise ValueError("its words have a wrong number of counters")
    return vocabulary


def find(vocabulary: Vocabulary, hashes: Hashes) -> IntArray:
    """Return the columns of hashes, -1 for those without a column."""
    known = vocabulary.keys
    if not len(known):
        return np.full(len(hashes), -1, dtype=np.intp)
    positions = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    return np.where(known[positions] == hashes, vocabulary.columns[positions], -1)


def since(start: Vocabulary, end: Vocabulary) -> Vocabulary:
    """Return the counts since a start, whose columns come first."""
    before, seen = (np.pad(part, (0, len(end.rows) - len(part))) for part in (start.rows, start.seen))
    rows = end.rows - before
    return end._replace(
        rows=rows,
        seen=np.where(rows > 0, end.n_rows, seen),
        counters=np.maximum(end.counters, start.counters) - start.counters,
        n_rows=end.n_rows - start.n_rows,
    )


def merge(one: Vocabulary, other: Vocabulary) -> tuple[Vocabulary, IntArray]:
    """Add the counts of two vocabularies; return the result and the new numbers of the other's columns."""
    new_columns = np.empty(len(other.rows), dtype=np.intp)
    known = find(one, other.keys)
    is_new = known < 0
    # In the order in which the other one learned them.
    fresh = np.sort(other.columns[is_new])
    new_columns[other.columns[~is_new]] = known[~is_new]
    new_columns[fresh] = len(one.rows) + np.arange(len(fresh))
    rows, seen = (np.pad(part, (0, len(fresh))) for part in (one.rows, one.seen))
    rows[new_columns] += other.rows
    seen[new_columns] = np.maximum(seen[new_columns], other.seen)
    keys, columns = _insert(one, np.zeros(0, np.intp), other.keys[is_new], new_columns[other.columns[is_new]])
    counters = np.minimum(one.counters.astype(np.uint16) + other.counters, 255).astype(np.uint8)
    names = [*one.names, *(other.names[column] for column in fresh.tolist())]
    return Vocabulary(keys, columns, names, rows, seen, counters, one.n_rows + other.n_rows), new_columns


def learn(vocabulary: Vocabulary, batch: Keys, n_rows: int, max_columns: int) -> tuple[Vocabulary, IntArray, IntArray]:
    """Learn a batch of words; return also their columns, -1 for none, and those that were taken from other words."""
    columns = find(vocabulary, batch.hashes)
    is_new = columns < 0
    before, counters = _count(vocabulary.counters, batch.hashes[is_new], batch.rows[is_new])
    now, end = before + batch.rows[is_new], vocabulary.n_rows + n_rows
    admitted = np.flatnonzero(is_new)[now >= batch.needed[is_new]]
    rows, seen = vocabulary.rows.copy(), vocabulary.seen.copy()
    rows[columns[~is_new]] += batch.rows[~is_new]
    seen[columns[~is_new]] = end
    n_free = max(0, max_columns - len(rows))
    reused = _long_unseen(seen, end - _UNSEEN, len(admitted) - n_free)
    # If there is not room for all, the most frequent words come first.
    admitted = np.sort(admitted[np.argsort(-batch.rows[admitted], kind="stable")][: n_free + len(reused)])
    appended = np.arange(len(rows), len(rows) + len(admitted) - len(reused))
    given = np.concatenate([reused, appended]).astype(np.intp)
    columns[admitted] = given
    past = np.zeros(len(batch.hashes))
    past[is_new] = before
    rows, seen = (np.pad(part, (0, len(appended))) for part in (rows, seen))
    rows[given], seen[given] = past[admitted] + batch.rows[admitted], end
    names = vocabulary.names
    if len(given):
        names = [*names, *[""] * len(appended)]
        for column, word in zip(given.tolist(), admitted.tolist(), strict=True):
            names[column] = batch.names[word]
    keys, key_columns = _insert(vocabulary, reused, batch.hashes[admitted], given)
    return Vocabulary(keys, key_columns, names, rows, seen, counters, end), columns, reused


def _count(
    counters: npt.NDArray[np.uint8], hashes: Hashes, rows: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.uint8]]:
    """Count words without a column; return their earlier counts, and the new counters."""
    if not len(hashes):
        return np.zeros(0), counters
    mask = np.uint64(len(counters) - 1)
    first, second = hashes & mask, (hashes >> np.uint64(_FILTER_BITS)) & mask
    before = np.minimum(counters[first], counters[second])
    now = np.minimum(before + rows, 255).astype(np.uint8)
    counters = counters.copy()
    np.maximum.at(counters, first, now)
    np.maximum.at(counters, second, now)
    if np.count_nonzero(counters) > _MAX_USED * len(counters):
        counters >>= 1
    return before.astype(float), counters


def _long_unseen(seen: FloatArray, latest: float, n_needed: int) -> IntArray:
    """Return up to `n_needed` columns that have not been seen for longest, and not after the row `latest`."""
    if n_needed <= 0:
        return np.zeros(0, dtype=np.intp)
    oldest = np.argsort(seen, kind="stable")[:n_needed]
    return np.sort(oldest[seen[oldest] <= latest])


def _insert(vocabulary: Vocabulary, reused: IntArray, hashes: Hashes, given: IntArray) -> tuple[Hashes, IntArray]:
    """Insert new hashes into the sorted ones, and remove those whose columns are reused."""
    keys, columns = vocabulary.keys, vocabulary.columns
    if not len(hashes):
        return keys, columns
    if len(reused):
        mask = ~np.isin(columns, reused)
        keys, columns = keys[mask], columns[mask]
    order = np.argsort(hashes)
    positions = np.searchsorted(keys, hashes[order])
    return np.insert(keys, positions, hashes[order]), np.insert(columns, positions, given[order])
