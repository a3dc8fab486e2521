"""The rows that a tagger has learned, as a value, to find rows that come again.

A row is remembered by 64 bits of a hash of what identifies it, and by 64 bits of a hash of its tags: 16 bytes. The last
2²⁰ rows are remembered, in sorted runs, the older before the newer. A batch is a run. Neighbouring runs of similar
size become one, up to 2¹⁶ rows, so there are few to search. When there are too many rows, the oldest run is
forgotten.

A row is identified by its identifier and its texts, if the table has both; otherwise all its cells. An identifier alone
is not enough: row numbers begin again in the next file, and a customer may write twice. With the texts, a changed
status or date does not make a row another one. A row without its identifier is identified by all its cells, if the
table has texts. Rows of tables with neither are never known: many are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelrace.tables.cells import as_name, as_texts
from labelrace.tables.column_kinds import Column
from labelrace.tables.read import Table
from labelrace.tables.text import hash_names
from labelrace.typing import BoolArray

Hashes = npt.NDArray[np.uint64]

# Kinds of columns of which a table must have one, so that rows can be distinguished.
_TELLING = {"identifier", "text"}
MAX_ROWS = 2**20
MAX_RUN = 2**16


class Run(NamedTuple):
    """Rows that were learned one after the other, in the order of their keys, each once."""

    keys: Hashes
    tags: Hashes

    def after(self, older: Run) -> Run:
        """Return the run together with an older one; of a row that both have, the tags are the newer ones."""
        keys, first = np.unique(np.concatenate([self.keys, older.keys]), return_index=True)
        return Run(keys, np.concatenate([self.tags, older.tags])[first])


class KnownRows(NamedTuple):
    """Rows that were learned, with their tags; see the module.

    Examples
    --------
    >>> known = KnownRows().plus(hash_names("row", ["a", "b"]), hash_tags([{"oven"}, {"egg"}]))
    >>> is_there, tags = known.find(hash_names("row", ["b", "c"]))
    >>> is_there.tolist(), (tags[:1] == hash_tags([{"egg"}])).tolist()
    ([True, False], [True])
    """

    runs: tuple[Run, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of stored rows; one whose tags were corrected may count twice."""
        return sum(len(run.keys) for run in self.runs)

    def find(self, keys: Hashes) -> tuple[BoolArray, Hashes]:
        """Return which rows are known, and the hashes of their tags; 0 for the others."""
        is_known, tags = np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=np.uint64)
        # The newer runs last, as their tags count.
        for run in self.runs:
            indices = np.minimum(np.searchsorted(run.keys, keys), len(run.keys) - 1)
            is_here = run.keys[indices] == keys
            is_known |= is_here
            tags = np.where(is_here, run.tags[indices], tags)
        return is_known, tags

    def plus(self, keys: Hashes, tags: Hashes) -> KnownRows:
        """Return the value with further rows, of which the last are the newest."""
        parts = [slice(start, start + MAX_RUN) for start in range(0, len(keys), MAX_RUN)]
        return self._followed_by(_run(keys[part], tags[part]) for part in parts)

    def merged(self, other: KnownRows) -> KnownRows:
        """Return the rows of both; those of the other count as the newer ones."""
        return self._followed_by(other.runs)

    def since(self, before: KnownRows) -> KnownRows:
        """Return the rows that were learned since an earlier value, or with other tags."""
        parts = []
        for run in self.runs:
            was_known, tags = before.find(run.keys)
            # Of a corrected row, the newest tags count.
            is_new = (~was_known | (tags != run.tags)) & (self.find(run.keys)[1] == run.tags)
            parts.append(Run(run.keys[is_new], run.tags[is_new]))
        return KnownRows()._followed_by(parts)

    def with_tags(self, old: Hashes, new: Hashes) -> KnownRows:
        """Return the rows after tags got other names: where a row has the first hash, it gets the second."""
        order = np.argsort(old)
        old, new = old[order], new[order]
        if not len(old):
            return self
        runs = []
        for run in self.runs:
            indices = np.minimum(np.searchsorted(old, run.tags), len(old) - 1)
            runs.append(run._replace(tags=np.where(old[indices] == run.tags, new[indices], run.tags)))
        return KnownRows(tuple(runs))

    def _followed_by(self, runs: Iterable[Run]) -> KnownRows:
        kept = list(self.runs)
        for run in runs:
            if not len(run.keys):
                continue
            kept.append(run)
            # Each run is at least twice as long as the next, so there are few, and a row is seldom moved.
            while len(kept) > 1 and len(kept[-2].keys) < 2 * len(kept[-1].keys) <= 2 * (MAX_RUN - len(kept[-2].keys)):
                kept[-2:] = [kept[-1].after(kept[-2])]
        known = KnownRows(tuple(kept))
        while known.n_rows > MAX_ROWS:
            known = KnownRows(known.runs[1:])
        return known


class Met(NamedTuple):
    """The comparison of the tagged rows of a batch with the known ones."""

    rows: KnownRows  # the known rows after the batch
    is_known: BoolArray  # learned before with the same tags
    is_correction: BoolArray  # learned before with other tags

    def to_learn(self, rows: Sequence[int], tags: Sequence[set[str]]) -> tuple[list[int], list[set[str]]]:
        """Return the rows that are to be learned, and their tags: all but those that are known."""
        return _taken(~self.is_known, rows, tags)

    def to_test(self, rows: Sequence[int], tags: Sequence[set[str]]) -> tuple[list[int], list[set[str]]]:
        """Return the rows that may be tested, and their tags: those that are new."""
        return _taken(~self.is_known & ~self.is_correction, rows, tags)


