"""Rows for a saved model, from a file or from standard input: columns are matched with the features it has learned.

Columns are matched by name, or by number if a file or the model has no names; nominal values by their texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.naming import columns_among, moved
from labelrace.base.parameters import check_whole
from labelrace.exceptions import DataFormatError
from labelrace.streams import open_stream
from labelrace.streams.files import Location
from labelrace.streams.formats import is_table
from labelrace.streams.lines import chunked
from labelrace.streams.schema import NumberedNames
from labelrace.streams.sparse_rows import csr_rows, entry_arrays
from labelrace.streams.table_sources import read_text
from labelrace.typing import AnyMatrix, FloatArray


def source_of(stream: Any) -> dict[str, Any]:
    """Return what a model keeps about the file it learned: the features, and the texts of nominal values."""
    texts = getattr(stream, "nominal_values", {})
    return {
        "feature_names": list(stream.feature_names),
        "nominal_values": {str(column): list(values) for column, values in texts.items()},
    }


class Features(NamedTuple):
    """The features of a model."""

    n_features: int
    names: list[str] | None  # None if they have none
    texts: dict[int, list[str]]  # for nominal ones, by column, the texts that the codes 0, 1, 2, … stand for


def features_of(model: Any) -> Features:
    """Return the features of a model, as in the file or the data frames that it learned."""
    source = getattr(model, "source_", {})
    names = getattr(model, "feature_names_in_", source.get("feature_names"))
    texts = {int(column): list(values) for column, values in source.get("nominal_values", {}).items()}
    return Features(model.n_features_in_, None if names is None else list(names), texts)


def file_rows(features: Features, source: str, labels: Any, batch_size: int) -> Iterator[AnyMatrix]:
    """Yield the features of a data file, in the model's order and codes; other columns are left out."""
    options = _values_of(features, source)
    try:
        stream = open_stream(source, labels, **options)
    except DataFormatError:
        if labels is not None:
            raise
        # Nothing tells which columns are labels: all of them are features.
        stream = open_stream(source, [], **options)
    given, own = _columns(features, stream.feature_names, source)
    codes = _other_codes(features, stream, dict(zip(given, range(len(given)), strict=True)), own, source)
    # Computed once, as there may be very many columns.
    target = None if list(given) == list(own) else columns_among(given, own)
    is_missing = target is not None and np.count_nonzero(target >= 0) < features.n_features
    for X, _ in stream.batches(batch_size):
        if is_missing and not scipy.sparse.issparse(X):
            raise DataFormatError(_other_number(features, X.shape[1], source))
        if codes:
            X = X.toarray() if scipy.sparse.issparse(X) else X.copy()
            for column, ours in codes.items():
                X[:, column] = _recoded(X[:, column], ours, stream.feature_names[column], source)
        yield X if target is None else moved(X, target, features.n_features)


def _values_of(features: Features, source: str) -> dict[str, Any]:
    """Return the option that reads a table with the codes of the model; other formats have none."""
    if features.names is None or not features.texts or not is_table(Path(source)):
        return {}
    return {"values": {features.names[column]: texts for column, texts in features.texts.items()}}


