"""A dataset in memory, and its rows in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from labelrace.typing import AnyMatrix, BoolArray, SparseMatrix

__all__ = ["Dataset", "check_batch_size"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
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
    nominal_values : mapping from int to tuple of str
        The texts of a nominal feature's values, by the feature's column, where they are known.

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

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return len(self.feature_names)

    @property
    def n_labels(self) -> int:
        """The number of columns of Y."""
        return len(self.label_names)

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
        check_batch_size(size)  # here, not in the generator: the error belongs to this call
        starts = range(0, len(self), size)
        return ((self.X[start : start + size], self.Y[start : start + size]) for start in starts)


def check_batch_size(size: int) -> None:
    """Raise ValueError unless a batch would hold at least one row."""
    if size < 1:
        raise ValueError(f"a batch needs at least 1 row, got a batch size of {size}")
