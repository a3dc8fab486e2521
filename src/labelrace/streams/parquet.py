"""Parquet files, by pyarrow, which the extra ``labelrace[parquet]`` brings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_labels import LabelSource
from labelrace.streams._cells import code_texts
from labelrace.streams._schema import schema_from, schema_of, schema_text
from labelrace.streams._source import foreign, new_data, seekable_data
from labelrace.streams._table import Given, Kind, Layout, as_stream, binary_labels, choose, label_lists, make_layout
from labelrace.streams._table_write import check_columns, label_lists_of
from labelrace.streams.stream import Batch, FileStream, Stream, nominal_texts
from labelrace.typing import FloatArray

__all__ = ["open_parquet", "write_parquet"]

# pyarrow ships no types.
_Arrow: TypeAlias = Any

_CHUNK_ROWS = 1024
_SCHEMA_KEY = b"labelrace"


def open_parquet(
    path: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    label_names: Sequence[str] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    nominal: Sequence[str] = (),
) -> FileStream:
    """Open a Parquet file as a stream.

    Columns of numbers and truths are numeric features, columns of text nominal ones, coded by the sorted texts. If
    there are any, or label lists, the file is scanned once for the texts and labels, unless `values` and
    `label_names` say what they are. X is dense. Memory is bounded by the size of the file's row groups.

    Parameters
    ----------
    path : path
    labels : sequence of str, str, int or None
        The columns of labels, which hold 0 and 1, or truths: their names; a prefix, as ``"label_*"``; or a count
        (n > 0: the last n columns, n < 0: the first). Or the name of one column that holds label lists. By default
        what `labelrace.streams.write_dataset` left in the file tells, and all else too.
    label_names : sequence of str or None
        The labels that lists may hold, in the order of Y's columns; by default those found, sorted.
    values : mapping from str to sequence of str, or None
        The nominal columns and their values, in the order of their codes; all others are numeric.
    nominal : sequence of str
        Columns that are nominal though they hold numbers.

    Raises
    ------
    DataFormatError
        If the file cannot be read or does not fit `labels`. It names the row, the first being row 1.
    ImportError
        Without pyarrow.
    """
    path = Path(path)
    arrow = _pyarrow("pyarrow")
    with _opened(path) as file:
        names, types = tuple(file.schema_arrow.names), tuple(file.schema_arrow.types)
        metadata = file.schema_arrow.metadata or {}
    schema = schema_from(metadata[_SCHEMA_KEY], path) if _SCHEMA_KEY in metadata else None
    given = Given(labels, label_names, values, nominal).or_schema(schema)
    kinds, found = _scan(path, names, types, given, arrow)
    layout = make_layout(path, names, given, kinds, found, "row")
    for position in (*layout.choice.features, *layout.choice.labels):
        if position not in layout.codes and not _is_number(types[position], arrow):
            raise DataFormatError(
                f"{path}: column {names[position]!r} holds {types[position]}, which is no number; leave it out, "
                "convert it, or correct labels="
            )
    return as_stream(layout, partial(_batches, layout))


def write_parquet(stream: Stream, path: Path, batch_size: int, *, label_column: str | None = None) -> int:
    """Write a stream as a Parquet file that knows its schema; return the number of rows.

    Parameters
    ----------
    stream : Stream
    path : path
    batch_size : int
        Also the number of rows in a row group.
    label_column : str or None
        The column for lists of labels; without it each label has a column of 0 and 1, after the features.
    """
    check_columns(stream, label_column)
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    values = nominal_texts(stream)
    options = {} if label_column is None else {"label_column": label_column}
    kinds = [arrow.string() if column in values else arrow.float64() for column in range(stream.n_features)]
    fields = list(zip(stream.feature_names, kinds, strict=True))
    if label_column is None:
        fields += [(name, arrow.int8()) for name in stream.label_names]
    else:
        fields.append((label_column, arrow.list_(arrow.string())))
    schema = arrow.schema(fields, metadata={_SCHEMA_KEY: schema_text(schema_of(stream, **options))})
    rows = 0
    with new_data(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for X, Y in stream.batches(batch_size):
            rows += X.shape[0]
            columns = _arrow_features(X, values, stream, arrow)
            if label_column is None:
                columns += [arrow.array(column) for column in Y.toarray().astype(np.int8).T]
            else:
                columns.append(arrow.array(list(label_lists_of(Y, stream)), type=arrow.list_(arrow.string())))
            writer.write_table(arrow.table(columns, schema=schema))
    return rows


def _arrow_features(X: Any, values: Mapping[int, tuple[str, ...]], stream: Stream, arrow: _Arrow) -> list[_Arrow]:
    dense = X.toarray() if issparse(X) else X
    arrays = []
    for column, name in enumerate(stream.feature_names):
        cells, absent = dense[:, column], np.isnan(dense[:, column])
        content = code_texts(cells, values[column], name, "") if column in values else np.ascontiguousarray(cells)
        arrays.append(arrow.array(content, mask=absent))
    return arrays


def _pyarrow(module: str) -> _Arrow:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'labelrace[parquet]'") from error


@contextmanager
def _opened(path: Path) -> Iterator[_Arrow]:
    parquet = _pyarrow("pyarrow.parquet")
    with seekable_data(path) as file, foreign(path, "Parquet"):
        yield parquet.ParquetFile(file, pre_buffer=False)


def _tables(path: Path, size: int, names: Sequence[str], arrow: _Arrow) -> Iterator[_Arrow]:
    """Yield some columns of the file, `size` rows at a time; pyarrow's own batches end with the row groups."""
    with _opened(path) as file:
        pending, rows = list[_Arrow](), 0
        for batch in file.iter_batches(batch_size=size, columns=list(names), use_threads=False):
            batch.validate(full=True)
            while batch.num_rows:
                pending.append(batch.slice(0, size - rows))
                rows += pending[-1].num_rows
                batch = batch.slice(pending[-1].num_rows)
                if rows == size:
                    yield arrow.Table.from_batches(pending)
                    pending, rows = [], 0
        if rows:
            yield arrow.Table.from_batches(pending)


