"""Tables with suggested tags, written as files that people edit and that are learned again.

A table is written as it was read, with the tags in their column, and three columns beside them: ``predicted``, the same
tags once more, ``probabilities``, those of the tags, and ``review``, whether a person should look at the row. They are
left out when such a file is learned or predicted again. ``predicted`` tells what people have said since: a row whose
tags are still those that were predicted is not learned, and neither is one that still waits for review, without tags.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from labelrace.base.formulas import escape_formula
from labelrace.base.table_formats import WRITTEN as FORMATS
from labelrace.exceptions import DataFormatError
from labelrace.tables.cells import as_lists, as_text, is_missing, parse_list
from labelrace.tables.read import Table


class Written(NamedTuple):
    """What the columns are called that are written beside tags."""

    predicted: str = "predicted"
    probabilities: str = "probabilities"
    review: str = "review"
    top: str = "top"
    top_probabilities: str = "top_probabilities"


_PLAIN = Written()
_PREFIXED = Written("predicted_tags", *(f"predicted_{name}" for name in _PLAIN[1:]))
WRITTEN = frozenset((*_PLAIN, *_PREFIXED))
"""All names that these columns may have."""

_TRUE = frozenset(("true", "1", "yes", "wahr", "vrai", "verdadero", "vero"))
_FALSE = frozenset(("", "false", "0", "no", "falsch", "faux", "falso"))
# What separates tags in the column `predicted`, whatever does in that of tags.
_BETWEEN = ";"
# The longest text of a cell in Excel; and what its files cannot hold.
_LONGEST = 32_767
_CONTROL = dict.fromkeys(i for i in range(32) if chr(i) not in "\t\n\r")

Write: TypeAlias = Callable[[Table], None]


# --- What is written --------------------------------------------------------------------------------------------------


def written_names(known: Iterable[str]) -> Written:
    """Return the names of the columns beside tags; with a prefix if a tagger has learned a column that is called so."""
    return _PREFIXED if set(_PLAIN).intersection(known) else _PLAIN


def as_predicted(tags: Iterable[str] | None) -> str | None:
    """Return what the column `predicted` says of a row: its tags, or None if it was left to people.

    Examples
    --------
    >>> as_predicted(["oven", "egg"]), as_predicted([]), as_predicted(None)
    ('oven;egg', '[]', None)
    """
    return None if tags is None else join_tags(tags, _BETWEEN) or "[]"


def join_tags(tags: Iterable[str], separator: str | None) -> str:
    """Write tags as one text, in their order; as a JSON list if the text would be read as others.

    Examples
    --------
    >>> join_tags(["oven egg"], ";"), join_tags(["a;b", "c"], None), join_tags(["<a>"], " ")
    ('oven egg', '["a;b", "c"]', '["<a>"]')
    """
    listed, between = list(tags), separator or ";"
    text = between.join(listed)
    is_misread = any(between in tag for tag in listed) or parse_list(text) is not None
    return json.dumps(listed) if is_misread else text


def with_columns(table: Table, columns: Mapping[str, list[Any]]) -> Table:
    """Return a table with further columns, as it was read; those of these names are replaced where they are.

    Examples
    --------
    >>> table = Table({"tags": ["x"], "body": ["An oven"], "review": ["true"]}, 1)
    >>> with_columns(table, {"tags": ["oven"], "review": [False]}).columns
    {'tags': ['oven'], 'body': ['An oven'], 'review': [False]}
    """
    kept = table.columns if table.arrow is None else {name: table.arrow.column(name) for name in table.columns}
    return Table({**kept, **columns}, table.n_rows, table.has_names)


def predicted_in(table: Table) -> list[tuple[set[str] | None, bool]] | None:
    """Return the tags that were predicted for each row, None if it was left to people, and whether it is for review.

    None if the table is none that was written beside suggestions.
    """
    names = _names_in(table)
    if names is None:
        return None
    given = table.columns[names.predicted]
    sets = [set(tags) for tags in as_lists(given, _BETWEEN)]
    texts = _texts(table.columns[names.review])
    wrong = [text for text in texts if text not in _TRUE | _FALSE]
    if wrong:
        raise ValueError(
            f"The column {names.review!r} must hold true or false, as predict writes it beside {names.predicted!r}, "
            f"got {wrong[0]!r:.80}: write one of them; if it is a column of your own, give it another name."
        )
    are_left = [is_missing(cell) for cell in given]
    return [
        (None if is_left else tags, text in _TRUE) for tags, is_left, text in zip(sets, are_left, texts, strict=True)
    ]


def without_written(table: Table) -> Table:
    """Return a table without the columns that were written beside suggestions; the rows that are left test nothing."""
    names = _names_in(table)
    return table if names is None else table.drop(names)._replace(was_predicted=True)


def _names_in(table: Table) -> Written | None:
    """Return what the columns are called that were written beside suggestions; None if the table has none."""
    for names in (_PREFIXED, _PLAIN):
        if table.columns.keys() >= {names.predicted, names.review}:
            return names
    return None


def _texts(cells: Iterable[Any]) -> list[str]:
    return ["" if cell is None else as_text(cell).strip().lower() for cell in cells]


# --- Formats ----------------------------------------------------------------------------------------------------------


@contextmanager
def table_writer(file: BinaryIO, suffix: str, bom: bool = False, delimiter: str = ",") -> Iterator[Write]:
    """Yield a function that writes the next rows of a table to a file, in the format of a suffix.

    Parameters
    ----------
    file : binary file
    suffix : {".csv", ".tsv", ".jsonl", ".parquet", ".xlsx"}
    bom : bool, default=False
        Whether CSV begins with a byte order mark, by which Excel knows that it is UTF-8.
    delimiter : str, default=","
        What separates the cells of a ``.csv`` file.

    Examples
    --------
    >>> with table_writer(io.BytesIO(), ".csv") as write:
    ...     write(Table({"size": ["007"], "tags": ["=a"]}, 1))
    """
    if suffix not in FORMATS:
        raise ValueError(f"A table must be written to a file that ends in {', '.join(FORMATS)}, got {suffix!r}.")
    if suffix == ".parquet":
        with _parquet_writer(file) as write:
            yield write
    elif suffix == ".xlsx":
        with _excel_writer(file) as write:
            yield write
    else:
        text = io.TextIOWrapper(file, encoding="utf-8-sig" if bom and suffix != ".jsonl" else "utf-8", newline="")
        yield json_writer(text) if suffix == ".jsonl" else _csv_writer(text, "\t" if suffix == ".tsv" else delimiter)
        text.flush()
        text.detach()


def json_writer(file: Any) -> Write:
    """Return a function that writes rows as JSON lines, and leaves none unwritten."""

    def write(table: Table) -> None:
        for row in _rows(table):
            cells = dict(zip(table.columns, map(_plain, row), strict=True))
            file.write(json.dumps(cells, default=as_text) + "\n")
        file.flush()

    return write


def _csv_writer(file: Any, delimiter: str) -> Write:
    writer, is_first = csv.writer(file, delimiter=delimiter), True

    def write(table: Table) -> None:
        nonlocal is_first
        if is_first:
            writer.writerow(map(escape_formula, table.columns))
            is_first = False
        writer.writerows(map(_guarded, _rows(table)))
        file.flush()

    return write


def _guarded(cells: Sequence[Any]) -> list[Any]:
    """Return the cells of a row as texts that a spreadsheet shows as they are."""
    texts = ["" if cell is None else cell if isinstance(cell, str) else _text(cell) for cell in map(_plain, cells)]
    return [text if _is_number(text) else escape_formula(text) for text in texts]


def _text(cell: Any) -> str:
    return json.dumps(cell, default=as_text) if isinstance(cell, (list, dict)) else as_text(cell)


def _is_number(text: str) -> bool:
    """Return whether a text is a plain number: a sign before it is nothing that is computed."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and text[0] not in "\t\r"


