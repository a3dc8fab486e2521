"""Rows of labels and INDEX:VALUE pairs one by one: all that may be, and the exact error for the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labelrace.streams._pairs import Pairs
from labelrace.streams._source import MOST_COLUMNS, Place
from labelrace.typing import IntArray

__all__ = ["parse"]

_MOST_DIGITS = len(str(MOST_COLUMNS))


def parse(lines: list[bytes], numbers: list[int], path: Path) -> Pairs:
    """Return the ids and values of the rows.

    Parameters
    ----------
    lines : list of bytes
        The rows, without space around them.
    numbers : list of int
        The lines' numbers in the file.
    path : path
        The file, to name in an error.
    """
    label_starts, labels = [0], list[int]()
    starts, columns, values = [0], list[int](), list[float]()
    for line, number in zip(lines, numbers, strict=True):
        ids, entries = _row(line, Place(path, number))
        labels += ids
        label_starts.append(len(labels))
        for column in sorted(entries):
            columns.append(column)
            values.append(entries[column])
        starts.append(len(columns))
    return Pairs(_ids(label_starts), _ids(labels), _ids(starts), _ids(columns), np.array(values, dtype=np.float64))


def _ids(numbers: list[int]) -> IntArray:
    return np.array(numbers, dtype=np.intp)


def _row(line: bytes, place: Place) -> tuple[list[int], dict[int, float]]:
    tokens = line.split()
    ids = list[int]()
    if tokens and b":" not in tokens[0]:
        ids = [_identifier(text, "label id", place) for text in tokens.pop(0).split(b",")]
    entries: dict[int, float] = {}
    for token in tokens:
        index, colon, text = token.partition(b":")
        if not colon:
            raise place.error(
                f"expected INDEX:VALUE, found {_shown(token)}; a row is LABEL,LABEL INDEX:VALUE INDEX:VALUE, "
                "or the file is cut here"
            )
        column = _identifier(index, "feature index", place)
        if column in entries:
            raise place.error(f"index {column} appears twice; give each feature one value")
        entries[column] = _value(text, column, place)
    return ids, entries


def _identifier(text: bytes, what: str, place: Place) -> int:
    if not text.isdigit():
        raise place.error(f"{_shown(text)} is not a {what}; write a whole number, 0 or more")
    digits = text.lstrip(b"0")
    if len(digits) > _MOST_DIGITS or int(digits or b"0") > MOST_COLUMNS:
        raise place.error(f"{what} {_shown(text)} is too large; more than {MOST_COLUMNS} cannot be")
    return int(digits or b"0")


def _value(text: bytes, column: int, place: Place) -> float:
    if not text:
        raise place.error(f"index {column} has no value; write INDEX:VALUE, or the file is cut here")
    try:
        number = np.inf if b"_" in text else float(text)
    except ValueError:
        number = np.inf
    if np.isinf(number):
        raise place.error(f"{_shown(text)} is not a finite number, as index {column} needs")
    return number


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
