"""The block of the matrix that encodes one column of a table, depending on its kind.

A block has a column for each word or value of the batch. `labelrace.tables.vocabulary` decides later which columns of
the matrix these are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.tables.cells import (
    COLLECTIONS,
    Cells,
    as_dates,
    as_lists,
    as_name,
    as_numbers,
    as_texts,
    filled,
    parse_list,
)
from labelrace.tables.column_kinds import SEPARATORS, Column, date_pattern, exchanged
from labelrace.tables.text import count_items, count_words, hash_names
from labelrace.tables.vocabulary import Hashes
from labelrace.typing import FloatArray, IntArray, SparseMatrix

Encoder = Callable[[list[str]], Any]

# Standard deviations at which numbers are clipped.
_CLIP = 3.0
# Length of the features of other columns, relative to those of texts: words say more about tags.
_SIDE = 0.5
# Number of cells from which a column is refused if none of them fits.
_CONTRADICTION = 3
_LONGEST_NAME = 64
_MAYBE_SEVERAL = re.compile(rf"[\s{re.escape(''.join(SEPARATORS))}]")
# Number of rows that a word of a long text must occur in to get a column, as most of these words occur once.
_MIN_ROWS = 3
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of the numbers in a column so far."""

    n: float = 0.0
    mean: float = 0.0
    square: float = 0.0


class Block(NamedTuple):
    """The features of one column of a batch."""

    matrix: SparseMatrix
    hashes: Hashes
    names: list[str]
    words: list[str] | None = None  # of a text: its matrix has counts of words, to be weighted and scaled to length one
    min_rows: int = 1  # number of rows that its words must occur in to get a column of the matrix
    has_values: bool = False  # whether it is of a category or a list, whose values may be new as words are


def make_block(column: Column, cells: Cells, moments: Moments) -> tuple[Block, list[int]]:
    """Return the block of a column, and the rows of cells that do not fit and count as missing."""
    if column.kind == "number":
        return _number(column, cells, moments)
    make = {"text": _text, "category": _category, "boolean": _category, "list": _list, "date": _date}[column.kind]
    return make(column, cells)


def _text(column: Column, cells: Cells) -> tuple[Block, list[int]]:
    counts, words = count_words(as_texts(cells), is_html=column.is_html)
    names = [f"{column.name}: {word[:_LONGEST_NAME]}" for word in words]
    block = Block(counts, hash_names(column.name, words), names, words, 1 if column.is_short else _MIN_ROWS)
    return block, _nested(cells)


def _category(column: Column, cells: Cells) -> tuple[Block, list[int]]:
    texts = list(map(as_name, as_texts(cells)))
    if column.kind == "boolean":
        texts = [text.lower() for text in texts]
    counts, values = count_items([[text] if text else [] for text in texts])
    return _of_values(column, counts * _SIDE, values), _nested(cells)


def _list(column: Column, cells: Cells) -> tuple[Block, list[int]]:
    if column.separator is None:
        _refuse_unknown_separators(column, cells)
    counts, values = count_items(as_lists(cells, column.separator))
    lengths = np.sqrt(np.maximum(np.diff(counts.indptr), 1))
    return _of_values(column, scipy.sparse.csr_array(counts.multiply(1.0 / lengths[:, None])), values), []


def _date(column: Column, cells: Cells) -> tuple[Block, list[int]]:
    dates, wrong = as_dates(cells, column.pattern)
    if wrong:
        # Another program may write dates in another way; but not some of a batch with day and month exchanged.
        pattern = date_pattern([cells[row] for row in wrong])
        if pattern is not None:
            day, other = column.pattern.partition(" ")[0], exchanged(column.pattern)
            if other is not None and pattern.startswith(other.partition(" ")[0]):
                pattern = day + pattern[len(day) :]
            others, wrong = as_dates(cells, pattern)
            dates = np.where(np.isnat(dates), others, dates)
            wrong = [row for row in wrong if np.isnat(dates[row])]
    days = dates.astype("datetime64[D]")
    # Day 0 was a Thursday.
    weekdays, months = (days.astype(np.int64) + 3) % 7, days.astype("datetime64[M]").astype(np.int64) % 12 + 1
    hours = (dates - days).astype(np.int64) // 3600
    parts = []
    for missing, weekday, month, hour in zip(np.isnat(dates), weekdays, months, hours, strict=True):
        part = [] if missing else [f"weekday={_WEEKDAYS[weekday]}", f"month={month}"]
        parts.append([*part, f"hour={hour}"] if part and column.has_time else part)
    counts, values = count_items(parts)
    names = [f"{column.name}: {value}" for value in values]
    return Block(counts * (_SIDE / np.sqrt(3.0)), hash_names(column.name, values), names), wrong


def _of_values(column: Column, matrix: SparseMatrix, values: list[str]) -> Block:
    names = [f"{column.name}={value[:_LONGEST_NAME]}" for value in values]
    hashes = hash_names(f"{column.name}=", values)
    return Block(matrix, hashes, names, has_values=column.kind in ("category", "list"))