def meet(
    known: KnownRows, columns: Sequence[Column], table: Table, rows: Sequence[int], tags: Sequence[set[str]]
) -> Met:
    """Look up rows of a table, and store them; ``columns`` are the kinds of its columns, ``tags`` those of the rows."""
    keys, hashes = row_keys(columns, table)[list(rows)], hash_tags(tags)
    is_known, before = known.find(keys)
    # Within the batch, the row before with the same key counts.
    order = np.argsort(keys, kind="stable")
    is_again = np.append(False, keys[order][1:] == keys[order][:-1])
    is_known[order] |= is_again
    before[order] = np.where(is_again, np.roll(hashes[order], 1), before[order])
    # Rows that cannot be distinguished are never known.
    is_known &= keys != 0
    is_same = is_known & (before == hashes)
    taken = ~is_same & (keys != 0)
    return Met(known.plus(keys[taken], hashes[taken]), is_same, is_known & ~is_same)


def all_new(known: KnownRows, n_rows: int) -> Met:
    """Treat all rows as new, and store none."""
    nothing = np.zeros(n_rows, dtype=bool)
    return Met(known, nothing, nothing)


def are_told_apart(columns: Sequence[Column]) -> bool:
    """Return whether rows can be known again: without identifiers and texts, other rows may be the same."""
    return bool(_TELLING.intersection(column.kind for column in columns))


def row_keys(columns: Sequence[Column], table: Table) -> Hashes:
    """Hash the identifying cells of the rows of a table; 0 for rows that cannot be distinguished.

    Missing columns, empty cells and the order of columns do not count.

    Examples
    --------
    >>> columns = [Column("id", "identifier"), Column("body", "text"), Column("status", "category")]
    >>> rows = {"id": ["1", "1", 1.0], "body": ["Hot", "Cold", " Hot "], "status": ["new", "new", "done"]}
    >>> keys = row_keys(columns, Table(rows, 3))
    >>> bool(keys[0] == keys[1]), bool(keys[0] == keys[2])
    (False, True)
    """
    kinds = {column.kind for column in columns}
    names, texts = (_sum_of_hashes(columns, table, {kind}) for kind in ("identifier", "text"))
    if not kinds & _TELLING:
        return names
    keys, is_named = names + texts, names != 0
    # All cells identify rows in tables without identifiers or without texts, and where the identifier is missing.
    needs_all = ~is_named if kinds >= _TELLING else np.ones(table.n_rows, dtype=bool)
    if needs_all.any():
        keys[needs_all] += _sum_of_hashes(columns, table, kinds - _TELLING - {"dropped"})[needs_all]
    if "text" not in kinds:
        keys[~is_named] = 0
    return keys


def _sum_of_hashes(columns: Sequence[Column], table: Table, kinds: set[str]) -> Hashes:
    """Hash the cells of columns of some kinds; 0 for rows without any."""
    keys = np.zeros(table.n_rows, dtype=np.uint64)
    for column in columns:
        if column.kind in kinds and column.name in table.columns:
            # Programs write the same text with other line ends and spaces.
            texts = [as_name(" ".join(text.split())) for text in as_texts(table.columns[column.name])]
            is_filled = np.array([bool(text) for text in texts], dtype=bool)
            keys += np.where(is_filled, hash_names(column.name, texts), np.uint64(0))
    return keys


def hash_tags(sets: Iterable[Iterable[str]]) -> Hashes:
    """Hash sets of tags.

    Examples
    --------
    >>> hash_tags([{"a", "b"}, {"b", "a"}, {"a"}]) == hash_tags([{"a", "b"}])
    array([ True,  True, False])
    """
    return hash_names("tags", ("\0".join(sorted(tags)) for tags in sets))


def pack(known: KnownRows) -> dict[str, Hashes]:
    """Return the rows as arrays, one run after the other, and the lengths of the runs."""
    runs = known.runs or (Run(np.zeros(0, np.uint64), np.zeros(0, np.uint64)),)
    lengths = np.array([len(run.keys) for run in known.runs], dtype=np.uint64)
    keys, tags = (np.concatenate(parts) for parts in zip(*runs, strict=True))
    return {"keys": keys, "tags": tags, "lengths": lengths}


def unpack(keys: Hashes, tags: Hashes, lengths: Hashes) -> KnownRows:
    """Read rows from arrays; damaged ones are refused."""
    arrays = (keys, tags, lengths)
    if any(array.dtype != np.uint64 or array.ndim != 1 for array in arrays) or len(keys) != len(tags):
        raise ValueError("its known rows must be arrays of whole numbers, with as many tags as keys")
    sizes = lengths.tolist()
    if sum(sizes) != len(keys) or len(keys) > MAX_ROWS or not all(0 < size <= MAX_RUN for size in sizes):
        raise ValueError("the lengths of its known rows do not add up to their number, or exceed the largest one")
    ends = np.cumsum(sizes, dtype=np.intp)[:-1]
    runs = tuple(map(Run, np.split(keys, ends), np.split(tags, ends))) if sizes else ()
    if any((run.keys[1:] <= run.keys[:-1]).any() for run in runs):
        raise ValueError("its known rows are not in order")
    return KnownRows(runs)


def _run(keys: Hashes, tags: Hashes) -> Run:
    """Make a run; of a row that is there several times, the last counts."""
    unique, last = np.unique(keys[::-1], return_index=True)
    return Run(unique, tags[::-1][last])


def _taken(mask: BoolArray, rows: Sequence[int], tags: Sequence[set[str]]) -> tuple[list[int], list[set[str]]]:
    chosen = np.flatnonzero(mask).tolist()
    return [rows[one] for one in chosen], [tags[one] for one in chosen]
