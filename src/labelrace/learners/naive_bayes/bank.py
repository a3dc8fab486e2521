"""A bank of naive Bayes classifiers on any mixture of numeric and nominal features.

The state is sums: rows of each class, counts of nominal values, moments of numeric ones. One product ``ZᵀH`` updates
them for all pseudo labels, and the log odds of all pseudo labels are products too (see `nominal` and `numeric`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from labelrace.base import parameters
from labelrace.learners import design as columns
from labelrace.learners.bank import Bank, Task
from labelrace.learners.naive_bayes import nominal, numeric
from labelrace.learners.naive_bayes.numeric import NumericOdds
from labelrace.typing import AnyMatrix, FloatArray, IntArray


class NaiveBayesState(NamedTuple):
    """The sums of a bank of ``k`` classifiers."""

    n_values: Annotated[IntArray, "m", "values"]  # number of values of each nominal feature, 0 for a numeric one
    rows: Annotated[FloatArray, "t+1", ">=0"]  # rows in which each pseudo label is 1 and, last, all rows
    counts: nominal.Counts  # counts of the nominal features' values
    moments: numeric.Moments  # sums of the numeric features
    precision: Annotated[FloatArray, "d", ">=0"]  # bin widths of the numeric features, if they are binned


class Derived(NamedTuple):
    """What predicting needs: the kinds of the columns, the prior and each part's log odds."""

    n_values: IntArray
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
    >>> from labelrace.learners.naive_bayes.bank import NaiveBayes
    >>> X = np.array([[0.0], [0.2], [1.0], [1.2]])
    >>> H = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> bank = NaiveBayes()
    >>> state = bank.update(bank.init(np.array([0]), n_components=1), X, H)
    >>> (bank.predict(bank.derive(state), X) > 0).ravel()
    array([False, False,  True,  True])
    """

    numeric: Literal["density", "binned"] = "density"
    smoothing: float = 1.0

    task: ClassVar[Task] = "classification"
    skips_missing: ClassVar[bool] = True
    state_type: ClassVar[type] = NaiveBayesState

    def __post_init__(self) -> None:
        parameters.check_choice("numeric", self.numeric, ("density", "binned"))
        parameters.check_number("smoothing", self.smoothing, 0, open_low=True)

    def why_unmergeable(self, one: NaiveBayesState, other: NaiveBayesState) -> str | None:
        """Say why two states cannot be merged exactly: where the first batches of both gave them different bins."""
        if not self._bins or np.array_equal(one.precision, other.precision):
            return None
        return "the bins of their numeric features come from each one's first batch; let both start from one model"

    def emptied(self, state: NaiveBayesState) -> NaiveBayesState:
        """Make the state that has learned nothing, but has its bins and its shift."""
        n_components = len(state.rows) - 1
        empty = self.init(state.n_values, n_components)
        return empty._replace(moments=empty.moments._replace(shift=state.moments.shift), precision=state.precision)

    def reordered(self, state: NaiveBayesState, targets: IntArray | None, features: IntArray) -> NaiveBayesState:
        """Put targets and features in another order."""
        order = columns.order_of(state.n_values, features)
        with_all = np.arange(len(state.rows)) if targets is None else np.append(targets, len(state.rows) - 1)
        return NaiveBayesState(
            state.n_values[features],
            state.rows[with_all],
            nominal.reordered(state.counts, order.indicators, order.nominal, with_all),
            numeric.reordered(state.moments, order.numeric, with_all),
            state.precision[order.numeric],
        )

    def init(self, n_values: IntArray, n_components: int) -> NaiveBayesState:
        """Make the state of classifiers that have seen nothing."""
        n_numeric = int((n_values == 0).sum())
        return NaiveBayesState(
            n_values,
            np.zeros(n_components + 1),
            nominal.init(n_values[n_values > 0], n_components),
            numeric.init(n_numeric, n_components),
            np.zeros(n_numeric),
        )

    def update(self, state: NaiveBayesState, X: AnyMatrix, H: AnyMatrix) -> NaiveBayesState:
        """Learn the rows of ``X`` with their 0/1 pseudo labels ``H``, which may be sparse."""
        state = _widen(state, columns.widest_values(state.n_values, X))
        if state.rows[-1] == 0:
            state = self._start(state, columns.numeric(X, state.n_values))
        n_values, rows, counts, sums, precision = state
        if not columns.all_numeric(n_values):
            counts = nominal.update(counts, columns.nominal(X, n_values), n_values[n_values > 0], H)
        if not columns.all_nominal(n_values):
            values = columns.numeric(X, n_values)
            sums = numeric.update(sums, numeric.rounded(values, precision) if self._bins else values, H)
        # As a product, which is quicker than a sum, and of 0 and 1 it is exact.
        rows = rows + np.append(np.ones(H.shape[0]) @ H, H.shape[0])
        return NaiveBayesState(n_values, rows, counts, sums, precision)

    @property
    def _bins(self) -> bool:
        return self.numeric == "binned"

    def _start(self, state: NaiveBayesState, X: AnyMatrix) -> NaiveBayesState:
        """Take from the first batch what is fixed from then on: bin widths, or the shift of the moments."""
        if self._bins:
            # A state that was emptied has its bins already.
            return state if state.precision.any() else state._replace(precision=numeric.precision(X))
        return state._replace(moments=numeric.with_shift(state.moments, X))

    def derive(self, state: NaiveBayesState) -> Derived:
        """Compute the log odds' parameters."""
        n_values, rows, counts, *_ = state
        n, ones = rows[-1], rows[:-1]
        # (n_c + 1) / (n + 2) for each class; the denominators cancel.
        prior = np.log((ones + 1) / (n - ones + 1))
        numeric_odds = None if columns.all_nominal(n_values) else self._numeric_odds(state)
        nominal_odds = None if columns.all_numeric(n_values) else nominal.log_odds(counts, n_values[n_values > 0], rows)
        return Derived(n_values, prior, nominal_odds, numeric_odds)

    def _numeric_odds(self, state: NaiveBayesState) -> NumericOdds:
        if self._bins:
            return numeric.binned_odds(state.moments, state.rows, state.precision)
        return numeric.density_odds(state.moments, state.rows, self.smoothing)

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the log odds of all pseudo labels."""
        parts = [derived.prior]
        if derived.nominal is not None:
            parts.append(nominal.predict(derived.nominal, columns.nominal(X, derived.n_values)))
        if derived.numeric is not None:
            parts.append(numeric.predict(derived.numeric, columns.numeric(X, derived.n_values)))
        return sum(parts[1:], start=parts[0])

    def merge(self, one: NaiveBayesState, other: NaiveBayesState) -> NaiveBayesState:
        """Add the sums of two states."""
        if one.rows[-1] == 0:
            # Empty sums may have no shift yet.
            one, other = other, one
        wider = np.maximum(one.n_values, other.n_values)
        one, other = _widen(one, wider), _widen(other, wider)
        counts = nominal.merge(one.counts, other.counts)
        sums = numeric.merge(one.moments, other.moments, other.rows)
        return NaiveBayesState(wider, one.rows + other.rows, counts, sums, one.precision)

    def grow_components(self, state: NaiveBayesState, n_components: int) -> NaiveBayesState:
        """Add classifiers that have seen no row of class 1."""
        n_new = n_components + 1 - len(state.rows)
        return state._replace(
            rows=columns.before_last(state.rows, n_new),
            counts=nominal.grow_components(state.counts, n_new),
            moments=numeric.grow_components(state.moments, n_new),
        )

    def grow_features(self, state: NaiveBayesState, n_values: IntArray) -> NaiveBayesState:
        """Add features that have been 0, or of the first value, in all rows."""
        n_values = columns.appended(state.n_values, n_values)
        n_numeric = int((n_values == 0).sum())
        # The first batch would have given a feature without two values this width.
        width = numeric.DEFAULT_PRECISION if self._bins and (state.rows[-1] > 0 or state.precision.any()) else 0.0
        return state._replace(
            n_values=n_values,
            counts=nominal.grow_features(state.counts, n_values[n_values > 0]),
            moments=numeric.grow_features(state.moments, n_numeric),
            precision=columns.pad_rows(state.precision, n_numeric, width),
        )


def _widen(state: NaiveBayesState, n_values: IntArray) -> NaiveBayesState:
    """Make room for nominal values that had not occurred before."""
    if n_values is state.n_values or (n_values == state.n_values).all():
        return state
    is_nominal = n_values > 0
    counts = nominal.grow(state.counts, state.n_values[is_nominal], n_values[is_nominal])
    return state._replace(n_values=n_values, counts=counts)
