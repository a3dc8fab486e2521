"""Tables as Arrow tables: CSV, TSV, Parquet and Arrow files; `labelrace.streams.jsonl` has JSON lines.

The `batches` of a `TableFile` are Arrow tables, in bounded memory, with the line of each row.
Blocks of lines are parsed by pyarrow. A block that it refuses, or might read differently from what is documented
(quotes within cells, rows of several lines), is parsed by the standard library's `csv`, which also finds the line of an
error.
"""

from __future__ import annotations

import csv
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, compress, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import csv as arrow_csv

from labelrace.base.parameters import quoted_list, repeated
from labelrace.exceptions import DataFormatError
from labelrace.streams.encodings import as_utf8, find_delimiter
from labelrace.streams.files import Location, as_format_errors, open_data, seekable_data, suffix_of
from labelrace.streams.lines import byte_blocks, chunked, finite_number, read_cells

# pyarrow ships no types: a mapping from the names of columns to their Arrow types.
Types: TypeAlias = dict[str, Any]

_TRUE, _FALSE = ("1", "1.0", "true", "True", "TRUE"), ("0", "0.0", "false", "False", "FALSE")
_TRUTHS = {"true": "1", "false": "0"}
# What is told of a row that is left out, where such rows are not to stop the reading.
OnBadRow: TypeAlias = Callable[[DataFormatError], None]
# Rows of a record batch that are read at once.
_ARROW_ROWS = 1 << 16


class TableBatch(NamedTuple):
    """Some rows as an Arrow table, and the line of the file that each ends in (its row, where there are no lines)."""

    rows: Any
    lines: Sequence[int]


class TableFile(ABC):
    """A file of rows with named columns.

    Attributes
    ----------
    path : Path
    unit : {"line", "row"}
        What errors count.
    noun : {"column", "key"}
        What the format calls a column.
    """

    path: Path
    unit: str = "line"
    noun: str = "column"

    @abstractmethod
    def batches(self, size: int, types: Types | None = None) -> Iterator[TableBatch]:
        """Yield the rows from the start, about `size` at a time, or more where that is faster.

        `types` has the columns to read and their Arrow types. By default all are read, with the types that the file
        declares, or that its first block suggests: a later cell that does not fit is an error, which names the line.
        """

    def location(self, line: int) -> Location:
        """Return a line (or row) of this file, to name in an error."""
        return Location(self.path, line, self.unit)


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type can be read as numbers: also booleans and nulls."""
    is_a = pa.types
    tests = (is_a.is_integer, is_a.is_floating, is_a.is_boolean, is_a.is_decimal, is_a.is_null)
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type holds texts."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type holds label lists: of texts or whole numbers."""
    holds = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return holds and (is_text(kind.value_type) or pa.types.is_integer(kind.value_type))


