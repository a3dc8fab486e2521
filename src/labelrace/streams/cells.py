"""Numbers and nominal values as text, and back: what the readers and writers of several formats share.

`floats` and `integers` parse many numbers at once, out of one array of bytes that holds the texts of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv
from scipy.sparse import csr_array

from labelrace.files import write_whole
from labelrace.streams.dataset import Stream
from labelrace.streams.files import Place, ahead, new_data, rows_in, until_error
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix

Pairs: TypeAlias = Iterable[tuple[int, int]]
Row = TypeVar("Row")
Parsed = TypeVar("Parsed")

_PARALLEL_BYTES = 1 << 20
_MOST_DIGITS = 9


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
    """Return the number that a text stands for, which may be NaN; None if it is no finite number."""
    # float() would accept the digits of other scripts, and ignore underscores.
    try:
        number = float(text) if text.isascii() and "_" not in text else math.inf
    except ValueError:
        return None
    return None if math.isinf(number) else number


def code_texts(codes: FloatArray, texts: tuple[str, ...], name: str, missing: Any) -> list[Any]:
    """Return the texts that codes stand for, and `missing` for NaN; `name` is the feature, to name in an error."""
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
    """Return the entries of sparse rows, with texts in the place of the codes of nominal columns; as `code_texts`."""
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
    """Return a copy by compressed rows, each with its columns in order and no zeros stored."""
    rows = csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_distinct(stream: Stream) -> None:
    """Raise ValueError if two columns have the same name, where features and labels share a header."""
    seen: set[str] = set()
    for name in (*stream.feature_names, *stream.label_names):
        if name in seen:
            raise ValueError(
                f"two columns are called {name!r}, but this format tells features and labels apart by their names; "
                "rename one, or write svmlight or .npz"
            )
        seen.add(name)


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

    `line` and `skipped` are those of `rows_in`. `bulk` parses lines, of a given number, at once, or returns None if
    one is not plain. Then `row` parses each of them, or raises the exact error, and `join` puts the rows together.
    Several `threads` parse blocks ahead in bulk, which pays where `bulk` leaves Python's lock to others.
    """
    for (block, n_lines), parsed in ahead(bulk, blocks, threads):
        if parsed is None:
            numbers, lines = rows_in(block, line, skipped)
            text = b"".join(raw + b"\n" for raw in lines)
            parsed = bulk(text, len(lines)) if lines and text != block else None
        if parsed is not None:
            yield parsed
        else:
            rows, error = until_error(row(raw, Place(path, number)) for raw, number in zip(lines, numbers, strict=True))
            if rows:
                yield join(rows)
            if error is not None:
                raise error
        line += n_lines
        del block, parsed  # before the next ones are there


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
            write_whole(other, content)
    return rows


def has_plain_quotes(text: bytes, quote: bytes, delimiter: bytes) -> bool:
    """Return whether the quotes in lines of cells enclose whole cells, without quotes, delimiters or newlines in them.

    May be False where they do, but is never True where they do not.
    """
    if quote not in text:
        return True
    opening = text.startswith(quote) + text.count(delimiter + quote) + text.count(b"\n" + quote)
    closing = text.endswith(quote) + sum(text.count(quote + end) for end in (delimiter, b"\n", b"\r\n"))
    return 2 * opening == 2 * closing == text.count(quote)


def has_lone_returns(text: bytes) -> bool:
    """Return whether the text has carriage returns within lines, which end a line for pyarrow."""
    return b"\r" in text and text.count(b"\r") != text.count(b"\r\n")


def arrow_reader(text: bytes) -> Any:
    """Copy text into memory of Arrow's own, to be read from there.

    Arrow's threads may let go of it after a table has been read, as late as when the interpreter ends. To free memory
    of Python's they would then wait for its lock, which ends the thread and aborts the process.
    """
    memory = pa.allocate_buffer(len(text))
    np.frombuffer(memory, np.uint8)[:] = np.frombuffer(text, np.uint8)
    return pa.BufferReader(memory)


def read_cells(text: bytes, n_lines: int, names: list[str], options: Any, **parsing: Any) -> Any:
    """Return lines of cells as an Arrow table, read by all processors, or None if pyarrow refuses them."""
    block_size = max(_PARALLEL_BYTES, 8 * len(text) // n_lines)
    reading = csv.ReadOptions(column_names=names, block_size=block_size)
    try:
        return csv.read_csv(arrow_reader(text), reading, csv.ParseOptions(**parsing), options)
    except pa.ArrowInvalid:
        return None


def number_matrix(columns: Sequence[Any], n_rows: int) -> FloatArray:
    """Return columns of an Arrow table, of numbers or truths, as one matrix by rows, NaN for what is missing."""
    doubles = [column if column.type == pa.float64() else column.cast(pa.float64(), safe=False) for column in columns]
    matrix, start = np.empty((n_rows, len(columns))), 0
    for rows in pa.table(doubles, names=list(map(str, range(len(doubles))))).to_batches() if doubles else ():
        matrix[start : (start := start + rows.num_rows)] = rows.to_tensor(null_to_nan=True).to_numpy()
    return matrix
