"""Columns of files and of standard input, matched with the features of a model or of other files.

Columns are matched by name, or by number if a file or the model has no names; nominal values by their texts. Whatever
reads files for a model goes through `open_matched`, here or on a worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.naming import columns_among, moved
from labelrace.base.parameters import check_whole
from labelrace.exceptions import DataFormatError
from labelrace.streams import open_stream
from labelrace.streams.dataset import Batch, FileStream, Stream, nominal_mask
from labelrace.streams.files import Location
from labelrace.streams.formats import is_table
from labelrace.streams.lines import chunked
from labelrace.streams.schema import NumberedNames
from labelrace.streams.sparse_rows import csr_rows, entry_arrays
from labelrace.streams.table_sources import read_text
from labelrace.typing import AnyMatrix, FloatArray


class Features(NamedTuple):
    """The features of a model, or of files that are learned together."""

    n_features: int
    names: Sequence[str] | None  # None if they have none
    texts: dict[int, list[str]]  # for nominal ones, by column, the texts that the codes 0, 1, 2, … stand for
    whose: str = "that the model has learned"  # for errors


def features_of(model: Any) -> Features:
    """Return the features of a model, as in the file or the data frames that it learned."""
    source = getattr(model, "source_", {})
    names = getattr(model, "feature_names_in_", source.get("feature_names"))
    texts = {int(column): list(values) for column, values in source.get("nominal_values", {}).items()}
    return Features(model.n_features_in_, None if names is None else list(names), texts)


def stream_features(stream: Any) -> Features:
    """Return the features of a file, or of another stream."""
    texts = {column: list(values) for column, values in getattr(stream, "nominal_values", {}).items()}
    return Features(len(stream.feature_names), stream.feature_names, texts, f"of {stream.name}")


def shared_features(
    sources: Iterable[str],
    labels: Any,
    known: Features | None = None,
    opened: Mapping[str, Stream] = MappingProxyType({}),
) -> Features:
    """Return the features of files that are learned together, in the order of ``known`` or else of the first file.

    Numbers are those of all files, and so are nominal values, those of later files behind. Nothing but names, numbers
    and texts is read, and nothing of files that were opened already, unless numbers in them turn out to be texts.

    Raises
    ------
    DataFormatError
        If a file has other columns. It names the file.
    """
    features = known
    for source in sources:
        # Texts that look like numbers in one file are texts in all of them.
        texts = {} if features is None else _table_texts(features, source)
        stream = opened.get(source)
        if stream is None or not texts.keys() <= {
            stream.feature_names[i] for i in getattr(stream, "nominal_values", {})
        }:
            stream = open_stream(source, labels, **({"nominal": list(texts)} if texts else {}))
        if features is None:
            features = stream_features(stream)._replace(whose=f"of {source}")
            continue
        numbers = stream.feature_names
        if isinstance(numbers, NumberedNames) and (features.names is None or _are_numbered(features.names)):
            features = _with_numbers(features, numbers, may_begin_lower=known is None)
        features = _with_values(features, stream, source)
    if features is None:
        raise ValueError("sources must be one file or more, got none.")
    return features


def source_of(features: Features) -> dict[str, Any]:
    """Return what a model keeps about the files it learned: the features, and the texts of nominal values."""
    return {
        "feature_names": list(features.names or ()),
        "nominal_values": {str(column): values for column, values in features.texts.items()},
    }


def open_matched(features: Features, source: str, labels: Any) -> FileStream:
    """Open a data file as a stream with the given features, in their order and codes; other columns are left out.

    Raises
    ------
    DataFormatError
        If the file lacks a feature, or has one of another kind. It names the file.
    """
    texts = _table_texts(features, source)
    options: dict[str, Any] = {"values": texts} if texts else {}
    try:
        stream = open_stream(source, labels, **options)
    except DataFormatError:
        if labels is not None:
            raise
        # Nothing tells which columns are labels: all of them are features.
        stream = open_stream(source, [], **options)
    return matched(features, stream, source)


def matched(features: Features, stream: Stream, source: str) -> FileStream:
    """Return a stream with the given features, in their order and codes; ``source`` is its name in errors."""
    given, own = _columns(features, stream.feature_names, source)
    codes = _other_codes(features, stream, given, own, source)
    # Computed once, as there may be very many columns.
    target = None if list(given) == list(own) else columns_among(given, own)
    is_missing = target is not None and np.count_nonzero(target >= 0) < features.n_features

    def read(size: int) -> Iterator[Batch]:
        for X, Y in stream.batches(size):
            if is_missing and not scipy.sparse.issparse(X):
                raise DataFormatError(_other_number(features, X.shape[1], source))
            if codes:
                X = X.toarray() if scipy.sparse.issparse(X) else X.copy()
                for column, ours in codes.items():
                    X[:, column] = _recoded(X[:, column], ours, stream.feature_names[column], source)
            yield (X if target is None else moved(X, target, features.n_features)), Y

    texts = {column: tuple(values) for column, values in features.texts.items()}
    mask = nominal_mask(features.n_features, texts)
    return FileStream(stream.name, own, stream.label_names, mask, read, texts)


def _with_values(features: Features, stream: Stream, source: str) -> Features:
    """Return the features with the nominal values of a further file; refuse other columns."""
    given, own = _columns(features, stream.feature_names, source)
    known = columns_among(given, own)
    if (known < 0).any():
        raise DataFormatError(
            f"{source} must have the columns {features.whose} and no others, got {given[int(np.argmin(known))]!r}: "
            "leave it out, or add it to all files."
        )
    texts = dict(features.texts)
    for column, values in getattr(stream, "nominal_values", {}).items():
        if (ours := texts.get(int(known[column]))) is not None:
            texts[int(known[column])] = list(dict.fromkeys([*ours, *values]))
    features = features._replace(texts=texts)
    # Refuses columns that are nominal in one and numbers in the other.
    _other_codes(features, stream, given, own, source)
    return features


def _with_numbers(features: Features, given: NumberedNames, *, may_begin_lower: bool) -> Features:
    """Return numbered features with the numbers of a further file; the columns of a model must stay where they are."""
    names = features.names
    if names is None:
        return features._replace(n_features=max(features.n_features, len(given)))
    first, last = (int(name[1:]) for name in (names[0], names[-1]))
    if may_begin_lower:
        first = min(first, given.first)
    length = max(last + 1, given.first + len(given)) - first
    return features._replace(n_features=length, names=NumberedNames("x", first, length))


def _table_texts(features: Features, source: str) -> dict[str, list[str]]:
    """Return the texts of nominal features by name, with which tables can be read; nothing for other formats."""
    if features.names is None or not is_table(Path(source)):
        return {}
    return {features.names[column]: texts for column, texts in features.texts.items()}


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
        raise DataFormatError(f"{source} must have the columns {features.whose}, but there is no {missing[0]!r}{more}.")
    return given, features.names


def _other_number(features: Features, n_given: int, source: str) -> str:
    return f"{source} must have the {features.n_features} features {features.whose}, got {n_given} features."


def _other_codes(
    features: Features, stream: Any, names: Sequence[str], own: Sequence[str], source: str
) -> dict[int, FloatArray]:
    """Return for nominal columns whose codes differ the model's code of each code of the file, NaN for none."""
    given: Mapping[int, Sequence[str]] = getattr(stream, "nominal_values", {})
    if not given and not features.texts:
        return {}
    columns = dict(zip(names, range(len(names)), strict=True))
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
                f"{source}: column {stream.feature_names[column]!r} must be {what[0]}, as among the columns "
                f"{features.whose}, got {what[1]}."
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


def _are_numbered(names: Sequence[str]) -> bool:
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
        if number == 0 and _may_be_header(cells, features):
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


def _may_be_header(cells: list[str], features: Features) -> bool:
    """Return whether cells have no number among them, or one that is the name of a feature, as all others."""
    are_numbers = [_is_number(cell.strip()) for cell in cells]
    has_all = features.names is not None and set(features.names).issubset(cell.strip() for cell in cells)
    return not any(are_numbers) or (has_all and not all(are_numbers))


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
