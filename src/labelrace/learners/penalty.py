"""The penalty of ridge regression, chosen by leave-one-out errors."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.typing import AnyMatrix, FloatArray

__all__ = ["ALPHAS", "best_alpha"]

# Penalties to choose from, for rows of length one.
ALPHAS = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])


def best_alpha(Z: AnyMatrix, H: FloatArray) -> float:
    """Choose the penalty with the smallest leave-one-out error of ridge regression, over all targets.

    With ``K = ZZᵀ = U diag(v) Uᵀ`` and the residual matrix ``R = (K/α + I)⁻¹``, the error of row ``i`` without itself
    is ``(R H)ᵢ / Rᵢᵢ``. Targets are taken from their means, which stand for the intercepts.
    """
    if Z.shape[0] < 2:
        return float(ALPHAS[len(ALPHAS) // 2])
    kernel = Z @ Z.T
    kernel = kernel.toarray() if scipy.sparse.issparse(kernel) else kernel
    values, vectors = np.linalg.eigh(kernel.astype(float, copy=False))
    squares, errors = vectors * vectors, []
    # Targets too large to be squared are for the learners to refuse.
    with np.errstate(over="ignore", invalid="ignore"):
        along = vectors.T @ (H - H.mean(axis=0))
        for alpha in ALPHAS:
            shrink = 1.0 / (np.maximum(values, 0.0) / alpha + 1.0)
            left_out = (vectors @ (shrink[:, None] * along)) / (squares @ shrink)[:, None]
            errors.append(float((left_out**2).sum()))
    # Of equals, as where a target never varies, the most cautious.
    return float(ALPHAS[::-1][int(np.argmin(errors[::-1]))])
