"""Matrices as more than one part of the library needs them."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from labelrace.exceptions import DivergenceError
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray

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
# More eigenvectors than the size of the matrix divided by this are computed directly; fewer by Lanczos iterations.
_FEW = 64


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
    """Return which labels are at least as likely as not.

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

    With fewer rows than ``k`` there are as many as rows; vectors of singular values of zero are zero.
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
