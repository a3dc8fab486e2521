"""Files of numbered features and labels: svmlight (LIBSVM), and the Extreme Classification repository's format (XC).

Both write a row as ``LABEL,LABEL INDEX:VALUE INDEX:VALUE``. In svmlight, ``# comment`` may follow, and a blank line is
not a row. An XC file begins with a header ``ROWS FEATURES LABELS``, its features and labels are numbered from 0, and a
blank line is a row; the header shows if the file was cut at the end of a line.

Plain rows are parsed many at a time by NumPy and pyarrow (`labelrace.streams.sparse_rows`, which ARFF files share);
scikit-learn's reader takes three times as long, on blocks of lines too, and accepts labels such as 1.5. Other rows are
parsed one by one, which finds the exact error.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Literal, TypeAlias, cast

import numpy as np

from labelrace.base.files import write_atomic
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Batch, FileStream, Stream, canonical_rows, file_stream, rebatch
from labelrace.streams.files import MAX_COLUMNS, Location, new_data, open_data
from labelrace.streams.lines import SPARSE_BLOCK, byte_blocks, finite_number, number_texts, read_lines, write_lines
from labelrace.streams.schema import (
    FileSchema,
    NumberedNames,
    label_names_from,
    read_schema,
    schema_path,
    schema_text,
)
from labelrace.streams.sparse_rows import SVMLIGHT, Pieces, SparseRows, csr_rows, cut_rows, entry_arrays, floats
from labelrace.typing import AnyMatrix, IntArray, SparseMatrix

ZeroBased: TypeAlias = bool | Literal["auto"]
# The smallest and the largest number.
_Span: TypeAlias = tuple[int, int]

_CHUNK_ROWS = 1024
# Blank lines, and comments.
_NO_ROW = (b"", b"#")
_COMMENT = re.compile(rb"#[^\n]*")

_HEADER = re.compile(rb"\s*(\d+)\s+(\d+)\s+(\d+)\s*")
_LONGEST_HEADER = 1000
_MAX_DIGITS_OF_SIZE = 18
_ANY = range(MAX_COLUMNS + 1)
_MAX_DIGITS_OF_ID = len(str(MAX_COLUMNS))


def open_svmlight(
    path: str | os.PathLike[str],
    labels: int | Sequence[str] | None = None,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: ZeroBased = "auto",
    zero_based_labels: ZeroBased = "auto",
) -> FileStream:
    """Open an svmlight file as a stream.

    Labels are comma-separated numbers, possibly none. Features and labels are named by their numbers in the
    file, as in ``x1`` and ``y0``. X is sparse.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str, int or None, default=None
        Names of the labels in the order of their numbers, or how many there are.
    n_features, n_labels : int or None, default=None
        How many there are. Unless both are given, the file is scanned once, in bounded memory, for its largest and
        smallest numbers.
    zero_based, zero_based_labels : bool or "auto", default="auto"
        Whether the first feature (label) has number 0 or 1. By default it is 0 if the scan finds that number. If
        `n_features` is given, features begin with 1; if `n_labels` is given, labels begin with 0.

    Notes
    -----
    If none of these is given and `labelrace.streams.write_dataset` left a schema beside the file, everything is taken
    from there and the file is not scanned.
    """
    path = Path(path)
    if n_labels is None and labels is not None:
        n_labels = int(labels) if isinstance(labels, (int, np.integer)) else len(labels)
    if n_features is None and n_labels is None and zero_based == zero_based_labels == "auto":
        schema = read_schema(path)
        if schema is not None:
            first = 0 if schema.options.get("zero_based") else 1
            numbers = range(first, first + len(schema.features)), range(len(schema.labels))
            read = partial(_batches, path, *numbers)
            return file_stream(path, schema.features, schema.labels, read, schema.nominal)
    # Without a scan: labels mostly begin with 0 and features with 1.
    first, first_label = int(zero_based is not True), int(zero_based_labels is False)
    if n_features is None or n_labels is None:
        feature_span = label_span = (MAX_COLUMNS + 1, -1)
        for rows in _parsed(path, _ANY, _ANY, _CHUNK_ROWS, with_values=False):
            feature_span, label_span = _extended(feature_span, rows.columns), _extended(label_span, rows.labels)
        if n_features is None:
            first, n_features = _columns(feature_span, zero_based, path, "feature")
        if n_labels is None:
            first_label, n_labels = _columns(label_span, zero_based_labels, path, "label")
    label_names = label_names_from(labels, n_labels, first_label, path)
    numbers = range(first, first + n_features), range(first_label, first_label + n_labels)
    return file_stream(path, NumberedNames("x", first, n_features), label_names, partial(_batches, path, *numbers))


def open_xc(path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> FileStream:
    """Open a file of the Extreme Classification repository as a stream. X is sparse.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str or None, default=None
        Names of the labels; by default those that `labelrace.streams.write_dataset` left in a schema beside the
        file, or numbers, as in ``y0``.
    """
    path = Path(path)
    with open_data(path) as file:
        n_rows, n_features, n_labels = _read_sizes(file, path)
    schema = read_schema(path) if labels is None else None
    if schema is None:
        label_names = label_names_from(labels, n_labels, 0, path)
        schema = FileSchema(NumberedNames("x", 0, n_features), label_names, {}, {})
    if (len(schema.features), len(schema.labels)) != (n_features, n_labels):
        raise Location(path, 1).error(
            f"{n_features} features and {n_labels} labels, but {schema_path(path).name} beside the file is "
            f"about {len(schema.features)} and {len(schema.labels)}; remove it if it belongs to other data"
        )
    read = partial(_batches, path, range(n_features), range(n_labels), n_rows=n_rows)
    return file_stream(path, schema.features, schema.labels, read, schema.nominal)


def is_xc(path: Path) -> bool:
    """Return whether the file begins with three whole numbers, which no svmlight file does."""
    with open_data(path) as file:
        return _HEADER.fullmatch(file.readline(_LONGEST_HEADER)) is not None


def write_svmlight(stream: Stream, path: Path, batch_size: int, *, zero_based: bool = False) -> int:
    """Write a stream as an svmlight file with its schema beside it; return the number of rows.

    The first feature gets number 0 if `zero_based`, else 1. The first label gets 0.
    """
    schema = {schema_path(path): schema_text(stream, zero_based=zero_based)}
    first = 0 if zero_based else 1
    # A blank line is not a row, so an empty row is written with a zero.
    return write_lines(stream, path, batch_size, partial(_lines, first, f" {first}:0\n"), "", schema)


def write_xc(stream: Stream, path: Path, batch_size: int) -> int:
    """Write a stream as an XC file with its schema beside it; return the number of rows."""
    schema, rows = schema_text(stream), 0
    # The header comes first, but the number of rows is known last, and a compressed file cannot be rewound.
    with new_data(path) as file, tempfile.TemporaryFile(dir=path.parent) as body:
        for X, Y in stream.batches(batch_size):
            rows += X.shape[0]
            body.write("".join(_lines(0, " \n", X, Y)).encode())
        file.write(f"{rows} {stream.n_features} {stream.n_labels}\n".encode())
        body.seek(0)
        shutil.copyfileobj(body, file)
        write_atomic(schema_path(path), schema)
    return rows


def _extended(span: _Span, ids: IntArray) -> _Span:
    return min(span[0], int(ids.min(initial=span[0]))), max(span[1], int(ids.max(initial=span[1])))


def _columns(span: _Span, zero_based: ZeroBased, path: Path, what: str) -> tuple[int, int]:
    """Return the number of the first column and how many there are, from the numbers that the scan found."""
    smallest, largest = span
    if largest < 0:
        raise DataFormatError(f"{path}: no row has any {what}s; if that is meant, give n_{what}s=")
    first = int(smallest > 0 if zero_based == "auto" else not zero_based)
    return first, largest + 1 - first


def _batches(path: Path, features: range, labels: range, size: int, n_rows: int | None = None) -> Iterator[Batch]:
    """Yield sparse X and Y; `features` and `labels` are the numbers of their columns in the file."""
    parsed = _parsed(path, features, labels, size, n_rows)
    return rebatch((_matrices(rows, features, labels) for rows in parsed), size)


def _parsed(
    path: Path, features: range, labels: range, size: int, n_rows: int | None = None, *, with_values: bool = True
) -> Iterator[SparseRows]:
    """Yield the rows of a file; `n_rows` is from the header of an XC file."""
    is_xc = n_rows is not None

    def bulk(text: bytes, _: int) -> SparseRows | None:
        rows = parse_bulk(text if is_xc or b"#" not in text else _COMMENT.sub(b"", text), with_values)
        if rows is None or not _are_in(features, rows.columns) or not _are_in(labels, rows.labels):
            return None
        return rows if is_xc else _without_blanks(rows)

    def row(line: bytes, location: Location) -> tuple[list[int], dict[int, float]]:
        ids, entries = parse_row(line if is_xc else line.partition(b"#")[0], location)
        _check_range(ids, labels, "label", location)
        _check_range(entries, features, "feature", location)
        return ids, entries

    with open_data(path) as file:
        blocks = byte_blocks(file, size, SPARSE_BLOCK)
        if n_rows is not None:
            _read_sizes(file, path)
            blocks = _xc_blocks(blocks, n_rows, path)
        yield from read_lines(path, blocks, int(is_xc), () if is_xc else _NO_ROW, bulk, row, join_rows)


def _read_sizes(file: IO[bytes], path: Path) -> tuple[int, int, int]:
    """Return the numbers of rows, features and labels."""
    header = _HEADER.fullmatch(file.readline(_LONGEST_HEADER))
    location = Location(path, 1)
    if header is None:
        raise location.error("expected the numbers of rows, features and labels; write them as ROWS FEATURES LABELS")
    if max(map(len, header.groups())) > _MAX_DIGITS_OF_SIZE:
        raise location.error("the numbers of rows, features and labels cannot be so large")
    rows, features, labels = map(int, header.groups())
    if max(features, labels) > MAX_COLUMNS:
        raise location.error(
            f"{features} features and {labels} labels; more than {MAX_COLUMNS} cannot be, so the header is damaged"
        )
    return rows, features, labels


def _xc_blocks(blocks: Iterable[tuple[bytes, int]], n_rows: int, path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the blocks up to the last row; raise if there are more rows or fewer."""
    left = n_rows
    for block, n_lines in blocks:
        if n_lines > left:
            lines = block.split(b"\n")
            if any(map(bytes.strip, lines[left:])):  # blank lines may follow the last row
                raise DataFormatError(f"{path}: more rows than the {n_rows} that the header says; correct the header")
            block, n_lines = b"\n".join([*lines[:left], b""]), left
        left -= n_lines
        if n_lines:
            yield block, n_lines
    if left:
        raise DataFormatError(f"{path}: the header says {n_rows} rows, but there are {n_rows - left}; the file is cut")


