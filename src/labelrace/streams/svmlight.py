"""svmlight (LIBSVM) files with several labels a row: ``3,7 1:0.5 9:2 # comment``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from labelrace.exceptions import DataFormatError
from labelrace.files import write_whole
from labelrace.streams import _pairs_bulk, _pairs_lines
from labelrace.streams._pairs import Frame, Pairs, batch_from, label_names_from, lines_from
from labelrace.streams._schema import Schema, read_schema, schema_of, schema_path, schema_text
from labelrace.streams._source import line_chunks, new_data, open_data, plain_path
from labelrace.streams.stream import Batch, FileStream, NumberedNames, Stream, nominal_mask

__all__ = ["open_svmlight", "write_svmlight"]

ZeroBased: TypeAlias = bool | Literal["auto"]

_CHUNK_ROWS = 1024
# Blank lines, and comments.
_NO_ROW = (b"", b"#")


def open_svmlight(
    path: str | os.PathLike[str],
    labels: int | Sequence[str] | None = None,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: ZeroBased = "auto",
    zero_based_labels: ZeroBased = "auto",
) -> FileStream:
    r"""Open an svmlight file as a stream.

    Labels are comma-separated numbers, possibly none. Features and labels are named by their numbers in the
    file, as in ``x1`` and ``y0``. X is sparse.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str, int or None
        Names of the labels in the order of their numbers, or how many there are.
    n_features, n_labels : int or None
        How many there are. Unless both are given, the file is scanned once, in bounded memory, for the largest
        and smallest numbers in it.
    zero_based, zero_based_labels : bool or "auto"
        Whether the first feature (label) has number 0 or 1. By default the scan tells: 0 if that number occurs.
        Where `n_features` is given features begin with 1, and where `n_labels` is given labels begin with 0.

    Notes
    -----
    If none of these is given and `labelrace.streams.write_dataset` left a schema beside the file, that says
    it all, and nothing is scanned.

    Raises
    ------
    DataFormatError
        If the file cannot be read. It names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.svm")
    ...     _ = path.write_text("0,2 1:0.5 3:2\n 2:1\n")
    ...     stream = open_svmlight(path)
    ...     X, Y = next(stream.batches(10))
    >>> stream
    FileStream('toy': 3 features (0 categorical), 3 labels)
    >>> Y.toarray()
    array([[1, 0, 1],
           [0, 0, 0]], dtype=int8)
    """
    path = Path(path)
    if n_labels is None and labels is not None:
        n_labels = int(labels) if isinstance(labels, (int, np.integer)) else len(labels)
    if n_features is None and n_labels is None and zero_based == zero_based_labels == "auto":
        schema = read_schema(path)
        if schema is not None:
            return _stream_by_schema(path, schema)
    # Labels mostly begin with 0 and features with 1, where no scan tells.
    first, first_label = int(zero_based is not True), int(zero_based_labels is False)
    if n_features is None or n_labels is None:
        extent = _scan(path)
        if n_features is None:
            first, n_features = _columns(extent.features, zero_based, path, "feature")
        if n_labels is None:
            first_label, n_labels = _columns(extent.labels, zero_based_labels, path, "label")
    frame = Frame(path, n_features, n_labels, first, first_label)
    names = NumberedNames("x", first, n_features)
    mask = nominal_mask(n_features, {})
    label_names = label_names_from(labels, n_labels, first_label, path)
    return FileStream(plain_path(path).stem, names, label_names, mask, partial(_batches, frame))


def write_svmlight(stream: Stream, path: Path, batch_size: int, *, zero_based: bool = False) -> int:
    """Write a stream as an svmlight file with its schema beside it; return the number of rows.

    Parameters
    ----------
    stream : Stream
    path : path
    batch_size : int
    zero_based : bool
        Whether the first feature gets number 0 or 1. The first label gets 0.
    """
    schema = schema_of(stream, zero_based=zero_based)
    first = 0 if zero_based else 1
    # A blank line is no row: a zero makes it one.
    nothing = f" {first}:0\n"
    rows = 0
    with new_data(path) as file:
        for lines in lines_from(stream, batch_size, first):
            rows += len(lines)
            file.write("".join(nothing if line == " \n" else line for line in lines).encode())
        write_whole(schema_path(path), schema_text(schema))
    return rows


class _Span(NamedTuple):
    smallest: int
    largest: int


class _Extent(NamedTuple):
    features: _Span | None
    labels: _Span | None


def _scan(path: Path) -> _Extent:
    """Go through the file for the smallest and largest numbers of features and labels."""
    features, labels = list[int](), list[int]()
    for _, pairs in _parsed(path, _CHUNK_ROWS, with_values=False):
        for found, ids in ((features, pairs.columns), (labels, pairs.labels)):
            if ids.size:
                found[:] = [min([*found[:1], int(ids.min())]), max([*found[1:], int(ids.max())])]
    return _Extent(_Span(*features) if features else None, _Span(*labels) if labels else None)


def _columns(span: _Span | None, zero_based: ZeroBased, path: Path, what: str) -> tuple[int, int]:
    """Return the number of the first column, and how many there are, from what the scan found."""
    if span is None:
        raise DataFormatError(f"{path}: no row has any {what}s; if that is meant, give n_{what}s=")
    first = int(span.smallest > 0 if zero_based == "auto" else not zero_based)
    return first, span.largest + 1 - first


def _stream_by_schema(path: Path, schema: Schema) -> FileStream:
    first = 0 if schema.options.get("zero_based") else 1
    frame = Frame(path, len(schema.features), len(schema.labels), first)
    mask = nominal_mask(len(schema.features), schema.nominal)
    name = plain_path(path).stem
    return FileStream(name, schema.features, schema.labels, mask, partial(_batches, frame), schema.nominal)


def _batches(frame: Frame, size: int) -> Iterator[Batch]:
    for numbers, pairs in _parsed(frame.path, size):
        yield batch_from(pairs, numbers, frame)


def _parsed(path: Path, size: int, with_values: bool = True) -> Iterator[tuple[list[int], Pairs]]:
    with open_data(path) as file:
        for numbers, lines in line_chunks(file, size, skipped=_NO_ROW):
            bare = [line.partition(b"#")[0].rstrip() for line in lines] if b"#" in b"".join(lines) else lines
            pairs = _pairs_bulk.parse(bare, with_values)
            yield numbers, _pairs_lines.parse(bare, numbers, path) if pairs is None else pairs
