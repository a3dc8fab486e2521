"""Matrices that may be sparse: what SciPy lacks, or does slowly, for short batches in compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray, SparseMatrix

# Numbers up to which a list is quicker than an array.
_SHORT = 16
# Whole numbers of as many bytes.
_WITHOUT_SIGN = {kind.itemsize: kind for kind in map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64))}


def dense(matrix: AnyMatrix) -> FloatArray:
    """Return an array, also of a sparse matrix."""
    # Asked first, as it is quicker to tell.
    if type(matrix) is np.ndarray:
        return matrix
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def dense_floats(matrix: AnyMatrix) -> FloatArray:
    """Return an array of floats, also of a sparse matrix."""
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, dtype=float)


def why_malformed(X: AnyMatrix) -> str | None:
    """Say why the arrays of a sparse matrix do not fit one another; None if they do.

    SciPy trusts them: indices beyond the matrix make its native code read and write other memory.

    Examples
    --------
    >>> X = scipy.sparse.csr_array([[0.0, 2.0]])
    >>> X.indices = X.indices + 7
    >>> why_malformed(X)
    'its columns are not all from 0 to below 2'
    """
    if X.format == "coo":
        if any(len(indices) != len(X.data) for indices in X.coords):
            return "its arrays differ in length"
        reasons = (_why_beyond(X.coords[axis], X.shape[axis], f"indices of axis {axis}") for axis in range(X.ndim))
        return next(filter(None, reasons), None)
    if X.format not in ("csr", "csc", "bsr") or X.ndim != 2:
        return None
    across = "rows" if X.format == "csc" else "columns"
    n_starts, n_indices = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        n_starts, n_indices = n_starts // X.data.shape[1], n_indices // X.data.shape[2]
    starts, indices = X.indptr, X.indices
    # Python's numbers are quicker to compare than NumPy's, if they are few.
    ends = starts.tolist() if len(starts) <= _SHORT else [starts[0], starts[-1]]
    does_rise = ends == sorted(ends) and (len(ends) == len(starts) or not (starts[1:] < starts[:-1]).any())
    if starts.dtype.kind not in "iu" or len(starts) != n_starts + 1 or ends[0] != 0 or not does_rise:
        return f"its starts (indptr) do not rise from 0, one for each of {n_starts} and the end"
    if ends[-1] > min(len(indices), len(X.data)):
        return "its arrays are shorter than its starts (indptr) say"
    return _why_beyond(indices if ends[-1] == len(indices) else indices[: ends[-1]], n_indices, across)


def _why_beyond(indices: IntArray, size: int, what: str) -> str | None:
    if indices.dtype.kind not in "iu":
        return f"its {what} are not whole numbers"
    # As numbers without a sign, those below 0 are large: one look finds both.
    if len(indices) and np.maximum.reduce(indices.view(_WITHOUT_SIGN[indices.dtype.itemsize])) >= size:
        return f"its {what} are not all from 0 to below {size}"
    return None


def as_rows(X: AnyMatrix) -> AnyMatrix:
    """Return a matrix in compressed rows: itself, if it has them, as making another takes longer than a short batch."""
    return X if isinstance(X, scipy.sparse.csr_array) else scipy.sparse.csr_array(X)


def entry_rows(X: AnyMatrix) -> IntArray:
    """Return the row of each entry of a matrix in compressed rows.

    Examples
    --------
    >>> entry_rows(scipy.sparse.csr_array([[0, 2], [0, 0], [3, 4]])).tolist()
    [0, 2, 2]
    """
    return np.arange(X.shape[0]).repeat(X.indptr[1:] - X.indptr[:-1])


def some_rows(X: AnyMatrix, rows: IntArray) -> AnyMatrix:
    """Take some rows of a matrix in compressed rows, in half the time that SciPy takes for few; of others as usual.

    Examples
    --------
    >>> import numpy as np
    >>> some_rows(as_rows(np.eye(3)), np.array([2, 0])).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if not isinstance(X, scipy.sparse.csr_array):
        return X[rows]
    starts = X.indptr[rows]
    counts = X.indptr[rows + 1] - starts
    ends = np.cumsum(counts, dtype=X.indptr.dtype)
    entries = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
    indptr = np.concatenate([np.zeros(1, ends.dtype), ends])
    taken = scipy.sparse.csr_array((X.data[entries], X.indices[entries], indptr), shape=(len(rows), X.shape[1]))
    # Known of all rows, and slow to find out again.
    taken.has_sorted_indices = X.has_sorted_indices
    return taken


