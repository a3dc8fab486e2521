"""Write tables: CSV, TSV and JSONL files with their schema beside them, Parquet and Arrow files with it inside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from scipy.sparse import issparse

from labelrace.base.files import write_atomic
from labelrace.streams.dataset import Stream, canonical_rows, check_distinct, nominal_texts
from labelrace.streams.files import new_data, suffix_of
from labelrace.streams.lines import code_texts, entry_texts
from labelrace.streams.schema import schema_path, schema_text
from labelrace.streams.table_stream import SCHEMA_KEY
from labelrace.typing import AnyMatrix, SparseMatrix


def write_csv(
    stream: Stream, path: Path, batch_size: int, *, label_column: str | None = None, separator: str = ";"
) -> int:
    """Write a stream as a CSV or TSV file with its schema beside it; return the number of rows.

    Each label has a column of 0 and 1, after the features, unless there is a `label_column` for lists of labels.
    """
    if any("" in texts for texts in nominal_texts(stream).values()):
        raise ValueError("an empty text is a nominal value, which CSV cannot tell from a missing one; write JSONL")
    for name in stream.label_names if label_column is not None else ():
        if not name or not separator or separator in name or name != name.strip():
            raise ValueError(
                f"the label {name!r} cannot be told from others in a list separated by {separator!r}; give another "
                "separator=, or write a column per label"
            )
    return _write_columns(stream, path, batch_size, label_column, separator)


def write_arrow(stream: Stream, path: Path, batch_size: int, *, label_column: str | None = None) -> int:
    """Write a stream as a Parquet or Arrow (Feather) file with its schema; return the number of rows.

    A batch is a row group or record batch; labels are written as in CSV files.
    """
    return _write_columns(stream, path, batch_size, label_column, None)


def _write_columns(stream: Stream, path: Path, batch_size: int, label_column: str | None, separator: str | None) -> int:
    """Write the features and then the labels as columns; with a `separator`, label lists are texts."""
    _check_columns(stream, label_column)
    values = nominal_texts(stream)
    fields = [(name, pa.string() if i in values else pa.float64()) for i, name in enumerate(stream.feature_names)]
    options = {}
    if label_column is None:
        fields += [(name, pa.int8()) for name in stream.label_names]
    else:
        fields.append((label_column, pa.list_(pa.string()) if separator is None else pa.string()))
        options = {"label_column": label_column} | ({} if separator is None else {"separator": separator})
    text, rows = schema_text(stream, **options), 0
    schema = pa.schema(fields, metadata={SCHEMA_KEY: text})
    with new_data(path) as file:
        with _column_writer(file, path, schema) as writer:
            for X, Y in stream.batches(batch_size):
                rows += X.shape[0]
                columns = _feature_columns(X, values, stream)
                if label_column is None:
                    columns += [pa.array(column) for column in Y.toarray().astype(np.int8).T]
                else:
                    lists: Any = _label_lists(Y, stream)
                    columns.append([*lists] if separator is None else [separator.join(names) for names in lists])
                writer.write_table(pa.table(columns, schema=schema))
        if isinstance(writer, csv.CSVWriter):
            write_atomic(schema_path(path), text)
    return rows


def _column_writer(file: Any, path: Path, schema: Any) -> Any:
    """Return pyarrow's writer for the suffix of the path."""
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ","))
    if suffix != ".parquet":
        return pa.ipc.new_file(file, schema)
    from pyarrow.parquet import ParquetWriter  # here, as importing it is slow

    return ParquetWriter(file, schema)


def write_jsonl(stream: Stream, path: Path, batch_size: int, *, label_column: str | None = "labels") -> int:
    """Write a stream as a JSONL file with its schema beside it; return the number of rows.

    The rows of a sparse stream have no keys for zeros. Missing values are null. Without `label_column`, the key of the
    list of labels, each label has its own key, with 0 or 1.
    """
    _check_columns(stream, label_column)
    values = nominal_texts(stream)
    sparse, rows = False, 0
    with new_data(path) as file:
        for X, Y in stream.batches(batch_size):
            sparse = issparse(X)
            rows += X.shape[0]
            if sparse:
                objects: Any = _sparse_objects(X, values, stream)
            else:
                arrays = _feature_columns(X, values, stream)
                objects = pa.table(arrays, names=list(stream.feature_names)).to_pylist()
            zeros = {} if sparse else dict.fromkeys(stream.label_names, 0)
            for features, names in zip(objects, _label_lists(Y, stream), strict=True):
                labels = zeros | dict.fromkeys(names, 1) if label_column is None else {label_column: names}
                line = json.dumps(features | labels, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
                file.write(f"{line}\n".encode())
        options: dict[str, bool | str] = {"sparse": sparse}
        if label_column is not None:
            options["label_column"] = label_column
        write_atomic(schema_path(path), schema_text(stream, **options))
    return rows


def _sparse_objects(X: AnyMatrix, values: Mapping[int, tuple[str, ...]], stream: Stream) -> Iterator[dict[str, Any]]:
    rows = canonical_rows(X)
    cells = entry_texts(rows, pa.array(rows.data, from_pandas=True).to_pylist(), values, stream.feature_names, None)
    names = [stream.feature_names[column] for column in rows.indices.tolist()]
    for start, end in pairwise(rows.indptr.tolist()):
        yield dict(zip(names[start:end], cells[start:end], strict=True))


def _feature_columns(X: AnyMatrix, values: Mapping[int, tuple[str, ...]], stream: Stream) -> list[Any]:
    """Return the features as Arrow arrays, texts for nominal ones and null for missing values."""
    dense = X.toarray() if issparse(X) else X
    arrays = []
    for column, name in enumerate(stream.feature_names):
        cells, absent = dense[:, column], np.isnan(dense[:, column])
        content = code_texts(cells, values[column], name, "") if column in values else np.ascontiguousarray(cells)
        arrays.append(pa.array(content, mask=absent))
    return arrays


def _label_lists(Y: SparseMatrix, stream: Stream) -> Iterator[list[str]]:
    """Yield the names of each row's labels."""
    rows = canonical_rows(Y)
    names = [stream.label_names[column] for column in rows.indices.tolist()]
    for start, end in pairwise(rows.indptr.tolist()):
        yield names[start:end]


def _check_columns(stream: Stream, label_column: str | None) -> None:
    """Raise ValueError unless the names of a table's columns would be distinct and readable."""
    check_distinct(stream)
    if label_column is not None and (label_column in stream.feature_names or not label_column.rstrip("*")):
        raise ValueError(f"label_column={label_column!r} is empty or a feature's name; give another")
    if label_column is not None and label_column.endswith("*"):
        raise ValueError(f"label_column={label_column!r} would be taken for a prefix when read; give another")
