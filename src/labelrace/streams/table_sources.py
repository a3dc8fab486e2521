"""Where the rows of tables are from: files, whose suffix tells the format, and standard input.

Rows of standard input are read as they arrive: JSON lines, or CSV; the first line shows which.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.base.limits import LINE
from labelrace.exceptions import DataFormatError
from labelrace.streams.files import Location, suffix_of
from labelrace.streams.jsonl import JsonFile, read_json
from labelrace.streams.table_files import ArrowFile, CsvFile, TableFile

_CSV, _JSON, _ARROW = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson"), (".parquet", ".arrow", ".feather")
_PATH = Path("standard input")


def open_table(path: Path, delimiter: str | None = None) -> TableFile:
    """Open a table by its suffix.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson``, ``.parquet``, ``.arrow`` or ``.feather``, with ``.gz`` or
        ``.bz2`` behind if it is compressed. A file without a suffix is read as CSV.
    delimiter : str or None, default=None
        That of a CSV file, as for `CsvFile`.

    Raises
    ------
    DataFormatError
        If the suffix is another one, or the file cannot be read.
    """
    suffix = suffix_of(path)
    if not suffix or suffix in _CSV:
        return CsvFile(path, delimiter=delimiter)
    if suffix not in _JSON + _ARROW:
        raise DataFormatError(
            f"{path}: cannot read files of type {suffix!r} as tables; known types are "
            f"{', '.join(_CSV + _JSON + _ARROW)}, and those with .gz or .bz2 behind"
        )
    if delimiter is not None:
        raise ValueError(f"{path}: a delimiter is for CSV files only; leave it out.")
    return JsonFile(path) if suffix in _JSON else ArrowFile(path)


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
