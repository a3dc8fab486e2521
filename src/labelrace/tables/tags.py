"""Files and tables in batches, with their tags in any form; or as one dataset, to compare models."""

from __future__ import annotations

import csv
import itertools
import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from labelrace.base.linalg import stacked
from labelrace.base.parameters import shown
from labelrace.exceptions import DataFormatError
from labelrace.streams import Dataset
from labelrace.streams.files import Location
from labelrace.streams.jsonl import JsonTable, read_object
from labelrace.streams.lines import chunked
from labelrace.streams.tabular import CsvTable, open_table
from labelrace.tables import TableFeatures
from labelrace.tables.cells import Cells, Table, as_lists, as_numbers, is_missing, read_table
from labelrace.tables.kinds import find_separator
from labelrace.tables.state import TagNames, TagSets

# Signs that tags rarely hold, and the share of rows from which it is said if they do.
_SPLITTING, _MANY_JOINT = (";", "|", ",", "\t"), 0.2
_SEPARATORS = {"space": " ", "tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}


def file_tables(path: str | Path, size: int, delimiter: str | None = None) -> Iterator[Table]:
    r"""Yield the rows of a CSV, TSV, JSON lines, Parquet or Arrow file, `size` at a time, in bounded memory.

    Cells of CSV are texts: `labelrace.tables.kinds` decides what they mean, for a whole column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("size,hue\n1.5,red\n2,\n3,blue\n")
    ...     [table.columns for table in file_tables(path, 2)]
    [{'size': ['1.5', '2'], 'hue': ['red', None]}, {'size': ['3'], 'hue': ['blue']}]
    """
    path = Path(path)
    options = {} if delimiter is None else {"delimiter": delimiter}
    try:
        table = open_table(path, **options)
    except TypeError:
        raise ValueError(f"{path}: a delimiter is for CSV files only; leave it out.") from None
    if isinstance(table, JsonTable):
        for _, rows in table.objects(size):
            yield read_table(rows)
        return
    types = dict.fromkeys(table.names, pa.string()) if isinstance(table, CsvTable) else None
    for rows in _cut((batch.rows for batch in table.batches(size, types)), size):
        yield read_table(rows)


def _cut(parts: Iterable[Any], size: int) -> Iterator[Any]:
    """Split and join tables so that each but the last has `size` rows."""
    kept, n_kept = [], 0
    for part in parts:
        kept.append(part)
        n_kept += part.num_rows
        if n_kept >= size:
            whole = pa.concat_tables(kept)
            n_whole = n_kept - n_kept % size
            for start in range(0, n_whole, size):
                yield whole.slice(start, size)
            kept, n_kept = [whole.slice(n_whole).combine_chunks()], n_kept - n_whole
    if n_kept:
        yield pa.concat_tables(kept)


def text_tables(lines: Iterable[str], size: int, delimiter: str = ",") -> Iterator[Table]:
    """Yield the rows of standard input: CSV with a header, or JSON objects on each line if the first begins with {."""
    filled = (line for line in lines if line.strip())
    first = next(filled, None)
    if first is None:
        return
    every = itertools.chain([first.removeprefix("\ufeff")], filled)
    rows = _json_rows(every) if first.lstrip("\ufeff ").startswith("{") else _csv_rows(every, delimiter)
    yield from map(read_table, chunked(rows, size))


def _json_rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        place = Location(Path("standard input"), number, "row")
        # Bytes that were not UTF-8 came as surrogates, which are refused with the row.
        yield read_object(line.encode(errors="surrogatepass"), place)


def _csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[dict[str, Any]]:
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    try:
        names = next(reader)
        if len(set(names)) < len(names):
            raise DataFormatError("standard input: columns have the same name; rename them")
        for number, row in enumerate(reader, start=1):
            if len(row) != len(names):
                raise DataFormatError(
                    f"standard input, row {number}: {len(row)} cells, but the header has {len(names)} columns."
                )
            yield {name: cell or None for name, cell in zip(names, row, strict=True)}
    except csv.Error as error:
        raise DataFormatError(
            f"standard input: not valid CSV ({error}); correct the quotes, or give a table with such cells as a file."
        ) from None


def batches_of(X: Any, size: int, delimiter: str | None = None) -> Iterator[Table]:
    """Yield the rows of a table or a file, `size` at a time."""
    if isinstance(X, (str, Path)):
        yield from file_tables(X, size, delimiter)
        return
    table = read_table(X)
    for start in range(0, table.n_rows, size):
        yield table.rows(start, start + size)


def one_row(row: Any) -> Table:
    """Turn a single row, a dict or a pandas Series, into a table."""
    if isinstance(row, Mapping):
        row = [row]
    elif hasattr(row, "to_dict") and hasattr(row, "index") and not hasattr(row, "columns"):
        row = [row.to_dict()]
    table = read_table(row)
    if table.n_rows != 1:
        raise ValueError(f"row must be one row, got {table.n_rows}.")
    return table


def tagged_batches(
    X: Any, y: Any, tags: str | Sequence[str] | None, separator: str | None, size: int, delimiter: str | None = None
) -> Iterator[tuple[Table, TagSets, str | None]]:
    """Yield the batches of a table without its tags, the tags, and their separator.

    ``y`` has the tags of all rows, or is None if they are in the columns ``tags`` of the table. ``separator`` is
    detected if it is None.
    """
    if y is not None:
        table = read_table(X)
        sets, separator = as_given(y, table.n_rows, separator)
        for start in range(0, table.n_rows, size):
            stop = start + size
            yield without_tags(table.rows(start, stop), tags), sets[start:stop], separator
        return
    if tags is None:
        raise ValueError("y must be the tags of each row, or tags= the name of the column that holds them, got None.")
    if not isinstance(X, (str, Path)):
        # All tags are read before anything is learned, so that an error leaves the tagger unchanged.
        X = read_table(X)
        from_table(X, tags, separator)
    for batch in batches_of(X, size, delimiter):
        sets, separator = from_table(batch, tags, separator)
        yield without_tags(batch, tags), sets, separator


def without_tags(table: Table, tags: str | Sequence[str] | None) -> Table:
    """Return a table without the columns of tags."""
    return table.without([tags] if isinstance(tags, str) else tags or ())


def from_table(table: Table, tags: str | Sequence[str], separator: str | None) -> tuple[TagSets, str | None]:
    """Read the tags of a table: one column of lists or delimited texts, or columns of 0 and 1.

    The separator, which is detected if none is given, is returned, too.
    """
    names = [tags] if isinstance(tags, str) else list(tags)
    gone = [name for name in names if name not in table.columns]
    if gone:
        similar = next((name for name in table.columns if name.strip().lower() == gone[0].strip().lower()), None)
        hint = "" if similar is None else f" Did you mean {similar!r}?"
        if len(table.columns) == 1:
            hint = " Is it the delimiter of columns that must be given?"
        raise ValueError(
            f"The table must have the column {gone[0]!r}, which is to hold tags, got columns "
            f"{shown(table.columns, 20)}.{hint}"
        )
    if isinstance(tags, str):
        return _from_cells(table.columns[tags], separator)
    return _from_truths({name: table.columns[name] for name in names}, table.n_rows), separator


def as_given(y: Any, n_rows: int, separator: str | None) -> tuple[TagSets, str | None]:
    """Read tags that are given beside a table: sets, lists, texts, or a data frame of 0 and 1."""
    if hasattr(y, "columns") or isinstance(y, Mapping):
        truths = read_table(y)
        found = _from_truths(truths.columns, truths.n_rows)
    else:
        if isinstance(y, str) or not isinstance(y, Iterable) or getattr(y, "ndim", 1) != 1:
            raise ValueError(
                "y must be the tags of each row, as sets, lists or texts, or a data frame of 0 and 1 with the tags as "
                f"its columns, got {type(y).__name__}."
            )
        cells = [None if is_missing(cell) or cell != cell else cell for cell in y]
        found, separator = _from_cells(cells, separator)
    if len(found) != n_rows:
        raise ValueError(f"The table and y must have the same number of rows, got {n_rows} and {len(found)}.")
    return found, separator


def _from_cells(cells: Cells, separator: str | None) -> tuple[TagSets, str | None]:
    separator = _SEPARATORS.get(separator or "", separator)
    if separator is None and isinstance(cells, list):
        separator = find_separator([cell for cell in cells if isinstance(cell, str)])
    found = [set(names) or None for names in as_lists(cells, separator)]
    _warn_of_other_separators(found)
    return found, separator


def _warn_of_other_separators(sets: TagSets) -> None:
    """Warn where many rows have tags that look like several: such tags are kept as they are."""
    tagged = [tags for tags in sets if tags]
    for sign in _SPLITTING:
        if sum(sign in tag for tags in tagged for tag in tags) > _MANY_JOINT * len(tagged):
            # Without an example, so that it is shown once and not for every batch.
            text = f"Many tags hold {sign!r}: give the separator if it separates tags."
            warnings.warn(text, UserWarning, stacklevel=2)


def _from_truths(columns: Mapping[str, Cells], n_rows: int) -> TagSets:
    """Read columns of 0 and 1; of a row where all are missing, the tags are not known."""
    sets, is_known = [set[str]() for _ in range(n_rows)], np.zeros(n_rows, dtype=bool)
    for name, cells in columns.items():
        numbers, wrong = as_numbers(cells)
        others = [*wrong, *np.flatnonzero(~np.isnan(numbers) & (numbers != 0) & (numbers != 1)).tolist()]
        if others:
            raise ValueError(f"The column of tags {name!r} must hold 0 and 1, got {cells[others[0]]!r}.")
        is_known |= ~np.isnan(numbers)
        for row in np.flatnonzero(numbers == 1):
            sets[row].add(name)
    return [found if known else None for found, known in zip(sets, is_known, strict=True)]


def joined(tags: Iterable[str], separator: str | None) -> str:
    """Write tags as one text, in their order; as a JSON list if a tag contains the separator.

    Examples
    --------
    >>> joined(["oven", "egg"], " "), joined(["a;b", "c"], None)
    ('oven egg', '["a;b", "c"]')
    """
    listed, between = list(tags), separator or ";"
    return json.dumps(listed) if any(between in tag for tag in listed) else between.join(listed)


@dataclass(frozen=True, eq=False)
class TaggedDataset(Dataset):
    """A dataset that was made from a table with tags."""

    feature_seconds: float = 0.0  # CPU time to turn the table into matrices, which is the same for every model


def tagged_dataset(tagger: Any, source: Any, delimiter: str | None = None) -> tuple[TaggedDataset, TableFeatures]:
    """Turn a table into the matrices that a tagger's model would learn, all with the columns of the last batch.

    The table, or its file, is read once, batch by batch: only the cells of one batch are in memory at a time. The
    tagger's parameters say what the columns are; it is not changed. The transformer is returned, too.
    """
    start, features = time.process_time(), tagger.new_features()
    parts, rows, places = list[Any](), list[list[int]](), dict[str, int]()
    for table, tags, _ in tagger.tagged_batches(source, delimiter=delimiter):
        known, truth = TagNames().tagged(tags, tagger.untagged)
        if not known:
            continue
        parts.append(features.partial_fit_transform(table)[known])
        rows += [[places.setdefault(tag, len(places)) for tag in sorted(names)] for names in truth]
    if not places:
        raise DataFormatError(f"{source}: no row has tags; name the column that holds them.")
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.array([place for row in rows for place in row], dtype=np.int32)
    Y = scipy.sparse.csr_array((np.ones(len(indices), np.int8), indices, ends), shape=(len(rows), len(places)))
    X = stacked(parts)
    name = Path(source).name.partition(".")[0] if isinstance(source, (str, Path)) else "table"
    mask = np.zeros(X.shape[1], dtype=bool)
    seconds = time.process_time() - start
    names = tuple(features.get_feature_names_out())
    return TaggedDataset(X, Y, names, tuple(places), mask, name, feature_seconds=seconds), features
