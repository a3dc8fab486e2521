"""Excel files, ``.xlsx``: the rows of one sheet, as they are read. Extra ``excel``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import time, timedelta
from pathlib import Path
from typing import Any

from labelrace.base.parameters import quoted_list, repeated
from labelrace.exceptions import DataFormatError
from labelrace.streams.files import Location, as_format_errors, open_data
from labelrace.streams.lines import chunked
from labelrace.streams.table_files import OnBadRow, name_columns

# The first bytes of files that Excel wrote before 2007, and of those with a password.
_OLD = b"\xd0\xcf\x11\xe0"
_NO_VALUES = frozenset(("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"))


class ExcelFile:
    """A sheet of an Excel file, with a header; empty rows are not rows.

    Dates are `datetime`, numbers are numbers, and of formulas what Excel last computed.

    Parameters
    ----------
    path : path
    sheet : str or None, default=None
        The name of the sheet; by default the first one.
    on_bad_row : callable or None, default=None
        Called with the error of each row that has cells beyond the header, instead of raising it.
    """

    def __init__(self, path: Path, sheet: str | None = None, on_bad_row: OnBadRow | None = None) -> None:
        self.path, self.sheet, self.on_bad_row = path, sheet, on_bad_row
        with self._rows() as rows:
            _, header = next(rows, (1, []))
        if not header:
            raise Location(path, 1, "row").error("the sheet is empty; a header of column names must come first")
        self.names, self.unnamed = name_columns(["" if cell is None else str(cell) for cell in header])
        if twice := repeated(self.names):
            raise DataFormatError(f"{path}: columns have the same name: {quoted_list(sorted(twice))}; rename them")

    def objects(self, size: int) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
        """Yield the rows, `size` at a time, with their numbers in the sheet; before an error those above it."""
        with self._rows() as rows:
            next(rows)
            for part in chunked(self._named(rows), size):
                yield [number for number, _ in part], [row for _, row in part]

    def _named(self, rows: Iterator[tuple[int, list[Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, cells in rows:
            n_absent = len(self.names) - len(cells)
            if n_absent >= 0:
                yield number, dict(zip(self.names, [*cells, *[None] * n_absent], strict=True))
                continue
            what = f"the row has {len(cells)} cells, but the header has {len(self.names)} columns; name them"
            error = Location(self.path, number, "row").error(what)
            if self.on_bad_row is None:
                raise error
            self.on_bad_row(error)

    @contextmanager
    def _rows(self) -> Iterator[Iterator[tuple[int, list[Any]]]]:
        """Open the sheet, and yield its rows that are not empty, without empty cells at their ends."""
        openpyxl = _openpyxl()
        with open_data(self.path, has_lines=False) as file:
            if file.read(len(_OLD)) == _OLD:
                raise DataFormatError(
                    f"{self.path}: an Excel file of the old format .xls, or one with a password; save it as .xlsx, "
                    "without a password"
                )
            with as_format_errors(self.path, "Excel"):
                file.seek(0)
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
                try:
                    yield self._filled(book)
                finally:
                    book.close()

    def _filled(self, book: Any) -> Iterator[tuple[int, list[Any]]]:
        names = [sheet.title for sheet in book.worksheets]
        if self.sheet is not None and self.sheet not in names:
            raise DataFormatError(f"{self.path}: there is no sheet {self.sheet!r}; there are {quoted_list(names)}")
        sheet = book.worksheets[0 if self.sheet is None else names.index(self.sheet)]
        # What some programs write as the size of a sheet is too small.
        sheet.reset_dimensions()
        last, is_told = None, False
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            cells = list(map(_value, row))
            while cells and cells[-1] is None:
                cells.pop()
            if not cells:
                continue
            if last is not None and last < number - 1 and not is_told:
                is_told = True
                warnings.warn(
                    f"{self.path}: empty rows are left out, the first is row {last + 1}: results have no rows "
                    "for them.",
                    UserWarning,
                    stacklevel=2,
                )
            last = number
            yield number, cells


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError("Excel files need openpyxl: install labelrace with the extra 'excel'.") from error
    # It says what it does not keep of formats and validations, which nobody asks for here.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"openpyxl\.")
    return openpyxl


def _value(cell: Any) -> Any:
    """Return a cell as a text, number, truth or date, durations in seconds; None if it is empty, blank or an error."""
    if isinstance(cell, str):
        return None if not cell.strip() or cell in _NO_VALUES else cell
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, time):
        return str(cell)
    return cell
