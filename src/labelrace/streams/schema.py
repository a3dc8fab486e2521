"""Names and kinds of columns, and which columns are labels.

A CSV file does not tell labels from features, nor the code 1 from the number 1, and svmlight has no names at all.
`labelrace.streams.write_dataset` puts ``NAME.schema.json`` beside such a file, as Mulan puts an XML file beside an ARFF
file. If the file is opened without `labels`, they are read from there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast, overload

import numpy as np

from labelrace.base import limits
from labelrace.base.parameters import quoted_list
from labelrace.exceptions import DataFormatError
from labelrace.streams.dataset import Stream, nominal_texts
from labelrace.streams.files import MAX_COLUMNS, plain_path

# What `labels=` may be: a count, a path, a prefix or a column, or names.
LabelSource: TypeAlias = int | str | os.PathLike[str] | Sequence[str] | None

_VERSION = 1


@dataclass(frozen=True)
class NumberedNames(Sequence[str]):
    """The names of numbered columns, made on access, as there may be millions.

    Examples
    --------
    >>> names = NumberedNames("x", first=1, length=944)
    >>> names[0], names[-1], len(names)
    ('x1', 'x944', 944)
    >>> NumberedNames("x", 0, 2) == ("x0", "x1")
    True
    """

    prefix: str
    first: int
    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        numbers = range(self.first, self.first + self.length)
        if isinstance(index, slice):
            return tuple(f"{self.prefix}{number}" for number in numbers[index])
        return f"{self.prefix}{numbers[index]}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return (self.prefix, self.first, self.length) == (other.prefix, other.first, other.length)
        return isinstance(other, (tuple, list)) and len(other) == len(self) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash((self.prefix, self.first, self.length))


class FileSchema(NamedTuple):
    """The names of a file's columns, the values of nominal features by column, and options of the file's reader."""

    features: Sequence[str]
    labels: Sequence[str]
    nominal: Mapping[int, tuple[str, ...]]
    options: Mapping[str, bool | str]


def schema_path(path: Path) -> Path:
    """Return the path of a data file's schema: ``news.csv.schema.json`` for ``news.csv.gz``."""
    plain = plain_path(path)
    return plain.with_name(f"{plain.name}.schema.json")


def schema_text(stream: Stream, **options: bool | str) -> bytes:
    """Return the schema of a stream as JSON; this may read the stream once to count nominal values."""
    content = {
        "labelrace_schema": _VERSION,
        "features": _names_to_json(stream.feature_names),
        "labels": _names_to_json(stream.label_names),
        "nominal": {str(column): list(texts) for column, texts in nominal_texts(stream).items()},
        "options": options,
    }
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def read_schema(path: Path) -> FileSchema | None:
    """Return the schema beside a data file, if there is one."""
    beside = schema_path(path)
    return schema_from(beside.read_bytes(), beside) if beside.is_file() else None


def schema_from(text: bytes, origin: Path) -> FileSchema:
    """Parse the JSON of a schema; `origin` is the file to name in an error."""
    try:
        content = json.loads(text)
        version = content["labelrace_schema"]
        if version != _VERSION:
            raise DataFormatError(f"{origin}: a schema of version {version!r}; this labelrace reads version {_VERSION}")
        schema = FileSchema(
            _names_from_json(content["features"]),
            _names_from_json(content["labels"]),
            {int(column): _texts(texts) for column, texts in content["nominal"].items()},
            dict(content["options"]),
        )
        for column, texts in schema.nominal.items():
            if not texts or not 0 <= column < len(schema.features):
                raise ValueError(f"nominal column {column} has no values, or is not among the features")
        if not all(isinstance(value, (bool, str)) for value in schema.options.values()):
            raise TypeError("an option is neither a text nor a boolean")
    except DataFormatError:
        raise
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataFormatError(
            f"{origin}: not a schema written by labelrace, or a damaged one ({type(error).__name__}: {error}); "
            "remove it and give labels=, or write the data again"
        ) from error
    return schema


class TableOptions(NamedTuple):
    """What the caller, or the schema of the file, says about the columns of a table."""

    labels: LabelSource
    label_names: Sequence[str] | None = None
    values: Mapping[str, Sequence[str]] | None = None
    nominal: Sequence[str] = ()

    def or_schema(self, schema: FileSchema | None, path: Path, n_columns: int | None = None) -> TableOptions:
        """Return what the schema says instead, if there is one and the caller gave no labels.

        A few bytes can claim very many labels: no more than `n_columns` if each is a column, or than the limit.
        """
        if self.labels is not None or schema is None:
            return self
        lists = schema.options.get("label_column")
        if n_columns is not None and not lists and len(schema.labels) > n_columns:
            raise DataFormatError(
                f"{path}: its schema must name columns of the file, got {len(schema.labels)} labels for {n_columns} "
                "columns; remove it and give labels=, or write the data again"
            )
        limits.LABELS.check(len(schema.labels), f"{schema_path(path)}")
        values = {schema.features[column]: texts for column, texts in schema.nominal.items()}
        return TableOptions(str(lists) if lists else tuple(schema.labels), tuple(schema.labels), values)


