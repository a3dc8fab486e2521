"""Names for the kinds of arrays that signatures speak of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["AnyMatrix", "Array", "BoolArray", "FloatArray", "IntArray", "SparseMatrix"]

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.intp]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# SciPy ships no types: a sparse matrix or array in compressed-row form, and either kind of matrix.
SparseMatrix: TypeAlias = Any
AnyMatrix: TypeAlias = Any
