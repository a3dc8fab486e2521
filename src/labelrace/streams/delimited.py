"""pyarrow's reader of delimited cells, for blocks of lines that it reads exactly; others are refused here.

pyarrow is many times as fast as the standard library's `csv`, but it reads some texts differently: quotes within cells,
lone carriage returns, a byte order mark. CSV and dense ARFF files share this.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from labelrace.typing import FloatArray

_PARALLEL_BYTES = 1 << 20
_NEWLINE, _RETURN = b"\n\r"


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


def has_plain_quotes(text: bytes, quote: bytes, delimiter: bytes) -> bool:
    """Return whether quotes in lines of cells enclose whole cells, within which there are no further quotes.

    It may be False where they do, but is never True where they do not. Quote and delimiter are one byte each.
    """
    if quote not in text:
        return True
    signs = np.frombuffer(b"\n" + text + b"\n\n", np.uint8)
    positions = np.flatnonzero(signs == quote[0])
    before, after, next_to_it = signs[positions[::2] - 1], signs[positions[1::2] + 1], signs[positions[1::2] + 2]
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


def number_matrix(columns: Sequence[Any], n_rows: int) -> FloatArray:
    """Return columns of numbers or booleans of an Arrow table as a matrix, with NaN for missing values."""
    doubles = [column if column.type == pa.float64() else column.cast(pa.float64(), safe=False) for column in columns]
    matrix, start = np.empty((n_rows, len(columns))), 0
    for rows in pa.table(doubles, names=list(map(str, range(len(doubles))))).to_batches() if doubles else ():
        matrix[start : (start := start + rows.num_rows)] = rows.to_tensor(null_to_nan=True).to_numpy()
    return matrix
