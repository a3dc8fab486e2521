"""Ridge regression read from running sums, for any targets whose products with the features are known.

With ``G`` the features' Gram matrix and ``C`` their products with some targets, the weights are ``(G + λI)⁻¹ C``. What
``G`` is depends on the form:

*Free intercept*, the library's: columns are centred, and if wanted divided by their standard deviations; the intercept
is not penalised. Centring and scaling are linear, so they are done on the sums when these are read: the result is that
of standardising all rows at once, whatever the batches were.

*Penalised intercept*, that of the published programs: columns are taken unchanged, with a column of ones before them
that is penalised like the others. Where these programs need the hat matrix, they leave the column of ones out.

*The penalty* is given, or chosen from the sums by generalised cross-validation over a grid: ``GCV(λ) = RSS(λ) / (N - 1
- df(λ))²``, for all labels together. With ``G = U d Uᵀ`` both follow for every ``λ`` from ``UᵀC``. The choice is a
function of the sums, so it too does not depend on batches. It costs an eigendecomposition, some ``9 m³``, instead of a
Cholesky factor, ``m³ / 3``.

References
----------
Golub, G., Heath, M. and Wahba, G.: Generalized cross-validation as a method for choosing a good ridge parameter.
Technometrics 21 (1979).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg

from labelrace.base.linalg import bounded_product
from labelrace.base.sparse import dense
from labelrace.learners.sums import State, matrix_of
from labelrace.typing import AnyMatrix, FloatArray

# Candidates for the penalty, relative to the mean of the Gram matrix's diagonal.
_GRID = 10.0 ** np.arange(-5.0, 2.25, 0.5)
# Labels whose products with the features are looked at together.
_BLOCK = 4096


class Linear(NamedTuple):
    """Linear models: weights (m, k) and intercepts (k,)."""

    weights: FloatArray
    intercepts: FloatArray

    def predict(self, X: AnyMatrix) -> FloatArray:
        """Compute the values of all targets."""
        return bounded_product(X, self.weights, self.intercepts)


class Factor(NamedTuple):
    """``G + λI = L Lᵀ``: a Cholesky factor ``L``, or eigenvectors and shifted eigenvalues with ``L = U √values``."""

    matrix: FloatArray
    values: FloatArray | None

    def whiten(self, C: FloatArray) -> FloatArray:
        """Compute ``L⁻¹ C``, whose Gram matrix is ``Cᵀ(G + λI)⁻¹C``."""
        if self.values is None:
            return scipy.linalg.solve_triangular(self.matrix, C, lower=True, check_finite=False)
        return (self.matrix.T @ C) / np.sqrt(self.values)[:, None]

    def unwhiten(self, Z: FloatArray) -> FloatArray:
        """Compute ``L⁻ᵀ Z``."""
        if self.values is None:
            return scipy.linalg.solve_triangular(self.matrix, Z, lower=True, trans="T", check_finite=False)
        return self.matrix @ (Z / np.sqrt(self.values)[:, None])

    def solve(self, C: FloatArray) -> FloatArray:
        """Compute ``(G + λI)⁻¹ C``."""
        return self.unwhiten(self.whiten(C))


@dataclass(frozen=True)
class Reading:
    """What was read of the features' sums.

    Products of features and targets, ``C``, are those of the columns as the regression has them: centred and scaled, or
    unchanged. `cross` makes them of sums.
    """

    rows: float  # ``N``
    gram: FloatArray  # (m, m): ``G``, without a column of ones
    totals: FloatArray  # (m,): sums of the columns: 0 where they are centred
    scale: FloatArray  # (m,): what columns are divided by; infinite for one that is constant
    origin: FloatArray  # (m,): means of the columns; 0 where the intercept is penalised
    # (m,), those of the sums.
    shift: FloatArray
    sum_x: FloatArray
    factor: Factor  # of ``G + λI``
    with_ones: Factor | None = None  # of the same with a column of ones before it, where the intercept is penalised
    penalty: float = 0.0  # ``λ``

    def cross(self, products: AnyMatrix, total: FloatArray) -> FloatArray:
        """Make ``C`` of ``Σ (x - shift) zᵀ`` and ``Σz``."""
        if self.with_ones is not None:
            return products + np.outer(self.shift, total)
        return (products - np.outer(self.sum_x, total / self.rows)) / self.scale[:, None]

    def fit(self, C: FloatArray, total: FloatArray) -> Linear:
        """Fit targets with the products ``C`` and the sums ``total``."""
        if self.with_ones is not None:
            solved = self.with_ones.solve(np.vstack([total, C]))
            return Linear(solved[1:], solved[0])
        weights = self.factor.solve(C) / self.scale[:, None]
        return Linear(weights, total / self.rows - self.origin @ weights)


@dataclass(frozen=True)
class Regression:
    """How the features' sums are read.

    Parameters
    ----------
    penalty : float or None, default=None
        ``λ``; None chooses it by generalised cross-validation.
    standardises : bool, default=True
        Whether columns are divided by their standard deviations.
    penalises_intercept : bool, default=False
        The form of the published programs: columns unchanged, the intercept penalised.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.learners.sums import Sums
    >>> sums, x = Sums(), np.arange(6.0)[:, None]
    >>> state = sums.update(sums.init(1, 1), x, x > 2)
    >>> reading = Regression(penalty=0.0).read(state)
    >>> line = reading.fit(reading.cross(np.array([[4.5]]), np.array([3.0])), np.array([3.0]))
    >>> line.predict(np.array([[2.5]])).round(6)  # (2.5, 0.5) is the mean
    array([[0.5]])
    """

    penalty: float | None = None
    standardises: bool = True
    penalises_intercept: bool = False

    def read(self, state: State, skipped: int = 0) -> Reading:
        """Centre and scale the features' sums, choose the penalty and decompose.

        The penalty is chosen for the labels, without the first ``skipped`` columns that are summed with them.
        """
        rows, mean = max(state.rows, 1e-300), state.sum_x / max(state.rows, 1e-300)
        if self.penalises_intercept:
            return self._read_unchanged(state)
        gram = state.xx - np.outer(state.sum_x, mean)
        scale = self._scale(gram.diagonal() / rows, mean + state.shift)
        gram /= scale[:, None]
        gram /= scale
        reading = Reading(
            rows, gram, np.zeros_like(mean), scale, mean + state.shift, state.shift, state.sum_x, Factor(gram, None)
        )
        factor, penalty = (
            self._chosen(reading, state, skipped) if self.penalty is None else penalised(gram, self.penalty)
        )
        return replace(reading, factor=factor, penalty=penalty)

    def _read_unchanged(self, state: State) -> Reading:
        """Read the sums of the columns as they are, with a column of ones."""
        shift, sum_x, rows = state.shift, state.sum_x, state.rows
        outer = np.outer(sum_x, shift)
        gram = state.xx + outer + outer.T + rows * np.outer(shift, shift)
        totals = sum_x + rows * shift
        augmented = np.block([[np.array([[rows]]), totals[None]], [totals[:, None], gram]])
        penalty = 0.0 if self.penalty is None else self.penalty
        factor, _ = penalised(gram, penalty)
        with_ones, _ = penalised(augmented, penalty)
        ones, zeros = np.ones_like(shift), np.zeros_like(shift)
        return Reading(rows, gram, totals, ones, zeros, shift, sum_x, factor, with_ones, penalty)

    def _scale(self, variance: FloatArray, mean: FloatArray) -> FloatArray:
        """Compute what columns are divided by; one that is constant is divided by infinity."""
        spread = np.sqrt(np.maximum(variance, 0.0))
        varies = spread > 1e-9 * np.abs(mean)
        return np.where(varies, spread if self.standardises else 1.0, np.inf)

    def _chosen(self, reading: Reading, state: State, skipped: int) -> tuple[Factor, float]:
        """Choose the penalty by generalised cross-validation."""
        values, vectors = np.linalg.eigh(reading.gram)
        values = np.maximum(values, 0.0)
        explained = _label_energy(reading, state, vectors, skipped)
        sum_y = state.sum_y[skipped:]
        # Labels are 0 or 1, so that the sum of their squares is their sum.
        variance = float((sum_y * (1.0 - sum_y / reading.rows)).sum())
        # Columns that are constant, as new ones are, do not count.
        size = float(values.sum()) / max(int(np.isfinite(reading.scale).sum()), 1)
        grid = _GRID * size if size > 0 else np.ones(1)
        shrunk = values + grid[:, None]
        residual = np.maximum(variance - ((values + 2.0 * grid[:, None]) / shrunk**2) @ explained, 0.0)
        free = reading.rows - 1.0 - (values / shrunk).sum(axis=1)
        # With fewer rows than columns the smallest penalties leave no degrees of freedom: the largest is then as good.
        gcv = np.where(free > 0, residual / np.maximum(free, 1e-100) ** 2, np.inf)
        penalty = float(grid[gcv.argmin()] if np.isfinite(gcv).any() else grid[-1])
        return Factor(vectors, values + penalty), penalty


def _label_energy(reading: Reading, state: State, vectors: FloatArray, skipped: int) -> FloatArray:
    """Compute the squared length of the labels' products with each eigenvector of the features."""
    n_labels = len(state.sum_y)
    xy = matrix_of(state.xy, (len(state.shift), n_labels))
    energy = np.zeros(vectors.shape[1])
    for start in range(skipped, n_labels, _BLOCK):
        part = slice(start, start + _BLOCK)
        along = vectors.T @ reading.cross(dense(xy[:, part]), state.sum_y[part])
        energy += np.einsum("ij,ij->i", along, along)
    return energy


def penalised(gram: FloatArray, penalty: float) -> tuple[Factor, float]:
    """Factor with a given penalty: by Cholesky; where the matrix is singular, on its range."""
    penalised = gram.copy()
    penalised[np.diag_indices_from(penalised)] += penalty
    try:
        lower = scipy.linalg.cholesky(penalised, lower=True, check_finite=False)
        if penalty > 0 or lower.diagonal().min(initial=1.0) > 1e-7 * lower.diagonal().max(initial=0.0):
            return Factor(lower, None), penalty
    except scipy.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(penalised)
    is_positive = values > len(values) * np.finfo(float).eps * max(values[-1], 1e-300)
    return Factor(vectors, np.where(is_positive, values, np.inf)), penalty
