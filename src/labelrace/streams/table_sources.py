"""Where the rows of tables are from: files, whose suffix tells the format, and standard input.

Rows of standard input are read as they arrive: JSON lines, or CSV; the first line shows which.
"""

from __future__ import annotations

import codecs
import csv
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.base.limits import LINE
from labelrace.exceptions import DataFormatError
from labelrace.streams.encodings import find_delimiter
from labelrace.streams.excel import ExcelFile
from labelrace.streams.files import Location, open_data, suffix_of
from labelrace.streams.jsonl import JsonFile, read_json
from labelrace.streams.table_files import ArrowFile, CsvFile, OnBadRow

_CSV, _JSON, _ARROW = (".csv", ".tsv", ".txt"), (".jsonl", ".ndjson"), (".parquet", ".arrow", ".feather")
_EXCEL = (".xlsx", ".xlsm")
_PATH = Path("standard input")
# Bytes of a file that show how it is written.
_LOOKED_AT = 1 << 20


class Reading(NamedTuple):
    """How the files of tables are read, where they do not show it."""

    delimiter: str | None = None  # cell separator of CSV
    encoding: str | None = None  # that of CSV
    sheet: str | None = None  # the sheet of an Excel file
    on_bad_row: OnBadRow | None = None  # called with the error of each row that cannot be read, which is left out


def open_table(path: Path, reading: Reading = Reading()) -> CsvFile | JsonFile | ArrowFile | ExcelFile:  # noqa: B008
    """Open a table by its suffix.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson``, ``.parquet``, ``.arrow`` or ``.feather``, with ``.gz``,
        ``.bz2`` or ``.zip`` behind if it is compressed; or ``.xlsx``. A file without a suffix is read as CSV.
    reading : Reading
        How it is read.

    Raises
    ------
    DataFormatError
        If the suffix is another one, or the file cannot be read.
    """
    suffix, (delimiter, encoding, sheet, on_bad_row) = suffix_of(path), reading
    if sheet is not None and suffix not in _EXCEL:
        raise ValueError(f"{path}: a sheet is for Excel files only; leave it out.")
    if not suffix or suffix in _CSV:
        return CsvFile(path, delimiter=delimiter, encoding=encoding, on_bad_row=on_bad_row)
    if suffix == ".xls":
        raise DataFormatError(f"{path}: cannot read Excel files of the old format; save it as .xlsx")
    if suffix not in _JSON + _ARROW + _EXCEL:
        raise DataFormatError(
            f"{path}: cannot read files of type {suffix!r} as tables; known types are "
            f"{', '.join(_CSV + _JSON + _ARROW + _EXCEL[:1])}, and those with .gz, .bz2 or .zip behind"
        )
    for name, given in {"a delimiter": delimiter, "an encoding": encoding}.items():
        if given is not None:
            raise ValueError(f"{path}: {name} is for CSV files only; leave it out.")
    if suffix in _EXCEL:
        return ExcelFile(path, sheet, on_bad_row)
    return JsonFile(path, on_bad_row=on_bad_row) if suffix in _JSON else ArrowFile(path)


class CsvForm(NamedTuple):
    """How a program writes CSV: the delimiter, and whether it knows UTF-8 by a byte order mark only."""

    delimiter: str = ","
    bom: bool = False


def csv_form(path: Path, reading: Reading = Reading()) -> CsvForm:  # noqa: B008
    """Tell how a CSV file is to be written, for the program that has written this one; commas for other files.

    A byte order mark is needed where there is one, and where the first megabyte is not UTF-8.
    """
    if suffix_of(path) != ".csv" or not path.is_file():
        return CsvForm()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is found is said when the rows are read
        delimiter = CsvFile(path, delimiter=reading.delimiter, encoding=reading.encoding).delimiter
    with open_data(path) as file:
        start = file.read(_LOOKED_AT)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return CsvForm(delimiter, True)
    return CsvForm(delimiter, start.startswith(codecs.BOM_UTF8))


class TextRows(NamedTuple):
    """The rows of a text, each with its location: JSON values, or lists of CSV cells, the header included."""

    is_json: bool
    rows: Iterator[tuple[Location, Any]]


def read_text(lines: Iterable[str], delimiter: str | None = None, on_bad_row: OnBadRow | None = None) -> TextRows:
    r"""Read rows from lines; blank lines are not rows. The header of CSV shows the delimiter, if none is given.

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
        return TextRows(True, _json_rows(chain([first], rest), number, on_bad_row))
    return TextRows(False, _csv_rows(chain([first], rest), number, delimiter or find_delimiter([first])))


def _json_rows(lines: Iterable[str], start: int, on_bad_row: OnBadRow | None) -> Iterator[tuple[Location, Any]]:
    for number, line in enumerate(lines, start):
        if line.strip():
            location = Location(_PATH, number)
            try:
                # Bytes that were not UTF-8 came as surrogates, which are refused with the row.
                yield location, read_json(line.encode(errors="surrogatepass"), location)
            except DataFormatError as error:
                if on_bad_row is None:
                    raise
                on_bad_row(error)


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
