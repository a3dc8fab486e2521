"""Matrices as more than one part of the library needs them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from labelrace.exceptions import DivergenceError
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray, SparseMatrix

_EPSILON = float(np.finfo(float).eps)
_NOTHING = 1e-100
# Squares below this lose their digits, and their inverses overflow.
_SMALLEST = 1e-290
# Sums of squares beyond this leave no room for what is derived from them.
_LARGEST_SQUARE = 1e300
# No linear model predicts more: what it is decoded with must have room.
_BOUND = 1e100
# Squared singular values up to this share of the largest are zero.
_RANK = 1e-14
# Log odds that are below zero by no more than this are even but for round-off.
TIE = 1e-10
# Eigenvectors of a matrix that are more than one in so many are computed directly; fewer by Lanczos iterations.
_FEW = 64
# Numbers up to which a list is quicker than an array.
_SHORT = 16
# Whole numbers of as many bytes.
_WITHOUT_SIGN = {kind.itemsize: kind for kind in map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64))}


def generalised_inverse(gram: FloatArray) -> FloatArray:
    """Invert a symmetric positive semi-definite matrix on its range.

    Rank is judged after scaling to a unit diagonal, so that what is merely small is not lost.

    Examples
    --------
    >>> import numpy as np
    >>> generalised_inverse(np.diag([4.0, 0.0, 1e-30])).diagonal()
    array([2.5e-01, 0.0e+00, 1.0e+30])
    """
    if gram.size == 0:
        return gram
    # Round-off may leave a little less than nothing.
    diagonal = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    # What has faded to nothing beside the rest, as a sum under forgetting does, is zero.
    present = diagonal > max(_NOTHING * diagonal.max(), np.sqrt(_SMALLEST))
    scaling = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=present)
    values, vectors = np.linalg.eigh(scaling[:, None] * gram * scaling)
    kept = values > len(values) * _EPSILON * values[-1]
    vectors = scaling[:, None] * vectors[:, kept]
    return (vectors / values[kept]) @ vectors.T


def bounded_product(X: AnyMatrix, weights: FloatArray, intercepts: FloatArray) -> FloatArray:
    """Compute ``X W + c``, and no more than 1e100 in magnitude: of finite numbers, whatever their size, never NaN.

    Examples
    --------
    >>> import numpy as np
    >>> bounded_product(np.array([[1e200, 1e200], [1.0, 2.0]]), np.array([[1e200], [-1e200]]), np.zeros(1)).ravel()
    array([   0.e+000, -1.e+100])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        result = X @ weights + intercepts
        if np.abs(result).max(initial=0.0) <= _BOUND:
            return result
        for row in np.flatnonzero(~np.isfinite(result).all(axis=1)):
            x = X[[row]].toarray() if scipy.sparse.issparse(X) else X[[row]]
            sizes = np.abs(x).max(), np.maximum(np.abs(weights).max(axis=0), 1.0)
            # Of numbers up to 1 the sum is finite; its size comes last.
            result[row] = ((x / sizes[0]) @ (weights / sizes[1]) * sizes[1] * sizes[0] + intercepts)[0]
        return np.clip(np.nan_to_num(result), -_BOUND, _BOUND)


def finite_squares(squares: FloatArray) -> FloatArray:
    """Return sums of squares, but refuse those that have overflown, or would in what is derived from them."""
    if not np.abs(squares).max(initial=0.0) < _LARGEST_SQUARE:
        raise DivergenceError(
            "X holds values so large that the sums of their squares overflow. Scale the features (StandardScaler)."
        )
    return squares


def is_even_or_more(log_odds: Array) -> BoolArray:
    """Tell which labels are at least as likely as not.

    Even odds are common, where rows are few or alike. Their sum is then zero but for round-off, whose sign depends on
    the order of the terms, and so on whether rows come alone or together, dense or sparse: it must not decide.

    Examples
    --------
    >>> is_even_or_more(np.array([0.3, -1e-16, -0.3]))
    array([ True,  True, False])
    """
    decided: BoolArray = log_odds >= -TIE
    return decided


def top_eigenpairs(matrix: AnyMatrix, k: int) -> tuple[FloatArray, FloatArray]:
    """Compute the ``k`` largest eigenvalues of a symmetric matrix, largest first, and their eigenvectors, (l, k).

    ``matrix`` is an array or a linear operator. Each eigenvector has its largest entry positive.

    Examples
    --------
    >>> import numpy as np
    >>> values, vectors = top_eigenpairs(np.diag([1.0, 3.0, 2.0]), 2)
    >>> values
    array([3., 2.])
    >>> vectors[:, 0]
    array([0., 1., 0.])
    """
    size = matrix.shape[0]
    if isinstance(matrix, np.ndarray) and k > size // _FEW:
        # Computing a part of the eigenvectors pays where it is a small one.
        if k > size // 4:
            values, vectors = np.linalg.eigh(matrix)
            values, vectors = values[size - k :], vectors[:, size - k :]
        else:
            values, vectors = scipy.linalg.eigh(matrix, subset_by_index=[size - k, size - 1], check_finite=False)
            if len(values) < k:
                raise np.linalg.LinAlgError("The matrix holds numbers so large that its eigenvalues cannot be found.")
    else:
        values, vectors = _lanczos(matrix, k)
    order = np.argsort(-values, kind="stable")
    return values[order], signed(vectors[:, order])


