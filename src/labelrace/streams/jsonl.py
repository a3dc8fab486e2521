"""JSONL files: an object a line, with the features and the labels by their names."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_labels import LabelSource
from labelrace.streams._schema import read_schema
from labelrace.streams._source import Place, line_chunks, open_data, shown
from labelrace.streams._table import (
    Given,
    Kind,
    Layout,
    as_stream,
    binary_labels,
    label_lists,
    list_column,
    make_layout,
)
from labelrace.streams.stream import Batch, FileStream
from labelrace.typing import FloatArray, SparseMatrix

__all__ = ["open_jsonl"]

_Row: TypeAlias = dict[str, Any]

_CHUNK_ROWS = 1024
_NUMBERS = (float, int, bool)


def open_jsonl(
    path: str | os.PathLike[str],
    labels: LabelSource = None,
    *,
    sparse: bool = False,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
    nominal: Sequence[str] = (),
) -> FileStream:
    r"""Open a JSONL file as a stream.

    Keys with numbers are numeric features (true is 1, false is 0), keys with texts nominal ones, coded by the sorted
    texts. The file is scanned once, in bounded memory, for its keys, those texts and the labels in label lists. It
    is not if `feature_names` and `values` are given, and `label_names` if there are label lists. A key with numbers
    and texts is an error, and so is one that the scan or `feature_names` does not know.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz`` or ``.bz2``.
    labels : sequence of str, str, int or None
        The keys of labels, which hold 0 and 1 (or true and false): their names; a prefix, as ``"label_*"``; or
        a count in the order in which keys first appear (n > 0: the last n, n < 0: the first). Or the one key that
        holds label lists, where null or no key means no labels. By default the schema that
        `labelrace.streams.write_dataset` left beside the file tells, and all else too.
    sparse : bool
        What the lack of a key means. By default a missing value, NaN. If true, zero: X is sparse, a text that
        lacks is the empty text "" (the first value, if `values` says which there are), and a label is absent.
        A null is a missing value in either case.
    label_names : sequence of str or None
        The labels that lists may hold, in the order of Y's columns; by default those found, sorted.
    feature_names : sequence of str or None
        The keys of features, in the order of X's columns; by default those found, in the order they appear in.
    values : mapping from str to sequence of str, or None
        The nominal keys and their values, in the order of their codes; all others are numeric.
    nominal : sequence of str
        Keys that are nominal though they hold numbers.

    Raises
    ------
    DataFormatError
        If the file cannot be read or does not fit `labels`. It names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.jsonl")
    ...     _ = path.write_text('{"size": 1.5, "hue": "red", "tags": ["new", "hot"]}\n{"hue": "blue"}\n')
    ...     stream = open_jsonl(path, labels="tags")
    ...     X, Y = next(stream.batches(10))
    >>> stream.label_names, X.tolist(), Y.toarray().tolist()
    (('hot', 'new'), [[1.5, 1.0], [nan, 0.0]], [[1, 1], [0, 0]])
    """
    path = Path(path)
    given = Given(labels, label_names, values, nominal)
    schema = read_schema(path) if labels is None else None
    if schema is not None:
        given = given.or_schema(schema)
        feature_names, sparse = tuple(schema.features), schema.options.get("sparse") is True
    lists = list_column(given.labels, path)
    names = None if feature_names is None else [*feature_names, *_label_keys(given.labels, lists)]
    kinds, found = dict[str, Kind](), set[str]()
    if names is None or given.values is None or (lists is not None and given.label_names is None):
        kinds, found = _scan(path, given, lists, sparse)
    layout = make_layout(path, tuple(kinds) if names is None else names, given, kinds, found)
    return as_stream(layout, partial(_batches, layout, sparse))


def _label_keys(labels: LabelSource, lists: str | None) -> Sequence[str]:
    if lists is not None:
        return [lists]
    if labels is None or isinstance(labels, (int, np.integer, str, os.PathLike)):
        raise ValueError("with feature_names=, give labels= a list of names, or the key that holds label lists")
    return labels


def _scan(path: Path, given: Given, lists: str | None, sparse: bool) -> tuple[dict[str, Kind], set[str]]:
    """Go through the file for its keys, the kinds of their values, and the labels in lists."""
    kinds, counts, found, rows = dict[str, Kind](), Counter[str](), set[str](), 0
    for numbers, objects in _parsed(path, _CHUNK_ROWS):
        rows += len(objects)
        for number, row in zip(numbers, objects, strict=True):
            for key, cell in row.items():
                if key not in kinds:
                    kinds[key] = Kind()
                if key == lists:
                    found.update(_names_in(cell, key, Place(path, number)))
                else:
                    _see(kinds[key], _as_text(cell) if key in given.nominal else cell, key, Place(path, number))
            counts.update(row.keys())
    for key, kind in kinds.items():
        if sparse and kind.texts and counts[key] < rows:
            kind.texts.add("")
    return kinds, found


def _see(kind: Kind, cell: Any, key: str, place: Place) -> None:
    """Add a cell to what was seen under a key; raise if numbers and texts meet there."""
    if isinstance(cell, str):
        kind.texts.add(cell)
    elif isinstance(cell, _NUMBERS):
        kind.is_number = True
    elif cell is not None:
        raise _not_a_cell(cell, key, place)
    if kind.is_mixed:
        raise place.error(
            f"key {key!r} holds {'numbers' if isinstance(cell, str) else 'texts'}, but {_shown(cell)} here; correct "
            f"it, or give nominal=[{key!r}] to take all of it as text"
        )


def _batches(layout: Layout, sparse: bool, size: int) -> Iterator[Batch]:
    names, choice = layout.names, layout.choice
    known = set(names)
    for numbers, rows in _parsed(layout.path, size):
        for number, row in zip(numbers, rows, strict=True):
            if not row.keys() <= known:
                unknown = sorted(row.keys() - known)
                raise layout.place(number).error(
                    f"unknown keys {shown(unknown)}; correct them, or add them to feature_names="
                )
        X = _sparse_features(rows, numbers, layout) if sparse else _dense_features(rows, numbers, layout)
        if choice.lists is not None:
            key = names[choice.lists]
            cells = ((row.get(key), layout.place(number)) for number, row in zip(numbers, rows, strict=True))
            yield X, label_lists([_names_in(cell, key, place) for cell, place in cells], numbers, layout)
        else:
            absent = 0 if sparse else None
            columns = [[row.get(names[position], absent) for row in rows] for position in choice.labels]
            labels = [
                _column(cells, position, numbers, layout)
                for position, cells in zip(choice.labels, columns, strict=True)
            ]
            yield X, binary_labels(np.column_stack([np.empty((len(numbers), 0)), *labels]), numbers, layout)


def _dense_features(rows: list[_Row], numbers: list[int], layout: Layout) -> FloatArray:
    X = np.empty((len(rows), len(layout.choice.features)))
    for target, position in enumerate(layout.choice.features):
        name = layout.names[position]
        X[:, target] = _column([row.get(name) for row in rows], position, numbers, layout)
    return X


def _sparse_features(rows: list[_Row], numbers: list[int], layout: Layout) -> SparseMatrix:
    targets = {layout.names[position]: (i, position) for i, position in enumerate(layout.choice.features)}
    starts, columns, values = [0], list[int](), list[float]()
    for number, row in zip(numbers, rows, strict=True):
        cells = sorted((*targets[key], cell) for key, cell in row.items() if key in targets)
        for target, position, cell in cells:
            value = _number(cell, position, number, layout)
            if value != 0:
                columns.append(target)
                values.append(value)
        starts.append(len(columns))
    parts = (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int32), np.array(starts, dtype=np.int32))
    return csr_array(parts, shape=(len(rows), len(targets)))


def _column(cells: list[Any], position: int, numbers: list[int], layout: Layout) -> FloatArray:
    """Return what the cells under one key mean, all at once if they are plain numbers."""
    if position not in layout.codes and set(map(type, cells)) <= {float, int, bool}:
        try:
            values = np.array(cells, dtype=np.float64)
        except OverflowError:
            values = np.full(len(cells), np.inf)
        if np.isfinite(values).all():
            return values
    return np.array([_number(cell, position, n, layout) for cell, n in zip(cells, numbers, strict=True)])


def _number(cell: Any, position: int, number: int, layout: Layout) -> float:
    """Return what a cell means under its key."""
    if cell is None:
        return np.nan
    key, codes = layout.names[position], layout.codes.get(position)
    if codes is not None:
        text = _as_text(cell)
        if text not in codes:
            raise layout.place(number).error(f"{_shown(cell)} is not among the {len(codes)} values of key {key!r}")
        return codes[text]
    if not isinstance(cell, _NUMBERS):
        raise layout.place(number).error(f"{_shown(cell)} is not a number, as key {key!r} needs")
    try:
        value = float(cell)
    except OverflowError:
        value = np.inf
    if not np.isfinite(value):
        raise layout.place(number).error(f"{_shown(cell)} is too large a number for key {key!r}")
    return value


def _names_in(cell: Any, key: str, place: Place) -> list[str]:
    """Return the labels of a list."""
    if cell is None:
        return []
    if not isinstance(cell, list) or not all(type(name) in (str, int) for name in cell):
        raise place.error(
            f"key {key!r} must hold a list of label names, not {_shown(cell)}; if it holds 0 and 1, give "
            f"labels=[{key!r}]"
        )
    return [str(name) for name in cell]


def _as_text(cell: Any) -> Any:
    return json.dumps(cell) if isinstance(cell, _NUMBERS) else cell


def _parsed(path: Path, size: int) -> Iterator[tuple[list[int], list[_Row]]]:
    with open_data(path) as file:
        for numbers, lines in line_chunks(file, size):
            yield numbers, [_object(line, Place(path, n)) for line, n in zip(lines, numbers, strict=True)]


def _object(line: bytes, place: Place) -> _Row:
    try:
        row = json.loads(line.decode("utf-8-sig" if place.line == 1 else "utf-8"), parse_constant=_refuse)
        if b"\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (RecursionError, ValueError) as error:
        reason = str(error).partition("\n")[0][:120]
        raise place.error(f"not a JSON object ({reason}); write one object a line, or the file is cut here") from error
    if not isinstance(row, dict):
        raise place.error(f"expected a JSON object, found {_shown(row)}; write one object a line")
    return row


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON; write null for a missing value")


def _not_a_cell(cell: Any, key: str, place: Place) -> DataFormatError:
    return place.error(f"key {key!r} holds {_shown(cell)}, which is neither a number nor a text; take it apart first")


def _shown(cell: Any) -> str:
    return repr(cell)[:40]
