"""What tables share: which columns are labels, which are nominal, and how label lists become a matrix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from scipy.sparse import csr_array

from labelrace.exceptions import DataFormatError
from labelrace.streams._arff_labels import LabelSource
from labelrace.streams._schema import Schema, schema_path
from labelrace.streams._source import Place, plain_path, shown
from labelrace.streams.stream import Batch, FileStream, nominal_mask
from labelrace.typing import FloatArray, SparseMatrix

__all__ = [
    "Choice",
    "Given",
    "Kind",
    "Layout",
    "as_stream",
    "binary_labels",
    "choose",
    "label_lists",
    "list_column",
    "make_layout",
]


class Given(NamedTuple):
    """What the caller, or the schema beside the file, says about the columns.

    Parameters
    ----------
    labels : int, str, sequence of str or None
        The names of the columns of labels; a count (n > 0: the last n columns, n < 0: the first); a prefix such
        as ``"label_*"``; or the name of one column that holds lists of labels.
    label_names : tuple of str or None
        The labels that those lists may hold.
    values : mapping from str to sequence of str, or None
        The nominal columns and their values; all others are numeric then.
    nominal : tuple of str
        Columns that are nominal even if they look like numbers.
    """

    labels: LabelSource
    label_names: Sequence[str] | None = None
    values: Mapping[str, Sequence[str]] | None = None
    nominal: Sequence[str] = ()

    def or_schema(self, schema: Schema | None) -> Given:
        """Return what the schema says instead, if there is one and the caller did not name the labels."""
        if self.labels is not None or schema is None:
            return self
        lists = schema.options.get("label_column")
        values = {schema.features[column]: texts for column, texts in schema.nominal.items()}
        return Given(str(lists) if lists else tuple(schema.labels), tuple(schema.labels), values)


class Choice(NamedTuple):
    """The columns of features and of labels, by their positions; ``lists`` is the one that holds label lists."""

    features: tuple[int, ...]
    labels: tuple[int, ...]
    lists: int | None


class Layout(NamedTuple):
    """The columns of a table, prepared for reading rows.

    ``codes`` has, for the position of each nominal column, the code of each of its texts.
    """

    path: Path
    names: tuple[str, ...]
    choice: Choice
    codes: Mapping[int, Mapping[str, float]]
    label_names: tuple[str, ...]
    unit: str = "line"

    def place(self, number: int) -> Place:
        """Return a line (or row) of this file, to name in an error."""
        return Place(self.path, number, self.unit)


class Kind:
    """Whether the cells of a column are numbers or texts, as far as they were seen."""

    def __init__(self) -> None:
        self.is_number = False
        self.texts: set[str] = set()
        # Texts such as "nan", which are missing numbers among numbers, and texts among texts.
        self.unclear: set[str] = set()

    @property
    def is_mixed(self) -> bool:
        """Whether both kinds were seen."""
        return self.is_number and bool(self.texts)

    def values(self) -> tuple[str, ...]:
        """Return the sorted texts of a nominal column, none if it is numeric."""
        return tuple(sorted(self.texts | self.unclear)) if self.texts else ()


def choose(names: Sequence[str], labels: LabelSource, path: Path) -> Choice:
    """Return which columns are features and which tell the labels."""
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataFormatError(f"{path}: columns have the same name: {shown(twice)}; rename them")
    lists = list_column(labels, path)
    if lists is not None:
        wanted = {lists}
    elif isinstance(labels, str):
        wanted = {name for name in names if name.startswith(labels.removesuffix("*"))}
    elif isinstance(labels, (int, np.integer)):
        wanted = set(names[-int(labels) :] if labels > 0 else names[: -int(labels)])
    else:
        wanted = set(cast("Sequence[str]", labels))
    _check_wanted(names, wanted, labels, path)
    features = tuple(i for i, name in enumerate(names) if name not in wanted)
    chosen = tuple(i for i, name in enumerate(names) if name in wanted)
    return Choice(features, () if lists is not None else chosen, None if lists is None else chosen[0])


def list_column(labels: LabelSource, path: Path) -> str | None:
    """Return the column that holds label lists, if `labels` names one; raise if it does not tell the labels at all."""
    if labels is None or isinstance(labels, os.PathLike):
        raise DataFormatError(
            f"{path}: cannot tell which columns are labels, as there is no {schema_path(path).name} beside the file; "
            "give labels= a list of names, a prefix such as 'label_*', a count (n > 0: the last n columns, n < 0: the "
            "first), or the name of one column that holds label lists"
        )
    return labels if isinstance(labels, str) and not labels.endswith("*") else None


def _check_wanted(names: Sequence[str], wanted: set[str], labels: LabelSource, path: Path) -> None:
    absent = sorted(wanted.difference(names))
    if absent:
        raise DataFormatError(
            f"{path}: {len(absent)} of the labels are not among the columns: {shown(absent)}; the columns are "
            f"{shown(tuple(names))}"
        )
    # An empty list of names is an answer, too: there are no labels, as in rows to be predicted.
    unfit = isinstance(labels, (int, np.integer)) and (labels == 0 or len(wanted) != abs(labels))
    if unfit or (isinstance(labels, str) and not wanted):
        raise DataFormatError(f"{path}: labels={labels!r} does not fit the {len(names)} columns {shown(tuple(names))}")
    if len(wanted) == len(names):
        raise DataFormatError(f"{path}: all columns are labels, none is left as a feature")


def make_layout(
    path: Path, names: Sequence[str], given: Given, kinds: Mapping[str, Kind], found: Iterable[str], unit: str = "line"
) -> Layout:
    """Put together what was given and what the scan found.

    Parameters
    ----------
    path, names, given
    kinds : mapping from str to Kind
        What the scan saw in the columns, empty if there was none.
    found : iterable of str
        The labels that the scan saw in label lists.
    unit : {"line", "row"}
        What errors count.
    """
    choice = choose(names, given.labels, path)
    values = {name: tuple(texts) for name, texts in (given.values or {}).items()}
    features = {names[position]: position for position in choice.features}
    unknown = sorted({*values, *given.nominal}.difference(features))
    if unknown:
        raise DataFormatError(f"{path}: no features are called {shown(unknown)}, though nominal= or values= says so")
    for name, kind in kinds.items():
        if name in features and kind.values():
            values.setdefault(name, kind.values())
    codes = {features[name]: {text: float(i) for i, text in enumerate(texts)} for name, texts in values.items()}
    label_names = tuple(names[position] for position in choice.labels)
    if choice.lists is not None:
        label_names = tuple(given.label_names if given.label_names is not None else sorted(found))
        if not label_names:
            raise DataFormatError(f"{path}: no row has a label in column {names[choice.lists]!r}; give label_names=")
    return Layout(path, tuple(names), choice, codes, label_names, unit)


def as_stream(layout: Layout, read: Callable[[int], Iterator[Batch]]) -> FileStream:
    """Return the stream of a table."""
    features = layout.choice.features
    nominal = {i: tuple(layout.codes[position]) for i, position in enumerate(features) if position in layout.codes}
    return FileStream(
        name=plain_path(layout.path).stem,
        feature_names=tuple(layout.names[position] for position in features),
        label_names=layout.label_names,
        categorical=nominal_mask(len(features), nominal),
        read=read,
        nominal_values=nominal,
    )


def label_lists(lists: Iterable[Sequence[str]], numbers: Sequence[int], layout: Layout) -> SparseMatrix:
    """Return the matrix of label lists, one per row; `numbers` are the rows' lines."""
    index = {name: column for column, name in enumerate(layout.label_names)}
    starts, columns = [0], list[int]()
    for number, names in zip(numbers, lists, strict=True):
        try:
            columns += sorted({index[name] for name in names})
        except KeyError as error:
            raise layout.place(number).error(f"label {error} is not among the {len(index)} of label_names=") from None
        starts.append(len(columns))
    ones = np.ones(len(columns), dtype=np.int8)
    parts = (ones, np.array(columns, dtype=np.int32), np.array(starts, dtype=np.int32))
    return csr_array(parts, shape=(len(starts) - 1, len(index)))


def binary_labels(values: FloatArray, numbers: Sequence[int], layout: Layout) -> SparseMatrix:
    """Return the matrix of label columns, after checking that they hold 0 and 1 only."""
    wrong = np.argwhere((values != 0) & (values != 1))
    if wrong.size:
        row, column = wrong[0]
        name, value = layout.label_names[column], values[row, column]
        what = "is missing" if np.isnan(value) else f"is {value:g}"
        raise layout.place(numbers[row]).error(
            f"label {name!r} {what}, but a label must be 0 or 1; if it is a feature, correct labels="
        )
    return csr_array(values.astype(np.int8))
