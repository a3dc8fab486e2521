"""What a block of rows teaches the learners of `labelrace.linear.rls`: the step that its docstring derives."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import NamedTuple

import numpy as np
import scipy.sparse

from labelrace.exceptions import DivergenceError
from labelrace.linear import block_loops, scaling
from labelrace.linear import blocks as products
from labelrace.linear.blocks import BLOCK, SPARSE_BLOCK
from labelrace.linear.penalty import INTERCEPT
from labelrace.linear.scaling import ScalingState
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Share of non-zeros, of the columns that occur, from which sparse rows are learned as dense ones.
_DENSE = 0.1


class Work(NamedTuple):
    """Arrays that a batch is learned in: the rows it touches, and the intercepts."""

    weights: Array
    gained: FloatArray
    intercepts: Array
    intercept_gained: FloatArray


def learn_blocks(
    work: Work,
    alpha: float,
    Z: AnyMatrix,
    H: Array,
    young: IntArray,
    *,
    keep: Callable[[int], float],
    binary: bool,
    compiled: bool = False,
) -> None:
    """Write what rows teach into the arrays, block by block.

    Parameters
    ----------
    work : Work
    alpha : float
        The penalty.
    Z : (n, m) array or sparse array
        The rows.
    H : (n, k) array
        Their targets.
    young : array of int
        Targets of the young generation, which has a precision of its own.
    keep : function from a number of rows to float
        What is kept of the precision gained before them.
    binary : bool
        Whether targets are labels: 0, 1, or NaN where not known.
    compiled : bool
        Whether to use compiled loops, where there are some: for sparse rows whose targets are no labels.
    """
    size = SPARSE_BLOCK if scipy.sparse.issparse(Z) else BLOCK
    if scipy.sparse.issparse(Z) and Z.nnz > _DENSE * Z.shape[0] * Z.shape[1]:
        Z = Z.toarray()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, Z.shape[0], size):
            h = H[start : start + size]
            if compiled and scipy.sparse.issparse(Z) and not (binary or len(young)):
                _learn_block_compiled(work, alpha, Z, start, h, keep=keep(len(h)))
                continue
            # Slices of sparse rows are slow to make, also of all.
            z = Z if Z.shape[0] <= size else Z[start : start + size]
            _learn_block(work, alpha, z, h, young, keep=keep(len(h)), binary=binary)


def _learn_block(
    work: Work, alpha: float, z: AnyMatrix, h: Array, young: IntArray, *, keep: float, binary: bool
) -> None:
    """Write what a block teaches into the arrays; ``keep`` is what is kept of the precision gained before it."""
    errors = h - z @ work.weights
    errors -= work.intercepts
    if binary:
        errors = hinged(errors, h)
    _fade(work, keep)
    block = products.block_of(z)
    touched, squares, pulls = block.touched, block.squares(), []
    for generation in range(2 if len(young) else 1):
        precision = alpha + work.gained[touched, generation]
        freedom = 1.0 / (INTERCEPT + float(work.intercept_gained[generation]))
        variance = _spread(1.0 / precision, touched, z)
        inverse = products.block_inverse(block, variance, freedom)
        left = marginal(precision, block.quadratic(inverse), squares)
        work.gained[touched, generation] = left - alpha
        _gain_intercepts(work, generation, inverse, freedom)
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


def _learn_block_compiled(work: Work, alpha: float, Z: AnyMatrix, start: int, h: Array, *, keep: float) -> None:
    """Learn a block by compiled loops, from a row of ``Z`` on; for one generation of targets that are no labels."""
    _fade(work, keep)
    freedom = 1.0 / (INTERCEPT + float(work.intercept_gained[0]))
    block, known = (Z.indptr[start : start + len(h) + 1], Z.indices, Z.data), (work.weights, work.gained)
    errors, matrix, by_column = block_loops.begin(block, h, *known, work.intercepts, alpha, freedom)
    inverse = products.inverse_of(matrix)
    _gain_intercepts(work, 0, inverse, freedom)
    pull = inverse @ errors
    block_loops.end(block, by_column, inverse, pull, *known, alpha)
    np.add(work.intercepts, freedom * pull.sum(axis=0), out=work.intercepts)


def _fade(work: Work, keep: float) -> None:
    """Keep a share of the precision that was gained."""
    if keep != 1.0:
        np.multiply(work.gained, keep, out=work.gained)
        np.multiply(work.intercept_gained, keep, out=work.intercept_gained)


def _gain_intercepts(work: Work, generation: int, inverse: Array, freedom: float) -> None:
    """Write in the precision that a block, with this inverse of its matrix, leaves to the intercepts."""
    total = float(inverse.sum(dtype=float))
    gain = 1.0 / freedom / max(1.0 - total * freedom, 1.0 / (1.0 + len(inverse) * freedom))
    work.intercept_gained[generation] = gain - INTERCEPT


def follow_scaling(work: Work, before: ScalingState, after: ScalingState, is_wrong: BoolArray) -> Work:
    """Make weights for columns of which some were wrongly scaled, so that scores stay; these are learned anew."""
    scales = scaling.scale(before)
    ratio = np.where(is_wrong, scaling.scale(after) / scales, 1.0)
    shift = np.where(is_wrong, (after.mean - before.mean) / scales, 0.0)
    m, weights, gained = len(ratio), work.weights.copy(), work.gained.copy()
    intercepts = work.intercepts + shift @ weights[:m]
    # Random features are made of all columns.
    weights[:m] *= ratio[:, None]
    weights[m:] *= 1.0 - is_wrong.mean()
    gained[:m][is_wrong], gained[m:] = 0.0, 0.0
    return Work(weights, gained, intercepts, work.intercept_gained)


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


def check_finite(*arrays: Array) -> None:
    """Refuse what has overflowed."""
    # Largest and smallest number are found several times as fast as a sum in double precision.
    if not all(isfinite(array.max(initial=0.0)) and isfinite(array.min(initial=0.0)) for array in arrays):
        raise DivergenceError("Y or X holds values so large that sums of them overflow: scale them down.")
