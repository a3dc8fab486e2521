"""One step of recursive least squares: how a block of rows changes weights and their precision.

Recursive least squares keeps, beside the weights ``W``, how sure it is of them: a precision matrix ``ZᵀZ + αI``, which
is ``m × m``. Here only a diagonal ``D`` is kept, and a number ``d_b`` for the intercepts ``b``. For the next block of
rows ``Z`` with targets ``Y``,

    M = Z D⁻¹ Zᵀ + 1/d_b + I,    E = Y - ZW - b,    W ← W + D⁻¹ Zᵀ M⁻¹ E,    b ← b + 1ᵀ M⁻¹ E / d_b,

the minimiser of ``|Y - ZW - b|² + |W - W_before|²_D + d_b |b - b_before|²``: an implicit step, stable at any
scale, with no step size to choose. The matrix ``M`` is as large as the block, not as the features; sparse rows stay
sparse, and all targets share it.

*The precision a block leaves* is the marginal one, ``d ← d / (1 - q/d)`` with ``q = diag(Zᵀ M⁻¹ Z)``: one over the
diagonal of ``(D + ZᵀZ)⁻¹``. Adding ``diag(ZᵀZ)`` instead would be right for independent columns only; for others the
precision grows, and the steps shrink, too fast.

*Weights of rows.* A row of weight ``v`` has a squared error that counts ``v`` times: the ``I`` of ``M`` becomes
``diag(1/v)``, which is the row ``v`` times within its block.

Diagonal precision for linear models online is from Crammer, Kulesza and Dredze ("Adaptive regularization of weight
vectors", 2009); implicit steps are treated by Kulis and Bartlett ("Implicit online learning", 2010).
"""

from __future__ import annotations

from math import isnan
from typing import Any, NamedTuple

import numpy as np

from labelrace.linear import blocks
from labelrace.linear.warm_up import INTERCEPT_PRECISION
from labelrace.typing import Array, FloatArray, IntArray

# Largest weight of a row, over the variance of its score: one of more weight is learned as exactly as it can be.
_MAX_WEIGHT = 1e9


class WorkArrays(NamedTuple):
    """Copies that are updated in place while a batch is learned: of its touched columns, and of the intercepts."""

    weights: Array
    extra_precision: FloatArray
    intercepts: Array
    intercept_extra_precision: FloatArray


def learn_block(
    work: WorkArrays,
    alpha: float,
    block: Any,
    h: Array,
    scores: Array,
    recent: IntArray,
    row_weights: FloatArray | None,
    *,
    binary: bool,
) -> None:
    """Update the arrays by a `DenseBlock` or the like; ``recent`` are the targets with a precision of their own.

    ``h`` are the targets of its rows, ``scores`` what they are predicted to be.
    """
    n_rows, squares = float(len(h)), block.squares
    if row_weights is not None:
        n_rows = float(row_weights.sum())
        squares = (row_weights @ (block.z * block.z))[block.touched]
    errors = h - scores
    if binary:
        # Neither scores beyond their target, below 0 or above 1, nor labels that are not known have an error.
        errors = np.where(h > 0, np.maximum(errors, 0.0), np.minimum(errors, 0.0))
        # One NaN makes the sum NaN.
        if isnan(np.add.reduce(errors, axis=None)):
            errors[np.isnan(h)] = 0.0
    groups = [(work.weights, work.intercepts, errors)]
    if len(recent):
        # Recent labels are learned separately, and then replace what the others' precision has made of them.
        groups.append((work.weights.take(recent, axis=1), work.intercepts[recent], errors[:, recent]))
    for group, (weights, intercepts, lacking) in enumerate(groups):
        precision = alpha + work.extra_precision[block.touched, group]
        variance = 1.0 / precision
        intercept_variance = 1.0 / (INTERCEPT_PRECISION + float(work.intercept_extra_precision[group]))
        M = block.gram(variance)
        M += M.dtype.type(intercept_variance)
        diagonal = M.reshape(-1)[:: len(M) + 1]
        diagonal += 1.0 if row_weights is None else 1.0 / np.minimum(row_weights, _MAX_WEIGHT / diagonal)
        inverse = blocks.inverse_of(M, whole=row_weights is not None)
        marginal = blocks.marginal_precision(precision, block.quadratic(inverse), squares)
        work.extra_precision[block.touched, group] = marginal - alpha
        # The share of the intercepts' variance that remains, which is not less than if the rows were independent.
        remaining = 1.0 - float(inverse.sum(dtype=float)) * intercept_variance
        remaining = max(remaining, 1.0 / (1.0 + n_rows * intercept_variance))
        work.intercept_extra_precision[group] = 1.0 / intercept_variance / remaining - INTERCEPT_PRECISION
        solution = np.dot(inverse, lacking)
        block.add_transposed(weights, variance, solution)
        np.add(intercepts, intercept_variance * np.add.reduce(solution, axis=0), out=intercepts)
    if len(recent):
        work.weights[:, recent], work.intercepts[recent] = groups[1][:2]
