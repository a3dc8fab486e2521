"""What the columns of ``X`` and ``Y`` are: names and kinds of the features, names of the labels.

A `Schema` is a value. A batch that brings new features or labels has a wider schema than the model has learned with;
what is new is the difference of the two, always behind what is known.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.typing import Array, FloatArray, IntArray

_BYTE = np.dtype(np.int8)


@dataclass(frozen=True, eq=False)
class Schema:
    """Names and kinds of the features, names of the labels, and the form in which labels came.

    Attributes
    ----------
    kinds : FeatureKinds
        Which features are numbers, and how many values the others have.
    feature_names : (m,) array of str, or None
        Names of the features, if they have any.
    n_labels : int
        Number of labels.
    label_names : (l,) array of str, or None
        Names of the labels, if they have any.
    sparse_labels : bool
        Whether the labels came as a sparse matrix or as sets: predictions are then sparse, too.
    label_dtype : dtype
        What the labels were stored in: predictions are, too.

    Examples
    --------
    >>> import numpy as np
    >>> known = Schema(FeatureKinds.numbers(3), None, 2, np.array(["news", "sports"], dtype=object))
    >>> known.names_of([1])
    ['sports']
    """

    kinds: FeatureKinds
    feature_names: Array | None
    n_labels: int
    label_names: Array | None
    sparse_labels: bool = False
    label_dtype: np.dtype[np.generic] = _BYTE

    @cached_property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.kinds)

    @cached_property
    def feature_index(self) -> dict[str, int]:
        """The columns of features by name."""
        return {} if self.feature_names is None else {name: i for i, name in enumerate(self.feature_names)}

    @cached_property
    def label_index(self) -> dict[str, int]:
        """The columns of labels by name."""
        return {} if self.label_names is None else {name: i for i, name in enumerate(self.label_names)}

    def replace(self, **changes: Any) -> Schema:
        """Return a schema that differs in some attributes."""
        return dataclasses.replace(self, **changes)

    def take(self, labels: IntArray, features: IntArray) -> Schema:
        """Return the schema of the same columns in another order, ``labels[0]`` and ``features[0]`` first."""
        return self.replace(
            kinds=FeatureKinds(self.kinds.n_values[features]),
            feature_names=None if self.feature_names is None else self.feature_names[features],
            label_names=None if self.label_names is None else self.label_names[labels],
        )

    def label_keys(self) -> Array:
        """Hash the labels' names to 64 bits; labels without names have their columns."""
        if self.label_names is None:
            return np.arange(self.n_labels, dtype=np.uint64)
        digests = (
            hashlib.blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8) for name in self.label_names
        )
        return np.frombuffer(b"".join(digest.digest() for digest in digests), dtype=np.dtype("<u8")).astype(np.uint64)

    def names_of(self, labels: Array | list[int]) -> list[Any]:
        """Return the names of labels given by their columns, or the columns if labels have no names."""
        if self.label_names is None:
            return np.asarray(labels).tolist()
        return [self.label_names[label] for label in labels]

    def columns_of(self, labels: Iterable[str | int]) -> list[int]:
        """Return the columns of labels given by name, or by column."""
        columns = []
        for label in labels:
            column = self.label_index.get(label, label)  # type: ignore[arg-type]
            if not isinstance(column, (int, np.integer)) or not 0 <= column < self.n_labels:
                raise ValueError(f"labels must be names or columns of the model's labels, got {label!r}.")
            columns.append(int(column))
        return columns


class Batch(NamedTuple):
    """Checked rows, with the schema that they have.

    Attributes
    ----------
    X : (n, m) array, or sparse array in compressed rows
    Y : (n, l) array, or sparse array in compressed rows
        0 and 1, or NaN for a missing label.
    schema : Schema
        Of a later batch: at least what the model knows, what is new last.
    row_weights : (n,) array, or None
        Weights of the rows, above 0; None where all are 1.
    """

    X: Array
    Y: Array
    schema: Schema
    row_weights: FloatArray | None = None