def _are_in(allowed: range, ids: IntArray) -> bool:
    return not ids.size or (int(ids.min()) in allowed and int(ids.max()) in allowed)


def _check_range(ids: Iterable[int], allowed: range, what: str, location: Location) -> None:
    for number in ids:
        if number not in allowed:
            raise location.error(
                f"{what} {number} is out of range; there are {len(allowed)} {what}s, numbered from {allowed.start}. "
                "Correct the number, or what the file or the call says about the numbers"
            )


def _without_blanks(rows: SparseRows) -> SparseRows:
    """Leave out the rows of blank lines."""
    filled = np.diff(rows.starts) + np.diff(rows.label_starts) > 0
    starts, label_starts = (np.append(0, part[1:][filled]) for part in (rows.starts, rows.label_starts))
    return rows._replace(starts=starts, label_starts=label_starts)


def _matrices(rows: SparseRows, features: range, labels: range) -> Batch:
    X = csr_rows(rows.starts, rows.columns - features.start, np.asarray(rows.values), len(features))
    ones = np.ones(len(rows.labels), dtype=np.int8)
    Y = csr_rows(rows.label_starts, rows.labels - labels.start, ones, len(labels))
    Y.sum_duplicates()
    Y.data[:] = 1  # a label may be listed twice
    return X, Y


