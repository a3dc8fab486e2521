"""Datasets and streams: rows with features and labels, in memory or read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

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
        1 where the row has the label. Always sparse. Of float64, with NaN for missing labels, if there are some.
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

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        Y: Any,
        *,
        feature_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        categorical: Any = None,
        name: str = "arrays",
    ) -> Self:
        """Make a dataset of a matrix of features and one of labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of numbers, of n rows
            NaN is a missing value.
        Y : array-like, sparse matrix or data frame of 0 and 1, of n rows
            A column for each label; NaN is a missing label.
        feature_names, label_names : sequence of str, default=None
            By default those of a data frame, or ``x0``, ``x1``, … and ``label0``, ``label1``, …
        categorical : mask, indices or names, default=None
            Features that hold codes 0, 1, 2, … of nominal values.
        name : str, default="arrays"
            Name of the dataset in tables and messages.

        Returns
        -------
        Dataset

        Examples
        --------
        >>> data = Dataset.from_arrays([[0.5, 1.0], [2.0, 0.0]], [[1, 0], [1, 1]], label_names=["new", "hot"])
        >>> data.feature_names, data.label_names, len(data)
        (('x0', 'x1'), ('new', 'hot'), 2)
        """
        features, labels = _matrix_of(X, "X"), _matrix_of(Y, "Y")
        if features.shape[0] != labels.shape[0]:
            raise ValueError(
                f"X and Y must have the same number of rows, got {features.shape[0]} and {labels.shape[0]}."
            )
        names = _names_of(X, feature_names, "x", features.shape[1], "feature_names")
        mask = np.zeros(features.shape[1], dtype=bool)
        mask[_columns_of(categorical, names)] = True
        return cls(
            csr_array(features) if issparse(features) else features,
            as_label_rows(labels),
            names,
            _names_of(Y, label_names, "label", labels.shape[1], "label_names"),
            mask,
            name,
        )

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __repr__(self) -> str:
        cardinality = self.present.sum() / max(len(self), 1)
        return (
            f"Dataset({self.name!r}: {len(self)} rows, {len(self.feature_names)} features "
            f"({int(self.categorical.sum())} categorical), {len(self.label_names)} labels, "
            f"cardinality {cardinality:.2f})"
        )

    @property
    def present(self) -> SparseMatrix:
        """The labels that are present, without those that are missing."""
        if self.Y.dtype.kind != "f":
            return self.Y
        return canonical_rows(csr_array((np.nan_to_num(self.Y.data), self.Y.indices, self.Y.indptr), self.Y.shape))

    def batches(self, size: int) -> Iterator[tuple[AnyMatrix, SparseMatrix]]:
        """Iterate over (X, Y) in batches of `size` rows; the last one may be shorter.

        Parameters
        ----------
        size : int
            Rows in a batch, at least 1.

        Yields
        ------
        X, Y : matrices
        """
        check_whole("batch size", size, 1)  # not in the generator, so that this call raises the error
        starts = range(0, len(self), size)
        return ((self.X[start : start + size], self.Y[start : start + size]) for start in starts)


def as_label_rows(marks: AnyMatrix) -> SparseMatrix:
    """Return labels in compressed rows, as small integers if none is missing (NaN)."""
    rows = canonical_rows(marks)
    values = np.asarray(rows.data, dtype=float)
    is_missing = np.isnan(values)
    if not (is_missing | (values == 1)).all():
        raise ValueError("Y must hold 0 and 1, and NaN for missing labels, got other values.")
    return rows.astype(np.float64 if is_missing.any() else np.int8)


def _matrix_of(values: Any, what: str) -> AnyMatrix:
    """Return a matrix of floats; a sparse one stays sparse."""
    matrix = values.astype(float) if issparse(values) else np.array(values, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"{what} must be a matrix, a row for each example, got an array of {matrix.ndim} dimensions.")
    return matrix


def _names_of(values: Any, given: Sequence[str] | None, letter: str, count: int, what: str) -> tuple[str, ...]:
    """Return the names of columns: the given ones, those of a data frame, or numbered ones."""
    if given is None:
        given = getattr(values, "columns", None)
    names = tuple(f"{letter}{i}" for i in range(count)) if given is None else tuple(map(str, given))
    if len(names) != count or repeated(names):
        raise ValueError(f"{what} must be {count} distinct names, one for each column, got {len(set(names))}.")
    return names


def _columns_of(given: Any, names: tuple[str, ...]) -> Any:
    """Return which columns are meant: a mask, or indices, given as such or by names."""
    if given is None:
        return []
    if unknown := [one for one in given if isinstance(one, str) and one not in names]:
        raise ValueError(f"categorical must name columns of X, got {unknown[0]!r}.")
    return [names.index(one) if isinstance(one, str) else one for one in given]


@runtime_checkable
class Stream(Protocol):
    """Rows with features and labels, in batches; it can be iterated over repeatedly.

    `labelrace.streams.Dataset` is one, and so is what `labelrace.streams.open_stream` returns.

    Examples
    --------
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream: Stream = SyntheticStream(n_rows=100, n_features=8, n_labels=12)
    >>> [X.shape for X, Y in stream.batches(40)]
    [(40, 8), (40, 8), (20, 8)]
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
        """Iterate over (X, Y) in batches of `size` rows from the start; the last one may be shorter.

        Parameters
        ----------
        size : int

        Yields
        ------
        X, Y : matrices
        """


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