def row_range(X: AnyMatrix, first: int, last: int) -> AnyMatrix:
    """Take the rows from one to before another of a sparse array in compressed rows, without a copy of its entries.

    Slicing takes twice as long.

    Examples
    --------
    >>> import numpy as np
    >>> row_range(as_rows(np.eye(3)), 1, 3).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    starts = X.indptr[first : last + 1]
    entries = slice(starts[0], starts[-1])
    parts = X.data[entries], X.indices[entries], starts - starts[0]
    return scipy.sparse.csr_array(parts, shape=(len(starts) - 1, X.shape[1]))


def sparse_marks(marks: Array) -> SparseMatrix:
    """Return a dense array of bytes 0 and 1, or of truths, as a sparse array; SciPy takes several times as long.

    Examples
    --------
    >>> sparse_marks(np.array([[True, False], [True, True]])).toarray().tolist()
    [[1, 0], [1, 1]]
    """
    n_rows, n_columns = marks.shape
    present = np.flatnonzero(marks.view(np.bool_))  # far faster for truths than for numbers
    starts = np.searchsorted(present, n_columns * np.arange(n_rows + 1))
    # 32 bits are enough for a batch of rows, and scikit-learn's estimators often take no others.
    indices = (present % max(n_columns, 1)).astype(np.int32)
    return scipy.sparse.csr_array((np.ones(len(present), np.int8), indices, starts.astype(np.int32)), shape=marks.shape)


def with_values(X: AnyMatrix, values: Array) -> AnyMatrix:
    """Return a sparse array with the same entries but other values; SciPy's conversions take many times as long.

    Examples
    --------
    >>> X = scipy.sparse.csr_array([[0, 2]])
    >>> with_values(X, X.data / 2).toarray().tolist(), X.toarray().tolist()
    ([[0.0, 1.0]], [[0, 2]])
    """
    # As copy.copy does it, in a fifth of the time.
    result: Any = object.__new__(type(X))
    result.__dict__.update(X.__dict__)
    result.data = values
    return result


def weighted(X: AnyMatrix, row_weights: FloatArray | None) -> AnyMatrix:
    """Multiply the rows of a matrix by weights; None for 1.

    Examples
    --------
    >>> weighted(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0])).tolist()
    [[1.0, 2.0], [30.0, 40.0]]
    """
    if row_weights is None:
        return X
    if not scipy.sparse.issparse(X):
        return X * row_weights[:, None]
    X = as_rows(X)
    return with_values(X, X.data * row_weights[entry_rows(X)])


def batch_rows(
    rows: IntArray | slice, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None
) -> tuple[AnyMatrix, AnyMatrix, FloatArray | None]:
    """Take some rows of a batch: features, labels and weights, which are None for 1.

    Examples
    --------
    >>> batch_rows(np.array([1]), np.array([[0.5], [1.5]]), np.array([[0.0], [1.0]]), np.array([1.0, 2.0]))
    (array([[1.5]]), array([[1.]]), array([2.]))
    """
    return X[rows], Y[rows], None if row_weights is None else row_weights[rows]


def stacked(parts: Sequence[AnyMatrix], width: int = 0) -> AnyMatrix:
    """Put matrices below one another, in compressed rows if any is sparse.

    Those that have fewer columns than the widest, or than ``width``, are filled up with zeros.

    Examples
    --------
    >>> stacked([np.ones((1, 2)), np.ones((1, 3))])
    array([[1., 1., 0.],
           [1., 1., 1.]])
    """
    width = max(width, *(part.shape[1] for part in parts))
    wide = [part if part.shape[1] == width else _widened(part, width) for part in parts]
    if len(wide) == 1:
        return wide[0]
    are_sparse = any(map(scipy.sparse.issparse, wide))
    return scipy.sparse.vstack(wide, format="csr") if are_sparse else np.concatenate(wide)


def with_last_rows(
    parts: Sequence[Array], X: AnyMatrix, most: int | None = None
) -> tuple[FloatArray, IntArray, IntArray]:
    """Append rows to values, indices and starts of compressed rows, and keep the last ``most`` of them; None for all.

    Examples
    --------
    >>> none = np.zeros(0), np.zeros(0, int), np.zeros(1, int)
    >>> values, indices, starts = with_last_rows(none, np.array([[1.0, 2.0], [0.0, 3.0]]), most=1)
    >>> values.tolist(), indices.tolist(), starts.tolist()
    ([3.0], [1], [0, 1])
    """
    (values, indices, starts), X = parts, as_rows(X)
    left_out = 0 if most is None else max(0, len(starts) - 1 + X.shape[0] - most)
    starts = np.concatenate([starts, X.indptr[1:] + starts[-1]])[left_out:]
    first = int(starts[0])
    of_X = slice(max(0, first - len(values)), None)
    joined = np.concatenate([values[first:], X.data[of_X]]).astype(float, copy=False)
    return joined, np.concatenate([indices[first:], X.indices[of_X]]), starts - first


def _widened(X: AnyMatrix, width: int) -> AnyMatrix:
    """Append columns of zeros."""
    if not scipy.sparse.issparse(X):
        return np.pad(X, ((0, 0), (0, width - X.shape[1])))
    X = scipy.sparse.csr_array(X)
    return scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def canonical(X: AnyMatrix) -> AnyMatrix:
    """Return a sparse array in compressed rows, without duplicates; the caller's matrix stays as it is."""
    if type(X) is not scipy.sparse.csr_array:
        X = scipy.sparse.csr_array(X)
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) <= np.iinfo(np.int32).max:
        # Many of scikit-learn's learners take no wider indices.
        X = scipy.sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if len(X.indices) > X.nnz or len(X.data) > X.nnz:
        # The arrays may be longer than what is in use.
        parts = X.data[: X.nnz], X.indices[: X.nnz], X.indptr
        X = scipy.sparse.csr_array(parts, shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
