"""The penalty of ridge regression, chosen by leave-one-out errors."""

from __future__ import annotations

import itertools

import numpy as np

from labelrace.learners import blocks
from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["ALPHAS", "best_alpha"]

# Penalties to choose from, for rows of length one.
ALPHAS = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
# Rows whose errors are computed together, at the least.
_BLOCK = 128


def best_alpha(Z: AnyMatrix, H: FloatArray) -> float:
    """Choose the penalty with the smallest leave-one-out error of ridge regression, over all targets and blocks."""
    if Z.shape[0] < 2:
        return float(ALPHAS[len(ALPHAS) // 2])
    # In blocks, as the eigenvalues of two halves cost a quarter of those of all.
    n_blocks = max(1, Z.shape[0] // _BLOCK)
    places = np.arange(n_blocks + 1) * Z.shape[0] // n_blocks
    errors = np.sum([_left_out_errors(Z[a:b], H[a:b]) for a, b in itertools.pairwise(places)], axis=0)
    # Of equals, as where a target never varies, the most cautious.
    return float(ALPHAS[::-1][int(np.argmin(errors[::-1]))])


def _left_out_errors(Z: AnyMatrix, H: FloatArray) -> FloatArray:
    """Sum the squares of the leave-one-out errors for each penalty.

    With ``K = ZZᵀ = U diag(v) Uᵀ`` and the residual matrix ``R = (K/α + I)⁻¹``, the error of row ``i`` without itself
    is ``(R H)ᵢ / Rᵢᵢ``. Targets are taken from their means, which stand for the intercepts.
    """
    Z, _ = blocks.compact(Z)
    kernel = blocks.weighted_gram(Z, np.ones(Z.shape[1], Z.dtype))
    values, vectors = np.linalg.eigh(kernel.astype(float, copy=False))
    squares, errors = vectors * vectors, []
    # Targets too large to be squared are for the learners to refuse.
    with np.errstate(over="ignore", invalid="ignore"):
        along = vectors.T @ (H - H.mean(axis=0))
        for alpha in ALPHAS:
            shrink = 1.0 / (np.maximum(values, 0.0) / alpha + 1.0)
            left_out = (vectors @ (shrink[:, None] * along)) / (squares @ shrink)[:, None]
            errors.append(float(np.einsum("ij,ij->", left_out, left_out)))
    return np.array(errors)
