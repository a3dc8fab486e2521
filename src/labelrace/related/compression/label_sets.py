"""Distinct label sets with their counts: what methods need that look at label sets, not at single labels.

Up to a number of sets the table is exact, additive and independent of the order of rows. Beyond it, the count of the
first set that has no room is taken off all of them and what is left is kept (Misra and Gries); a count is then too low
by at most ``rows / capacity``, and tables still add.

References
----------
Agarwal, P., Cormode, G., Huang, Z., Phillips, J., Wei, Z. and Yi, K.: Mergeable summaries. PODS (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelrace.base import missing_labels, random_draws
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Distinct label sets that are counted exactly.
CAPACITY = 10_000


class LabelSets(NamedTuple):
    """The table."""

    # A hash of each set: the sum of 64 random bits a label. Rising.
    keys: Annotated[NDArray[np.int64], "_d"]
    counts: Annotated[FloatArray, "_d"]  # rows with the set
    ends: Annotated[IntArray, "_d", "ends _z"]  # where each set ends in ``labels``
    labels: Annotated[IntArray, "_z", "<l"]  # the sets' labels, one set after the other

    def why_malformed(self, size: Callable[[str], int]) -> str | None:
        """Return why a file's arrays are no sets: with a label twice in one, taking sets out of sets may never end."""
        owners = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))
        pairs = np.column_stack([owners, self.labels])
        return "a label twice in a set" if len(np.unique(pairs, axis=0)) < len(pairs) else None


def empty() -> LabelSets:
    """Make a table without sets."""
    return LabelSets(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))


def emptied(sets: LabelSets) -> LabelSets:
    """Make the table that has counted nothing."""
    return empty()


def of_rows(Y: AnyMatrix, row_weights: FloatArray | None = None) -> LabelSets:
    """Make the table of the rows of a matrix of 0 and 1, each counted by its weight.

    Examples
    --------
    >>> import numpy as np
    >>> sets = of_rows(np.array([[1, 0, 1], [0, 0, 0], [1, 0, 1]]))
    >>> sorted(zip(matrix(sets, 3).sum(axis=1).tolist(), sets.counts.tolist()))
    [(0.0, 1.0), (2.0, 2.0)]
    """
    Y = missing_labels.without_zeros(Y)
    words = (random_draws.uniform(0, Y.shape[1], 1)[:, 0] * 2.0**52).astype(np.int64) * np.int64(0x5851F42D4C957F2D)
    with np.errstate(over="ignore"):
        keys = scipy.sparse.csr_array((np.ones(Y.nnz, dtype=np.int64), Y.indices, Y.indptr), shape=Y.shape) @ words
    order = Y.sorted_indices()
    counts = np.ones(Y.shape[0]) if row_weights is None else row_weights
    rows = LabelSets(keys, counts, order.indptr[1:].astype(np.intp), order.indices.astype(np.intp))
    return _add_equal([rows])


def add(sets: LabelSets, Y: AnyMatrix, capacity: int = CAPACITY, row_weights: FloatArray | None = None) -> LabelSets:
    """Count the label sets of a batch."""
    return merge(sets, of_rows(Y, row_weights), capacity)


def merge(one: LabelSets, other: LabelSets, capacity: int = CAPACITY) -> LabelSets:
    """Add two tables."""
    both = _add_equal([one, other])
    if len(both.keys) <= capacity:
        return both
    counts = both.counts - np.partition(both.counts, -capacity - 1)[-capacity - 1]
    return _take(both._replace(counts=counts), np.flatnonzero(counts > 0))


def scale(sets: LabelSets, factor: float) -> LabelSets:
    """Let all counts count for less."""
    return sets._replace(counts=sets.counts * factor)


def matrix(sets: LabelSets, n_labels: int) -> AnyMatrix:
    """Make a matrix of the sets, a row each, (d, l)."""
    indptr = np.concatenate([[0], sets.ends])
    return scipy.sparse.csr_array((np.ones(len(sets.labels)), sets.labels, indptr), shape=(len(sets.keys), n_labels))


def _add_equal(parts: list[LabelSets]) -> LabelSets:
    """Put tables one behind the other and add the counts of equal sets."""
    starts = np.cumsum([0, *(len(part.labels) for part in parts)])
    together = LabelSets(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.ends + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.labels for part in parts]),
    )
    _, first, which = np.unique(together.keys, return_index=True, return_inverse=True)
    counts = np.bincount(which, weights=together.counts, minlength=len(first)).astype(float)
    return _take(together, first)._replace(counts=counts)


def _take(sets: LabelSets, chosen: IntArray) -> LabelSets:
    """Take some of the sets."""
    lengths = np.diff(sets.ends, prepend=0)[chosen]
    ends = np.cumsum(lengths)
    positions = np.repeat(sets.ends[chosen] - ends, lengths) + np.arange(lengths.sum())
    return LabelSets(sets.keys[chosen], sets.counts[chosen], ends, sets.labels[positions])
