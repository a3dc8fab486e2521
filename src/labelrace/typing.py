"""Names for the kinds of arrays that signatures speak of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# SciPy ships no types: a sparse matrix or array in compressed-row form, and either kind of matrix.
SparseMatrix: TypeAlias = Any
AnyMatrix: TypeAlias = Any


@runtime_checkable
class SupportsShape(Protocol):
    """A sparse matrix or a data frame."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""


MatrixLike: TypeAlias = npt.ArrayLike | SupportsShape | Sequence[Mapping[str, float]]
"""Features as users give them: an array, a sparse matrix, a data frame, or dicts of named numbers."""

TargetLike: TypeAlias = npt.ArrayLike | SupportsShape | Sequence[Collection[str]]
"""Labels as users give them: an array or sparse matrix of 0 and 1, a data frame, or sets of names."""
