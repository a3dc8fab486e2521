"""The first rows of a stream, kept until there are enough of them to choose a penalty on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["Held", "hold", "nothing", "rows"]


class Held(NamedTuple):
    """The first rows, in compressed form, with the size of the part that the learners started from.

    Attributes
    ----------
    values, indices, indptr : arrays
        The rows of ``X``.
    targets : (n, k) array
        Their targets.
    n_used : float
        Rows there were when the penalty was last chosen.
    """

    values: FloatArray
    indices: IntArray
    indptr: IntArray
    targets: FloatArray
    n_used: float


def nothing(n_components: int) -> Held:
    """Hold no rows."""
    return Held(np.zeros(0), np.zeros(0, np.intp), np.zeros(1, np.intp), np.zeros((0, n_components)), 0.0)


def hold(X: AnyMatrix, H: FloatArray, n_used: float | None = None) -> Held:
    """Copy rows; ``n_used`` of them, or all, are what the penalty was chosen on."""
    rows = scipy.sparse.csr_array(X)
    indices, indptr = rows.indices.astype(np.intp), rows.indptr.astype(np.intp)
    return Held(rows.data.astype(float), indices, indptr, H.copy(), float(rows.shape[0]) if n_used is None else n_used)


def rows(held: Held, n_columns: int) -> AnyMatrix:
    """Return the rows of ``X``, which may have more columns by now."""
    shape = (len(held.targets), n_columns)
    return scipy.sparse.csr_array((held.values, held.indices, held.indptr), shape=shape)
