"""Rows to predict, from a file or from standard input, in batches and in their order."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import scipy.sparse

from labelrace.exceptions import DataFormatError
from labelrace.streams import open_stream
from labelrace.streams.dataset import check_batch_size
from labelrace.streams.load import is_table
from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["file_rows", "source_of", "text_rows"]


def source_of(stream: Any) -> dict[str, Any]:
    """Tell what a model must know of the file it learned: the features, and the texts of nominal values."""
    texts = getattr(stream, "nominal_values", {})
    return {
        "feature_names": list(stream.feature_names),
        "nominal_values": {str(column): list(values) for column, values in texts.items()},
    }


def file_rows(model: Any, source: str, labels: Any, batch_size: int) -> Iterator[AnyMatrix]:
    """Yield the features of a data file; its labels, if it has any, are left out."""
    known = getattr(model, "source_", None)
    options = _values_of(known, source)
    try:
        stream = open_stream(source, labels, **options)
    except DataFormatError:
        if labels is not None:
            raise
        # Nothing tells which columns are labels: all of them are features.
        stream = open_stream(source, [], **options)
    if known is not None and options and source_of(stream) != known:
        raise DataFormatError(
            f"{source}: its columns, or the values of its nominal ones, are not those that the model has learned."
        )
    for X, _ in stream.batches(batch_size):
        yield X


def _values_of(known: dict[str, Any] | None, source: str) -> dict[str, Any]:
    """Return the option with which a table is read by the codes the model knows; other formats have none."""
    if known is None or not known["nominal_values"] or not is_table(Path(source)):
        return {}
    names = known["feature_names"]
    return {"values": {names[int(column)]: texts for column, texts in known["nominal_values"].items()}}


def text_rows(lines: TextIO, n_features: int, names: list[str] | None, batch_size: int) -> Iterator[AnyMatrix]:
    """Yield rows of standard input: JSON lines (arrays, or objects by name or number of the feature), or CSV numbers.

    What the first line begins with tells which. CSV may have a header. Features that an object does not name are 0.
    """
    check_batch_size(batch_size)
    filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first = next(filled, None)
    if first is None:
        return
    numbered = itertools.chain([first], filled)
    if first[1].lstrip().startswith(("{", "[")):
        places = {str(place): place for place in range(n_features)}
        places |= {name: place for place, name in enumerate(names or [])}
        rows: Iterable[Any] = (_json_row(line, number, places) for number, line in numbered)
    else:
        rows = _csv_rows(numbered, n_features)
    while batch := list(itertools.islice(rows, batch_size)):
        yield _stack(batch, n_features)


def _csv_rows(numbered: Iterable[tuple[int, str]], n_features: int) -> Iterator[tuple[int, FloatArray]]:
    for place, (number, line) in enumerate(numbered):
        try:
            [cells] = csv.reader([line])
            if place == 0 and len(cells) == n_features and not any(map(_is_number, cells)):
                continue  # the header
            yield number, np.array([float(cell or "nan") for cell in cells])
        except (ValueError, csv.Error):
            raise DataFormatError(
                f"standard input, line {number}: a cell is not a number: {line.strip()[:80]!r}."
            ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _json_row(line: str, number: int, places: dict[str, int]) -> tuple[int, Any]:
    where = f"standard input, line {number}"
    try:
        row = json.loads(line)
        if isinstance(row, dict):
            return number, {places[name]: _number(value) for name, value in row.items()}
        return number, np.array([_number(value) for value in row])
    except json.JSONDecodeError as error:
        raise DataFormatError(f"{where}: this is not JSON ({error}).") from None
    except KeyError as error:
        raise DataFormatError(f"{where}: the model has no feature {error}.") from None
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise DataFormatError(f"{where}: give an object or an array of numbers.") from None


def _number(value: Any) -> float:
    """Read a number; null is a missing one."""
    return np.nan if value is None else float(value)


def _stack(batch: list[tuple[int, Any]], n_features: int) -> AnyMatrix:
    """Make a matrix: sparse of objects, dense of arrays."""
    for number, row in batch:
        if not isinstance(row, dict) and len(row) != n_features:
            raise DataFormatError(
                f"standard input, line {number}: {len(row)} values, but the model has {n_features} features."
            )
    if not any(isinstance(row, dict) for _, row in batch):
        return np.stack([row for _, row in batch])
    cells = [row if isinstance(row, dict) else dict(enumerate(row)) for _, row in batch]
    owner = np.repeat(np.arange(len(cells)), [len(row) for row in cells])
    columns = np.fromiter((place for row in cells for place in row), dtype=np.intp, count=len(owner))
    values = np.fromiter((value for row in cells for value in row.values()), dtype=float, count=len(owner))
    return scipy.sparse.csr_array((values, (owner, columns)), shape=(len(cells), n_features))
