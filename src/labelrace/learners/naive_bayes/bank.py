"""A bank of naive Bayes classifiers on any mixture of numeric and nominal features.

The state is sums: rows of each class, counts of nominal values, moments of numeric ones. One product ``ZᵀH`` updates
them for all pseudo labels, and the log odds of all pseudo labels are products too (see `nominal` and `numeric`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from labelrace.base import growth, parameters
from labelrace.base.feature_kinds import FeatureKinds, KindsLike
from labelrace.base.growth import SAME, SUM, Moves
from labelrace.learners.bank import Bank, Task
from labelrace.learners.naive_bayes import nominal, numeric
from labelrace.learners.naive_bayes.numeric import NumericOdds
from labelrace.typing import AnyMatrix, FloatArray


class NaiveBayesState(NamedTuple):
    """The sums of a bank of ``k`` classifiers."""

    kinds: FeatureKinds
    rows: Annotated[FloatArray, "t+1", SUM]  # rows in which each pseudo label is 1 and, last, all rows
    counts: nominal.Counts  # counts of the nominal features' values
    moments: numeric.Moments  # sums of the numeric features
    precision: Annotated[FloatArray, "d", SAME]  # bin widths of the numeric features, if they are binned


class Derived(NamedTuple):
    """What predicting needs: the kinds of the columns, the prior and each part's log odds."""

    kinds: FeatureKinds
    prior: FloatArray
    nominal: nominal.LogOdds | None
    numeric: NumericOdds | None