class ColumnChoice(NamedTuple):
    """The columns of features and of labels; ``lists`` is the one that holds label lists."""

    features: tuple[str, ...]
    labels: tuple[str, ...]
    lists: str | None


def choose_labels(names: Sequence[str], labels: LabelSource, path: Path, origin: str = "") -> ColumnChoice:
    """Return which columns are features and which are labels; `origin` says where `labels` is from, if not given."""
    lists = list_column(labels, path)
    if lists is not None:
        label_columns = {lists}
    elif isinstance(labels, str):
        label_columns = {name for name in names if name.startswith(labels.removesuffix("*"))}
    elif isinstance(labels, (int, np.integer)):
        label_columns = set(names[-int(labels) :] if labels > 0 else names[: -int(labels)])
    else:
        label_columns = set(cast("Sequence[str]", labels))
    _check_labels(names, label_columns, labels, path, origin)
    chosen = () if lists is not None else tuple(name for name in names if name in label_columns)
    return ColumnChoice(tuple(name for name in names if name not in label_columns), chosen, lists)


def list_column(labels: LabelSource, path: Path) -> str | None:
    """Return the column that holds label lists, if `labels` names one; raise if `labels` is missing."""
    if labels is None or isinstance(labels, os.PathLike):
        raise DataFormatError(
            f"{path}: cannot tell which columns are labels, as there is no {schema_path(path).name} beside the file; "
            "give labels= a list of names, a prefix such as 'label_*', a count (n > 0: the last n columns, n < 0: the "
            "first), or the name of one column that holds label lists"
        )
    return labels if isinstance(labels, str) and not labels.endswith("*") else None


def _check_labels(names: Sequence[str], label_columns: set[str], labels: LabelSource, path: Path, origin: str) -> None:
    absent = sorted(label_columns.difference(names))
    if absent:
        raise DataFormatError(
            f"{path}: {len(absent)} of the labels {f'in {origin} ' if origin else ''}are not among the columns: "
            f"{quoted_list(absent)}; the columns are {quoted_list(tuple(names))}"
        )
    # An empty list of names is allowed: rows to be predicted have no labels.
    unfit = isinstance(labels, (int, np.integer)) and (labels == 0 or len(label_columns) != abs(labels))
    if unfit or (isinstance(labels, str) and not label_columns):
        given = origin or f"labels={labels!r}"
        raise DataFormatError(f"{path}: {given} does not fit the {len(names)} columns {quoted_list(tuple(names))}")
    if len(label_columns) == len(names):
        raise DataFormatError(f"{path}: all columns are labels, none is left as a feature")


def label_names_from(labels: int | Sequence[str] | None, n_labels: int, first: int, path: Path) -> Sequence[str]:
    """Return the given names of the labels, or numbered names."""
    if isinstance(labels, (str, os.PathLike)):
        raise ValueError(f"{path}: labels= must be a list of names, or their number, for a file without names")
    if labels is None or isinstance(labels, (int, np.integer)):
        names: Sequence[str] = NumberedNames("y", first, n_labels)
        given = n_labels if labels is None else int(labels)
    else:
        names, given = tuple(labels), len(labels)
    if given < 0 or (isinstance(names, tuple) and len(set(names)) < given):
        raise ValueError(f"{path}: labels= must be different names, or their number, got {labels!r:.80}")
    if given != n_labels:
        raise ValueError(f"{path}: labels= tells {given} labels, but there are {n_labels}")
    return names


def _names_to_json(names: Sequence[str]) -> Any:
    if isinstance(names, NumberedNames):
        return {"prefix": names.prefix, "first": names.first, "length": names.length}
    return list(names)


def _names_from_json(content: Any) -> Sequence[str]:
    if isinstance(content, list):
        return _texts(content)
    prefix, first, length = content["prefix"], content["first"], content["length"]
    if not isinstance(prefix, str) or type(first) is not int or type(length) is not int:
        raise TypeError("numbered names need a prefix, a first number and a length")
    if first < 0 or not 0 <= length <= MAX_COLUMNS:
        raise ValueError(f"there cannot be {length} columns from number {first} on")
    return NumberedNames(prefix, first, length)


def _texts(content: Any) -> tuple[str, ...]:
    if not isinstance(content, list) or not all(isinstance(text, str) for text in content):
        raise TypeError("expected a list of texts")
    if len(set(content)) < len(content):
        raise ValueError("a name or value is there twice")
    return tuple(content)
