"""Write tables: CSV, TSV and JSONL files with their schema beside them, Parquet and Arrow files with it within."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import issparse

from labelrace.files import write_whole
from labelrace.streams.cells import (
    canonical_rows,
    check_distinct,
    code_texts,
    entry_texts,
    feature_texts,
    write_lines,
)
from labelrace.streams.dataset import Stream, nominal_texts
from labelrace.streams.files import new_data, plain_path
from labelrace.streams.schema import schema_of, schema_path, schema_text
from labelrace.streams.table import delimiter_of
from labelrace.streams.table_stream import SCHEMA_KEY
from labelrace.typing import AnyMatrix, SparseMatrix


def write_csv(
    stream: Stream, path: Path, batch_size: int, *, label_column: str | None = None, separator: str = ";"
) -> int:
    """Write a stream as a CSV or TSV file with its schema beside it; return the number of rows.

    Each label has a column of 0 and 1, after the features, unless there is a `label_column` for lists of labels.
    """
    _check_columns(stream, label_column)
    if label_column is not None:
        _check_separable(stream, separator)
    delimiter = delimiter_of(path)
    values = {column: _quoted_values(texts, delimiter) for column, texts in nominal_texts(stream).items()}
    options = {} if label_column is None else {"label_column": label_column, "separator": separator}
    schema = schema_text(schema_of(stream, **options))
    names = [*stream.feature_names, *(stream.label_names if label_column is None else [label_column])]
    header = f"{delimiter.join(_quoted(name, delimiter) for name in names)}\n"

    def lines(X: AnyMatrix, Y: SparseMatrix) -> Iterator[str]:
        columns = feature_texts(X, values, stream.feature_names, "")
        if label_column is None:
            columns += np.where(Y.toarray().T != 0, "1", "0").tolist()
        else:
            columns.append([_quoted(separator.join(names), delimiter) for names in _label_lists(Y, stream)])
        return (f"{delimiter.join(row)}\n" for row in zip(*columns, strict=True))

    return write_lines(stream, path, batch_size, lines, header, {schema_path(path): schema})


def write_jsonl(stream: Stream, path: Path, batch_size: int, *, label_column: str | None = "labels") -> int:
    """Write a stream as a JSONL file with its schema beside it; return the number of rows.

    The rows of a sparse stream have no keys for zeros. Missing values are null. Without `label_column`, the key of the
    list of labels, each label has a key of its own, with 0 or 1.
    """
    _check_columns(stream, label_column)
    values = nominal_texts(stream)
    sparse, rows = False, 0
    with new_data(path) as file:
        for X, Y in stream.batches(batch_size):
            sparse = issparse(X)
            rows += X.shape[0]
            objects = _sparse_objects(X, values, stream) if sparse else _dense_objects(X, values, stream)
            lines = (
                json.dumps(features | labels, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
                for features, labels in zip(objects, _label_objects(Y, label_column, sparse, stream), strict=True)
            )
            file.write("".join(f"{line}\n" for line in lines).encode())
        options: dict[str, bool | str] = {"sparse": sparse}
        if label_column is not None:
            options["label_column"] = label_column
        write_whole(schema_path(path), schema_text(schema_of(stream, **options)))
    return rows


def write_arrow(stream: Stream, path: Path, batch_size: int, *, label_column: str | None = None) -> int:
    """Write a stream as a Parquet or Arrow (Feather) file that knows its schema; return the number of rows.

    A batch is a row group or record batch; labels are written as in CSV files.
    """
    _check_columns(stream, label_column)
    values = nominal_texts(stream)
    kinds = [pa.string() if column in values else pa.float64() for column in range(stream.n_features)]
    fields = list(zip(stream.feature_names, kinds, strict=True))
    if label_column is None:
        fields += [(name, pa.int8()) for name in stream.label_names]
    else:
        fields.append((label_column, pa.list_(pa.string())))
    options = {} if label_column is None else {"label_column": label_column}
    schema = pa.schema(fields, metadata={SCHEMA_KEY: schema_text(schema_of(stream, **options))})
    rows = 0
    with new_data(path) as file, _arrow_writer(file, path, schema) as writer:
        for X, Y in stream.batches(batch_size):
            rows += X.shape[0]
            columns = _arrow_features(X, values, stream)
            if label_column is None:
                columns += [pa.array(column) for column in Y.toarray().astype(np.int8).T]
            else:
                columns.append(pa.array(list(_label_lists(Y, stream)), pa.list_(pa.string())))
            writer.write_table(pa.table(columns, schema=schema))
    return rows


def _arrow_writer(file: Any, path: Path, schema: Any) -> Any:
    if plain_path(path).suffix.lower() != ".parquet":
        return pa.ipc.new_file(file, schema)
    from pyarrow.parquet import ParquetWriter  # here, as importing it is slow

    return ParquetWriter(file, schema)


def _arrow_features(X: AnyMatrix, values: Mapping[int, tuple[str, ...]], stream: Stream) -> list[Any]:
    dense = X.toarray() if issparse(X) else X
    arrays = []
    for column, name in enumerate(stream.feature_names):
        cells, absent = dense[:, column], np.isnan(dense[:, column])
        content = code_texts(cells, values[column], name, "") if column in values else np.ascontiguousarray(cells)
        arrays.append(pa.array(content, mask=absent))
    return arrays


def _check_columns(stream: Stream, label_column: str | None) -> None:
    """Raise ValueError unless the names of a table's columns would be distinct and readable."""
    check_distinct(stream)
    if label_column is not None and (label_column in stream.feature_names or not label_column.rstrip("*")):
        raise ValueError(f"label_column={label_column!r} is empty or a feature's name; give another")
    if label_column is not None and label_column.endswith("*"):
        raise ValueError(f"label_column={label_column!r} would be taken for a prefix when read; give another")


