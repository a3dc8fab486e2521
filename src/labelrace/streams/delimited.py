"""CSV and TSV files: a header of column names, then rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from labelrace.streams._arff_labels import LabelSource
from labelrace.streams._csv_cells import Cells, Dialect, as_numbers, read_cells, read_header
from labelrace.streams._schema import read_schema
from labelrace.streams._source import Place, open_data, plain_path
from labelrace.streams._table import Given, Kind, Layout, as_stream, binary_labels, choose, label_lists, make_layout
from labelrace.streams.stream import Batch, FileStream
from labelrace.typing import FloatArray

__all__ = ["delimiter_of", "open_csv"]

_CHUNK_ROWS = 1024
_TRUTHS = {"true": "1", "false": "0"}


def open_csv(
    path: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    delimiter: str | None = None,
    separator: str = ";",
    label_names: Sequence[str] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    nominal: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> FileStream:
    r"""Open a CSV or TSV file, in UTF-8 and with a header, as a stream.

    Columns of numbers are numeric features, columns of text nominal ones, coded by the sorted texts. The file is
    scanned once, in bounded memory, for those texts and for the labels in label lists; not if `values` is given,
    and `label_names` if there are label lists. A column with numbers and texts is an error. X is dense.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str, str, int or None
        The columns of labels, which hold 0 and 1 (or true and false): their names; a prefix, as ``"label_*"``; or
        a count (n > 0: the last n columns, n < 0: the first). Or the name of one column that holds label lists.
        By default the schema that `labelrace.streams.write_dataset` left beside the file tells, and all else too.
    delimiter : str or None
        By default a tab for ``.tsv`` and a comma for others.
    separator : str
        What stands between the labels of a list: ``";"``, ``"|"``, ``" "``.
    label_names : sequence of str or None
        The labels that lists may hold, in the order of Y's columns; by default those found, sorted.
    values : mapping from str to sequence of str, or None
        The nominal columns and their values, in the order of their codes; all others are numeric.
    nominal : sequence of str
        Columns that are nominal though they look like numbers.
    missing : sequence of str
        Cells that mean a missing value, as empty ones do. Among numbers ``nan`` does too.

    Raises
    ------
    DataFormatError
        If the file cannot be read or does not fit `labels`. It names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.csv")
    ...     _ = path.write_text("size,hue,tags\n1.5,red,new;hot\n,blue,\n")
    ...     stream = open_csv(path, labels="tags")
    ...     X, Y = next(stream.batches(10))
    >>> stream.label_names, X.tolist(), Y.toarray().tolist()
    (('hot', 'new'), [[1.5, 1.0], [nan, 0.0]], [[1, 1], [0, 0]])
    """
    path = Path(path)
    schema = read_schema(path) if labels is None else None
    if schema is not None:
        separator = str(schema.options.get("separator", separator))
    if not separator:
        raise ValueError("separator= must not be empty")
    dialect = Dialect(path, delimiter or delimiter_of(path), frozenset(missing))
    given = Given(labels, label_names, values, nominal).or_schema(schema)
    with open_data(path) as file:
        names, _ = read_header(file, dialect)
    kinds, found = _scan(dialect, separator, names, given)
    layout = make_layout(path, names, given, kinds, found)
    return as_stream(layout, partial(_batches, dialect, separator, layout))


def delimiter_of(path: Path) -> str:
    """Return what separates the cells of a file by that name."""
    return "\t" if plain_path(path).suffix.lower() == ".tsv" else ","


def _batches(dialect: Dialect, separator: str, layout: Layout, size: int) -> Iterator[Batch]:
    features, labels, lists = layout.choice
    with open_data(dialect.path) as file:
        for cells in read_cells(file, dialect, size):
            X = np.empty((len(cells.lines), len(features)))
            numeric = [i for i, position in enumerate(features) if position not in layout.codes]
            X[:, numeric] = _numbers(cells, [features[i] for i in numeric], layout)
            for i, position in enumerate(features):
                if position in layout.codes:
                    X[:, i] = _codes(cells, position, layout)
            if lists is not None:
                names = [_split(cell, separator) for cell in cells.column(lists)]
                yield X, label_lists(names, cells.lines, layout)
            else:
                yield X, binary_labels(_truths(cells, labels, layout), cells.lines, layout)


def _numbers(cells: Cells, positions: Sequence[int], layout: Layout) -> FloatArray:
    numbers = cells.numbers(positions)
    if numbers is not None:
        return numbers
    columns = [_checked(cells.column(position), position, cells.lines, layout) for position in positions]
    return np.column_stack(columns)


def _truths(cells: Cells, positions: Sequence[int], layout: Layout) -> FloatArray:
    """Return label columns, in which true and false may stand for 1 and 0."""
    numbers = cells.numbers(positions)
    if numbers is not None:
        return numbers
    texts = [[_TRUTHS.get(cell.lower(), cell) for cell in cells.column(position)] for position in positions]
    columns = zip(texts, positions, strict=True)
    return np.column_stack([_checked(column, position, cells.lines, layout) for column, position in columns])


def _checked(column: Sequence[str], position: int, lines: list[int], layout: Layout) -> FloatArray:
    numbers = as_numbers(column)
    if numbers is None:
        wrong = next(i for i, cell in enumerate(column) if as_numbers((cell,)) is None)
        raise layout.place(lines[wrong]).error(
            f"{column[wrong][:40]!r} is not a finite number, as column {layout.names[position]!r} needs"
        )
    return numbers


def _codes(cells: Cells, position: int, layout: Layout) -> FloatArray:
    codes, column = layout.codes[position], cells.column(position)
    try:
        return np.array([codes[cell] if cell else np.nan for cell in column])
    except KeyError as error:
        wrong = next(i for i, cell in enumerate(column) if cell and cell not in codes)
        raise layout.place(cells.lines[wrong]).error(
            f"{error} is not among the {len(codes)} values of column {layout.names[position]!r}"
        ) from None


def _split(cell: str, separator: str) -> list[str]:
    return [name for part in cell.split(separator) if (name := part.strip())]


def _scan(dialect: Dialect, separator: str, names: tuple[str, ...], given: Given) -> tuple[dict[str, Kind], set[str]]:
    """Go through the file for the kinds of the columns and the labels in lists, as far as they are not given."""
    choice = choose(names, given.labels, dialect.path)
    lists = choice.lists if given.label_names is None else None
    kinds = {position: Kind() for position in (choice.features if given.values is None else ())}
    forced = {position for position in kinds if names[position] in given.nominal}
    found: set[str] = set()
    if lists is None and not kinds:
        return {}, found
    with open_data(dialect.path) as file:
        for cells in read_cells(file, dialect, _CHUNK_ROWS):
            for position in forced:
                kinds[position].texts.update(filter(None, cells.column(position)))
            _see_all(
                {position: kind for position, kind in kinds.items() if position not in forced}, cells, names, dialect
            )
            if lists is not None:
                for cell in cells.column(lists):
                    found.update(_split(cell, separator))
    return {names[position]: kind for position, kind in kinds.items()}, found


def _see_all(kinds: dict[int, Kind], cells: Cells, names: tuple[str, ...], dialect: Dialect) -> None:
    """Add cells to what was seen of their columns: those that held no texts so far all at once, if they are numbers."""
    numeric = [position for position, kind in kinds.items() if not kind.texts]
    numbers = cells.numbers(numeric)
    settled = set[int]()
    if numbers is not None:
        known = np.count_nonzero(np.isfinite(numbers), axis=0)
        settled.update(position for position, is_known in zip(numeric, known, strict=True) if is_known)
    for position, kind in kinds.items():
        if position in settled:
            kind.is_number = True
        else:
            _see(kind, cells.column(position), cells.lines, names[position], dialect.path)


def _see(kind: Kind, column: Sequence[str], lines: Sequence[int], name: str, path: Path) -> None:
    """Add the cells of a column to what was seen of it; raise if numbers and texts meet there."""
    for cell, line in zip(column, lines, strict=True):
        if not cell or cell in kind.texts:
            continue
        number = as_numbers((cell,))
        if number is None:
            kind.texts.add(cell)
        elif np.isnan(number[0]):
            kind.unclear.add(cell)
        else:
            kind.is_number = True
        if kind.is_mixed:
            others = "numbers" if number is None else "text"
            raise Place(path, line).error(
                f"column {name!r} holds {others}, but {cell[:40]!r} here; correct it, or give nominal=[{name!r}] to "
                f"read all of it as text, or missing=[{cell[:40]!r}] if that means a missing value"
            )
