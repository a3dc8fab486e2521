"""Rows to predict, from a file or from standard input, in batches and in their order."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import scipy.sparse

from labelrace.base.names import columns_among, moved
from labelrace.base.parameters import check_whole
from labelrace.exceptions import DataFormatError
from labelrace.streams import open_stream
from labelrace.streams.jsonl import with_keys_once
from labelrace.streams.open import is_table
from labelrace.streams.schema import NumberedNames
from labelrace.streams.sparse_rows import csr_rows, entry_arrays
from labelrace.typing import AnyMatrix, FloatArray


def source_of(stream: Any) -> dict[str, Any]:
    """Return what a model must keep of the file it learned: the features, and the texts of nominal values."""
    texts = getattr(stream, "nominal_values", {})
    return {
        "feature_names": list(stream.feature_names),
        "nominal_values": {str(column): list(values) for column, values in texts.items()},
    }


class Features(NamedTuple):
    """What a model knows of its features."""

    n_features: int
    names: list[str] | None  # None if they have none
    texts: dict[int, list[str]]  # for nominal ones, by column, the texts that the codes 0, 1, 2, … stand for


def known_features(model: Any) -> Features:
    """Return what a model knows of its features: from the file that it learned, or from data frames."""
    source = getattr(model, "source_", {})
    names = getattr(model, "feature_names_in_", source.get("feature_names"))
    texts = {int(column): list(values) for column, values in source.get("nominal_values", {}).items()}
    return Features(model.n_features_in_, None if names is None else list(names), texts)


def file_rows(known: Features, source: str, labels: Any, batch_size: int) -> Iterator[AnyMatrix]:
    """Yield the features of a data file, in the model's order and codes; other columns are left out."""
    options = _values_of(known, source)
    try:
        stream = open_stream(source, labels, **options)
    except DataFormatError:
        if labels is not None:
            raise
        # Nothing tells which columns are labels: all of them are features.
        stream = open_stream(source, [], **options)
    given, wanted = _columns(known, stream.feature_names, source)
    codes = _other_codes(known, stream, dict(zip(given, range(len(given)), strict=True)), wanted, source)
    # Computed once, as there may be very many columns.
    target = None if list(given) == list(wanted) else columns_among(given, wanted)
    is_missing = target is not None and np.count_nonzero(target >= 0) < known.n_features
    for X, _ in stream.batches(batch_size):
        if is_missing and not scipy.sparse.issparse(X):
            raise DataFormatError(_other_number(known, X.shape[1], source))
        if codes:
            X = X.toarray() if scipy.sparse.issparse(X) else X.copy()
            for place, ours in codes.items():
                X[:, place] = _recoded(X[:, place], ours, stream.feature_names[place], source)
        yield X if target is None else moved(X, target, known.n_features)


def _values_of(known: Features, source: str) -> dict[str, Any]:
    """Return the option with which a table is read by the codes the model knows; other formats have none."""
    if known.names is None or not known.texts or not is_table(Path(source)):
        return {}
    return {"values": {known.names[column]: texts for column, texts in known.texts.items()}}