def _label_lists(Y: SparseMatrix, stream: Stream) -> Iterator[list[str]]:
    """Yield the names of each row's labels."""
    rows = canonical_rows(Y)
    names = [stream.label_names[column] for column in rows.indices.tolist()]
    for start, end in pairwise(rows.indptr.tolist()):
        yield names[start:end]


def _check_separable(stream: Stream, separator: str) -> None:
    for name in stream.label_names:
        if not name or not separator or separator in name or name != name.strip():
            raise ValueError(
                f"the label {name!r} cannot be told from others in a list separated by {separator!r}; give another "
                "separator=, or write a column per label"
            )


def _quoted(text: str, delimiter: str) -> str:
    if any(sign in text for sign in (delimiter, '"', "\n", "\r", "\ufeff")) or not text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _quoted_values(texts: tuple[str, ...], delimiter: str) -> tuple[str, ...]:
    if "" in texts:
        raise ValueError("an empty text is a nominal value, which CSV cannot tell from a missing one; write JSONL")
    return tuple(_quoted(text, delimiter) for text in texts)


def _dense_objects(X: AnyMatrix, values: dict[int, tuple[str, ...]], stream: Stream) -> list[dict[str, Any]]:
    return pa.table(_arrow_features(X, values, stream), names=list(stream.feature_names)).to_pylist()


def _sparse_objects(X: AnyMatrix, values: dict[int, tuple[str, ...]], stream: Stream) -> Iterator[dict[str, Any]]:
    rows = canonical_rows(X)
    cells = entry_texts(rows, pa.array(rows.data, from_pandas=True).to_pylist(), values, stream.feature_names, None)
    names = [stream.feature_names[column] for column in rows.indices.tolist()]
    for start, end in pairwise(rows.indptr.tolist()):
        yield dict(zip(names[start:end], cells[start:end], strict=True))


def _label_objects(Y: SparseMatrix, label_column: str | None, sparse: bool, stream: Stream) -> Iterator[dict[str, Any]]:
    zeros = {} if sparse else dict.fromkeys(stream.label_names, 0)
    for names in _label_lists(Y, stream):
        yield zeros | dict.fromkeys(names, 1) if label_column is None else {label_column: names}
