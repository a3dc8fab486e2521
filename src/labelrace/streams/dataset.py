"""Datasets and streams: rows with features and labels, in memory or read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.sparse import csr_array, issparse

from labelrace.base import limits
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.base.parameters import check_whole, repeated
from labelrace.base.sparse import stacked
from labelrace.streams.files import plain_path
from labelrace.typing import AnyMatrix, BoolArray, SparseMatrix

Batch: TypeAlias = tuple[AnyMatrix, SparseMatrix]

# Rows in a batch when a stream is scanned, and when it is collected.
_SCANNED_ROWS, _JOINED_ROWS = 1 << 12, 1 << 16


class _Columns:
    """Counts the columns by their names."""

    feature_names: Sequence[str]
    label_names: Sequence[str]

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return len(self.feature_names)

    @property
    def n_labels(self) -> int:
        """The number of columns of Y."""
        return len(self.label_names)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(_Columns):
    """Rows with features and labels, in the order of the stream.

    Parameters
    ----------
    X : ndarray or csr_array of float64, shape (n, features)
        Dense for a dense source, sparse for a sparse one. Nominal values are the index of the value in its
        declaration; a missing value is NaN.
    Y : csr_array of int8, shape (n, labels)
        1 where the row has the label. Always sparse.
    feature_names, label_names : sequence of str
    categorical : CategoricalMask, or a plain boolean mask
        Which features are nominal.
    name : str
    nominal_values : mapping from int to tuple of str, default={}
        The texts of a nominal feature's values, by the feature's column, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> Y = csr_array(np.array([[1, 0], [1, 1], [0, 0]], dtype=np.int8))
    >>> data = Dataset(np.eye(3), Y, ("a", "b", "c"), ("sad", "calm"), np.zeros(3, dtype=bool), "toy")
    >>> data
    Dataset('toy': 3 rows, 3 features (0 categorical), 2 labels, cardinality 1.00)
    >>> [len(X) for X, Y in data.batches(2)]
    [2, 1]
    """

    X: AnyMatrix
    Y: SparseMatrix
    feature_names: Sequence[str]
    label_names: Sequence[str]
    categorical: BoolArray
    name: str
    nominal_values: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        features, labels = (len(self), len(self.feature_names)), (len(self), len(self.label_names))
        if self.X.shape != features or self.Y.shape != labels or len(self.categorical) != features[1]:
            raise ValueError(
                f"the parts of dataset {self.name!r} do not fit together: X has shape {self.X.shape}, "
                f"Y has shape {self.Y.shape}, with {len(self.feature_names)} feature names, "
                f"{len(self.label_names)} label names and a categorical mask of {len(self.categorical)}"
            )

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __repr__(self) -> str:
        cardinality = self.Y.sum() / max(len(self), 1)
        return (
            f"Dataset({self.name!r}: {len(self)} rows, {len(self.feature_names)} features "
            f"({int(self.categorical.sum())} categorical), {len(self.label_names)} labels, "
            f"cardinality {cardinality:.2f})"
        )

    def batches(self, size: int) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
        """Iterate over (X, Y) in batches of `size` rows; the last one may be shorter.

        Parameters
        ----------
        size : int
            Rows in a batch, at least 1.
        """
        check_whole("batch size", size, 1)  # not in the generator, so that this call raises the error
        starts = range(0, len(self), size)
        return ((self.X[start : start + size], self.Y[start : start + size]) for start in starts)


@runtime_checkable
class Stream(Protocol):
    """Rows with features and labels, in batches; it can be iterated over repeatedly.

    `labelrace.streams.Dataset` is one, and so is what `labelrace.streams.open_stream` returns.
    """

    @property
    def name(self) -> str:
        """The name of the stream in tables and messages."""

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
class FileStream(_Columns):
    """A stream that reads a file again for each iteration, a batch at a time.

    ``read`` returns an iterator of (X, Y) for a batch size; the other fields are those of a `Dataset`.
    """

    name: str
    feature_names: Sequence[str]
    label_names: Sequence[str]
    categorical: BoolArray
    read: Callable[[int], Iterator[Batch]]
    nominal_values: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"FileStream({self.name!r}: {self.n_features} features ({int(self.categorical.sum())} categorical), "
            f"{self.n_labels} labels)"
        )

    def batches(self, size: int) -> Iterator[Batch]:
        """Iterate over (X, Y) in batches of `size` rows from the start; the last one may be shorter."""
        check_whole("batch size", size, 1)
        return self.read(size)


def file_stream(
    path: Path,
    feature_names: Sequence[str],
    label_names: Sequence[str],
    read: Callable[[int], Iterator[Batch]],
    nominal: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
) -> FileStream:
    """Return the stream of a file, named after it; `nominal` has the values of nominal features by column."""
    # Before a list of the names is made: a few bytes can claim very many columns.
    limits.LABELS.check(len(label_names), f"{path}")
    limits.FEATURES.check(len(feature_names), f"{path}")
    mask = nominal_mask(len(feature_names), nominal)
    return FileStream(plain_path(path).stem, feature_names, label_names, mask, read, nominal)


def nominal_mask(n_features: int, values: Mapping[int, tuple[str, ...]]) -> BoolArray:
    """Return the mask of nominal features; a plain one, which takes less memory, if there are none."""
    if not values:
        return np.zeros(n_features, dtype=bool)
    counts = np.zeros(n_features, dtype=np.intp)
    counts[list(values)] = [len(texts) for texts in values.values()]
    return CategoricalMask(counts)


def nominal_texts(stream: Stream) -> dict[int, tuple[str, ...]]:
    """Return the texts of each nominal feature's values by its column; numbers if the stream has no texts."""
    known: Mapping[int, tuple[str, ...]] = getattr(stream, "nominal_values", {})
    columns = np.flatnonzero(stream.categorical).tolist()
    unknown = [column for column in columns if column not in known]
    counts: Any = getattr(stream.categorical, "n_values", None)
    if counts is None:
        # The stream is read for the largest code of each of these features.
        largest = np.zeros(len(unknown))
        for X, _ in stream.batches(_SCANNED_ROWS) if unknown else ():
            codes = X[:, unknown].toarray() if issparse(X) else X[:, unknown]
            largest = np.fmax(largest, np.fmax.reduce(codes, axis=0))
        counts = dict(zip(unknown, largest.astype(int) + 1, strict=True))
    numbered = {column: tuple(map(str, range(counts[column]))) for column in unknown}
    return {column: known[column] if column in known else numbered[column] for column in columns}