class CsvFile(TableFile):
    """A CSV or TSV file with a header. Columns without a name are named ``column 3`` by their position.

    Columns of type ``bool`` may hold 1, 0, true and false; if they hold other numbers, these are read.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz``, ``.bz2`` or ``.zip``.
    delimiter : str or None, default=None
        By default a tab for ``.tsv``, and for others what the header shows: a comma, a semicolon or a tab.
    encoding : str or None, default=None
        By default UTF-8, or what the file shows: UTF-16 or cp1252.
    on_bad_row : callable or None, default=None
        Called with the error of each row with wrong quotes or another number of cells than the header, instead of
        raising it.
    missing : sequence of str, default=()
        Cells that mean a missing value, as empty ones do. Among numbers ``nan`` does too.
    """

    def __init__(
        self,
        path: Path,
        *,
        delimiter: str | None = None,
        missing: Sequence[str] = (),
        encoding: str | None = None,
        on_bad_row: OnBadRow | None = None,
    ) -> None:
        self.path, self.encoding, self.on_bad_row = path, encoding, on_bad_row
        self.delimiter = delimiter or self._find_delimiter()
        self.missing = frozenset(["", *missing])
        with self._opened() as file:
            header, _ = self._header(file)
        self.names, self.unnamed = name_columns(header)
        _check_names(self.names, path)

    def _find_delimiter(self) -> str:
        if suffix_of(self.path) == ".tsv":
            return "\t"
        with self._opened() as file:
            lines = list(islice(filter(str.strip, self._decoded(file, 0)), 2))
        found = find_delimiter(lines) if lines else ","
        if found != ",":
            warnings.warn(f"{self.path} is read with {found!r} between cells.", stacklevel=2)
        return found

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        with open_data(self.path) as file:
            yield as_utf8(file, self.path, self.encoding)

    def types(self) -> dict[str, Any]:
        """Return float64 for the columns of numbers in the first block, string for others, null for empty ones."""
        first = next(self.batches(1, dict.fromkeys(self.names, pa.string())), None)
        return {name: _kind(first.rows.column(name).to_pylist()) if first else pa.null() for name in self.names}

    def batches(self, size: int, types: Types | None = None) -> Iterator[TableBatch]:
        """Yield the rows; see `TableFile`."""
        types = self.types() if types is None else types
        types = {name: pa.string() if pa.types.is_null(kind) else kind for name, kind in types.items()}
        # Labels are read as numbers where they can be: pyarrow stores the texts that mean true and false once more for
        # every column, which is more than half of what a very wide table takes.
        options = self._options({name: pa.float64() if pa.types.is_boolean(t) else t for name, t in types.items()})
        with_truths = self._options(types) if any(map(pa.types.is_boolean, types.values())) else None
        with self._opened() as file:
            _, line = self._header(file)
            for block, n_lines in byte_blocks(file, size):
                lines = range(line + 1, line + 1 + n_lines)
                batch = self._bulk(block, lines, options)
                if batch is None and with_truths is not None:
                    batch = self._bulk(block, lines, with_truths)
                    if batch is not None:
                        options, with_truths = with_truths, None
                if batch is not None:
                    yield batch
                    line += n_lines
                    del batch  # to free its memory before the next block is read
                else:
                    line = yield from self._by_rows(block, file, line, types)

    def _options(self, types: Types) -> Any:
        """Return how pyarrow converts cells."""
        has_truths = any(map(pa.types.is_boolean, types.values()))
        return arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[*self.missing],
            strings_can_be_null=True,
            true_values=_TRUE if has_truths else [],
            false_values=_FALSE if has_truths else [],
        )

    def _bulk(self, block: bytes, numbers: Sequence[int], options: Any) -> TableBatch | None:
        """Return the rows of a block, or None if pyarrow might not read it exactly."""
        table = read_cells(block, len(numbers), self.names, options, self.delimiter, '"')
        if table is not None and table.num_rows < len(numbers):
            numbers = list(compress(numbers, (raw not in (b"", b"\r") for raw in block.split(b"\n"))))
        if table is None or table.num_rows != len(numbers):
            return None
        return TableBatch(table, numbers)

    def _by_rows(
        self, block: bytes, file: Iterable[bytes], line: int, types: Types
    ) -> Generator[TableBatch, None, int]:
        """Yield the rows of a block, to the end of the last of them; return the line it ends in."""
        raw_lines = [raw + b"\n" for raw in block.split(b"\n")[:-1]]
        reader = csv.reader(self._decoded(chain(raw_lines, file), line), delimiter=self.delimiter, strict=True)

        def read() -> Iterator[tuple[int, list[str | None]]]:
            while reader.line_num < len(raw_lines):
                try:
                    row = next(reader, [])
                except csv.Error as failure:
                    what = f"not a valid row ({failure}); correct the quotes, or the file is cut here"
                    error = self.location(line + reader.line_num).error(what)
                    # A quote that is never closed would take all rows below with it.
                    if self.on_bad_row is None or "end of data" in str(failure):
                        raise error from failure
                    self.on_bad_row(error)
                    continue
                if row and len(row) != len(self.names):
                    end = ", or the file is cut here" if len(row) < len(self.names) else ""
                    what = f"{len(self.names)} columns; correct the row{end}"
                    if len(self.names) == 1:
                        what = "one column; give the delimiter that separates columns, or correct the row"
                    what = f"the row has {len(row)} cells, but the header has {what}"
                    error = self.location(line + reader.line_num).error(what)
                    if self.on_bad_row is None:
                        raise error
                    self.on_bad_row(error)
                elif row:
                    yield line + reader.line_num, [None if cell in self.missing else cell for cell in row]

        positions = {name: self.names.index(name) for name in types}
        for numbered in chunked(read()):
            lines, rows = [number for number, _ in numbered], [row for _, row in numbered]
            batch, misfit = _typed({name: [row[i] for row in rows] for name, i in positions.items()}, types)
            if batch.num_rows:
                yield TableBatch(batch, lines[: batch.num_rows])
            if misfit is not None:
                cell = rows[batch.num_rows][positions[misfit]] or ""
                what = mixed_column(misfit, cell, "numbers")
                if pa.types.is_boolean(types[misfit]):  # a label
                    what = f"{cell[:40]!r} is not a finite number, as column {misfit!r} needs"
                raise self.location(lines[batch.num_rows]).error(what)
        return line + reader.line_num

    def _header(self, file: IO[bytes]) -> tuple[list[str], int]:
        """Return the names of the columns, and the number of lines that they take."""
        reader = csv.reader(self._decoded(file, 0), delimiter=self.delimiter, strict=True)
        try:
            for row in filter(None, reader):
                return row, reader.line_num
        except csv.Error as error:
            raise self.location(reader.line_num).error(f"not a valid header ({error}); correct the quotes") from error
        raise self.location(1).error("the file is empty; a header of column names must come first")

    def _decoded(self, raw_lines: Iterable[bytes], line: int) -> Iterator[str]:
        for number, raw in enumerate(raw_lines, start=line + 1):
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                raise self.location(number).error(
                    f"not UTF-8 text ({error.reason}); save the file as UTF-8, or give its encoding"
                ) from error
            yield text.removeprefix("\ufeff") if number == 1 else text