def _columns(known: Features, given: Sequence[str], source: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names by which columns of a file and of a model are matched: their own, or numbers if one has none.

    Files of numbered features lack those that never occur in them, and these are 0; in others each must be there.
    """
    are_numbers = isinstance(given, NumberedNames)
    if known.names is None or (are_numbers and not _are_numbered(known.names)):
        if len(given) > known.n_features or (len(given) < known.n_features and not are_numbers):
            raise DataFormatError(_other_number(known, len(given), source))
        return NumberedNames("", 0, len(given)), NumberedNames("", 0, known.n_features)
    there = set(given)
    missing = [name for name in known.names if name not in there]
    if missing and (not are_numbers or len(missing) == len(known.names)):
        more = f" (and {len(missing) - 1} more are missing)" if len(missing) > 1 else ""
        raise DataFormatError(
            f"{source} must have the columns that the model has learned, but there is no {missing[0]!r}{more}."
        )
    return given, known.names


def _other_number(known: Features, n_given: int, source: str) -> str:
    return f"{source} must have the model's {known.n_features} features, got {n_given} features."


def _other_codes(
    known: Features, stream: Any, places: Mapping[str, int], wanted: Sequence[str], source: str
) -> dict[int, FloatArray]:
    """Return for nominal columns whose codes differ the model's code of each code of the file, NaN for none."""
    given: Mapping[int, Sequence[str]] = getattr(stream, "nominal_values", {})
    codes: dict[int, FloatArray] = {}
    for column, name in enumerate(wanted):
        place = places.get(name, -1)
        texts, ours = given.get(place), known.texts.get(column)
        if place < 0 or (texts is None and ours is None):
            continue
        # Numbers are codes of themselves.
        texts = [str(code) for code in range(len(ours or []))] if texts is None else list(texts)
        if ours is None or (place not in given and texts != ours):
            what = ("numbers", "nominal") if ours is None else ("nominal", "numbers")
            raise DataFormatError(
                f"{source}: column {stream.feature_names[place]!r} must be {what[0]}, as the model has learned it, "
                f"got {what[1]}."
            )
        if texts != ours:
            number = {text: float(code) for code, text in enumerate(ours)}
            codes[place] = np.array([number.get(text, np.nan) for text in texts])
    return codes


def _recoded(values: FloatArray, codes: FloatArray, name: str, source: str) -> FloatArray:
    """Turn the file's codes of a nominal feature into the model's."""
    missing = np.isnan(values)
    found = codes[np.where(missing, 0, values).astype(np.intp)]
    if (np.isnan(found) & ~missing).any():
        raise DataFormatError(f"{source}: column {name!r} has a value that the model has not learned.")
    return np.where(missing, np.nan, found)


def _are_numbered(names: list[str]) -> bool:
    """Tell whether names are only numbers of features, x1, x2 and so on, as in svmlight files."""
    first = names[0][1:] if names and names[0].startswith("x") else ""
    return first in ("0", "1") and names[-1] == f"x{int(first) + len(names) - 1}"


def text_rows(lines: TextIO, known: Features, batch_size: int) -> Iterator[AnyMatrix]:
    """Yield rows of standard input: JSON lines (arrays, or objects by name or number of the feature), or CSV numbers.

    What the first line begins with tells which. CSV may have a header, whose names are matched with the model's.
    Features that an object does not name are 0. Nominal features may be given by their texts.
    """
    check_whole("batch size", batch_size, 1)
    filled = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first = next(filled, None)
    if first is None:
        return
    numbered = itertools.chain([first], filled)
    if first[1].lstrip().startswith(("{", "[")):
        places = {str(place): place for place in range(known.n_features)}
        places |= {name: place for place, name in enumerate(known.names or [])}
        rows: Iterable[Any] = (_json_row(line, number, places, known.texts) for number, line in numbered)
    else:
        rows = _csv_rows(numbered, known)
    while batch := list(itertools.islice(rows, batch_size)):
        yield _stack(batch, known.n_features)


def _csv_rows(numbered: Iterable[tuple[int, str]], known: Features) -> Iterator[tuple[int, FloatArray]]:
    order: list[int] | None = None
    for place, (number, line) in enumerate(numbered):
        try:
            [cells] = csv.reader([line])
            if place == 0 and not any(map(_is_number, cells)):
                order = _header_order([cell.strip() for cell in cells], known)
                if order is not None:
                    continue
            if order is not None and len(cells) >= len(order):
                cells = [cells[column] for column in order]
            yield number, np.array([_number(cell or None, known.texts.get(i)) for i, cell in enumerate(cells)])
        except DataFormatError:
            raise
        except (ValueError, csv.Error):
            raise DataFormatError(
                f"standard input, line {number}: a cell is not a finite number: {line.strip()[:80]!r}."
            ) from None


def _is_number(cell: str) -> bool:
    """Tell whether a cell is empty or a number, be it one that is refused, as an infinite one is."""
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _header_order(cells: list[str], known: Features) -> list[int] | None:
    """Return where the model's features are among the columns that a header names; None if it is no header."""
    if known.names is None or not set(cells) & set(known.names):
        is_header = len(cells) == known.n_features and (known.names is None or _are_numbered(known.names))
        if not is_header and not known.texts:
            raise DataFormatError(
                f"standard input, line 1: the header must name the model's features, got {', '.join(cells)[:80]!r}."
            )
        return list(range(known.n_features)) if is_header else None
    missing = [name for name in known.names if name not in cells]
    if missing:
        raise DataFormatError(f"standard input, line 1: the header must name the feature {missing[0]!r}, too.")
    return [cells.index(name) for name in known.names]


def _json_row(line: str, number: int, places: dict[str, int], texts: dict[int, list[str]]) -> tuple[int, Any]:
    where = f"standard input, line {number}"
    try:
        row = json.loads(line, object_pairs_hook=with_keys_once)
        if isinstance(row, dict):
            return number, {places[name]: _number(value, texts.get(places[name])) for name, value in row.items()}
        return number, np.array([_number(value, texts.get(place)) for place, value in enumerate(row)])
    except json.JSONDecodeError as error:
        raise DataFormatError(f"{where}: this is not JSON ({error}).") from None
    except DataFormatError as error:
        raise DataFormatError(f"{where}: {error}.") from None
    except KeyError as error:
        raise DataFormatError(f"{where}: the model has no feature {error}.") from None
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise DataFormatError(f"{where}: give an object or an array of finite numbers.") from None


def _number(value: Any, texts: list[str] | None = None) -> float:
    """Read a finite number; null is a missing one. One of a nominal feature's ``texts`` is read as its code."""
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


def _stack(batch: list[tuple[int, Any]], n_features: int) -> AnyMatrix:
    """Make a matrix: sparse of objects, dense of arrays."""
    for number, row in batch:
        if not isinstance(row, dict) and len(row) != n_features:
            raise DataFormatError(
                f"standard input, line {number}: {len(row)} values, but the model has {n_features} features."
            )
    if not any(isinstance(row, dict) for _, row in batch):
        return np.stack([row for _, row in batch])
    cells = (row if isinstance(row, dict) else dict(enumerate(row)) for _, row in batch)
    return csr_rows(*entry_arrays(cells), n_features)
