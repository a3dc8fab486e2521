"""Files and tables in batches of a given number of rows, with their tags; or as one dataset, to compare models."""

from __future__ import annotations

import csv
import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse

from labelrace.exceptions import DataFormatError
from labelrace.features import TableFeatures
from labelrace.features.cells import Table, read_table
from labelrace.streams import Dataset
from labelrace.streams.files import chunked
from labelrace.streams.jsonl import JsonTable, with_keys_once
from labelrace.streams.table import CsvTable, open_table
from labelrace.tagger.tags import TagNames, TagSets, as_given, from_table

__all__ = ["batches_of", "file_tables", "one_row", "tagged_batches", "tagged_dataset", "text_tables", "without_tags"]


def file_tables(path: str | Path, size: int, delimiter: str | None = None) -> Iterator[Table]:
    r"""Yield the rows of a CSV, TSV, JSON lines, Parquet or Arrow file, `size` at a time, in bounded memory.

    Cells of CSV are texts: `labelrace.features.kinds` decides what they mean, for a whole column.

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
        try:
            row = json.loads(line, object_pairs_hook=with_keys_once)
        except DataFormatError as error:
            raise DataFormatError(f"standard input, row {number}: {error}.") from None
        except (ValueError, RecursionError) as error:
            raise DataFormatError(
                f"standard input, row {number}: this is not JSON ({error}); give an object."
            ) from None
        if not isinstance(row, dict):
            raise DataFormatError(f"standard input, row {number}: expected a JSON object, got {line.strip()[:40]!r}.")
        yield row


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
    width = parts[-1].shape[1]
    for part in parts:
        part.resize((part.shape[0], width))
    ends = np.cumsum([0, *map(len, rows)])
    indices = np.array([place for row in rows for place in row], dtype=np.int32)
    Y = scipy.sparse.csr_array((np.ones(len(indices), np.int8), indices, ends), shape=(len(rows), len(places)))
    X = scipy.sparse.vstack(parts, format="csr")
    name = Path(source).name.partition(".")[0] if isinstance(source, (str, Path)) else "table"
    mask = np.zeros(width, dtype=bool)
    seconds = time.process_time() - start
    names = tuple(features.get_feature_names_out())
    return TaggedDataset(X, Y, names, tuple(places), mask, name, feature_seconds=seconds), features