def _scan(
    path: Path, names: tuple[str, ...], types: tuple[_Arrow, ...], given: Given, arrow: _Arrow
) -> tuple[dict[str, Kind], set[str]]:
    """Go through the file for the texts of nominal columns and the labels in lists, as far as they are not given."""
    choice = choose(names, given.labels, path)
    lists = names[choice.lists] if choice.lists is not None else None
    if choice.lists is not None and not _is_list(types[choice.lists], arrow):
        raise DataFormatError(
            f"{path}: column {lists!r} holds {types[choice.lists]}, not label lists; if it holds 0 and 1, give "
            f"labels=[{lists!r}]"
        )
    texts = [
        names[position]
        for position in choice.features
        if given.values is None and (_is_text(types[position], arrow) or names[position] in given.nominal)
    ]
    wanted = texts + ([lists] if lists is not None and given.label_names is None else [])
    kinds, found = {name: Kind() for name in texts}, set[str]()
    for table in _tables(path, _CHUNK_ROWS, wanted, arrow) if wanted else ():
        for name in texts:
            kinds[name].texts.update(_texts(table.column(name), arrow).unique().drop_null().to_pylist())
        if lists in wanted:
            found.update(_texts(_flat(table.column(lists)), arrow).unique().drop_null().to_pylist())
    return kinds, found


def _batches(layout: Layout, size: int) -> Iterator[Batch]:
    arrow = _pyarrow("pyarrow")
    names, choice = layout.names, layout.choice
    first = 1
    for table in _tables(layout.path, size, names, arrow):
        numbers = range(first, first + table.num_rows)
        first += table.num_rows
        X = np.empty((table.num_rows, len(choice.features)))
        for target, position in enumerate(choice.features):
            X[:, target] = _column(table.column(names[position]), position, numbers, layout, arrow)
        if choice.lists is not None:
            lists = [[str(name) for name in cell or ()] for cell in table.column(names[choice.lists]).to_pylist()]
            yield X, label_lists(lists, numbers, layout)
        else:
            columns = [_column(table.column(names[i]), i, numbers, layout, arrow) for i in choice.labels]
            yield X, binary_labels(np.column_stack([np.empty((len(numbers), 0)), *columns]), numbers, layout)


def _column(column: _Arrow, position: int, numbers: range, layout: Layout, arrow: _Arrow) -> FloatArray:
    """Return a column as numbers, NaN where there are none."""
    codes, name = layout.codes.get(position), layout.names[position]
    if codes is None:
        values = column.cast(arrow.float64(), safe=False).to_numpy()
        wrong = np.isinf(values)
        what = f"column {name!r} holds an infinite number; make it finite, or null if it is missing"
    else:
        texts = _texts(column, arrow)
        found = _pyarrow("pyarrow.compute").index_in(texts, value_set=arrow.array(list(codes), type=arrow.string()))
        values = found.cast(arrow.float64()).to_numpy()
        wrong = np.isnan(values) & texts.is_valid().to_numpy()
        what = f"column {name!r} holds a text that is not among its {len(codes)} values"
    if wrong.any():
        raise layout.place(numbers[int(wrong.argmax())]).error(what)
    return values


def _texts(column: _Arrow, arrow: _Arrow) -> _Arrow:
    return column.cast(arrow.string())


def _flat(column: _Arrow) -> _Arrow:
    return _pyarrow("pyarrow.compute").list_flatten(column)


def _is_number(kind: _Arrow, arrow: _Arrow) -> bool:
    is_a = arrow.types
    return any(
        test(kind) for test in (is_a.is_integer, is_a.is_floating, is_a.is_boolean, is_a.is_decimal, is_a.is_null)
    )


def _is_text(kind: _Arrow, arrow: _Arrow) -> bool:
    if arrow.types.is_dictionary(kind):
        return _is_text(kind.value_type, arrow)
    return any(test(kind) for test in (arrow.types.is_string, arrow.types.is_large_string))


def _is_list(kind: _Arrow, arrow: _Arrow) -> bool:
    holds = arrow.types.is_list(kind) or arrow.types.is_large_list(kind)
    return holds and (_is_text(kind.value_type, arrow) or arrow.types.is_integer(kind.value_type))
