"""What a block of rows teaches the learners of `labelrace.learners.rls`: the step that its docstring derives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelrace.exceptions import DivergenceError
from labelrace.learners import products
from labelrace.learners.penalty import INTERCEPT
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["Work", "check_finite", "hinged", "learn_block", "marginal"]


class Work(NamedTuple):
    """Arrays that a batch is learned in: the rows it touches, and the intercepts."""

    weights: Array
    gained: FloatArray
    intercepts: Array
    intercept_gained: FloatArray


def learn_block(
    work: Work, alpha: float, z: AnyMatrix, h: Array, young: IntArray, *, keep: float, binary: bool
) -> None:
    """Write what a block teaches into the arrays.

    Parameters
    ----------
    work : Work
    alpha : float
        The penalty.
    z : (n, m) array or sparse array
        The rows.
    h : (n, k) array
        Their targets.
    young : array of int
        Targets of the young generation, which has a precision of its own.
    keep : float
        What is kept of the precision gained before.
    binary : bool
        Whether targets are labels: 0, 1, or NaN where not known.
    """
    errors = h - z @ work.weights
    errors -= work.intercepts
    if binary:
        errors = hinged(errors, h)
    if keep != 1.0:
        np.multiply(work.gained, keep, out=work.gained)
        np.multiply(work.intercept_gained, keep, out=work.intercept_gained)
    block = products.block_of(z)
    touched, squares, pulls = block.touched, block.squares(), []
    for generation in range(2 if len(young) else 1):
        precision = alpha + work.gained[touched, generation]
        freedom = 1.0 / (INTERCEPT + float(work.intercept_gained[generation]))
        variance = _spread(1.0 / precision, touched, z)
        inverse = products.block_inverse(block, variance, freedom)
        left = marginal(precision, block.quadratic(inverse), squares)
        work.gained[touched, generation] = left - alpha
        total = float(inverse.sum(dtype=float))
        gain = 1.0 / freedom / max(1.0 - total * freedom, 1.0 / (1.0 + z.shape[0] * freedom))
        work.intercept_gained[generation] = gain - INTERCEPT
        pull = inverse @ (errors[:, young] if generation else errors)
        pulls.append((pull, freedom * pull.sum(axis=0), variance))
    pull, shift, variance = pulls[0]
    if len(young):
        # These are for the young generation, with its own precision.
        pull[:, young], shift[young] = 0.0, pulls[1][1]
        change = np.zeros((z.shape[1], len(young)), z.dtype)
        block.add_transposed(change, pulls[1][2], pulls[1][0])
        work.weights[:, young] += change
    block.add_transposed(work.weights, variance, pull)
    np.add(work.intercepts, shift, out=work.intercepts)


def _spread(values: FloatArray, touched: IntArray | slice, z: AnyMatrix) -> Array:
    """Put the values of the columns that occur where these are among all."""
    if isinstance(touched, slice):
        return values.astype(z.dtype)
    spread = np.zeros(z.shape[1], z.dtype)
    spread[touched] = values
    return spread


def hinged(errors: Array, h: Array) -> Array:
    """Leave out the errors of scores beyond their target, below 0 or above 1, and of labels that are not known."""
    hinged = np.where(h > 0, np.maximum(errors, 0.0), np.minimum(errors, 0.0))
    if np.isnan(hinged.sum()):
        hinged[np.isnan(h)] = 0.0
    return hinged


def marginal(precision: FloatArray, q: FloatArray, squares: FloatArray) -> FloatArray:
    """Compute the precision after a block: that of columns taken for independent is never exceeded, nor lost."""
    with np.errstate(divide="ignore"):
        left = precision / np.maximum(1.0 - q / precision, 0.0)
    return np.clip(left, precision, precision + squares)


def check_finite(weights: Array, intercepts: Array) -> None:
    """Refuse what has overflowed."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = weights.sum(dtype=float) + intercepts.sum(dtype=float)
    if not np.isfinite(total):
        raise DivergenceError("Y or X holds values so large that sums of them overflow: scale them down.")