@dataclass(frozen=True)
class NaiveBayes(Bank[NaiveBayesState]):
    """Naive Bayes classifiers, one for each pseudo label.

    Nominal features have Laplace-smoothed probabilities, numeric ones are normal within a class. Missing values (NaN)
    are skipped, in learning and in predicting.

    Parameters
    ----------
    numeric : {"density", "binned"}, default="density"
        How a numeric value's likelihood is taken: by the normal density, which is two matrix products for all pseudo
        labels, or by the probability of a bin, as Weka's updateable naive Bayes does, which the paper used.
    smoothing : float, default=1.0
        Pseudo-observations that each class starts with, with mean and variance of all rows. Used by "density".

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.base.feature_kinds import FeatureKinds
    >>> from labelrace.learners.naive_bayes.bank import NaiveBayes
    >>> X = np.array([[0.0], [0.2], [1.0], [1.2]])
    >>> H = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> bank = NaiveBayes()
    >>> state = bank.update(bank.init(FeatureKinds.numbers(1), n_components=1), X, H)
    >>> (bank.predict(bank.derive(state), X) > 0).ravel()
    array([False, False,  True,  True])
    """

    numeric: Literal["density", "binned"] = "density"
    smoothing: float = 1.0

    task: ClassVar[Task] = "classification"
    skips_missing: ClassVar[bool] = True
    state_type: ClassVar[type] = NaiveBayesState
    unweighted: ClassVar[None] = None

    def __post_init__(self) -> None:
        parameters.check_choice("numeric", self.numeric, ("density", "binned"))
        parameters.check_number("smoothing", self.smoothing, 0, open_low=True)

    def why_unmergeable(self, one: NaiveBayesState, other: NaiveBayesState) -> str | None:
        """Return why two states cannot be merged exactly: where the first batches of both gave them different bins."""
        if not self._bins or np.array_equal(one.precision, other.precision):
            return None
        return "the bins of their numeric features come from each one's first batch; let both start from one model"

    def init(self, kinds: KindsLike, n_components: int) -> NaiveBayesState:
        """Make the state of classifiers that have seen nothing."""
        kinds = FeatureKinds.of(kinds)
        return NaiveBayesState(
            kinds,
            np.zeros(n_components + 1),
            nominal.init(kinds, n_components),
            numeric.init(kinds.n_numeric, n_components),
            np.zeros(kinds.n_numeric),
        )

    def update(
        self, state: NaiveBayesState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None
    ) -> NaiveBayesState:
        """Learn the rows of ``X`` with their 0/1 pseudo labels ``H``, which may be sparse."""
        state = _widened(state, state.kinds.widened(X))
        if state.rows[-1] == 0:
            state = self._start(state, state.kinds.numeric(X))
        kinds, rows, counts, sums, precision = state
        if not kinds.all_numeric:
            counts = nominal.update(counts, kinds, kinds.nominal(X), H, row_weights)
        if not kinds.all_nominal:
            values = kinds.numeric(X)
            sums = numeric.update(sums, numeric.rounded(values, precision) if self._bins else values, H, row_weights)
        # As a product, which is quicker than a sum, and of 0 and 1 it is exact.
        each = np.ones(H.shape[0]) if row_weights is None else row_weights
        rows = rows + np.append(each @ H, each.sum())
        return NaiveBayesState(kinds, rows, counts, sums, precision)

    @cached_property
    def _bins(self) -> bool:
        return self.numeric == "binned"

    def _start(self, state: NaiveBayesState, X: AnyMatrix) -> NaiveBayesState:
        """Take from the first batch what is fixed from then on: bin widths, or the shift of the moments."""
        if self._bins:
            # An emptied state has its bins already.
            return state if state.precision.any() else state._replace(precision=numeric.precision(X))
        return state._replace(moments=numeric.with_shift(state.moments, X))

    def derive(self, state: NaiveBayesState) -> Derived:
        """Compute the log odds' parameters."""
        kinds, rows, counts, *_ = state
        n, ones = rows[-1], rows[:-1]
        # (n_c + 1) / (n + 2) for each class; the denominators cancel.
        prior = np.log((ones + 1) / (n - ones + 1))
        numeric_odds = None if kinds.all_nominal else self._numeric_odds(state)
        nominal_odds = None if kinds.all_numeric else nominal.log_odds(counts, kinds, rows)
        return Derived(kinds, prior, nominal_odds, numeric_odds)

    def _numeric_odds(self, state: NaiveBayesState) -> NumericOdds:
        if self._bins:
            return numeric.binned_odds(state.moments, state.rows, state.precision)
        return numeric.density_odds(state.moments, state.rows, self.smoothing)

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the log odds of all pseudo labels."""
        parts = [derived.prior]
        if derived.nominal is not None:
            parts.append(nominal.predict(derived.nominal, derived.kinds.nominal(X)))
        if derived.numeric is not None:
            parts.append(numeric.predict(derived.numeric, derived.kinds.numeric(X)))
        return sum(parts[1:], start=parts[0])

    def merge(self, one: NaiveBayesState, other: NaiveBayesState) -> NaiveBayesState:
        """Add the sums of two states."""
        if one.rows[-1] == 0:
            # Empty sums may have no shift yet.
            one, other = other, one
        kinds = one.kinds.joined(other.kinds)
        one, other = _widened(one, kinds), _widened(other, kinds)
        merged: NaiveBayesState = growth.add(one, other, moments=partial(numeric.merge, other_rows=other.rows))
        return merged

    def take(self, state: NaiveBayesState, moves: Moves) -> NaiveBayesState:
        """Move targets and features; new features have been 0, or of the first value, in all rows."""
        taken = super().take(state, moves)
        source = moves.source("d", len(state.precision))
        if source is None or not self._bins or not (state.rows[-1] > 0 or state.precision.any()):
            return taken
        # The first batch would have given a feature without two values this width.
        return taken._replace(precision=np.where(source < 0, numeric.DEFAULT_PRECISION, taken.precision))


def _widened(state: NaiveBayesState, kinds: FeatureKinds) -> NaiveBayesState:
    """Make room for nominal values that had not occurred before."""
    if kinds is state.kinds:
        return state
    widened: NaiveBayesState = growth.take(state, Moves(state.kinds.moves(kinds), kinds))
    return widened
