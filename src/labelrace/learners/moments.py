"""Sums of numeric features and of their squares, for the rows of every pseudo label and for all rows.

``Σx² - (Σx)²/n`` loses its digits when a feature's mean is large beside its spread. The sums of such a feature are
taken about a shift, its mean in the first batch. Other features, and sparse ones, which are mostly zero, have none.
Sums about one shift are turned into sums about another exactly, so models with different shifts merge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.exceptions import DivergenceError
from labelrace.learners import columns
from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["Moments", "grow_components", "grow_features", "init", "merge", "present_rows", "update", "with_shift"]

# Deviations between zero and a feature's mean from which a shift pays: fewer cost less than two of sixteen digits.
_FAR = 10.0


class Moments(NamedTuple):
    """Sums over rows.

    Attributes
    ----------
    shift : (d,) array
        What is subtracted from each feature first.
    sums, squares : (d, k + 1) arrays
        Sums of values and of squares over the rows in which a pseudo label is 1 and, in the last column, over all.
    missing : (d, k + 1) array or None
        Rows in which the feature is missing, likewise; None if nothing is missing.
    """

    shift: FloatArray
    sums: FloatArray
    squares: FloatArray
    missing: FloatArray | None


def init(n_features: int, n_components: int) -> Moments:
    """Make empty sums, without a shift."""
    empty = np.zeros((n_features, n_components + 1))
    return Moments(np.zeros(n_features), empty, empty, None)


def with_shift(moments: Moments, X: FloatArray) -> Moments:
    """Choose the shift of empty sums by the first batch."""
    absent = columns.missing(X)
    present = X if absent is None else columns.without(X, absent)
    rows = len(X) if absent is None else np.maximum(len(X) - absent.sum(axis=0), 1)
    mean = present.sum(axis=0) / rows
    with np.errstate(over="ignore", invalid="ignore"):
        variance = (present * present).sum(axis=0) / rows - mean**2
    return moments._replace(shift=np.where(mean**2 > _FAR**2 * variance, mean, 0.0))


def present_rows(moments: Moments, rows: FloatArray) -> FloatArray:
    """Count the rows in which each feature is present, ``(d or 1, k + 1)``; ``rows`` counts all rows."""
    return rows[None, :] if moments.missing is None else rows - moments.missing


def update(moments: Moments, X: AnyMatrix, H: AnyMatrix) -> Moments:
    """Add a batch with its 0/1 pseudo labels."""
    H1 = columns.with_ones(H)
    sums, squares = _batch_sums(moments.shift, X, H1, None)
    missing = moments.missing
    # A missing value shows in the sums, which are much smaller than X: most batches need not be searched for one.
    if not np.isfinite(squares).all():
        absent = columns.missing(X)
        missing = columns.add_missing(missing, absent, H)
        sums, squares = _batch_sums(moments.shift, X, H1, absent)
        if not np.isfinite(squares).all():
            raise DivergenceError(
                "X holds values so large that the sums of their squares overflow. Scale the features (StandardScaler)."
            )
    return Moments(moments.shift, moments.sums + sums, moments.squares + squares, missing)


def _batch_sums(
    shift: FloatArray, X: AnyMatrix, H1: AnyMatrix, absent: AnyMatrix | None
) -> tuple[FloatArray, FloatArray]:
    """Sum values and squares over the rows of each pseudo label, passing over what is absent."""
    if scipy.sparse.issparse(X):
        present = X if absent is None else columns.without(X, absent)
        with np.errstate(over="ignore", invalid="ignore"):
            sums, squares = columns.dense(present.T @ H1), columns.dense((present * present).T @ H1)
        if not shift.any():
            return sums, squares
        rows = H1.sum(axis=0) if absent is None else H1.sum(axis=0) - columns.dense(absent.T @ H1)
        return _about(shift[:, None], sums, squares, rows)
    Z = X - shift if shift.any() else X
    if absent is not None:
        Z = columns.without(Z, absent)
    with np.errstate(over="ignore", invalid="ignore"):
        return Z.T @ H1, (Z * Z).T @ H1


def _about(shift: FloatArray, sums: FloatArray, squares: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn sums about 0 into sums about ``shift``, of ``rows`` rows."""
    return sums - rows * shift, squares - 2 * shift * sums + rows * shift**2


def merge(one: Moments, other: Moments, other_rows: FloatArray) -> Moments:
    """Add two sums, about the first one's shift; ``other_rows`` counts the rows of the other one."""
    present = present_rows(other, other_rows)
    sums, squares = _about((one.shift - other.shift)[:, None], other.sums, other.squares, present)
    missing = columns.add_or_none(one.missing, other.missing)
    return Moments(one.shift, one.sums + sums, one.squares + squares, missing)


def grow_components(moments: Moments, n_new: int) -> Moments:
    """Add pseudo labels that were 0 in all rows."""
    sums, squares = (columns.before_last(array, n_new) for array in (moments.sums, moments.squares))
    missing = None if moments.missing is None else columns.before_last(moments.missing, n_new)
    return Moments(moments.shift, sums, squares, missing)


def grow_features(moments: Moments, n_features: int) -> Moments:
    """Add features, behind the others, that were 0 in all rows: they would have had no shift, either."""
    shift, sums, squares = (columns.pad_rows(array, n_features) for array in moments[:3])
    missing = None if moments.missing is None else columns.pad_rows(moments.missing, n_features)
    return Moments(shift, sums, squares, missing)