@contextmanager
def _excel_writer(file: BinaryIO) -> Iterator[Write]:
    """Write a workbook row by row; texts are marked as such, so that Excel computes none of them."""
    try:
        openpyxl: Any = import_module("openpyxl")
    except ImportError:
        raise ImportError("Excel files need openpyxl: pip install 'labelrace[excel]'.") from None
    book = openpyxl.Workbook(write_only=True)
    sheet, is_first = book.create_sheet("tags"), True

    def cell(value: Any) -> Any:
        value = _plain(value)
        if isinstance(value, datetime):
            value = value.replace(tzinfo=None)
        if value is None or isinstance(value, (bool, int, float, date, Decimal)):
            return value
        text = (value if isinstance(value, str) else _text(value)).translate(_CONTROL)
        if len(text) > _LONGEST:
            warnings.warn(f"Excel's cells hold {_LONGEST} characters: longer texts were cut.", stacklevel=2)
        made = openpyxl.cell.WriteOnlyCell(sheet, text[:_LONGEST])
        made.data_type = "s"
        return made

    def write(table: Table) -> None:
        nonlocal is_first
        if is_first:
            sheet.append([cell(name) for name in table.columns])
            is_first = False
        for row in _rows(table):
            sheet.append([cell(value) for value in row])

    yield write
    book.save(file)


@contextmanager
def _parquet_writer(file: BinaryIO) -> Iterator[Write]:
    """Write Parquet; columns whose type the first rows do not show are texts."""
    from pyarrow import parquet

    writer: Any = None

    def write(table: Table) -> None:
        nonlocal writer
        schema = None if writer is None else writer.schema
        columns = [
            _arrow(name, cells, None if schema is None else schema.field(name).type)
            for name, cells in table.columns.items()
        ]
        rows = pa.table(columns, names=list(table.columns))
        if writer is None:
            writer = parquet.ParquetWriter(file, rows.schema)
        writer.write_table(rows)

    yield write
    if writer is None:
        write(Table({}, 0))
    writer.close()


def _arrow(name: str, cells: Any, kind: Any) -> Any:
    """Return cells as a column of a type, or of the one that they have."""
    try:
        if isinstance(cells, (pa.Array, pa.ChunkedArray)):
            return cells if kind is None else cells.cast(kind)
        listed = [_plain(cell) for cell in cells]
        column = pa.array(listed, kind)
        return column.cast(pa.string()) if kind is None and pa.types.is_null(column.type) else column
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataFormatError(
            f"The column {name!r} must have cells of one type in Parquet, got others ({error}): write .jsonl instead."
        ) from None


def _rows(table: Table) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table as Python's values."""
    columns = (cells.to_pylist() if hasattr(cells, "to_pylist") else cells for cells in table.columns.values())
    return zip(*columns, strict=True)


def _plain(cell: Any) -> Any:
    """Return a cell as a value of Python's own; None for what is missing or infinite."""
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else cell.item()
    if isinstance(cell, np.generic):
        cell = cell.item()
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
