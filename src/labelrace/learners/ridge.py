"""A bank of ridge regressors: all pseudo labels share ``XᵀX``.

The state is the sums ``XᵀX``, ``XᵀH``, ``Xᵀ1`` and ``Hᵀ1``, taken about a shift near the features' means so that
centring them afterwards loses no digits. The intercept is not penalised. Exact whatever the batches, and mergeable; but
the state is ``m × m`` and solving costs ``m³``, so it is for up to a few thousand features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from labelrace import parameters
from labelrace.core.linalg import bounded_product, generalised_inverse
from labelrace.exceptions import DivergenceError
from labelrace.learners import columns
from labelrace.learners.bank import Bank, Task
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# 20,000 columns make a state of 3.2 GB, and minutes for one solution.
_MOST_COLUMNS = 20_000
# Sums of squares beyond this leave no room for solving.
_LARGEST = 1e300


class RidgeState(NamedTuple):
    """Sums about a shift."""

    n_values: Annotated[IntArray, "m", "values"]  # number of values of each nominal feature, 0 for a numeric one
    shift: Annotated[FloatArray, "M"]  # what is subtracted from each column of the design first
    rows: Annotated[float, ">=0"]  # rows learned
    # Sums of features and of pseudo labels.
    sum_x: Annotated[FloatArray, "M"]
    sum_h: Annotated[FloatArray, "t"]
    # ``XᵀX`` and ``XᵀH``.
    gram: Annotated[FloatArray, "M M"]
    cross: Annotated[FloatArray, "M t"]


class Derived(NamedTuple):
    """The linear models."""

    n_values: IntArray
    weights: FloatArray
    intercepts: FloatArray


@dataclass(frozen=True)
class Ridge(Bank[RidgeState]):
    """Ridge regressors, one for each pseudo label.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights; the same as scikit-learn's ``Ridge(alpha)`` on all rows so far.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.learners.ridge import Ridge
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> bank = Ridge(alpha=0.0)
    >>> state = bank.update(bank.init(np.array([0]), n_components=1), X, 3 * X - 1)
    >>> bank.predict(bank.derive(state), np.array([[5.0]])).round(6)
    array([[14.]])
    """

    alpha: float = 1.0

    task: ClassVar[Task] = "regression"
    state_type: ClassVar[type] = RidgeState

    def __post_init__(self) -> None:
        parameters.check_number("alpha", self.alpha, 0)

    def why_unmergeable(self, one: RidgeState, other: RidgeState) -> str | None:
        """Say why two states cannot be merged exactly: only where they know different values of nominal features."""
        same = np.array_equal(one.n_values, other.n_values)
        return None if same else "the values of their nominal features come from each one's first batch"

    def init(self, n_values: IntArray, n_components: int) -> RidgeState:
        """Make empty sums.

        Raises
        ------
        ValueError
            Where the features are too many for an ``m × m`` state.
        """
        m = columns.width(n_values)
        _refuse_too_many(m)
        k = n_components
        return RidgeState(n_values, np.zeros(m), 0.0, np.zeros(m), np.zeros(k), np.zeros((m, m)), np.zeros((m, k)))

    def update(self, state: RidgeState, X: AnyMatrix, H: AnyMatrix) -> RidgeState:
        """Learn the rows of ``X`` with their pseudo labels ``H``."""
        X = columns.design(X, state.n_values)
        sparse = scipy.sparse.issparse(X)
        with np.errstate(over="ignore", invalid="ignore"):
            if state.rows == 0 and not sparse:
                state = state._replace(shift=X.mean(axis=0))
            Z = X if sparse else X - state.shift
            batch = RidgeState(
                state.n_values,
                np.zeros_like(state.shift) if sparse else state.shift,
                float(H.shape[0]),
                np.asarray(Z.sum(axis=0), dtype=float),
                np.asarray(H.sum(axis=0), dtype=float),
                columns.dense(Z.T @ Z),
                columns.dense(Z.T @ H),
            )
        return self.merge(state, batch)

    def derive(self, state: RidgeState) -> Derived:
        """Solve for the weights."""
        mean_x, mean_h = state.sum_x / state.rows, state.sum_h / state.rows
        gram = state.gram - np.outer(state.sum_x, mean_x)
        gram[np.diag_indices_from(gram)] += self.alpha
        cross = state.cross - np.outer(state.sum_x, mean_h)
        weights = _solve(gram, cross) if self.alpha > 0 else generalised_inverse(gram) @ cross
        return Derived(state.n_values, weights, mean_h - (mean_x + state.shift) @ weights)

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return bounded_product(columns.design(X, derived.n_values), derived.weights, derived.intercepts)

    def merge(self, one: RidgeState, other: RidgeState) -> RidgeState:
        """Add two states, the other one's sums turned into sums about the first one's shift."""
        if one.rows == 0 and not one.shift.any():
            return _finite(other)
        sum_x, gram, cross = other.sum_x, other.gram, other.cross
        with np.errstate(over="ignore", invalid="ignore"):
            step = other.shift - one.shift
            if step.any():
                outer = np.outer(sum_x, step)
                gram = gram + outer + outer.T + other.rows * np.outer(step, step)
                cross = cross + np.outer(step, other.sum_h)
                sum_x = sum_x + other.rows * step
            merged = RidgeState(
                one.n_values,
                one.shift,
                one.rows + other.rows,
                one.sum_x + sum_x,
                one.sum_h + other.sum_h,
                one.gram + gram,
                one.cross + cross,
            )
        return _finite(merged)

    def emptied(self, state: RidgeState) -> RidgeState:
        """Make the state that has learned nothing, but knows the values of nominal features."""
        return self.init(state.n_values, len(state.sum_h))

    def reordered(self, state: RidgeState, targets: IntArray | None, features: IntArray) -> RidgeState:
        """Put targets and features in another order."""
        order = columns.order_of(state.n_values, features).design
        targets = np.arange(len(state.sum_h)) if targets is None else targets
        return RidgeState(
            state.n_values[features],
            state.shift[order],
            state.rows,
            state.sum_x[order],
            state.sum_h[targets],
            state.gram[np.ix_(order, order)],
            state.cross[np.ix_(order, targets)],
        )

    def grow_components(self, state: RidgeState, n_components: int) -> RidgeState:
        """Add regressors that have seen no pseudo label but 0."""
        zeros = np.zeros((len(state.cross), n_components - len(state.sum_h)))
        sum_h = columns.pad_rows(state.sum_h, n_components)
        return state._replace(sum_h=sum_h, cross=np.hstack([state.cross, zeros]))

    def grow_features(self, state: RidgeState, n_values: IntArray) -> RidgeState:
        """Add features that have been 0, or of the first value, in all rows."""
        n_values = columns.appended(state.n_values, n_values)
        kept = columns.places(state.n_values, n_values)
        wider = self.init(n_values, len(state.sum_h))._replace(rows=state.rows, sum_h=state.sum_h)
        wider.shift[kept], wider.sum_x[kept], wider.cross[kept] = state.shift, state.sum_x, state.cross
        wider.gram[np.ix_(kept, kept)] = state.gram
        return wider


def _finite(state: RidgeState) -> RidgeState:
    """Refuse sums that have overflown, or would in solving."""
    if not np.abs(state.gram.diagonal()).max(initial=0.0) < _LARGEST:
        raise DivergenceError(
            "X holds values so large that the sums of their squares overflow. Scale the features (StandardScaler)."
        )
    return state


def _refuse_too_many(m: int) -> None:
    if m > _MOST_COLUMNS:
        raise ValueError(
            f"The ridge learner keeps an m × m matrix, which is {8e-9 * m * m:.0f} GB for {m} feature columns: "
            f"use learner='sgd', or at most {_MOST_COLUMNS} columns."
        )


def _solve(gram: FloatArray, cross: FloatArray) -> FloatArray:
    """Solve a penalised system by Cholesky; where round-off spoils that, on its range."""
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram, check_finite=False), cross, check_finite=False)
    except scipy.linalg.LinAlgError:
        return generalised_inverse(gram) @ cross