def _columns(features: Features, given: Sequence[str], source: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names by which columns of a file and of a model are matched: their own, or numbers if one has none.

    Files of numbered features lack those that never occur in them, and these are 0; in others each must be there.
    """
    are_numbers = isinstance(given, NumberedNames)
    if features.names is None or (are_numbers and not _are_numbered(features.names)):
        if len(given) > features.n_features or (len(given) < features.n_features and not are_numbers):
            raise DataFormatError(_other_number(features, len(given), source))
        return NumberedNames("", 0, len(given)), NumberedNames("", 0, features.n_features)
    there = set(given)
    missing = [name for name in features.names if name not in there]
    if missing and (not are_numbers or len(missing) == len(features.names)):
        more = f" (and {len(missing) - 1} more are missing)" if len(missing) > 1 else ""
        raise DataFormatError(
            f"{source} must have the columns that the model has learned, but there is no {missing[0]!r}{more}."
        )
    return given, features.names


def _other_number(features: Features, n_given: int, source: str) -> str:
    return f"{source} must have the model's {features.n_features} features, got {n_given} features."


def _other_codes(
    features: Features, stream: Any, columns: Mapping[str, int], own: Sequence[str], source: str
) -> dict[int, FloatArray]:
    """Return for nominal columns whose codes differ the model's code of each code of the file, NaN for none."""
    given: Mapping[int, Sequence[str]] = getattr(stream, "nominal_values", {})
    codes: dict[int, FloatArray] = {}
    for feature, name in enumerate(own):
        column = columns.get(name, -1)
        texts, ours = given.get(column), features.texts.get(feature)
        if column < 0 or (texts is None and ours is None):
            continue
        # Numbers are codes of themselves.
        texts = [str(code) for code in range(len(ours or []))] if texts is None else list(texts)
        if ours is None or (column not in given and texts != ours):
            what = ("numbers", "nominal") if ours is None else ("nominal", "numbers")
            raise DataFormatError(
                f"{source}: column {stream.feature_names[column]!r} must be {what[0]}, as the model has learned it, "
                f"got {what[1]}."
            )
        if texts != ours:
            number = {text: float(code) for code, text in enumerate(ours)}
            codes[column] = np.array([number.get(text, np.nan) for text in texts])
    return codes


def _recoded(values: FloatArray, codes: FloatArray, name: str, source: str) -> FloatArray:
    """Turn the file's codes of a nominal feature into the model's."""
    missing = np.isnan(values)
    recoded = codes[np.where(missing, 0, values).astype(np.intp)]
    if (np.isnan(recoded) & ~missing).any():
        raise DataFormatError(f"{source}: column {name!r} has a value that the model has not learned.")
    return np.where(missing, np.nan, recoded)


def _are_numbered(names: list[str]) -> bool:
    """Return whether names are only numbers of features, x1, x2 and so on, as in svmlight files."""
    first = names[0][1:] if names and names[0].startswith("x") else ""
    return first in ("0", "1") and names[-1] == f"x{int(first) + len(names) - 1}"


def text_rows(lines: Iterable[str], features: Features, batch_size: int, delimiter: str = ",") -> Iterator[AnyMatrix]:
    """Yield rows of standard input: JSON lines (arrays, or objects by name or number of the feature), or CSV numbers.

    CSV may have a header, whose names are matched with the model's. Features that an object does not name are 0.
    Nominal features may be given by their texts.
    """
    check_whole("batch size", batch_size, 1)
    text = read_text(lines, delimiter)
    if text.is_json:
        columns = {str(column): column for column in range(features.n_features)}
        columns |= {name: column for column, name in enumerate(features.names or [])}
        rows: Iterator[Any] = (_json_row(value, location, columns, features) for location, value in text.rows)
    else:
        rows = _csv_rows(text.rows, features)
    for batch in chunked(rows, batch_size):
        yield _stack(batch, features.n_features)


def _csv_rows(rows: Iterable[tuple[Location, list[str]]], features: Features) -> Iterator[FloatArray]:
    order: list[int] | None = None
    for number, (location, cells) in enumerate(rows):
        if number == 0 and not any(map(_is_number, cells)):
            order = _header_order([cell.strip() for cell in cells], features, location)
            if order is not None:
                continue
        if order is not None and len(cells) >= len(order):
            cells = [cells[column] for column in order]
        try:
            values = np.array([_number(cell or None, features.texts.get(i)) for i, cell in enumerate(cells)])
        except ValueError:
            raise location.error(f"a cell is not a finite number: {','.join(cells)[:80]!r}") from None
        yield _checked_length(values, features, location)


def _is_number(cell: str) -> bool:
    """Return whether a cell is empty or a number, also one that is refused, as an infinite one is."""
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _header_order(cells: list[str], features: Features, location: Location) -> list[int] | None:
    """Return the columns of the model's features in a header; None if it is no header."""
    if features.names is None or not set(cells) & set(features.names):
        is_header = len(cells) == features.n_features and (features.names is None or _are_numbered(features.names))
        if not is_header and not features.texts:
            raise location.error(f"the header must name the model's features, got {', '.join(cells)[:80]!r}")
        return list(range(features.n_features)) if is_header else None
    missing = [name for name in features.names if name not in cells]
    if missing:
        raise location.error(f"the header must name the feature {missing[0]!r}, too")
    return [cells.index(name) for name in features.names]


def _json_row(value: Any, location: Location, columns: dict[str, int], features: Features) -> Any:
    """Return an object as a dict from column to number, and an array as an array of numbers."""
    texts = features.texts
    try:
        if isinstance(value, dict):
            return {columns[name]: _number(cell, texts.get(columns[name])) for name, cell in value.items()}
        values = np.array([_number(cell, texts.get(column)) for column, cell in enumerate(value)])
    except KeyError as error:
        raise location.error(f"the model has no feature {error}") from None
    except (TypeError, ValueError, OverflowError):
        raise location.error("give an object or an array of finite numbers") from None
    return _checked_length(values, features, location)


def _number(value: Any, texts: list[str] | None = None) -> float:
    """Read a finite number; null is a missing one. One of a nominal feature's `texts` is read as its code."""
    if value is None:
        return np.nan
    if texts is not None and (isinstance(value, str) or all(map(_is_number, texts))):
        text = value if isinstance(value, str) else f"{value:g}"
        if text in texts:
            return float(texts.index(text))
    number = float(value)
    if math.isinf(number):
        raise ValueError("it is infinite")
    return number


def _checked_length(values: FloatArray, features: Features, location: Location) -> FloatArray:
    if len(values) != features.n_features:
        raise location.error(f"{len(values)} values, but the model has {features.n_features} features")
    return values


def _stack(batch: list[Any], n_features: int) -> AnyMatrix:
    """Make a matrix: sparse of objects, dense of arrays."""
    if not any(isinstance(row, dict) for row in batch):
        return np.stack(batch)
    return csr_rows(*entry_arrays(row if isinstance(row, dict) else dict(enumerate(row)) for row in batch), n_features)
