"""Tables as streams of (X, Y): which columns are labels, which are nominal, and how their cells are coded."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelrace.base import limits
from labelrace.base.parameters import quoted_list
from labelrace.base.sparse import sparse_marks
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Batch, FileStream, file_stream, rebatch
from labelrace.streams.files import Location
from labelrace.streams.jsonl import JsonFile
from labelrace.streams.lines import chunked, number_matrix
from labelrace.streams.schema import (
    ColumnChoice,
    LabelSource,
    TableOptions,
    choose_labels,
    list_column,
    read_schema,
    schema_from,
    schema_path,
)
from labelrace.streams.sparse_rows import csr_rows, entry_arrays
from labelrace.streams.table_files import (
    ArrowFile,
    CsvFile,
    TableFile,
    Types,
    is_list,
    is_number,
    is_text,
)
from labelrace.streams.table_scan import Scan, Stop, label_lists, scan_json, scan_table
from labelrace.typing import FloatArray, SparseMatrix

# Approximate size of the name of a column in memory.
_NAME_BYTES = 100
# The key of the schema among the metadata of Parquet and Arrow files.
SCHEMA_KEY = b"labelrace"

_LISTS = pa.list_(pa.string())
_Values: TypeAlias = Mapping[str, Sequence[str]]


def open_csv(
    path: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    delimiter: str | None = None,
    separator: str = ";",
    label_names: Sequence[str] | None = None,
    values: _Values | None = None,
    nominal: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> FileStream:
    r"""Open a CSV or TSV file, in UTF-8 and with a header, as a stream.

    Columns of numbers are numeric features, columns of text nominal ones, coded by the sorted texts. The first block of
    rows determines which columns hold numbers; a text in such a column further down is an error, raised when the row is
    reached. If there are columns of text or label lists, the file is scanned once, in bounded memory, for the texts and
    labels, unless `values` and, for label lists, `label_names` are given. A number in a column of text is also an
    error. X is dense.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str, str, int or None, default=None
        The columns of labels, which hold 0 and 1 (or true and false): their names; a prefix, as ``"label_*"``; or
        a count (n > 0: the last n columns, n < 0: the first). Or the name of one column that holds label lists.
        By default these and all other options are taken from the schema that `labelrace.streams.write_dataset` left
        beside the file.
    delimiter : str or None, default=None
        By default a tab for ``.tsv`` and a comma for others.
    separator : str, default=";"
        The text between the labels of a list, such as ``";"``, ``"|"`` or ``" "``.
    label_names : sequence of str or None, default=None
        The labels that lists may hold, in the order of Y's columns; by default those found, sorted.
    values : mapping from str to sequence of str, or None, default=None
        The nominal columns and their values, in the order of their codes; all others are numeric.
    nominal : sequence of str, default=()
        Columns that are nominal though they look like numbers.
    missing : sequence of str, default=()
        Cells that mean a missing value, as empty ones do. Among numbers ``nan`` does too.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("size,hue,tags\n1.5,red,new;hot\n,blue,\n")
    ...     stream = open_csv(path, labels="tags")
    ...     X, Y = next(stream.batches(10))
    >>> stream.label_names, X.tolist(), Y.toarray().tolist()
    (('hot', 'new'), [[1.5, 1.0], [nan, 0.0]], [[1, 1], [0, 0]])
    """
    path = Path(path)
    schema = read_schema(path) if labels is None else None
    if schema is not None:
        separator = str(schema.options.get("separator", separator))
    if not separator:
        raise ValueError("separator= must not be empty")
    table = CsvFile(path, delimiter=delimiter, missing=missing)
    given = TableOptions(labels, label_names, values, nominal).or_schema(schema, path, len(table.names))
    choice = choose_labels(table.names, given.labels, path)
    guessed = table.types() if given.values is None and choice.features else {}
    texts = {name for name, kind in guessed.items() if kind != pa.float64()} | {*given.nominal, *(given.values or ())}
    types = {name: pa.string() if name in texts else pa.float64() for name in choice.features}
    types |= dict.fromkeys(choice.labels, pa.bool_())
    if choice.lists is not None:
        types[choice.lists] = pa.string()
    unknown = [name for name in choice.features if given.values is None and name in texts]
    scan = scan_table(table, types, unknown, given, choice.lists, separator)
    for name in unknown:
        if name not in scan.values:
            types[name] = pa.float64()  # the first block had no value, and the others had numbers
    return _stream(table, types, given, choice, scan, separator)


def open_jsonl(
    path: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    sparse: bool | None = None,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    values: _Values | None = None,
    nominal: Sequence[str] = (),
) -> FileStream:
    r"""Open a JSONL file as a stream.

    Keys with numbers are numeric features (true is 1, false is 0), keys with texts nominal ones, coded by the sorted
    texts. The file is scanned once, in bounded memory, for its keys, those texts and the labels in label lists, unless
    `feature_names`, `values` and, for label lists, `label_names` are given. A key with numbers and texts is an error,
    and so is a key that is not in `feature_names`.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels, label_names, values, nominal
        As for `open_csv`, with keys for columns. A count of `labels` is in the order in which keys first appear. A
        label list is a JSON list; null or no key means no labels.
    sparse : bool or None, default=None
        What an absent key means. If false, a missing value, NaN. If true, zero: X is sparse, an absent text is the
        empty text "" (the first value, if `values` is given), and an absent label is 0. A null is a missing value in
        either case. By default true for rows that are sparse by nature, which as a table would be far larger than the
        file: there are more than 256 keys and rows have less than a tenth of them on average, or more than 65,536.
        For others, and if `feature_names` is given, false.
    feature_names : sequence of str or None, default=None
        The keys of features, in the order of X's columns; by default those found, in the order of their appearance.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.jsonl")
    ...     _ = path.write_text('{"size": 1.5, "tags": ["new", "hot"]}\n{"height": 2}\n')
    ...     [(X, Y)] = open_jsonl(path, labels="tags", sparse=True).batches(10)
    >>> X.toarray().tolist(), Y.toarray().tolist()
    ([[1.5, 0.0], [0.0, 2.0]], [[1, 1], [0, 0]])
    """
    path = Path(path)
    given = TableOptions(labels, label_names, values, nominal)
    schema = read_schema(path) if labels is None else None
    if schema is not None:
        # A schema of numbered names is short, however many it claims; each name takes memory.
        n_names = len(schema.features) + len(schema.labels)
        limits.BYTES.check(_NAME_BYTES * n_names, f"{schema_path(path)}")
        given = given.or_schema(schema, path)
        feature_names, sparse = tuple(schema.features), schema.options.get("sparse") is True
    table = JsonFile(path, nominal=nominal)
    lists = list_column(given.labels, path)
    names = None if feature_names is None else [*feature_names, *_label_keys(given.labels, lists)]
    types = {} if lists is None else {lists: _LISTS}
    scan = Scan({}, set())
    if names is None or given.values is None or (lists is not None and given.label_names is None):
        sparse = False if sparse is None and names is not None else sparse
        scan, keys, sparse = scan_json(table, types, lists, sparse)
        names = keys if names is None else names
    for name in names:
        if name in (given.values or ()):
            types[name] = pa.string()
        elif name not in types or (given.values is not None and types[name] == pa.string()):
            types[name] = pa.float64()
    choice = choose_labels(names, given.labels, path)
    types |= {name: pa.float64() for name in choice.labels if not pa.types.is_boolean(types[name])}
    return _stream(table, {name: types[name] for name in names}, given, choice, scan, sparse=bool(sparse))


def open_arrow(
    path: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    label_names: Sequence[str] | None = None,
    values: _Values | None = None,
    nominal: Sequence[str] = (),
) -> FileStream:
    """Open a Parquet or Arrow (Feather) file as a stream.

    Columns of numbers and booleans are numeric features, columns of text nominal ones, coded by the sorted texts. If
    there are any, or label lists, the file is scanned once for the texts and labels, unless `values` and
    `label_names` are given. X is dense. Memory is bounded by the size of the file's row groups.

    Parameters
    ----------
    path : path
    labels, label_names, values, nominal
        As for `open_csv`. The schema of `labelrace.streams.write_dataset` is within the file; a label list is
        a list of texts or whole numbers.
    """
    path = Path(path)
    table = ArrowFile(path)
    metadata, types = table.schema.metadata or {}, table.types()
    schema = schema_from(metadata[SCHEMA_KEY], path) if SCHEMA_KEY in metadata else None
    given = TableOptions(labels, label_names, values, nominal).or_schema(schema, path, len(types))
    choice = choose_labels(tuple(types), given.labels, path)
    if choice.lists is not None and not is_list(types[choice.lists]):
        raise DataFormatError(
            f"{path}: column {choice.lists!r} holds {types[choice.lists]}, not label lists; if it holds 0 and 1, give "
            f"labels=[{choice.lists!r}]"
        )
    texts = [name for name in choice.features if is_text(types[name]) or name in given.nominal]
    scan = scan_table(table, types, texts if given.values is None else [], given, choice.lists)
    for name in (*choice.features, *choice.labels):
        if name not in (given.values or ()) and name not in scan.values and not is_number(types[name]):
            raise DataFormatError(
                f"{path}: column {name!r} holds {types[name]}, which is no number; leave it out, convert it, or "
                "correct labels="
            )
    return _stream(table, types, given, choice, scan)


class _Layout(NamedTuple):
    """The columns of a table, prepared for reading rows; ``codes`` has the texts of each nominal column."""

    table: TableFile
    types: Types
    choice: ColumnChoice
    codes: dict[str, tuple[str, ...]]
    label_names: tuple[str, ...]
    separator: str | None
    stop: Stop | None


class _CellError(Exception):
    """A cell that cannot be read: its row within the block, and what is wrong with it."""

    def __init__(self, row: int, message: str) -> None:
        self.row, self.message = row, message


def _label_keys(labels: LabelSource, lists: str | None) -> Sequence[str]:
    if lists is not None:
        return [lists]
    if labels is None or isinstance(labels, (int, np.integer, str, os.PathLike)):
        raise ValueError("with feature_names=, give labels= a list of names, or the key that holds label lists")
    return labels


def _stream(
    table: TableFile,
    types: Types,
    given: TableOptions,
    choice: ColumnChoice,
    scan: Scan,
    separator: str | None = None,
    *,
    sparse: bool = False,
) -> FileStream:
    """Return the stream of a table, from what was given and what the scan found."""
    path = table.path
    unknown = sorted({*(given.values or ()), *given.nominal}.difference(choice.features))
    if unknown:
        raise DataFormatError(
            f"{path}: no features are called {quoted_list(unknown)}, though nominal= or values= says so"
        )
    values = scan.values if given.values is None else given.values
    codes = {name: tuple(values[name]) for name in choice.features if name in values}
    label_names = choice.labels
    if choice.lists is not None:
        label_names = tuple(given.label_names if given.label_names is not None else sorted(scan.labels))
        if not label_names:
            if scan.stop is not None:
                raise scan.stop.error
            raise DataFormatError(f"{path}: no row has a label in column {choice.lists!r}; give label_names=")
    layout = _Layout(table, types, choice, codes, label_names, separator, scan.stop)
    nominal = {i: codes[name] for i, name in enumerate(choice.features) if name in codes}
    return file_stream(
        path, choice.features, label_names, partial(_sparse_batches if sparse else _batches, layout), nominal
    )


def _batches(layout: _Layout, size: int) -> Iterator[Batch]:
    def batches() -> Generator[Batch]:
        for rows, lines in layout.table.batches(size, layout.types):
            yield from _matrices(rows, lines, layout)
            del rows  # to free its memory before the next block is read

    return rebatch(_to_stop(batches(), layout), size)


def _to_stop(batches: Generator[Batch], layout: _Layout) -> Iterator[Batch]:
    """Yield batches up to the row that the scan could not read, and raise its error."""
    stop = layout.stop
    if stop is None:
        yield from batches
        return
    left = stop.n_rows
    # The traceback of the error keeps the batches alive, so the file is closed first.
    with closing(batches):
        for X, Y in batches:
            if X.shape[0] >= left:
                yield X[:left], Y[:left]
                break
            left -= X.shape[0]
            yield X, Y
        else:
            return
    raise stop.error.with_traceback(None)


def _matrices(rows: Any, lines: Sequence[int], layout: _Layout) -> Iterator[Batch]:
    """Yield a block of rows as X and Y; before an error the rows above it."""
    choice = layout.choice
    try:
        X = _columns(rows, choice.features, layout)
        if choice.lists is not None:
            Y = _label_matrix(label_lists(rows.column(choice.lists), layout.separator), layout.label_names)
        else:
            Y = _binary_labels(_columns(rows, choice.labels, layout), layout.label_names)
    except _CellError as wrong:
        if wrong.row:
            yield from _matrices(rows.slice(0, wrong.row), lines, layout)
        raise layout.table.location(lines[wrong.row]).error(wrong.message) from None
    yield X, Y


def _columns(rows: Any, names: Sequence[str], layout: _Layout) -> FloatArray:
    columns = rows.select(names).columns
    for position, name in enumerate(names):
        if name in layout.codes:
            columns[position] = _codes(columns[position], name, layout)
    matrix = number_matrix(columns, rows.num_rows)
    infinite = np.isinf(matrix)
    if infinite.any():
        row, column = np.argwhere(infinite)[0].tolist()
        what = (
            f"{layout.table.noun} {names[column]!r} holds an infinite number; make it finite, or null if it is missing"
        )
        raise _CellError(row, what)
    return matrix


def _codes(column: Any, name: str, layout: _Layout) -> Any:
    """Return the codes of a nominal column's texts, null for missing ones."""
    texts, column = layout.codes[name], column.cast(pa.string())
    codes = pc.index_in(column, value_set=pa.array(texts, pa.string()))
    if codes.null_count != column.null_count:
        row = int(np.argmax(pc.and_(codes.is_null(), column.is_valid()).to_numpy(zero_copy_only=False)))
        cell = repr(column[row].as_py()[:40])
        raise _CellError(row, f"{cell} is not among the {len(texts)} values of {layout.table.noun} {name!r}")
    return codes


