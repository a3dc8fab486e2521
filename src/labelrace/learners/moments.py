"""Sums of numeric features and of their squares, for the rows of every pseudo label and for all rows.

They are taken about a shift, a value near each feature's mean, because ``Σx² - (Σx)²/n`` loses its digits when the
mean is large beside the spread. The shift is the first dense batch's mean; sparse features, mostly zero, have none.
Sums about one shift are turned into sums about another exactly, so models with different shifts merge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.learners import columns
from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["Moments", "init", "merge", "present_rows", "update"]


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


def present_rows(moments: Moments, rows: FloatArray) -> FloatArray:
    """Count the rows in which each feature is present, ``(d or 1, k + 1)``; ``rows`` counts all rows."""
    return rows[None, :] if moments.missing is None else rows - moments.missing


def update(moments: Moments, X: AnyMatrix, H: FloatArray) -> Moments:
    """Add a batch with its 0/1 pseudo labels."""
    absent = columns.missing(X)
    H1 = np.column_stack([H, np.ones(len(H))])
    missing = columns.add_missing(moments.missing, absent, H)
    if scipy.sparse.issparse(X):
        present = X if absent is None else columns.without(X, absent)
        sums, squares = present.T @ H1, (present * present).T @ H1
        if moments.shift.any():
            rows = H1.sum(axis=0) if absent is None else H1.sum(axis=0) - absent.T @ H1
            sums, squares = _about(moments.shift[:, None], sums, squares, rows)
    else:
        Z = X - moments.shift
        if absent is not None:
            Z = columns.without(Z, absent)
        sums = Z.T @ H1
        squares = np.square(Z, out=Z).T @ H1
    return Moments(moments.shift, moments.sums + sums, moments.squares + squares, missing)


def _about(shift: FloatArray, sums: FloatArray, squares: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn sums about 0 into sums about ``shift``, of ``rows`` rows."""
    return sums - rows * shift, squares - 2 * shift * sums + rows * shift**2


def merge(one: Moments, other: Moments, other_rows: FloatArray) -> Moments:
    """Add two sums, about the first one's shift; ``other_rows`` counts the rows of the other one."""
    present = present_rows(other, other_rows)
    sums, squares = _about((one.shift - other.shift)[:, None], other.sums, other.squares, present)
    missing = columns.add_or_none(one.missing, other.missing)
    return Moments(one.shift, one.sums + sums, one.squares + squares, missing)
