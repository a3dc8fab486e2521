"""The first rows of a stream with their targets, kept until there are enough of them.

`labelrace.linear.rls` learns them exactly, again whenever their number has doubled, up to `EXACT_ROWS`: what becomes
of a batch is decided in `RLS.rows_to_learn`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base.sparse import with_last_rows
from labelrace.linear.blocks import SPARSE_BLOCK
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Rows that are learned exactly at the most.
EXACT_ROWS = 512


class WarmUp(NamedTuple):
    """Buffer of the first rows, until there are enough of them."""

    # The rows of ``X``, in compressed-row form.
    values: Annotated[FloatArray, "_x", "nan"]
    indices: Annotated[IntArray, "_x", "<m"]
    indptr: Annotated[IntArray, "_n+1", "starts _x"]
    # Their targets, likewise.
    target_values: Annotated[FloatArray, "_y", "nan"]
    target_indices: Annotated[IntArray, "_y", "<w"]
    target_indptr: Annotated[IntArray, "_n+1", "starts _y"]
    n_used: Annotated[float, "<_n+1"]  # number of rows that were last learned exactly; 0 where the buffer is not in use

    @classmethod
    def empty(cls) -> WarmUp:
        """Make a buffer without rows."""
        none = (np.zeros(0), np.zeros(0, np.intp), np.zeros(1, np.intp))
        return cls(*none, *none, 0.0)

    @classmethod
    def of(cls, X: AnyMatrix, Y: AnyMatrix) -> WarmUp:
        """Keep rows that are learned exactly; none where twice as many would be too many."""
        n = X.shape[0]
        return cls.empty().with_batch(X, Y)._replace(n_used=float(n)) if 2 * n <= EXACT_ROWS else cls.empty()

    def with_batch(self, X: AnyMatrix, Y: AnyMatrix) -> WarmUp:
        """Append a batch, which may have more columns."""
        return WarmUp(*with_last_rows(self[:3], X), *with_last_rows(self[3:6], Y), self.n_used)

    def without(self, features: IntArray) -> WarmUp:
        """Make the values of some features 0: their columns stand for others now."""
        return self._replace(values=np.where(np.isin(self.indices, features), 0.0, self.values))

    def is_due(self) -> bool:
        """Tell whether the rows have doubled since they were last learned exactly."""
        return len(self.indptr) - 1 >= 2 * self.n_used

    def rows(self, like: AnyMatrix, n_targets: int) -> tuple[AnyMatrix, AnyMatrix]:
        """Return rows and targets, the rows in the form of ``like``."""
        n = len(self.indptr) - 1
        X = scipy.sparse.csr_array(self[:3], shape=(n, like.shape[1]))
        Y = scipy.sparse.csr_array(self[3:6], shape=(n, n_targets))
        return (X if scipy.sparse.issparse(like) else X.toarray()), Y


def first_rows(n: int) -> tuple[IntArray, IntArray]:
    """Choose the rows of a first batch that are learned exactly, and the order of the others.

    A first batch may be a whole table, and sorted: both the exact rows and every block are taken from all over it.

    Examples
    --------
    >>> first, others = first_rows(2000)
    >>> len(first), others[:4].tolist()
    (512, [1, 17, 33, 49])
    """
    n_first = min(n, EXACT_ROWS)
    first = np.arange(n_first) * n // n_first
    others = np.setdiff1d(np.arange(n), first, assume_unique=True)
    n_blocks = -(-len(others) // SPARSE_BLOCK)
    return first, others[np.argsort(np.arange(len(others)) % max(n_blocks, 1), kind="stable")]