class ArrowFile(TableFile):
    """A Parquet file, or an Arrow file (Feather, version 2), whose columns have types already.

    Memory is bounded by the size of the file's row groups or record batches.

    Parameters
    ----------
    path : path
        ``.parquet``, ``.arrow`` or ``.feather``. With ``.gz`` or ``.bz2`` behind it is read into memory, as these
        formats need random access.
    """

    unit = "row"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_parquet = suffix_of(path) == ".parquet"
        with self._opened() as file:
            self.schema = file.schema_arrow if self._is_parquet else file.schema
            names = list(self.schema.names)  # within `_opened`, which refuses names that are not UTF-8
        _check_names(names, path)

    def types(self) -> dict[str, Any]:
        """Return the types that the file declares."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    def batches(self, size: int, types: Types | None = None) -> Iterator[TableBatch]:
        """Yield the rows, of their own types; see `TableFile`."""
        names, first = list(self.schema.names if types is None else types), 1
        with self._opened() as file:
            if self._is_parquet:
                batches = file.iter_batches(batch_size=max(size, 1024), columns=names, use_threads=False)
            else:
                batches = (file.get_batch(number).select(names) for number in range(file.num_record_batches))
            for batch in batches:
                # A column of nulls takes no space in the file, however long it is: a bounded number of rows at once.
                for start in range(0, batch.num_rows, _ARROW_ROWS):
                    part = batch.slice(start, _ARROW_ROWS)
                    part.validate(full=True)
                    yield TableBatch(pa.Table.from_batches([part]), range(first, first + part.num_rows))
                    first += part.num_rows

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        kind = "Parquet" if self._is_parquet else "Arrow"
        with seekable_data(self.path) as file, as_format_errors(self.path, kind):
            if self._is_parquet:
                from pyarrow.parquet import ParquetFile  # here, as importing it is slow

                yield ParquetFile(file, pre_buffer=False)
            else:
                yield pa.ipc.open_file(file)


def name_columns(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of all columns, by their position where the header has none, and these names alone.

    Examples
    --------
    >>> name_columns(["size", "", " "])
    (['size', 'column 2', 'column 3'], ['column 2', 'column 3'])
    """
    names = [name if name.strip() else f"column {position}" for position, name in enumerate(header, start=1)]
    return names, [new for new, name in zip(names, header, strict=True) if not name.strip()]


def _check_names(names: Sequence[str], path: Path) -> None:
    if twice := repeated(names):
        raise DataFormatError(f"{path}: columns have the same name: {quoted_list(sorted(twice))}; rename them")


def _typed(columns: Mapping[str, Sequence[str | None]], types: Types) -> tuple[Any, str | None]:
    """Return the cells as a table, up to the first row with a cell that does not fit, and the column of that cell."""
    typed, end, misfit = dict[str, Sequence[Any]](), len(next(iter(columns.values()), ())), None
    for name, cells in columns.items():
        typed[name] = cells
        if not pa.types.is_string(types[name]):
            truths = _TRUTHS if pa.types.is_boolean(types[name]) else {}
            typed[name] = [cell and finite_number(truths.get(cell.lower(), cell)) for cell in cells]
            wrong = (row for row, cell in enumerate(cells) if cell is not None and typed[name][row] is None)
            if (first := next(wrong, end)) < end:
                end, misfit = first, name
    kinds = {name: pa.string() if pa.types.is_string(types[name]) else pa.float64() for name in columns}
    return pa.table({name: pa.array(cells[:end], kinds[name]) for name, cells in typed.items()}), misfit


def mixed_column(name: str, text: str, others: str) -> str:
    """Return what is wrong with a cell of a column that held `others` above it."""
    cell = text[:40]
    return (
        f"column {name!r} holds {others}, but {cell!r} here; correct it, or give nominal=[{name!r}] to read all of it "
        f"as text, or missing=[{cell!r}] if that means a missing value"
    )


def _kind(cells: list[str | None]) -> Any:
    """Return the type that the cells of a column suggest."""
    numbers = [finite_number(cell) for cell in cells if cell is not None]
    if None in numbers:
        return pa.string()
    return pa.null() if all(number != number for number in numbers) else pa.float64()
