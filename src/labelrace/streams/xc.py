"""Files of the Extreme Classification repository: a header ``ROWS FEATURES LABELS``, then rows by numbers.

A row is ``LABEL,LABEL INDEX:VALUE INDEX:VALUE``, and all numbers begin with 0. Unlike svmlight, a blank line is a
row, and the header says how much there is, so that a file cut at the end of a line is noticed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from labelrace.exceptions import DataFormatError
from labelrace.files import write_whole
from labelrace.streams import _pairs_bulk, _pairs_lines
from labelrace.streams._pairs import Frame, batch_from, label_names_from, lines_from
from labelrace.streams._schema import read_schema, schema_of, schema_path, schema_text
from labelrace.streams._source import MOST_COLUMNS, Place, line_chunks, new_data, open_data, plain_path
from labelrace.streams.stream import Batch, FileStream, NumberedNames, Stream, nominal_mask

__all__ = ["is_xc", "open_xc", "write_xc"]

_HEADER = re.compile(rb"\s*(\d+)\s+(\d+)\s+(\d+)\s*")
_LONGEST_HEADER = 1000
_MOST_DIGITS = 18


class _Sizes(NamedTuple):
    rows: int
    features: int
    labels: int


def open_xc(path: str | os.PathLike[str], labels: Sequence[str] | None = None) -> FileStream:
    r"""Open a file of the Extreme Classification repository as a stream. X is sparse.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str or None
        Names of the labels; by default those that `labelrace.streams.write_dataset` left in a schema beside the
        file, or numbers, as in ``y0``.

    Raises
    ------
    DataFormatError
        If the file cannot be read, or has not as many rows as it says. It names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.txt")
    ...     _ = path.write_text("2 3 4\n0,3 0:0.5 2:2\n 1:1\n")
    ...     stream = open_xc(path)
    ...     X, Y = next(stream.batches(10))
    >>> stream
    FileStream('toy': 3 features (0 categorical), 4 labels)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    """
    path = Path(path)
    with open_data(path) as file:
        sizes = _read_sizes(file, path)
    frame = Frame(path, sizes.features, sizes.labels)
    schema = read_schema(path) if labels is None else None
    if schema is not None and (len(schema.features), len(schema.labels)) != (sizes.features, sizes.labels):
        raise Place(path, 1).error(
            f"{sizes.features} features and {sizes.labels} labels, but {schema_path(path).name} beside the file is "
            f"about {len(schema.features)} and {len(schema.labels)}; remove it if it belongs to other data"
        )
    nominal = schema.nominal if schema else {}
    return FileStream(
        name=plain_path(path).stem,
        feature_names=schema.features if schema else NumberedNames("x", 0, sizes.features),
        label_names=schema.labels if schema else label_names_from(labels, sizes.labels, 0, path),
        categorical=nominal_mask(sizes.features, nominal),
        read=partial(_batches, frame, sizes.rows),
        nominal_values=nominal,
    )


def is_xc(path: Path) -> bool:
    """Return whether the file begins with three whole numbers, as no svmlight file does."""
    with open_data(path) as file:
        return _HEADER.fullmatch(file.readline(_LONGEST_HEADER)) is not None


def write_xc(stream: Stream, path: Path, batch_size: int) -> int:
    """Write a stream in the Extreme Classification repository's format, its schema beside; return the rows."""
    schema = schema_of(stream)
    rows = 0
    # The header comes first but is known last, and a compressed file cannot be gone back in.
    with new_data(path) as file, tempfile.TemporaryFile(dir=path.parent) as body:
        for lines in lines_from(stream, batch_size, 0):
            rows += len(lines)
            body.write("".join(lines).encode())
        file.write(f"{rows} {stream.n_features} {stream.n_labels}\n".encode())
        body.seek(0)
        shutil.copyfileobj(body, file)
        write_whole(schema_path(path), schema_text(schema))
    return rows


def _read_sizes(file: IO[bytes], path: Path) -> _Sizes:
    header = _HEADER.fullmatch(file.readline(_LONGEST_HEADER))
    place = Place(path, 1)
    if header is None:
        raise place.error("expected the numbers of rows, features and labels; write them as ROWS FEATURES LABELS")
    if max(map(len, header.groups())) > _MOST_DIGITS:
        raise place.error("the numbers of rows, features and labels cannot be so large")
    sizes = _Sizes(*map(int, header.groups()))
    if max(sizes.features, sizes.labels) > MOST_COLUMNS:
        raise place.error(
            f"{sizes.features} features and {sizes.labels} labels; more than {MOST_COLUMNS} cannot be, so the "
            "header is damaged"
        )
    return sizes


def _batches(frame: Frame, n_rows: int, size: int) -> Iterator[Batch]:
    rows, path = 0, frame.path
    with open_data(path) as file:
        _read_sizes(file, path)
        for numbers, lines in line_chunks(file, size, line=1, skipped=()):
            if rows + len(lines) > n_rows:
                _check_surplus(lines[n_rows - rows :], n_rows, path)
                lines, numbers = lines[: n_rows - rows], numbers[: n_rows - rows]
            rows += len(lines)
            if lines:
                pairs = _pairs_bulk.parse(lines)
                yield batch_from(_pairs_lines.parse(lines, numbers, path) if pairs is None else pairs, numbers, frame)
    if rows < n_rows:
        raise DataFormatError(f"{path}: the header says {n_rows} rows, but there are {rows}; the file is cut")


def _check_surplus(lines: list[bytes], n_rows: int, path: Path) -> None:
    """Raise unless the lines below the last row are blank."""
    if any(lines):
        raise DataFormatError(f"{path}: more rows than the {n_rows} that the header says; correct the header")
