"""What text formats share: blocks of lines parsed many at a time, cells by pyarrow, lines written, numbers as text."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv

from labelrace.base.files import write_atomic
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Stream
from labelrace.streams.files import Location, new_data
from labelrace.typing import AnyMatrix, FloatArray, SparseMatrix

Item = TypeVar("Item")
Row = TypeVar("Row")
Parsed = TypeVar("Parsed")

# Parsing a block of lines at once is worthwhile from the first size on. NumPy's arrays for a block of the second size
# fit into the processor's cache.
_MIN_BLOCK, SPARSE_BLOCK = 1 << 16, 1 << 17
# Bytes of cells that are worth a thread of their own.
_PARALLEL_BYTES = 1 << 20
_NEWLINE, _RETURN = b"\n\r"


def byte_blocks(file: IO[bytes], size: int, max_bytes: int = 1 << 22) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of about `size` lines, or more if that is little text, with the number of their lines.

    `max_bytes` limits the bytes of a block, apart from the end of its last line, and thus the memory of the parser.
    """
    amount = _MIN_BLOCK
    while block := file.read(amount):
        block += file.readline()
        block = block if block.endswith(b"\n") else block + b"\n"
        n_lines = block.count(b"\n")
        yield block, n_lines
        amount = min(max(size * len(block) // n_lines, _MIN_BLOCK), max_bytes)


def rows_in(block: bytes, line: int, skipped: tuple[bytes, ...] = (b"",)) -> tuple[list[int], list[bytes]]:
    """Return the numbers and the stripped texts of a block's lines that hold rows.

    `line` is the number of the line before the block. `skipped` has the first bytes of lines that hold no row: an
    empty one for blank lines, and the characters that begin a comment.
    """
    lines = enumerate(map(bytes.strip, block.split(b"\n")[:-1]), start=line + 1)
    rows = [(number, text) for number, text in lines if text[:1] not in skipped]
    return [number for number, _ in rows], [text for _, text in rows]


def chunked(rows: Iterable[Item], size: int | None = None) -> Iterator[list[Item]]:
    """Yield lists of `size` rows, by default one of all; before an error the rows above it are delivered."""
    waiting, error = iter(rows), None
    while error is None:
        chunk = list[Item]()
        try:
            chunk.extend(islice(waiting, size))
        except DataFormatError as failure:
            error = failure
        if chunk:
            yield chunk
        elif error is None:
            return
    raise error


def read_lines(
    path: Path,
    blocks: Iterable[tuple[bytes, int]],
    line: int,
    skipped: tuple[bytes, ...],
    bulk: Callable[[bytes, int], Parsed | None],
    row: Callable[[bytes, Location], Row],
    join: Callable[[list[Row]], Parsed],
) -> Iterator[Parsed]:
    """Yield the rows of each block of lines; before an error those above it.

    `line` and `skipped` are those of `rows_in`. `bulk` parses a block of lines, given with their number, at once, or
    returns None if it cannot. Then `row` parses each line, or raises the exact error, and `join` combines the rows.
    """
    for block, n_lines in blocks:
        parsed = bulk(block, n_lines)
        if parsed is None:
            numbers, lines = rows_in(block, line, skipped)
            text = b"".join(raw + b"\n" for raw in lines)
            parsed = bulk(text, len(lines)) if lines and text != block else None
        if parsed is not None:
            yield parsed
        else:
            numbered = zip(lines, numbers, strict=True)
            yield from map(join, chunked(row(raw, Location(path, number)) for raw, number in numbered))
        line += n_lines
        del block, parsed  # to free their memory before the next block is read


def read_cells(text: bytes, n_lines: int, names: list[str], options: Any, delimiter: str, quote: str) -> Any:
    """Return lines of cells as an Arrow table, or None if pyarrow refuses them or might not read them exactly.

    pyarrow is many times as fast as the standard library's `csv`, but it reads some texts differently: quotes within
    cells, lone carriage returns, a byte order mark.
    """
    has_lone_returns = b"\r" in text and text.count(b"\r") != text.count(b"\r\n")
    if has_lone_returns or text.startswith(codecs.BOM_UTF8) or not _has_plain_quotes(text, quote, delimiter):
        return None
    block_size = max(_PARALLEL_BYTES, 8 * len(text) // n_lines)
    reading = csv.ReadOptions(column_names=names, block_size=block_size)
    parsing = csv.ParseOptions(delimiter=delimiter, quote_char=quote)
    try:
        return csv.read_csv(arrow_reader(text), reading, parsing, options)
    except pa.ArrowInvalid:
        return None


def _has_plain_quotes(text: bytes, quote: str, delimiter: str) -> bool:
    """Return whether quotes in lines of cells enclose whole cells, within which there are no further quotes.

    It may be False where they do, but is never True where they do not.
    """
    if not delimiter.isascii():
        return False
    if quote.encode() not in text:
        return True
    signs = np.frombuffer(b"\n" + text + b"\n\n", np.uint8)
    positions = np.flatnonzero(signs == ord(quote))
    before, after, next_to_it = signs[positions[::2] - 1], signs[positions[1::2] + 1], signs[positions[1::2] + 2]
    opens = (before == ord(delimiter)) | (before == _NEWLINE)
    closes = (after == ord(delimiter)) | (after == _NEWLINE) | ((after == _RETURN) & (next_to_it == _NEWLINE))
    return len(opens) == len(closes) and bool(opens.all() and closes.all())


def arrow_reader(text: bytes) -> Any:
    """Return a reader of a copy of the text in memory that Arrow owns.

    Arrow's threads may release the text after the table has been read, even when the interpreter is shutting down. To
    release Python's memory they would wait for its lock then, which aborts the process.
    """
    memory = pa.allocate_buffer(len(text))
    np.frombuffer(memory, np.uint8)[:] = np.frombuffer(text, np.uint8)
    return pa.BufferReader(memory)


def number_matrix(columns: Sequence[Any], n_rows: int) -> FloatArray:
    """Return columns of numbers or booleans of an Arrow table as a matrix, with NaN for missing values."""
    doubles = [column if column.type == pa.float64() else column.cast(pa.float64(), safe=False) for column in columns]
    matrix, start = np.empty((n_rows, len(columns))), 0
    for rows in pa.table(doubles, names=list(map(str, range(len(doubles))))).to_batches() if doubles else ():
        matrix[start : (start := start + rows.num_rows)] = rows.to_tensor(null_to_nan=True).to_numpy()
    return matrix


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
