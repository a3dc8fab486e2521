"""The common shape of data that comes in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, overload, runtime_checkable

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from labelrace.core.categorical import CategoricalMask
from labelrace.streams.batch import Dataset, check_batch_size
from labelrace.typing import AnyMatrix, BoolArray, SparseMatrix

__all__ = ["Batch", "FileStream", "NumberedNames", "Stream", "collect", "nominal_mask", "nominal_texts"]

Batch: TypeAlias = tuple[AnyMatrix, SparseMatrix]

# Enough rows for the bulk parsers to pay, few enough for their arrays to stay small.
_CHUNK_ROWS = 4096


@runtime_checkable
class Stream(Protocol):
    """Rows with features and labels, to be had in batches, as often as one likes.

    `labelrace.streams.Dataset` is one, and so is what `labelrace.streams.open_stream` returns.
    """

    @property
    def name(self) -> str:
        """What to call the stream in tables and messages."""

    @property
    def feature_names(self) -> Sequence[str]:
        """One name per column of X."""

    @property
    def label_names(self) -> Sequence[str]:
        """One name per column of Y."""

    @property
    def categorical(self) -> BoolArray:
        """Which features are nominal: a `CategoricalMask`, or a plain mask."""

    @property
    def n_features(self) -> int:
        """The number of columns of X."""

    @property
    def n_labels(self) -> int:
        """The number of columns of Y."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Iterate over (X, Y) in batches of `size` rows from the start; the last one may be shorter."""


@dataclass(frozen=True, eq=False, repr=False)
class FileStream:
    """A stream that reads a file anew for each iteration, a batch at a time.

    Parameters
    ----------
    name : str
    feature_names, label_names : sequence of str
    categorical : CategoricalMask, or a plain boolean mask
    read : callable
        From a batch size to an iterator of (X, Y).
    nominal_values : mapping from int to tuple of str
        The texts of a nominal feature's values, by the feature's column; value number i is coded as i.
    """

    name: str
    feature_names: Sequence[str]
    label_names: Sequence[str]
    categorical: BoolArray
    read: Callable[[int], Iterator[Batch]]
    nominal_values: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return len(self.feature_names)

    @property
    def n_labels(self) -> int:
        """The number of columns of Y."""
        return len(self.label_names)

    def __repr__(self) -> str:
        return (
            f"FileStream({self.name!r}: {self.n_features} features ({int(self.categorical.sum())} categorical), "
            f"{self.n_labels} labels)"
        )

    def batches(self, size: int) -> Iterator[Batch]:
        """Iterate over (X, Y) in batches of `size` rows from the start; the last one may be shorter."""
        check_batch_size(size)
        return self.read(size)


@dataclass(frozen=True)
class NumberedNames(Sequence[str]):
    """The names of columns that have numbers only, made when asked for: there may be millions.

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


def nominal_mask(n_features: int, values: Mapping[int, tuple[str, ...]]) -> BoolArray:
    """Return the mask of nominal features; a plain one, which costs nothing, if there are none."""
    if not values:
        return np.zeros(n_features, dtype=bool)
    counts = np.zeros(n_features, dtype=np.intp)
    counts[list(values)] = [len(texts) for texts in values.values()]
    return CategoricalMask(counts)


def nominal_texts(stream: Stream) -> dict[int, tuple[str, ...]]:
    """Return the texts of each nominal feature's values, by its column; numbers where the stream knows none."""
    known: Mapping[int, tuple[str, ...]] = getattr(stream, "nominal_values", {})
    columns = np.flatnonzero(stream.categorical).tolist()
    unknown = [column for column in columns if column not in known]
    counts: Any = getattr(stream.categorical, "n_values", None)
    if counts is None:
        counts = _count_codes(stream, unknown)
    numbered = {column: tuple(map(str, range(counts[column]))) for column in unknown}
    return {column: known[column] if column in known else numbered[column] for column in columns}


def _count_codes(stream: Stream, columns: list[int]) -> dict[int, int]:
    """Go through the stream for the largest code of each of these features."""
    largest = np.zeros(len(columns))
    for X, _ in stream.batches(_CHUNK_ROWS) if columns else ():
        codes = X[:, columns].toarray() if issparse(X) else X[:, columns]
        largest = np.fmax(largest, np.fmax.reduce(codes, axis=0))
    return {column: int(code) + 1 for column, code in zip(columns, largest, strict=True)}


def collect(stream: Stream) -> Dataset:
    """Return the whole stream as a `Dataset`.

    Examples
    --------
    >>> X, Y = np.eye(3), csr_array(np.ones((3, 1), dtype=np.int8))
    >>> stream = FileStream("toy", ("a", "b", "c"), ("l",), np.zeros(3, dtype=bool), lambda size: iter([(X, Y)]))
    >>> collect(stream)
    Dataset('toy': 3 rows, 3 features (0 categorical), 1 labels, cardinality 1.00)
    """
    if isinstance(stream, Dataset):
        return stream
    parts = list(stream.batches(_CHUNK_ROWS))
    if not parts:
        parts = [(np.empty((0, stream.n_features)), csr_array((0, stream.n_labels), dtype=np.int8))]
    return Dataset(
        _stack([X for X, _ in parts]),
        _stack([Y for _, Y in parts]),
        stream.feature_names,
        stream.label_names,
        stream.categorical,
        stream.name,
        getattr(stream, "nominal_values", {}),
    )


def _stack(parts: list[AnyMatrix]) -> AnyMatrix:
    if issparse(parts[0]):
        return vstack(parts, format="csr")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