def _label_matrix(lists: list[list[str]], label_names: Sequence[str]) -> SparseMatrix:
    index = {name: column for column, name in enumerate(label_names)}
    entries = list[dict[int, float]]()
    for row, names in enumerate(lists):
        for name in names:
            if name not in index:
                raise _CellError(row, _unknown_label(name, len(index)))
        entries.append({index[name]: 1 for name in names})
    return csr_rows(*entry_arrays(entries), len(index)).astype(np.int8)


def _binary_labels(values: FloatArray, label_names: Sequence[str]) -> SparseMatrix:
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise _CellError(row, _wrong_label(label_names[column], values[row, column]))
    return sparse_marks(values.astype(np.int8))


def _wrong_label(name: str, value: float) -> str:
    what = "is missing" if np.isnan(value) else f"is {value:g}"
    return f"label {name!r} {what}, but a label must be 0 or 1; if it is a feature, correct labels="


def _unknown_label(name: str, n_labels: int) -> str:
    return f"label {name!r} is not among the {n_labels} of label_names="


def _sparse_batches(layout: _Layout, size: int) -> Iterator[Batch]:
    """Yield the rows of a JSONL file as sparse X and Y, where an absent key is zero; before an error those above it."""
    table = cast("JsonFile", layout.table)
    features = {name: column for column, name in enumerate(layout.choice.features)}
    labels = {name: column for column, name in enumerate(layout.label_names)}
    codes = {name: {text: float(i) for i, text in enumerate(texts)} for name, texts in layout.codes.items()}

    def entries_of(row: dict[str, Any], location: Location) -> tuple[dict[int, float], dict[int, float]]:
        """Return the features and the labels of a row by their columns, or raise the exact error."""
        cells = table.cells(row, layout.types, location, grow=False)
        names = (cells.pop(layout.choice.lists, None) or []) if layout.choice.lists is not None else []
        for name in names:
            if name not in labels:
                raise location.error(_unknown_label(name, len(labels)))
        values, marks = dict[int, float](), {labels[name]: 1.0 for name in names}
        for name, cell in cells.items():
            value = np.nan if cell is None else codes[name].get(cell) if name in codes else cell
            if value is None:
                raise location.error(f"{cell!r} is not among the {len(codes[name])} values of key {name!r}")
            if name in features:
                values[features[name]] = value
            elif value in (0, 1):
                marks[labels[name]] = value
            else:
                raise location.error(_wrong_label(name, value))
        return values, marks

    def batches() -> Generator[Batch]:
        for lines, rows in table.objects(size):
            locations = map(table.location, lines)
            for entries in chunked(entries_of(row, location) for row, location in zip(rows, locations, strict=True)):
                X = csr_rows(*entry_arrays(values for values, _ in entries), len(features))
                yield X, csr_rows(*entry_arrays(marks for _, marks in entries), len(labels)).astype(np.int8)

    return _to_stop(batches(), layout)
