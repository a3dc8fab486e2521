"""Sparse vectors from a few of their projections: orthogonal matching pursuit, CoSaMP and the lasso path.

Each finds, for every row ``h`` of ``H``, a vector ``y`` with at most ``s`` entries other than zero for which ``y A``
is near ``h``; ``A`` has a row, of length one, for each entry of ``y``. All rows are worked on at once, one step at a
time.

References
----------
Pati, Y., Rezaiifar, R. and Krishnaprasad, P.: Orthogonal matching pursuit. Asilomar Conference (1993).

Needell, D. and Tropp, J.: CoSaMP: iterative signal recovery from incomplete and inaccurate samples. Applied and
Computational Harmonic Analysis 26 (2009).

Efron, B., Hastie, T., Johnstone, I. and Tibshirani, R.: Least angle regression. Annals of Statistics 32 (2004).
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import lars_path

from labelrace.typing import FloatArray, IntArray

# A direction of which less than this is left beside those chosen before is a combination of them.
_DEPENDENT = 1e-10
_MOST_ROUNDS = 20


def matching_pursuit(H: FloatArray, A: FloatArray, s: int) -> FloatArray:
    """Add, ``s`` times, the entry that is most like the residual, and fit all chosen anew.

    Costs ``s k l`` a row. The chosen rows of ``A`` are made orthogonal one by one, so that a fit is a subtraction.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> matching_pursuit(np.array([[3.0, 4.0]]), A, 1)
    array([[0., 0., 5.]])
    """
    # As many entries as there are projections leave no residual.
    n, l, s = len(H), len(A), min(s, *A.shape)  # noqa: E741
    rows = np.arange(n)
    residual = H.copy()
    basis, along = np.zeros((n, s, A.shape[1])), np.zeros((n, s))
    triangle, support = np.tile(np.eye(s), (n, 1, 1)), np.zeros((n, s), dtype=np.intp)
    is_free, goes_on = np.ones((n, l), dtype=bool), np.ones(n, dtype=bool)
    for step in range(s):
        chosen = np.where(is_free, np.abs(residual @ A.T), -1.0).argmax(axis=1)
        is_free[rows, chosen] = False
        support[:, step] = chosen
        direction = A[chosen]
        for _ in range(2):
            # Twice is enough for orthogonality to the last digits.
            shares = np.einsum("ntk,nk->nt", basis, direction)
            triangle[:, :, step] += shares * (np.arange(s) < step)
            direction = direction - np.einsum("nt,ntk->nk", shares, basis)
        length = np.linalg.norm(direction, axis=1)
        goes_on &= length > _DEPENDENT
        direction = np.where(goes_on, 1.0 / np.maximum(length, _DEPENDENT), 0.0)[:, None] * direction
        triangle[:, step, step] = np.where(goes_on, length, 1.0)
        basis[:, step] = direction
        along[:, step] = np.einsum("nk,nk->n", direction, residual)
        residual -= along[:, step, None] * direction
    values = np.linalg.solve(triangle, along[:, :, None])[:, :, 0] if n else along
    # Where an entry was dependent the pursuit ended there: what was chosen after it has no part.
    found = np.zeros((n, l))
    found[rows[:, None], support] = np.where(np.abs(basis).sum(axis=2) > 0, values, 0.0)
    return found


def cosamp(H: FloatArray, A: FloatArray, s: int) -> FloatArray:
    """Join the ``2 s`` entries most like the residual with those held, fit them, hold the ``s`` largest; repeat.

    Ends when what is held stays the same, after 20 rounds at the most. A round costs a singular value decomposition of
    ``3 s × k`` a row.
    """
    n, l = len(H), len(A)  # noqa: E741
    found, active = np.zeros((n, l)), np.arange(n)
    for _ in range(_MOST_ROUNDS):
        if not len(active):
            break
        held, here = found[active], H[active]
        alike = _largest(np.abs((here - held @ A) @ A.T), min(2 * s, l))
        kept = _largest(np.abs(held), min(s, l))
        # An entry that is zero is not held: the first of those alike stands in its place.
        kept = np.where(np.take_along_axis(held, kept, axis=1) != 0, kept, alike[:, :1])
        updated = _pruned(_fitted(here, A, np.concatenate([alike, kept], axis=1)), s)
        found[active] = updated
        active = active[np.abs(updated - held).max(axis=1) > 1e-12 * np.abs(updated).max(axis=1)]
    return found


def _fitted(H: FloatArray, A: FloatArray, candidates: IntArray) -> FloatArray:
    """Fit the candidates of each row by least squares of least length; entries that come twice count once."""
    order = np.sort(candidates, axis=1)
    is_new = np.ones(order.shape, dtype=bool)
    is_new[:, 1:] = order[:, 1:] != order[:, :-1]
    values = np.einsum("nkt,nk->nt", np.linalg.pinv(A[order] * is_new[:, :, None]), H)
    fitted, (rows, places) = np.zeros((len(H), len(A))), np.nonzero(is_new)
    fitted[rows, order[rows, places]] = values[rows, places]
    return fitted


def _largest(values: FloatArray, count: int) -> IntArray:
    """List the columns of the largest values of each row; of equal ones the first."""
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


def _pruned(values: FloatArray, s: int) -> FloatArray:
    """Keep the ``s`` largest entries of each row."""
    kept = _largest(np.abs(values), min(s, values.shape[1]))
    pruned, rows = np.zeros_like(values), np.arange(len(values))[:, None]
    pruned[rows, kept] = values[rows, kept]
    return pruned


def lasso(H: FloatArray, A: FloatArray, s: int) -> FloatArray:
    """Follow each row's lasso path to the last point with at most ``s`` entries other than zero; row by row."""
    found = np.zeros((len(H), len(A)))
    for row, h in enumerate(H):
        _, _, path = lars_path(np.ascontiguousarray(A.T), h, method="lasso", max_iter=4 * s + 10)
        few = np.flatnonzero((path != 0).sum(axis=0) <= s)
        found[row] = path[:, few[-1]]
    return found