def _lines(first: int, nothing: str, X: AnyMatrix, Y: SparseMatrix) -> Iterator[str]:
    """Yield the lines of a batch; `first` is the id of the first feature, `nothing` the line of an empty row."""
    features, labels = canonical_rows(X), canonical_rows(Y)
    indices = (features.indices + first).tolist()
    pairs = [f"{index}:{text}" for index, text in zip(indices, number_texts(features.data), strict=True)]
    ids = list(map(str, labels.indices.tolist()))
    spans = pairwise(labels.indptr.tolist()), pairwise(features.indptr.tolist())
    for (start, end), (first_pair, last_pair) in zip(*spans, strict=True):
        line = f"{','.join(ids[start:end])} {' '.join(pairs[first_pair:last_pair])}\n"
        yield nothing if line == " \n" else line


def parse_bulk(text: bytes, with_values: bool = True) -> SparseRows | None:
    """Return lines, a row each, with their values if wanted, or None if they are not plain."""
    rows = cut_rows(text, SVMLIGHT)
    if rows is None:
        return None
    values = floats(cast("Pieces", rows.values)) if with_values else np.empty(0)
    return None if values is None else rows._replace(values=values)


def join_rows(rows: list[tuple[list[int], dict[int, float]]]) -> SparseRows:
    """Return rows as `parse_bulk` does."""
    label_starts = np.cumsum([0, *(len(ids) for ids, _ in rows)])
    labels = np.array([number for ids, _ in rows for number in ids], dtype=np.intp)
    return SparseRows(label_starts, labels, *entry_arrays(entries for _, entries in rows))


