"""The tags of tables, in any form; and a table with tags as one dataset, to compare models."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.parameters import quoted_list
from labelrace.base.sparse import stacked
from labelrace.exceptions import DataFormatError, TableError
from labelrace.streams import Dataset
from labelrace.tables.cells import Cells, as_lists, as_name, as_numbers, is_missing
from labelrace.tables.column_kinds import SEPARATORS, find_separator
from labelrace.tables.features import TableFeatures
from labelrace.tables.read import Table, as_table, table_batches
from labelrace.tables.state import TagNames, TagSets
from labelrace.tables.write import predicted_in, without_written

_SEPARATORS = {"space": " ", "tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "line end": "\n"}
_NAMES = {" ": "space", "\t": "tab", "\n": "line end"}
# Rows from which it is not by chance that new tags are made of known ones.
_FEW = 3


def tagged_batches(
    X: Any,
    y: Any,
    tags: str | Sequence[str] | None,
    separator: str | None,
    size: int,
    reading: Any = None,
    *,
    confirmed: bool = False,
    on_unchanged: Callable[[int], object] = int,
) -> Iterator[tuple[Table, TagSets, str | None]]:
    """Yield the batches of a table without its tags, the tags, and their separator.

    ``y`` has the tags of all rows, or is None if they are in the columns ``tags`` of the table. ``separator`` is
    detected if it is None. ``reading`` says how a file is read. Of a table that was predicted, only rows of which
    people have said something are yielded, see `rows_said`; ``on_unchanged`` gets the number of others of each batch.
    """
    if y is not None:
        table = as_table(X)
        sets, separator = tags_of_y(y, table.n_rows, separator)
        for start in range(0, table.n_rows, size):
            stop = start + size
            yield without_tags(table.slice(start, stop), tags), sets[start:stop], separator
        return
    if tags is None:
        raise ValueError("y must be the tags of each row, or tags= the name of the column that holds them, got None.")
    if not isinstance(X, (str, Path)):
        X = as_table(X)
        if not 0 < X.n_rows <= size:
            # All tags are read before anything is learned, so that an error leaves the tagger unchanged.
            tags_of_table(X, tags, separator)
    for batch in table_batches(X, size, reading):
        sets, separator = tags_of_table(batch, tags, separator)
        said, n_unchanged = rows_said(batch, sets, confirmed)
        if n_unchanged:
            on_unchanged(n_unchanged)
        if not said:
            continue
        if len(said) < len(sets):
            batch, sets = batch.take(said), [sets[row] for row in said]
        yield without_tags(batch, tags), sets, separator


def rows_said(table: Table, tags: TagSets, confirmed: bool) -> tuple[list[int], int]:
    """Return the rows of which a person has said something, and how many others still have the tags predicted for them.

    A row that was left to people is said if it has tags now, or no longer waits for review; a row with predicted tags
    if it has others now, or is ``confirmed``. In a table that was not written beside predictions all rows are.
    """
    written = predicted_in(table)
    if written is None:
        return list(range(table.n_rows)), 0
    said, n_unchanged = list[int](), 0
    for row, (now, (given, waits)) in enumerate(zip(tags, written, strict=True)):
        if given is not None and given == (now or set()) and not confirmed:
            n_unchanged += 1
        elif given is not None or now is not None or not waits:
            said.append(row)
    return said, n_unchanged


def check_separator(tags: TagSets, separator: str, known: Collection[str]) -> None:
    """Refuse tags that are others when they are split at another sign: most of those that are new are known then."""
    names = set(known)
    new = [row for row in tags if row and not row <= names]
    for other in (*SEPARATORS, " "):
        parts = ([part.strip() for tag in row for part in tag.split(other)] for row in new)
        n_found = sum(len(one) > len(row) and set(one) <= names for one, row in zip(parts, new, strict=True))
        # A new tag may well be two words that are tags.
        if other != separator and 2 * n_found > len(new) and n_found >= (_FEW if other == " " else 1):
            found, learned = (_NAMES.get(sign, sign) for sign in (other, separator))
            raise TableError(
                f"The tags must be separated by {learned!r}, as those learned before, got {found!r}: give --separator "
                f"{found!r}, in Python separator={found!r}."
            )


def without_tags(table: Table, tags: str | Sequence[str] | None) -> Table:
    """Return a table without the columns of tags, and those written with suggestions."""
    return without_written(table.drop([tags] if isinstance(tags, str) else tags or ()))


def tags_of_table(table: Table, tags: str | Sequence[str], separator: str | None) -> tuple[TagSets, str | None]:
    """Read the tags of a table: one column of lists or delimited texts, or columns of 0 and 1.

    The separator, which is detected if none is given, is returned, too.
    """
    names = [tags] if isinstance(tags, str) else list(tags)
    absent = [name for name in names if name not in table.columns]
    if absent and not table.columns:
        raise ValueError(f"The table must have rows, with the column {absent[0]!r}, got none: give rows to learn.")
    if absent:
        similar = next((name for name in table.columns if name.strip().lower() == absent[0].strip().lower()), None)
        hint = "" if similar is None else f" Did you mean {similar!r}?"
        if len(table.columns) == 1:
            hint = " Is it the delimiter of columns, or the sheet of a workbook, that must be given?"
        raise ValueError(
            f"The table must have the column {absent[0]!r}, which is to hold tags, got columns "
            f"{quoted_list(table.columns, 20)}.{hint}"
        )
    if isinstance(tags, str):
        return _tags_of_cells(table.columns[tags], separator)
    return _tags_of_truths({name: table.columns[name] for name in names}, table.n_rows), separator


def tags_of_y(y: Any, n_rows: int, separator: str | None) -> tuple[TagSets, str | None]:
    """Read tags that are given beside a table: sets, lists, texts, or a data frame of 0 and 1."""
    if hasattr(y, "columns") or isinstance(y, Mapping):
        truths = as_table(y)
        sets = _tags_of_truths(truths.columns, truths.n_rows)
    else:
        if isinstance(y, str) or not isinstance(y, Iterable) or getattr(y, "ndim", 1) != 1:
            raise ValueError(
                "y must be the tags of each row, as sets, lists or texts, or a data frame of 0 and 1 with the tags as "
                f"its columns, got {type(y).__name__}."
            )
        cells = [None if is_missing(cell) or cell != cell else cell for cell in y]
        sets, separator = _tags_of_cells(cells, separator)
    if len(sets) != n_rows:
        raise ValueError(f"The table and y must have the same number of rows, got {n_rows} and {len(sets)}.")
    return sets, separator


def _tags_of_cells(cells: Cells, separator: str | None) -> tuple[TagSets, str | None]:
    separator = _SEPARATORS.get(separator or "", separator)
    if separator is None and isinstance(cells, list):
        separator = find_separator([cell for cell in cells if isinstance(cell, str)])
    sets = [set(names) or None for names in as_lists(cells, separator)]
    return sets, separator


def _tags_of_truths(columns: Mapping[str, Cells], n_rows: int) -> TagSets:
    """Read columns of 0 and 1; of a row where all are missing, the tags are not known."""
    sets, is_known = [set[str]() for _ in range(n_rows)], np.zeros(n_rows, dtype=bool)
    for name, cells in columns.items():
        numbers, wrong = as_numbers(cells)
        others = [*wrong, *np.flatnonzero(~np.isnan(numbers) & (numbers != 0) & (numbers != 1)).tolist()]
        if others:
            raise ValueError(f"The column of tags {name!r} must hold 0 and 1, got {cells[others[0]]!r}.")
        is_known |= ~np.isnan(numbers)
        for row in np.flatnonzero(numbers == 1):
            sets[row].add(as_name(name))
    return [tags if flag else None for tags, flag in zip(sets, is_known, strict=True)]


@dataclass(frozen=True, eq=False)
class TaggedDataset(Dataset):
    """A dataset that was made from a table with tags."""

    feature_seconds: float = 0.0  # CPU time to turn the table into matrices, which is the same for every model


def tagged_dataset(tagger: Any, source: Any, reading: Any = None) -> tuple[TaggedDataset, TableFeatures]:
    """Turn a table into the matrices that a tagger's model would learn, all with the columns of the last batch.

    Where a word takes the column of another, a tagger resets what its model knows of the column. Here it gets a further
    column, so that any model may learn the matrices. The table, or its file, is read once, batch by batch: only the
    cells of one batch are in memory at a time. The tagger's parameters are used; it is not changed. The
    transformer is returned, too.

    Parameters
    ----------
    tagger : Tagger
        Fitted or not.
    source : table or path
    reading : str, default=None
        The delimiter of a CSV file, which is otherwise detected.

    Returns
    -------
    data : TaggedDataset
        A `labelrace.streams.Dataset` that also knows its ``feature_seconds``.
    features : TableFeatures

    Examples
    --------
    >>> import labelrace
    >>> rows = [{"body": "The oven is hot", "tags": "oven; heat"}, {"body": "A broken toaster", "tags": "toaster"}]
    >>> data, features = tagged_dataset(labelrace.Tagger("tags"), rows * 10)
    >>> data.X.shape, data.label_names
    ((20, 6), ('heat', 'oven', 'toaster'))
    """
    start, features = time.process_time(), tagger.new_features()
    parts, rows, columns = list[Any](), list[list[int]](), dict[str, int]()
    state, word_columns, names = None, np.zeros(0, dtype=np.int32), list[str]()
    for table, tags, _ in tagger.tagged_batches(source, reading=reading, confirmed=True):
        known, truth = TagNames().tagged(tags, tagger.untagged)
        if not known:
            continue
        update = features.update(state, table)
        state, X = update.state, update.matrix
        words = state.vocabulary.names
        new = [*update.reused.tolist(), *range(len(word_columns), len(words))]
        word_columns = np.append(word_columns, np.zeros(len(words) - len(word_columns), np.int32))
        word_columns[new] = np.arange(len(names), len(names) + len(new))
        names += [words[column] for column in new]
        X = X[known]
        X = scipy.sparse.csr_array((X.data, word_columns[X.indices], X.indptr), shape=(len(known), len(names)))
        X.sort_indices()
        parts.append(X)
        rows += [[columns.setdefault(tag, len(columns)) for tag in sorted(names)] for names in truth]
    if not columns:
        raise DataFormatError(f"{source}: no row has tags; name the column that holds them.")
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.array([column for row in rows for column in row], dtype=np.int32)
    Y = scipy.sparse.csr_array((np.ones(len(indices), np.int8), indices, ends), shape=(len(rows), len(columns)))
    X = stacked(parts, 1)
    name = Path(source).name.partition(".")[0] if isinstance(source, (str, Path)) else "table"
    mask = np.zeros(X.shape[1], dtype=bool)
    seconds = time.process_time() - start
    data = TaggedDataset(X, Y, tuple(names) or ("nothing",), tuple(columns), mask, name, feature_seconds=seconds)
    return data, features.restore(state)