def _lanczos(matrix: AnyMatrix, k: int) -> tuple[FloatArray, FloatArray]:
    """Compute the ``k`` largest eigenvalues and their eigenvectors by iteration; what does not converge is zero."""
    size = matrix.shape[0]
    # A start that depends on nothing but the size, and is not orthogonal to anything in particular.
    start = np.cos(np.arange(size) + 1.0)
    if not np.any(matrix @ start):
        return np.zeros(k), np.eye(size, k)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(matrix, k=min(k, size - 1), which="LA", v0=start)
    except scipy.sparse.linalg.ArpackNoConvergence as partly:
        # Eigenvalues of zero, beyond the rank, are all alike.
        values, vectors = partly.eigenvalues, partly.eigenvectors
    missing = k - len(values)
    return np.append(values, np.zeros(missing)), np.hstack([vectors, np.zeros((size, missing))])


def right_singular(Z: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Compute the ``k`` largest squared singular values and right singular vectors, by the smaller Gram matrix.

    Where there are fewer rows than ``k`` there are only so many; vectors of singular values of zero are zero.
    """
    m, n_columns = Z.shape
    if n_columns <= m:
        values, right = top_eigenpairs(Z.T @ Z, k)
        return values, right * (values > _RANK * max(values[0], 1e-300))
    values, left = top_eigenpairs(Z @ Z.T, min(k, m))
    is_there = values > _RANK * max(values[0], 1e-300)
    inverse = np.divide(1.0, np.sqrt(np.abs(values)), out=np.zeros_like(values), where=is_there)
    return values, signed((Z.T @ left) * inverse)


def signed(directions: FloatArray) -> FloatArray:
    """Turn columns so that the largest entry of each is positive."""
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
    return np.ascontiguousarray(directions * np.where(largest < 0, -1.0, 1.0))


def why_malformed(X: AnyMatrix) -> str | None:
    """Say why the arrays of a sparse matrix do not fit one another; None if they do.

    SciPy trusts them: places beyond the matrix make its native code read and write other memory.

    Examples
    --------
    >>> X = scipy.sparse.csr_array([[0.0, 2.0]])
    >>> X.indices = X.indices + 7
    >>> why_malformed(X)
    'its columns are not all from 0 to below 2'
    """
    if X.format == "coo":
        if any(len(places) != len(X.data) for places in X.coords):
            return "its arrays differ in length"
        reasons = (_why_beyond(X.coords[axis], X.shape[axis], f"places of axis {axis}") for axis in range(X.ndim))
        return next(filter(None, reasons), None)
    if X.format not in ("csr", "csc", "bsr") or X.ndim != 2:
        return None
    across = "rows" if X.format == "csc" else "columns"
    n_starts, n_places = X.shape[::-1] if X.format == "csc" else X.shape
    if X.format == "bsr":
        n_starts, n_places = n_starts // X.data.shape[1], n_places // X.data.shape[2]
    starts, places = X.indptr, X.indices
    # Python's numbers are quicker to compare than NumPy's, if they are few.
    ends = starts.tolist() if len(starts) <= _SHORT else [starts[0], starts[-1]]
    does_rise = ends == sorted(ends) and (len(ends) == len(starts) or not (starts[1:] < starts[:-1]).any())
    if starts.dtype.kind not in "iu" or len(starts) != n_starts + 1 or ends[0] != 0 or not does_rise:
        return f"its starts (indptr) do not rise from 0, one for each of {n_starts} and the end"
    if ends[-1] > min(len(places), len(X.data)):
        return "its arrays are shorter than its starts (indptr) say"
    return _why_beyond(places if ends[-1] == len(places) else places[: ends[-1]], n_places, across)


def _why_beyond(places: IntArray, size: int, what: str) -> str | None:
    if places.dtype.kind not in "iu":
        return f"its {what} are not whole numbers"
    # As numbers without a sign, those below 0 are large: one look finds both.
    if len(places) and np.maximum.reduce(places.view(_WITHOUT_SIGN[places.dtype.itemsize])) >= size:
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
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


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


def sparse_marks(marks: Array) -> SparseMatrix:
    """Return a dense array of bytes 0 and 1, or of truths, as a sparse array; SciPy takes several times as long.

    Examples
    --------
    >>> sparse_marks(np.array([[True, False], [True, True]])).toarray().tolist()
    [[1, 0], [1, 1]]
    """
    n_rows, n_columns = marks.shape
    places = np.flatnonzero(marks.view(np.bool_))  # far faster for truths than for numbers
    starts = np.searchsorted(places, n_columns * np.arange(n_rows + 1))
    # 32 bits are enough for a batch of rows, and scikit-learn's estimators often take no others.
    indices = (places % max(n_columns, 1)).astype(np.int32)
    return scipy.sparse.csr_array((np.ones(len(places), np.int8), indices, starts.astype(np.int32)), shape=marks.shape)


def with_values(X: AnyMatrix, values: Array) -> AnyMatrix:
    """Return a sparse array with other values in the same places; SciPy's conversions take many times as long.

    Examples
    --------
    >>> X = scipy.sparse.csr_array([[0, 2]])
    >>> with_values(X, X.data / 2).toarray().tolist(), X.toarray().tolist()
    ([[0.0, 1.0]], [[0, 2]])
    """
    result = copy.copy(X)
    result.data = values
    return result


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
        # There is room behind the last entry, whose contents are nobody's.
        parts = X.data[: X.nnz], X.indices[: X.nnz], X.indptr
        X = scipy.sparse.csr_array(parts, shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
