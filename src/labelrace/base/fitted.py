"""Everything a model knows, as one value: an algorithm, the schema of its columns, and its state.

Growing, learning, merging and the change to a successor make a new `Fitted`; the model then has one reference to
assign. So a call that fails leaves it as it was, and what another thread reads is always whole. Rows that come here are
checked and in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base import alignment, limits
from labelrace.base.schema import Batch, Schema
from labelrace.base.sparse import sparse_marks, stacked
from labelrace.exceptions import DivergenceError, MergeError
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

# Errors from invalid sums, which a damaged model file may contain.
_INVALID_SUMS = (np.linalg.LinAlgError, ZeroDivisionError, OverflowError)
# What is computed from such numbers is looked at, and refused: warnings on the way there tell a user nothing.
_SILENT: Any = {"over": "ignore", "divide": "ignore", "invalid": "ignore"}

# Scores computed at once where not all of them are kept: 2²² are 32 MB.
_CELLS = 2**22
_LOWEST = float(np.finfo(np.float64).min)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Everything a model knows; immutable but for what is derived from the state once.

    Attributes
    ----------
    algorithm : Algorithm
        The settings, and the pure functions over a state.
    schema : Schema
        Names and kinds of the features, names of the labels.
    state : NamedTuple
        What was learned.
    seed : int
        What new labels are drawn from.
    parameters : dict
        The parameters of the estimator when learning began.
    """

    algorithm: Any
    schema: Schema
    state: Any
    seed: int
    parameters: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        # What is derived is derived again where it is needed: it may be as large as all the rest.
        return Fitted, (self.algorithm, self.schema, self.state, self.seed, self.parameters)

    @cached_property
    def derived(self) -> Any:
        """What predicting needs."""
        try:
            with np.errstate(**_SILENT):
                return self.algorithm.derive(self.state)
        except _INVALID_SUMS as error:
            raise _corrupt() from error

    def replace(self, schema: Schema, state: Any) -> Fitted:
        """Return the same algorithm with another schema and state."""
        return Fitted(self.algorithm, schema, state, self.seed, self.parameters)

    def grow(self, schema: Schema) -> Fitted:
        """Return the model extended to the features and labels of a wider schema."""
        old = self.schema
        if schema.n_features == old.n_features and schema.n_labels == old.n_labels:
            return self
        successor = self.or_successor(schema)
        if successor is not self:
            return successor.grow(schema)
        # What is drawn depends on the seed and on the labels' names, so a loaded model draws the same, and so does one
        # that met other labels before.
        rng = np.random.default_rng(self.seed)
        return self.replace(schema, self.algorithm.grow(self.state, old, schema, rng))

    def learn(self, batch: Batch) -> Fitted:
        """Grow where a batch brings something new, and learn it."""
        known = self if batch.schema is self.schema else self.grow(batch.schema)
        if known.algorithm is not self.algorithm:
            _refuse_weights(known.algorithm, batch)
        # What has been derived already is passed on, for algorithms that can use it.
        derived = vars(known).get("derived")
        try:
            # Most algorithms know nothing of weights, and most batches have none.
            weights = () if batch.row_weights is None else (batch.row_weights,)
            state = known.algorithm.update(known.state, batch.X, batch.Y, derived, *weights)
            learned = known.replace(batch.schema, state).or_successor(batch.schema)
        except _INVALID_SUMS as error:
            raise _corrupt() from error
        if learned.algorithm is not self.algorithm:
            _refuse_weights(learned.algorithm, batch)
        return learned

    def or_successor(self, schema: Schema) -> Fitted:
        """Return the model, or its successor, if the schema outgrows the algorithm."""
        state = self.algorithm.successor_state(self.state, schema)
        if state is None:
            return self
        return Fitted(self.algorithm.successor, self.schema, state, self.seed, self.parameters)

    def reset_features(self, columns: IntArray) -> Fitted:
        """Forget features whose columns stand for others from now on."""
        return self.replace(self.schema, self.algorithm.reset_features(self.state, columns))

    def predict(self, rows: AnyMatrix) -> AnyMatrix:
        """Predict label sets in the form of those learned."""
        if not self.schema.sparse_labels:
            present, dtype = self.algorithm.predict(self.derived, rows), self.schema.label_dtype
            # Types of one byte need no copy.
            return present.view(dtype) if dtype.itemsize == 1 else present.astype(dtype)
        sets = self.algorithm.predict_sets(self.derived, rows)
        if sets is None:
            parts = [sparse_marks(self.algorithm.predict(self.derived, block)) for block in self._blocks(rows)]
            sets = stacked(parts)
        return sets.astype(self.schema.label_dtype, copy=False)

    def are_right(self, rows: AnyMatrix, Y: AnyMatrix) -> BoolArray:
        """Return which rows are predicted exactly; ``Y`` may have further labels, which are never predicted."""
        predicted = scipy.sparse.csr_array(self.predict(rows).astype(float))
        predicted.resize(Y.shape)
        return (predicted != scipy.sparse.csr_array(Y)).sum(axis=1) == 0

    def predict_labels(self, rows: AnyMatrix) -> list[set[Any]]:
        """Predict label sets by name."""
        sets = self.algorithm.predict_sets(self.derived, rows)
        if sets is not None:
            return [set(self.schema.names_of(group)) for group in np.split(sets.indices, sets.indptr[1:-1])]
        predicted = []
        for block in self._blocks(rows):
            row, label = np.nonzero(self.algorithm.predict(self.derived, block))
            ends = np.searchsorted(row, np.arange(1, block.shape[0]))
            predicted += [set(self.schema.names_of(group)) for group in np.split(label, ends)]
        return predicted

    def predict_top(self, rows: AnyMatrix, k: int) -> list[list[tuple[Any, float]]]:
        """List the ``k`` most likely labels of each row with their probabilities, or all if there are fewer."""
        labels, likely = self.most_likely(rows, k)
        names = labels.tolist() if self.schema.label_names is None else map(self.schema.names_of, labels)
        return [list(zip(*row, strict=True)) for row in zip(names, likely.tolist(), strict=True)]

    def most_likely(self, rows: AnyMatrix, k: int) -> tuple[IntArray, FloatArray]:
        """Find the ``k`` most likely labels of each row, as numbers, and their probabilities, best first."""
        k = min(k, self.schema.n_labels)
        with np.errstate(**_SILENT):
            best = self.algorithm.predict_best(self.derived, rows, k)
            if best is not None:
                return best[0], _finite(best[1])
            parts = [self._most_likely(block, k) for block in self._blocks(rows)]
        labels, likely = map(np.concatenate, zip(*parts, strict=True))
        return labels, likely

    def _most_likely(self, rows: AnyMatrix, k: int) -> tuple[IntArray, FloatArray]:
        scores, likely = self.algorithm.scores_and_probabilities(self.derived, rows)
        order = _most_likely_first(_finite(likely), scores, k)
        return order, np.take_along_axis(likely, order, axis=1)

    def _blocks(self, rows: AnyMatrix) -> Iterator[AnyMatrix]:
        """Cut rows into blocks, so that there is never an array of all rows and labels."""
        n_rows, size = rows.shape[0], max(1, _CELLS // self.schema.n_labels)
        for start in range(0, n_rows, size):
            # A slice of all rows would be a copy.
            yield rows if n_rows <= size else rows[start : start + size]

    def scores(self, rows: AnyMatrix) -> FloatArray:
        """Compute a score for every label."""
        self._refuse_large(rows, "decision_function")
        with np.errstate(**_SILENT):
            return _finite(self.algorithm.scores(self.derived, rows))

    def probabilities(self, rows: AnyMatrix) -> FloatArray:
        """Estimate the probability of every label."""
        self._refuse_large(rows, "predict_proba")
        with np.errstate(**_SILENT):
            return _finite(self.algorithm.probabilities(self.derived, rows))

    def _refuse_large(self, rows: AnyMatrix, method: str) -> None:
        """Refuse to make an array of all rows and labels that would be too large."""
        n_labels = self.schema.n_labels
        what = f"{method}'s array of {rows.shape[0]:,} rows and {n_labels:,} labels"
        hint = "use predict_top for the best labels of each row or predict_labels for its set, give fewer rows, or"
        limits.SCORES.check(rows.shape[0] * n_labels, what, hint)

    def emptied(self) -> Fitted:
        """Return the model that has learned nothing, but knows what its first batch settled; it merges with this one.

        Raises
        ------
        MergeError
            For algorithms that do not merge.
        """
        self._refuse_unmergeable(self, self)
        return self.replace(self.schema, self.algorithm.emptied(self.state))

    def merge(self, other: Fitted, columns: IntArray | None = None) -> Fitted:
        """Join what two models of equal parameters learned from different rows, labels and features by name.

        Parameters
        ----------
        other : Fitted
        columns : array, default=None
            Which column of this model's features, or of further ones, each of the other one's is, where the caller
            knows that and they have no names.
        """
        # Only what merges at all can have its columns reordered, so that comes first.
        self._refuse_unmergeable(self, self)
        one, two = alignment.align(self, other, columns)
        self._refuse_unmergeable(one, two)
        schema = one.schema.replace(kinds=one.schema.kinds.joined(two.schema.kinds))
        return self.replace(schema, self.algorithm.merge(one.state, two.state))

    def _refuse_unmergeable(self, one: Fitted, two: Fitted) -> None:
        reason: str | None = self.algorithm.why_unmergeable(one.state, two.state)
        if reason:
            raise MergeError(f"The models cannot be merged exactly: {reason}.")


def _refuse_weights(successor: Any, batch: Batch) -> None:
    """Refuse the weights of a batch with which a model becomes another one, if that one takes none."""
    reason = None if batch.row_weights is None else successor.why_no_row_weights()
    if reason:
        raise ValueError(
            f"sample_weight must be None for this batch: with it the model becomes another one, and {reason}. "
            "Leave sample_weight out, repeat rows that count more, or give the model more memory from the start."
        )


def _most_likely_first(likely: FloatArray, scores: FloatArray, k: int) -> IntArray:
    """List the columns of the ``k`` most likely labels of each row, best first.

    Of equals those with higher scores come first, and of these the first columns, whatever ``k`` is.
    """
    if k < likely.shape[1]:
        least = -np.partition(-likely, k - 1, axis=1)[:, k - 1 : k]
        # Above the least probability all are taken, and of those that have it the ones with the highest scores.
        rank = np.where(likely > least, np.inf, np.where(likely == least, np.clip(scores, _LOWEST, -_LOWEST), -np.inf))
        best = np.sort(np.argpartition(-rank, k - 1, axis=1)[:, :k], axis=1)
        last = np.take_along_axis(rank, best, axis=1).min(axis=1, keepdims=True)
        tied = np.flatnonzero(np.count_nonzero(rank >= last, axis=1) > k)
        if len(tied):
            is_above, is_last = rank[tied] > last[tied], rank[tied] == last[tied]
            n_free = k - is_above.sum(axis=1, keepdims=True)
            best[tied] = np.nonzero(is_above | (is_last & (np.cumsum(is_last, axis=1) <= n_free)))[1].reshape(-1, k)
    else:
        best = np.tile(np.arange(k), (len(likely), 1))
    keys = (-np.take_along_axis(scores, best, axis=1), -np.take_along_axis(likely, best, axis=1))
    return np.take_along_axis(best, np.lexsort(keys, axis=1), axis=1)


def _finite(values: FloatArray) -> FloatArray:
    """Refuse scores and probabilities that are not numbers, and return others."""
    if not np.isfinite(values).all():
        raise _corrupt()
    return values


def _corrupt() -> DivergenceError:
    """Make the error of a model whose state leads to numbers that are not finite, as one from a damaged file may."""
    return DivergenceError(
        "The model produced NaN or infinity; its state is corrupt. Load an intact file, or call fit again."
    )