def _number(column: Column, cells: Cells, moments: Moments) -> tuple[Block, list[int]]:
    """Scale numbers by the moments so far; whether a number is missing is a second feature."""
    numbers, wrong = as_numbers(cells, column.decimal)
    spread = np.sqrt(moments.square / moments.n) if moments.n else 0.0
    scaled = np.zeros(len(numbers))
    is_missing = np.isnan(numbers)
    if spread > 1e-9 * abs(moments.mean):
        with np.errstate(over="ignore"):
            scaled = np.clip((np.where(is_missing, moments.mean, numbers) - moments.mean) / spread, -_CLIP, _CLIP)
    values = np.column_stack([scaled, is_missing]) * _SIDE
    names = ["", " is missing"]
    matrix = scipy.sparse.csr_array(values)
    return Block(matrix, hash_names(f"{column.name}#", names), [column.name + name for name in names]), wrong


def add_moments(moments: Moments, cells: Cells, decimal: str | None = None) -> Moments:
    """Add the numbers of a batch to the moments of a column."""
    numbers, _ = as_numbers(cells, decimal)
    # Larger numbers would overflow when squared.
    numbers = np.clip(numbers[~np.isnan(numbers)], -1e100, 1e100)
    if not len(numbers):
        return moments
    mean = float(numbers.mean())
    return merge_moments(moments, Moments(float(len(numbers)), mean, float(np.square(numbers - mean).sum())))


def merge_moments(one: Moments, other: Moments) -> Moments:
    """Return the moments of the numbers of both."""
    total = one.n + other.n
    if not total:
        return one
    step = other.mean - one.mean
    square = one.square + other.square + step**2 * one.n * other.n / total
    return Moments(total, one.mean + step * other.n / total, square)


def moments_since(start: Moments, end: Moments) -> Moments:
    """Return the moments of the numbers that came after the start."""
    n = end.n - start.n
    if n <= 0:
        return Moments()
    mean = (end.n * end.mean - start.n * start.mean) / n
    square = end.square - start.square - (mean - start.mean) ** 2 * start.n * n / end.n
    return Moments(n, mean, max(square, 0.0))


def encode_block(column: Column, cells: Cells, encoder: Encoder) -> Block:
    """Return the block of a user's encoder for a column, with rows of length one."""
    if not callable(encoder):
        raise ValueError(
            f"The encoder of the column {column.name!r} must be a callable from a list of texts to an array, got "
            f"{encoder!r:.40}."
        )
    texts = as_texts(cells)
    array = np.asarray(encoder(texts), dtype=np.float64)
    if array.ndim != 2 or len(array) != len(texts) or not np.isfinite(array).all():
        raise ValueError(
            f"The encoder of the column {column.name!r} must return an array of finite numbers with a row for each of "
            f"{len(texts)} texts, got one of shape {array.shape}."
        )
    if column.width and array.shape[1] != column.width:
        raise ValueError(
            f"The encoder of the column {column.name!r} must give {column.width} numbers for a text, as it did when "
            f"they were learned, got {array.shape[1]}: give that encoder, or call fit to start over."
        )
    digest = getattr(encoder, "digest", "")
    if column.width and digest != column.embedding:
        raise ValueError(
            f"The embedding model of the column {column.name!r} must be the one that was learned with, got another: "
            "give that one, or call fit to start over."
        )
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    names = [f"{column.name}[{number}]" for number in range(array.shape[1])]
    matrix = scipy.sparse.csr_array(array / np.where(lengths > 0, lengths, 1.0))
    return Block(matrix, encoder_hashes(column.name, array.shape[1]), names)


def encoder_hashes(name: str, width: int) -> Hashes:
    """Return the hashes of the outputs of a column's encoder."""
    return hash_names(f"{name}[]", list(map(str, range(width))))


def weighted(block: Block, rows: IntArray, rows_before: FloatArray, n_before: float) -> FloatArray:
    """Return the entries of a block, which are in the given rows, with words weighted, and rows of length one.

    The weight of a word is ``sqrt(1 + log((1 + n) / (1 + df)))``, where ``df`` of the ``n`` rows before had it.
    """
    matrix = block.matrix
    if block.words is None:
        return matrix.data
    weights = np.sqrt(1.0 + np.maximum(np.log((1.0 + n_before) / (1.0 + rows_before)), 0.0))
    values = (1.0 + np.log(matrix.data)) * weights[matrix.indices]
    lengths = np.sqrt(np.bincount(rows, values**2, matrix.shape[0]))
    return values / np.where(lengths > 0, lengths, 1.0)[rows]


def _refuse_unknown_separators(column: Column, cells: Cells) -> None:
    """Refuse texts of a column of lists that may be one value or several, as no separator is known."""
    for cell in cells:
        if isinstance(cell, str) and _MAYBE_SEVERAL.search(cell.strip()) and parse_list(cell) is None:
            raise ValueError(
                f"The column {column.name!r} must hold lists, as those that were learned, got the text {cell[:40]!r}: "
                "give a list, or a JSON list, or learn texts of this form first."
            )


def _nested(cells: Cells) -> list[int]:
    """Return the rows of cells that hold collections where a text or a value is expected."""
    if isinstance(cells, np.ndarray):
        return []
    return [row for row, cell in enumerate(cells) if isinstance(cell, (*COLLECTIONS, dict))]


def refuse_contradiction(column: Column, cells: Cells, wrong: list[int]) -> None:
    """Refuse a column if none of its cells is of the learned kind."""
    if len(wrong) >= _CONTRADICTION and len(wrong) == len(filled(cells)):
        example = as_texts(cells[wrong[0] : wrong[0] + 1])[0]
        raise ValueError(
            f"The column {column.name!r} must hold what it is read as ({column}), got {example[:40]!r} and the like: "
            "give the right column or kind; a column that was learned as something else must be renamed."
        )
