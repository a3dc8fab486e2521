"""Rows of standard input, as they arrive: JSON lines, or CSV; the first line shows which."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.base.limits import LINE
from labelrace.streams.files import Location
from labelrace.streams.jsonl import read_json

_PATH = Path("standard input")


class TextRows(NamedTuple):
    """The rows of a text, each with its location: JSON values, or lists of CSV cells, the header included."""

    is_json: bool
    rows: Iterator[tuple[Location, Any]]


def read_text(lines: Iterable[str], delimiter: str = ",") -> TextRows:
    r"""Read rows from lines; blank lines are not rows.

    Examples
    --------
    >>> is_json, rows = read_text(["size,hue\n", "\n", "1.5,red\n"])
    >>> is_json, [(location.line, cells) for location, cells in rows]
    (False, [(1, ['size', 'hue']), (3, ['1.5', 'red'])])
    """
    every = enumerate(lines, start=1)
    number, first = next(((number, line) for number, line in every if line.strip()), (1, ""))
    first = first.removeprefix("\ufeff")
    rest = (line for _, line in every)
    if first.lstrip().startswith(("{", "[")):
        return TextRows(True, _json_rows(chain([first], rest), number))
    return TextRows(False, _csv_rows(chain([first], rest), number, delimiter))


def _json_rows(lines: Iterable[str], start: int) -> Iterator[tuple[Location, Any]]:
    for number, line in enumerate(lines, start):
        if line.strip():
            location = Location(_PATH, number)
            # Bytes that were not UTF-8 came as surrogates, which are refused with the row.
            yield location, read_json(line.encode(errors="surrogatepass"), location)


def _csv_rows(lines: Iterable[str], start: int, delimiter: str) -> Iterator[tuple[Location, list[str]]]:
    # The default, 131,072 characters, is less than a line may have.
    csv.field_size_limit(LINE.value)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield Location(_PATH, start - 1 + reader.line_num), row
    except csv.Error as error:
        raise Location(_PATH, start - 1 + reader.line_num).error(
            f"not valid CSV ({error}); correct the quotes, or give a table with such cells as a file"
        ) from None
