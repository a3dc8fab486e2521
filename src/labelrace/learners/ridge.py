"""A bank of ridge regressors: all pseudo labels share ``XᵀX``.

The state is the sums of `labelrace.learners.sums`, without ``HᵀH``, read as `labelrace.learners.regression` reads them.
The intercept is not penalised. Exact whatever the batches, and mergeable; but the state is ``m × m`` and solving costs
``m³``, so it is for up to a few thousand features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from labelrace.base import parameters
from labelrace.base.feature_kinds import FeatureKinds, KindsLike
from labelrace.base.sparse import dense
from labelrace.learners import sums
from labelrace.learners.bank import Bank, Task
from labelrace.learners.regression import Linear, Regression
from labelrace.learners.sums import MOST_COLUMNS, Sums, matrix_of
from labelrace.typing import AnyMatrix, FloatArray


class RidgeState(NamedTuple):
    """Sums of features and pseudo labels."""

    kinds: FeatureKinds
    sums: Annotated[sums.State, "f=M", "y=t"]


class Derived(NamedTuple):
    """The linear models."""

    kinds: FeatureKinds
    linear: Linear


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
    >>> from labelrace.base.feature_kinds import FeatureKinds
    >>> from labelrace.learners.ridge import Ridge
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> bank = Ridge(alpha=0.0)
    >>> state = bank.update(bank.init(FeatureKinds.numbers(1), n_components=1), X, 3 * X - 1)
    >>> bank.predict(bank.derive(state), np.array([[5.0]])).round(6)
    array([[14.]])
    """

    alpha: float = 1.0

    keeper: ClassVar[Sums] = Sums(keeps_yy=False, always_dense=True)
    task: ClassVar[Task] = "regression"
    state_type: ClassVar[type] = RidgeState
    unweighted: ClassVar[None] = None

    def __post_init__(self) -> None:
        parameters.check_number("alpha", self.alpha, 0)

    def why_unmergeable(self, one: RidgeState, other: RidgeState) -> str | None:
        """Return why two states cannot be merged exactly: only where they know different values of nominal features."""
        same = np.array_equal(one.kinds.n_values, other.kinds.n_values)
        return None if same else "the values of their nominal features come from each one's first batch"

    def yy_columns(self, n_targets: int) -> int:
        """Compute the number of columns of ``HᵀH`` that are kept."""
        return self.keeper.yy_columns(n_targets)

    def parts(self) -> Mapping[str, Any]:
        """Return what keeps the sums."""
        return {"sums": self.keeper}

    def init(self, kinds: KindsLike, n_components: int) -> RidgeState:
        """Make empty sums.

        Raises
        ------
        ValueError
            Where the features are too many for an ``m × m`` state.
        """
        kinds = FeatureKinds.of(kinds)
        m = kinds.width
        if m > MOST_COLUMNS:
            raise ValueError(
                f"The ridge learner keeps an m × m matrix, which is {8e-9 * m * m:.0f} GB for {m} feature columns: "
                f"use learner='sgd', or at most {MOST_COLUMNS} columns."
            )
        return RidgeState(kinds, self.keeper.init(m, n_components))

    def update(
        self, state: RidgeState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None
    ) -> RidgeState:
        """Learn the rows of ``X`` with their pseudo labels ``H``."""
        return state._replace(sums=self.keeper.update(state.sums, state.kinds.design(X), H, row_weights))

    def derive(self, state: RidgeState) -> Derived:
        """Solve for the weights."""
        # Without a penalty the scale of a column does not matter, and what is zero beside the others is told by it.
        reading = Regression(self.alpha, standardises=self.alpha == 0).read(state.sums)
        products = dense(matrix_of(state.sums.xy, (len(state.sums.shift), len(state.sums.sum_y))))
        return Derived(state.kinds, reading.fit(reading.cross(products, state.sums.sum_y), state.sums.sum_y))

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return derived.linear.predict(derived.kinds.design(X))
