"""The penalty of ridge regression, chosen by leave-one-out errors that one eigendecomposition gives.

With ``ZZᵀ = U diag(v) Uᵀ``, the inverse of ``M = ZZᵀ/α + 1/d_b + I`` costs two products for each penalty α. The score
that a row has in a model that learned all other rows is ``s = y - (M⁻¹ y) / diag(M⁻¹)`` (Cook and Weisberg, "Residuals
and influence in regression", 1982).
"""

from __future__ import annotations

import numpy as np

from labelrace.typing import FloatArray

# Penalties to choose from, for rows of length one.
ALPHAS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
# What the best of them is multiplied by: blocks that come later are learned less exactly.
_MARGIN = 1.25
# Precision of the intercept before the first row.
INTERCEPT = 1.0
# Scores that are computed at once.
_CELLS = 1 << 22


def best_alpha(values: FloatArray, vectors: FloatArray, H: FloatArray, *, clip: bool) -> float:
    """Choose the penalty: a quarter above that with the smallest leave-one-out error, of equals the largest.

    Parameters
    ----------
    values, vectors : (n,) and (n, n) arrays
        Eigenvalues and eigenvectors of ``ZZᵀ``.
    H : (n, k) array
        The targets.
    clip : bool
        Whether targets are labels, so that scores below 0 and above 1 are as good as 0 and 1.
    """
    if len(values) < 2:
        return _MARGIN * float(ALPHAS[len(ALPHAS) // 2])
    errors, ones = np.zeros(len(ALPHAS)), vectors.sum(axis=0)
    squares, size = vectors * vectors, max(1, _CELLS // len(H))
    for first in range(0, H.shape[1], size):
        part = H[:, first : first + size]
        along = vectors.T @ part
        for place, alpha in enumerate(ALPHAS):
            # As `inverse_of` has it, but for no more than its diagonal and its product with the targets.
            shrink = 1.0 / (values / alpha + 1.0)
            sums = vectors @ (shrink * ones)
            share = sums / (INTERCEPT + sums.sum())
            diagonal = squares @ shrink - sums * share
            left_out = vectors @ (shrink[:, None] * along) - share[:, None] * (sums @ part)
            left_out /= diagonal[:, None]
            if clip:
                left_out = part - np.clip(part - left_out, 0.0, 1.0)
            errors[place] += np.square(left_out).sum()
    # What is equal but for rounding, as where a target is constant, is equal.
    least = errors.min() * (1 + 1e-9) + 1e-300
    return _MARGIN * float(ALPHAS[np.flatnonzero(errors <= least).max(initial=0)])


def inverse_of(values: FloatArray, vectors: FloatArray, alpha: float) -> FloatArray:
    """Compute ``(ZZᵀ/α + 1/d_b + I)⁻¹`` from the eigenvalues and eigenvectors of ``ZZᵀ``."""
    inverse = (vectors / (values / alpha + 1.0)) @ vectors.T
    # The intercept adds a matrix of rank one (Sherman and Morrison, 1950).
    sums = inverse.sum(axis=1)
    inverse -= np.outer(sums, sums / (INTERCEPT + sums.sum()))
    return inverse
