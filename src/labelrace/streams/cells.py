"""What the readers and writers of several formats share: numbers and codes as text, lines, and pyarrow's CSV reader."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv
from scipy.sparse import csr_array

from labelrace.base.files import write_atomic
from labelrace.base.parameters import repeated
from labelrace.streams.dataset import Stream
from labelrace.streams.files import Place, ahead, chunked, new_data, rows_in
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix

Row = TypeVar("Row")
Parsed = TypeVar("Parsed")

_PARALLEL_BYTES = 1 << 20
_NEWLINE, _RETURN = b"\n\r"


def number_texts(values: FloatArray) -> list[str]:
    """Return the shortest texts from which ``float()`` gets the same numbers.

    Examples
    --------
    >>> number_texts(np.array([0.1, 3.0, 1e300, -0.0]))
    ['0.1', '3', '1e+300', '-0']
    """
    texts = map(repr, np.asarray(values, dtype=np.float64).tolist())
    return [text.removesuffix(".0") for text in texts]


def finite_number(text: str) -> float | None:
    """Return a text as a number, which may be NaN; None if it is not a finite number."""
    # float() would accept the digits of other scripts, and ignore underscores.
    try:
        number = float(text) if text.isascii() and "_" not in text else math.inf
    except ValueError:
        return None
    return None if math.isinf(number) else number


def code_texts(codes: FloatArray, texts: tuple[str, ...], name: str, missing: Any) -> list[Any]:
    """Return the texts that codes mean, and `missing` for NaN; `name` is the feature, to name in an error."""
    absent = np.isnan(codes)
    wrong = ~absent & ~np.isin(codes, np.arange(len(texts)))
    if wrong.any():
        raise ValueError(
            f"the nominal feature {name!r} has the code {codes[wrong][0]:g}, but its {len(texts)} values are coded "
            f"as whole numbers from 0 to {len(texts) - 1}; correct the data or its categorical mask"
        )
    known = np.array([*texts, missing], dtype=object)
    return known[np.where(absent, len(texts), codes).astype(np.intp)].tolist()


def entry_texts(
    rows: SparseMatrix, entries: list[Any], values: Mapping[int, tuple[str, ...]], names: Sequence[str], missing: Any
) -> list[Any]:
    """Return the entries of sparse rows, with the codes of nominal columns replaced by texts; see `code_texts`."""
    texts = entries.copy()
    order = np.argsort(rows.indices, kind="stable")
    bounds = np.searchsorted(rows.indices[order], np.array([[column, column + 1] for column in values]).reshape(-1, 2))
    for column, (start, end) in zip(values, bounds.tolist(), strict=True):
        positions = order[start:end]
        coded = code_texts(rows.data[positions], values[column], names[column], missing)
        for position, text in zip(positions.tolist(), coded, strict=True):
            texts[position] = text
    return texts


def canonical_rows(matrix: AnyMatrix) -> SparseMatrix:
    """Return a copy in compressed rows, with columns in order and without stored zeros."""
    rows = csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_distinct(stream: Stream) -> None:
    """Raise ValueError if two columns have the same name, where features and labels share a header."""
    if twice := repeated([*stream.feature_names, *stream.label_names]):
        raise ValueError(
            f"two columns are called {twice[0]!r}, but this format tells features and labels apart by their names; "
            "rename one, or write svmlight or .npz"
        )


def read_lines(
    path: Path,
    blocks: Iterable[tuple[bytes, int]],
    line: int,
    skipped: tuple[bytes, ...],
    bulk: Callable[[bytes, int], Parsed | None],
    row: Callable[[bytes, Place], Row],
    join: Callable[[list[Row]], Parsed],
    threads: int = 1,
) -> Iterator[Parsed]:
    """Yield the rows of each block of lines; before an error those above it.

    `line` and `skipped` are those of `rows_in`. `bulk` parses a block of lines, given with their number, at once, or
    returns None if it cannot. Then `row` parses each line, or raises the exact error, and `join` combines the rows.
    Several `threads` parse blocks ahead in bulk, which is worthwhile if `bulk` releases Python's lock.
    """
    for (block, n_lines), parsed in ahead(bulk, blocks, threads):
        if parsed is None:
            numbers, lines = rows_in(block, line, skipped)
            text = b"".join(raw + b"\n" for raw in lines)
            parsed = bulk(text, len(lines)) if lines and text != block else None
        if parsed is not None:
            yield parsed
        else:
            numbered = zip(lines, numbers, strict=True)
            yield from map(join, chunked(row(raw, Place(path, number)) for raw, number in numbered))
        line += n_lines
        del block, parsed  # to free their memory before the next block is read


def write_lines(
    stream: Stream,
    path: Path,
    batch_size: int,
    lines: Callable[[AnyMatrix, SparseMatrix], Iterable[str]],
    header: str,
    beside: Mapping[Path, bytes],
) -> int:
    """Write a header and the lines of each batch to a file, and other files beside it; return the number of rows."""
    rows = 0
    with new_data(path) as file:
        file.write(header.encode())
        for X, Y in stream.batches(batch_size):
            rows += X.shape[0]
            file.write("".join(lines(X, Y)).encode())
        for other, content in beside.items():
            write_atomic(other, content)
    return rows


def has_plain_quotes(text: bytes, quote: bytes, delimiter: bytes) -> bool:
    """Return whether quotes in lines of cells enclose whole cells, within which there are no further quotes.

    It may be False where they do, but is never True where they do not. Quote and delimiter are one byte each.
    """
    if quote not in text:
        return True
    signs = np.frombuffer(b"\n" + text + b"\n\n", np.uint8)
    places = np.flatnonzero(signs == quote[0])
    before, after, next_to_it = signs[places[::2] - 1], signs[places[1::2] + 1], signs[places[1::2] + 2]
    opens = (before == delimiter[0]) | (before == _NEWLINE)
    closes = (after == delimiter[0]) | (after == _NEWLINE) | ((after == _RETURN) & (next_to_it == _NEWLINE))
    return len(opens) == len(closes) and bool(opens.all() and closes.all())


def has_lone_returns(text: bytes) -> bool:
    """Return whether the text has carriage returns within lines, which end a line for pyarrow."""
    return b"\r" in text and text.count(b"\r") != text.count(b"\r\n")


def arrow_reader(text: bytes) -> Any:
    """Return a reader of a copy of the text in memory that Arrow owns.

    Arrow's threads may release the text after the table has been read, even when the interpreter is shutting down. To
    release Python's memory they would wait for its lock then, which aborts the process.
    """
    memory = pa.allocate_buffer(len(text))
    np.frombuffer(memory, np.uint8)[:] = np.frombuffer(text, np.uint8)
    return pa.BufferReader(memory)


def read_cells(text: bytes, n_lines: int, names: list[str], options: Any, **parsing: Any) -> Any:
    """Return lines of cells as an Arrow table, parsed by several threads, or None if pyarrow refuses them."""
    if text.startswith(codecs.BOM_UTF8):
        return None  # which pyarrow would leave out, though it is part of the first cell
    block_size = max(_PARALLEL_BYTES, 8 * len(text) // n_lines)
    reading = csv.ReadOptions(column_names=names, block_size=block_size)
    try:
        return csv.read_csv(arrow_reader(text), reading, csv.ParseOptions(**parsing), options)
    except pa.ArrowInvalid:
        return None


def number_matrix(columns: Sequence[Any], n_rows: int) -> FloatArray:
    """Return columns of numbers or booleans of an Arrow table as a matrix, with NaN for missing values."""
    doubles = [column if column.type == pa.float64() else column.cast(pa.float64(), safe=False) for column in columns]
    matrix, start = np.empty((n_rows, len(columns))), 0
    for rows in pa.table(doubles, names=list(map(str, range(len(doubles))))).to_batches() if doubles else ():
        matrix[start : (start := start + rows.num_rows)] = rows.to_tensor(null_to_nan=True).to_numpy()
    return matrix