def row_count(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix, a data frame, a list, or a dict of columns."""
    if isinstance(X, dict):
        return len(next(iter(X.values()), ()))
    return int(X.shape[0] if hasattr(X, "shape") else len(X))


def collect(stream: Stream) -> Dataset:
    """Return the whole stream as a `Dataset`."""
    if isinstance(stream, Dataset):
        return stream
    parts, n_bytes = list[Batch](), 0
    for X, Y in stream.batches(_JOINED_ROWS):
        # A row of a table takes its cells whatever it has of them.
        n_bytes += 0 if issparse(X) else X.nbytes
        limits.BYTES.check(n_bytes, stream.name, "read it in batches, or")
        parts.append((X, Y))
    if not parts:
        parts = [(np.empty((0, stream.n_features)), csr_array((0, stream.n_labels), dtype=np.int8))]
    return Dataset(
        *_join(parts),
        stream.feature_names,
        stream.label_names,
        stream.categorical,
        stream.name,
        getattr(stream, "nominal_values", {}),
    )


def rebatch(chunks: Iterable[Batch], size: int) -> Iterator[Batch]:
    """Split and join batches to batches of `size` rows; the last one, or the one before an error, may be shorter."""
    parts, missing = list[Batch](), size
    try:
        for X, Y in chunks:
            start = 0
            while start < X.shape[0]:
                stop = min(start + missing, X.shape[0])
                whole = start == 0 and stop == X.shape[0]
                parts.append((X, Y) if whole else (X[start:stop], Y[start:stop]))
                missing -= stop - start
                start = stop
                if missing == 0:
                    yield _join(parts)
                    parts, missing = [], size
    except Exception:
        if parts:
            yield _join(parts)
        raise
    if parts:
        yield _join(parts)


def _join(parts: list[Batch]) -> Batch:
    return stacked([X for X, _ in parts]), stacked([Y for _, Y in parts])


def canonical_rows(matrix: AnyMatrix) -> SparseMatrix:
    """Return a copy in compressed rows, with columns in order and without stored zeros."""
    rows = csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_distinct(stream: Stream) -> None:
    """Raise ValueError if two columns have the same name, where features and labels share a header."""
    if twice := repeated([*stream.feature_names, *stream.label_names]):
        raise ValueError(
            f"two columns are called {twice[0]!r}, but this format tells features and labels apart by their names; "
            "rename one, or write svmlight or .npz"
        )