def parse_row(line: bytes, location: Location) -> tuple[list[int], dict[int, float]]:
    """Return the labels of a row and its values by their columns, or raise the exact error."""
    tokens = line.split()
    ids = list[int]()
    if tokens and b":" not in tokens[0]:
        ids = [_identifier(text, "label id", location) for text in tokens.pop(0).split(b",")]
    entries: dict[int, float] = {}
    for token in tokens:
        index, colon, text = token.partition(b":")
        if not colon:
            raise location.error(
                f"expected INDEX:VALUE, found {_shown(token)}; a row is LABEL,LABEL INDEX:VALUE INDEX:VALUE, "
                "or the file is cut here"
            )
        column = _identifier(index, "feature index", location)
        if column in entries:
            raise location.error(f"index {column} appears twice; give each feature one value")
        value = finite_number(text.decode("utf-8", "replace"))
        if not text:
            raise location.error(f"index {column} has no value; write INDEX:VALUE, or the file is cut here")
        if value is None:
            raise location.error(f"{_shown(text)} is not a finite number, as index {column} needs")
        entries[column] = value
    return ids, entries


def _identifier(text: bytes, what: str, location: Location) -> int:
    if not text.isdigit():
        raise location.error(f"{_shown(text)} is not a {what}; write a whole number, 0 or more")
    digits = text.lstrip(b"0")
    if len(digits) > _MAX_DIGITS_OF_ID or int(digits or b"0") > MAX_COLUMNS:
        raise location.error(f"{what} {_shown(text)} is too large; more than {MAX_COLUMNS} cannot be")
    return int(digits or b"0")


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
