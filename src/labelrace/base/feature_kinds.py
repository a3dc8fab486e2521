"""What kinds of features there are, numeric and nominal, and the columns that learners see of them.

A nominal feature with ``V`` values holds codes ``0 … V - 1``. Learners see it as ``V - 1`` indicator columns, one for
each value but the first: the first value is the zero of a sparse row, and its share follows from the others. With two
values the indicator is the column itself, so that binary features, dense or sparse, are used unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from labelrace.base.sparse import entry_rows
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FeatureKinds:
    """The kinds of features: a value that remembers what follows from it.

    Parameters
    ----------
    n_values : (m,) array
        Number of values of each nominal feature, 0 for a numeric one.

    Examples
    --------
    >>> import numpy as np
    >>> kinds = FeatureKinds(np.array([0, 3]))  # a number, and a code with three values
    >>> kinds.design(np.array([[0.5, 2.0], [1.5, 0.0]]))  # the number, and indicators of the values 1 and 2
    array([[0.5, 0. , 1. ],
           [1.5, 0. , 0. ]])
    """

    n_values: IntArray

    @classmethod
    def of(cls, kinds: KindsLike) -> FeatureKinds:
        """Return kinds, which may be given as numbers of values."""
        return kinds if isinstance(kinds, FeatureKinds) else cls(np.asarray(kinds, dtype=np.intp))

    @classmethod
    def numbers(cls, n_features: int) -> FeatureKinds:
        """Return the kinds of numeric features."""
        return cls(np.zeros(n_features, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.n_values)

    # --- What follows from the numbers of values ----------------------------------------------------------------------

    @cached_property
    def all_numeric(self) -> bool:
        """Whether there is no nominal feature."""
        return not self.n_values.any()

    @cached_property
    def all_nominal(self) -> bool:
        """Whether there is no numeric feature."""
        return bool(self.n_values.all())

    @cached_property
    def numeric_features(self) -> IntArray:
        """The features that are numbers."""
        return np.flatnonzero(self.n_values == 0)

    @cached_property
    def nominal_features(self) -> IntArray:
        """The features that are codes."""
        return np.flatnonzero(self.n_values)

    @cached_property
    def nominal_values(self) -> IntArray:
        """The number of values of each nominal feature."""
        return self.n_values[self.nominal_features]

    @cached_property
    def n_numeric(self) -> int:
        """The number of numeric features."""
        return len(self.numeric_features)

    @cached_property
    def n_nominal(self) -> int:
        """The number of nominal features."""
        return len(self.nominal_features)

    @cached_property
    def n_indicators(self) -> int:
        """The number of indicators of nominal values."""
        return int((self.nominal_values - 1).sum())

    @property
    def width(self) -> int:
        """The number of columns of the `design`."""
        return self.n_numeric + self.n_indicators

    @cached_property
    def value_groups(self) -> list[tuple[IntArray, IntArray]]:
        """The nominal features, grouped by their number of values: features and, a row for each, their indicators.

        Examples
        --------
        >>> import numpy as np
        >>> for features, columns in FeatureKinds(np.array([0, 3, 2, 3])).value_groups:
        ...     print(features, columns.tolist())
        [2] [[3]]
        [1 3] [[1, 2], [4, 5]]
        """
        n_indicators = np.where(self.n_values > 0, self.n_values - 1, 0)
        first = self.n_numeric + np.cumsum(n_indicators) - n_indicators
        features = [np.flatnonzero(self.n_values == v) for v in np.unique(self.nominal_values)]
        return [(group, first[group][:, None] + np.arange(n_indicators[group[0]])) for group in features]

    @cached_property
    def value_order(self) -> IntArray:
        """The value, from 1, that each indicator of the `design` stands for; 1 for numeric columns."""
        order = np.ones(self.width, dtype=np.intp)
        for _, columns in self.value_groups:
            order[columns] = np.arange(1, columns.shape[1] + 1)
        return order

    # --- Columns of a matrix ------------------------------------------------------------------------------------------

    def numeric(self, X: AnyMatrix) -> AnyMatrix:
        """Take the numeric columns."""
        return X if self.all_numeric else X[:, self.numeric_features]

    def nominal(self, X: AnyMatrix) -> AnyMatrix:
        """Take the nominal columns, as codes."""
        return X if self.all_nominal else X[:, self.nominal_features]

    def indicators(self, codes: AnyMatrix) -> AnyMatrix:
        """Turn the nominal columns, given as `nominal` takes them, into indicators of every value but the first.

        A code beyond a feature's values, or NaN, sets no indicator.

        Examples
        --------
        >>> import numpy as np
        >>> FeatureKinds(np.array([2, 3])).indicators(np.array([[0.0, 2.0], [1.0, 1.0]])).toarray()
        array([[0., 0., 1.],
               [1., 1., 0.]])
        """
        n_values = self.nominal_values
        if (n_values == 2).all() and _highest(codes) <= 1:
            return codes
        sparse = scipy.sparse.csr_array(codes)
        first = np.concatenate([[0], np.cumsum(n_values - 1)])
        values = sparse.data
        known = (values >= 1) & (values < n_values[sparse.indices])
        rows = entry_rows(sparse)[known]
        columns = first[sparse.indices[known]] + values[known].astype(np.intp) - 1
        shape = (sparse.shape[0], int(first[-1]))
        return scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)

    def design(self, X: AnyMatrix) -> AnyMatrix:
        """Make the matrix that a linear model sees: numeric columns, then indicators."""
        if self.all_numeric:
            return X
        coded = self.indicators(self.nominal(X))
        if self.all_nominal:
            return coded
        if scipy.sparse.issparse(X):
            return scipy.sparse.hstack([self.numeric(X), coded], format="csr")
        return np.hstack([self.numeric(X), coded.toarray() if scipy.sparse.issparse(coded) else coded])

    def dense_design(self, X: AnyMatrix) -> FloatArray:
        """Make the same matrix as an array, also of sparse rows."""
        columns = X if self.all_numeric else self.design(X)
        return columns.toarray() if scipy.sparse.issparse(columns) else columns

    # --- Other kinds --------------------------------------------------------------------------------------------------

    def widened(self, X: AnyMatrix) -> FeatureKinds:
        """Raise the number of values of nominal features to what occurs in ``X``."""
        if self.all_numeric or _highest(X) < 2:
            return self
        highest = _column_maxima(self.nominal(X)).astype(np.intp)
        if (highest < self.nominal_values).all():
            return self
        n_values = self.n_values.copy()
        n_values[self.nominal_features] = np.maximum(self.nominal_values, highest + 1)
        return FeatureKinds(n_values)

    def joined(self, other: FeatureKinds) -> FeatureKinds:
        """Return the kinds of the same features with the values that either knows."""
        if other is self or (other.n_values <= self.n_values).all():
            return self
        return FeatureKinds(np.maximum(self.n_values, other.n_values))

    def extended(self, wider: FeatureKinds) -> FeatureKinds:
        """Append the new features of ``wider`` to these, which may have got more values meanwhile."""
        return FeatureKinds(np.concatenate([self.n_values, wider.n_values[len(self) :]]))

    def moves(self, after: FeatureKinds, features: IntArray | None = None) -> dict[str, IntArray]:
        """Find where the columns of other kinds are among these, by the names that axes have; -1 where they are new.

        Parameters
        ----------
        after : FeatureKinds
            The kinds of the features afterwards.
        features : (m,) array, default=None
            Which of these features each of the others is, -1 for a new one; None where new ones, if any, are last.

        Returns
        -------
        dict
            ``m`` features, ``d`` numeric ones, ``j`` nominal ones, ``i`` indicators and ``M`` columns of the design.

        Examples
        --------
        >>> import numpy as np
        >>> number_and_code = FeatureKinds(np.array([0, 3]))
        >>> number_and_code.moves(FeatureKinds(np.array([0, 3, 0, 2])))["M"]  # indicators of 3 and of 2 values
        array([ 0, -1,  1,  2, -1])
        >>> number_and_code.moves(FeatureKinds(np.array([4, 0])), np.array([1, 0]))["M"]
        array([ 0,  1,  2, -1])
        """
        if features is None:
            features = np.arange(len(after))
            features[len(self) :] = -1
        is_code = self.n_values > 0
        rank = np.append(np.where(is_code, np.cumsum(is_code), np.cumsum(~is_code)) - 1, -1)
        numeric, nominal = rank[features[after.numeric_features]], rank[features[after.nominal_features]]
        before = np.append(self.nominal_values - 1, 0)
        lengths = after.nominal_values - 1
        feature = np.repeat(nominal, lengths)
        value = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        indicators = np.where(value < before[feature], (np.cumsum(before) - before)[feature] + value, -1)
        design = np.concatenate([numeric, np.where(indicators < 0, -1, self.n_numeric + indicators)])
        return {"m": features, "d": numeric, "j": nominal, "i": indicators, "M": design}


KindsLike: TypeAlias = FeatureKinds | npt.ArrayLike
"""Kinds of features as they may be given: also as numbers of values."""


def _highest(codes: AnyMatrix) -> float:
    """Find the largest code; NaN if one is missing, so that comparing it fails."""
    values: Any = codes.data if scipy.sparse.issparse(codes) else codes
    return float(values.max(initial=0.0))


def _column_maxima(codes: AnyMatrix) -> Array:
    """Find each column's largest code, or 0, passing over what is missing."""
    if not scipy.sparse.issparse(codes):
        return np.fmax.reduce(codes, axis=0, initial=0.0)
    maxima = np.zeros(codes.shape[1])
    np.fmax.at(maxima, codes.indices, codes.data)
    return maxima
