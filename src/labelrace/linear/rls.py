"""A bank of linear models by recursive least squares, exact within a block of rows, diagonal across blocks.

Recursive least squares keeps, beside the weights, how sure it is of them: a precision matrix, as large as the square of
the number of features. Here only its diagonal is kept. How a block of rows changes weights and precision is told in
`labelrace.linear.step`.

*The start is exact.* The first rows are kept, and learned again by ridge regression whenever their number has doubled,
up to 512. One eigendecomposition of ``ZZᵀ`` gives the leave-one-out scores of every row for a grid of penalties. The
best one, a quarter larger, is the penalty from then on: blocks that come later are learned less exactly.

*Forgetting* brings the precision back towards the penalty: half of what it is above it is gone after ``half_life``
rows.

*Labels as targets* (``binary``). A score beyond its target, above 1 or below 0, is no error (squared hinge), nor is
that of a label that is not known (NaN). A label that occurs for the first time after the start has weights of exactly
zero, and would be learned as slowly as if it had been absent for good reason. So such labels are *recent*: they share a
precision of their own, from the penalty up. A thousand rows later the next new label begins another such group, and
recent labels that are no longer new join the others.

*Weights.* A row of weight ``v`` has a squared error that counts ``v`` times. Scaling, forgetting and the number of rows
count rows as they are.

Products are small, so BLAS is to use one thread (`labelrace.base.threads`): `RLS.update` and `RLS.predict` see to that;
who calls `RLS.learn` or other parts of them must do so as well.

The order of this file: the state, the learners with their exact start, and what changes when labels and features are
added or reordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import growth, missing_labels, parameters, threads
from labelrace.base.feature_kinds import FeatureKinds, KindsLike
from labelrace.base.growth import Moves
from labelrace.base.sparse import batch_rows, dense, dense_floats, weighted
from labelrace.learners.bank import Bank, Task
from labelrace.linear import blocks, scaling, warm_up
from labelrace.linear.blocks import DenseBlock, Gathered, SparseBlock
from labelrace.linear.scaling import ScalingState
from labelrace.linear.step import WorkArrays, learn_block
from labelrace.linear.versioned_rows import VersionedRows, product_of, rows_of, with_rows
from labelrace.linear.warm_up import ALPHAS, Ridge, WarmUp, split_first_batch
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Rows after which another group of recent labels may begin, and rows for which a label counts as new.
_RECENT_GROUP_ROWS, _NEW_LABEL_ROWS = 1000.0, 750.0
# Random features are left out where the error without them is below this share of the error with them.
_CLEARLY_BETTER = 0.98
# Smallest decay before it is multiplied into the precision.
_MIN_DECAY = 1e-30


# --- State ------------------------------------------------------------------------------------------------------------


class RLSState(NamedTuple):
    """Weights and their precision."""

    scaling: ScalingState  # how columns are scaled
    alpha: float  # the penalty, which is the precision before the first row
    weights: Annotated[Array, "M+r t", "float"]  # in single or double precision; of sparse data a VersionedRows
    intercepts: Annotated[FloatArray, "t"]
    # How far the precision of all labels, and of the recent ones, is above the penalty; to be multiplied by ``decay``.
    # Of sparse data a VersionedRows.
    extra_precision: Annotated[FloatArray, "M+r 2"]
    # Share of ``extra_precision`` that is left, so that columns that a batch does not touch are forgotten, too.
    decay: float
    n_used_columns: float  # number of columns that have had a non-zero
    intercept_extra_precision: Annotated[FloatArray, "2"]  # the same for the intercepts, above 1
    rows: float  # rows learned so far
    # Rows learned before each target was first other than 0; infinite where it never was.
    first_seen: Annotated[FloatArray, "t", "new inf"]
    is_recent_label: Annotated[BoolArray, "t"]  # whether a target has the precision of recent labels
    # Rows learned before the group of recent labels began; minus infinity if there was none.
    recent_since: float
    warm_up: Annotated[WarmUp, "w~t"]  # buffer of the first rows


class Derived(NamedTuple):
    """The linear models; ``scales`` is what the columns are divided by."""

    scaling: ScalingState
    scales: FloatArray
    weights: Array
    intercepts: Array


# --- The bank ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RLS(Bank[RLSState]):
    """Linear models by diagonal recursive least squares, one for each pseudo label.

    Parameters
    ----------
    alpha : float or None, default=None
        Penalty on the squared weights, where a row has length one. None for the best of a grid on the first rows.
    half_life : float or None, default=None
        Rows after which half is forgotten; None for never.
    n_random_features : int, default=128
        Random features, on dense data; see `labelrace.linear.scaling`. None where the first rows are clearly better
        predicted without them.
    seed : int, default=0
        Seed of their directions.
    single : bool, default=False
        Whether to work in single precision, at half the memory and twice the speed.
    binary : bool, default=False
        Whether targets are labels: 0, 1, or NaN where not known.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.linear.rls import RLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> bank = RLS(n_random_features=0)
    >>> state = bank.update(bank.init(np.zeros(3, int), n_components=1), X, X @ np.array([[1.0], [2.0], [0.0]]))
    >>> bank.predict(bank.derive(state), np.array([[1.0, 1.0, 1.0]])).round(1)
    array([[3.]])
    """

    alpha: float | None = None
    half_life: float | None = None
    n_random_features: int = 128
    seed: int = 0
    single: bool = False
    binary: bool = False

    task: ClassVar[Task] = "regression"
    skips_missing: ClassVar[bool] = True
    state_type: ClassVar[type] = RLSState
    unweighted: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.alpha is not None:
            # In single precision the errors that a smaller penalty leaves are lost beside the rounding it adds.
            parameters.check_number("alpha", self.alpha, 1e-5 if self.single else 0, open_low=not self.single)
        if self.half_life is not None:
            parameters.check_number("half_life", self.half_life, 0, open_low=True)
            object.__setattr__(self, "half_life", float(self.half_life))
        parameters.check_whole("n_random_features", self.n_random_features, 0)
        parameters.check_whole("seed", self.seed, 0)

    @cached_property
    def _dtype(self) -> type[np.floating]:
        return np.float32 if self.single else np.float64

    def init(self, kinds: KindsLike, n_components: int) -> RLSState:
        """Make learners that have seen nothing; the first rows decide which columns they have."""
        return self._zeros(scaling.init(kinds, self._dtype), n_components, float(ALPHAS[-1]))

    def _zeros(self, scaled: ScalingState, n_components: int, alpha: float) -> RLSState:
        """Make the state of learners with zero weights on given columns."""
        m = scaling.n_columns(scaled)
        return RLSState(
            scaled,
            alpha,
            np.zeros((m, n_components), self._dtype),
            np.zeros(n_components),
            np.zeros((m, 2)),
            1.0,
            0.0,
            np.zeros(2),
            0.0,
            np.full(n_components, np.inf),
            np.zeros(n_components, bool),
            -np.inf,
            WarmUp.empty(),
        )

    def with_zero_weights(self, state: RLSState) -> RLSState:
        """Make learners with zero weights that scale columns as these do, and have their penalty."""
        empty = self._zeros(state.scaling, len(state.intercepts), state.alpha)
        empty = empty._replace(first_seen=np.zeros(len(state.intercepts)))
        return with_arrays(empty, weights=empty.weights, extra_precision=empty.extra_precision)

    def n_columns(self, state: RLSState, X: AnyMatrix) -> int:
        """Count the columns that the first rows need weights for."""
        if scaling.is_sparse(X):
            return len(np.unique(scipy.sparse.csr_array(X).indices))
        return state.scaling.kinds.width + self.n_random_features

    def transform(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Compute the columns that the linear models use."""
        return scaling.transform(derived.scaling, X, derived.scales)

    def update(self, state: RLSState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None) -> RLSState:
        """Learn the rows of ``X`` with their pseudo labels ``H``."""
        known, X, H, row_weights = self.rows_to_learn(state, X, H, row_weights)
        H = dense(H)
        with threads.limited(X.shape[0]):
            if known is not None:
                return self.learn(known, X, H, row_weights)
            first, others = split_first_batch(X.shape[0])
            of_first = batch_rows(first, X, H, row_weights)
            started, _ = self.fit_first_rows(state, *of_first)
            started = started._replace(warm_up=WarmUp.of(*of_first))
            return self.learn(started, *batch_rows(others, X, H, row_weights)) if len(others) else started

    def rows_to_learn(
        self, state: RLSState, X: AnyMatrix, Y: AnyMatrix, row_weights: FloatArray | None = None
    ) -> tuple[RLSState | None, AnyMatrix, AnyMatrix, FloatArray | None]:
        """Decide how a batch is learned: return the state to go on from, None to start again, and the rows to learn.

        The first rows are kept, with targets ``Y``, as long as they are few: whenever their number has doubled,
        what was learned is dropped, and all of them are learned again, exactly.
        """
        if state.rows == 0 or scaling.has_become_dense(state.scaling):
            return None, X, Y, row_weights
        if not state.warm_up.n_fitted:
            return state, X, Y, row_weights
        buffer = state.warm_up.with_batch(X, Y, row_weights)
        if buffer.has_doubled():
            return None, *buffer.rows(X, Y.shape[1]), buffer.row_weights
        return state._replace(warm_up=buffer), X, Y, row_weights

    def fit_first_rows(
        self, state: RLSState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None
    ) -> tuple[RLSState, Ridge]:
        """Learn the first rows exactly: scale them, choose penalty and columns on them, and solve."""
        kinds, H = state.scaling.kinds.widened(X), dense_floats(H)
        if self.binary:
            H = missing_labels.fill_with_means(H)
        started, ridge = self._solve_first_rows(X, kinds, H, self.n_random_features, row_weights)
        if not started.scaling.directions.size:
            return started, ridge
        plain, plain_ridge = self._solve_first_rows(X, kinds, H, 0, row_weights)
        with np.errstate(over="ignore", invalid="ignore"):
            error, without = (
                weighted(np.square(H - one.leave_one_out_scores(H, clip=self.binary)), row_weights).sum()
                for one in (ridge, plain_ridge)
            )
        return (plain, plain_ridge) if without < _CLEARLY_BETTER * error else (started, ridge)

    def _solve_first_rows(
        self, X: AnyMatrix, kinds: FeatureKinds, H: FloatArray, n_random_features: int, row_weights: FloatArray | None
    ) -> tuple[RLSState, Ridge]:
        """Scale the first rows and solve for them, with a number of random features if they are dense."""
        rng = np.random.default_rng(self.seed)
        scaled = scaling.update(scaling.start(X, kinds, n_random_features, rng, self._dtype), X)
        Z, touched = blocks.without_empty_columns(scaling.transform(scaled, X))
        ridge = warm_up.solve(Z, H, self.alpha, clip=self.binary, row_weights=row_weights)
        state = self._zeros(scaled, H.shape[1], ridge.alpha)
        state.weights[touched], state.extra_precision[touched, 0] = ridge.weights, ridge.extra_precision
        state.intercept_extra_precision[0] = ridge.intercept_extra_precision
        started = state._replace(
            intercepts=ridge.intercepts,
            rows=float(len(H)),
            n_used_columns=float(np.count_nonzero(ridge.extra_precision)),
            first_seen=np.where((H != 0).any(axis=0), 0.0, np.inf),
        )
        return with_arrays(started, weights=state.weights, extra_precision=state.extra_precision), ridge

    def gather(self, state: RLSState, Z: AnyMatrix) -> Gathered:
        """Copy the weights of the columns that occur in rows, once for both predicting and learning."""
        if not scipy.sparse.issparse(Z):
            return Gathered(Z, slice(None), np.asarray(state.weights), np.asarray(state.extra_precision))
        Z, touched = blocks.without_empty_columns(Z)
        return Gathered(Z, touched, rows_of(state.weights, touched), rows_of(state.extra_precision, touched))

    def learn(
        self,
        state: RLSState,
        X: AnyMatrix,
        H: Array,
        row_weights: FloatArray | None = None,
        *,
        gathered: Gathered | None = None,
        sparse_block: Any = SparseBlock,
    ) -> RLSState:
        """Learn rows after the start; ``gathered`` is what `gather` gave for them, if it was called before.

        ``sparse_block`` computes the products of a block of sparse rows.
        """
        known = state.scaling.kinds
        kinds = known.widened(X)
        if kinds is not known:
            state, gathered = self.take(state, Moves(known.moves(kinds), kinds)), None
        if gathered is None:
            gathered = self.gather(state, scaling.transform(state.scaling, X))
        H, extra_precision = np.asarray(H, dtype=self._dtype), state.extra_precision
        if self.binary and np.isinf(state.first_seen).any():
            state = self._with_recent_labels(state, H)
        if state.decay < _MIN_DECAY:
            applied = np.asarray(state.extra_precision) * state.decay
            state = with_arrays(state._replace(decay=1.0), extra_precision=applied)
        if state.extra_precision is not extra_precision:
            gathered = gathered._replace(extra_precision=rows_of(state.extra_precision, gathered.columns))
        kept = self.forgetting_factor(len(H))
        scaled = scaling.update(state.scaling, X, kept)
        learned = self._learn_blocks(state, gathered, H, row_weights, kept, scaled, sparse_block)
        revised = scaling.with_recent_moments(scaled)
        return learned if revised is scaled else _with_rescaled_weights(learned, revised)

    def _learn_blocks(
        self,
        state: RLSState,
        gathered: Gathered,
        H: Array,
        row_weights: FloatArray | None,
        kept: float,
        scaled: ScalingState,
        sparse_block: Any,
    ) -> RLSState:
        """Learn block by block, on a copy of the columns that are touched: a failure leaves the state as it was.

        ``kept`` is the share of the past that is left after all rows, ``scaled`` how columns are scaled then.
        """
        Z, scores = gathered.Z, gathered.scores
        # With weights, which may be large, in double precision.
        dtype = self._dtype if row_weights is None else np.float64
        Z, H = Z.astype(dtype, copy=False), H.astype(dtype, copy=False)
        intercepts = state.intercepts.astype(dtype), state.intercept_extra_precision.copy()
        work = WorkArrays(gathered.weights.astype(dtype), gathered.extra_precision * state.decay, *intercepts)
        recent = np.flatnonzero(state.is_recent_label)
        unused = work.extra_precision[:, 0] == 0.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for z, h, of_rows in blocks.cut(Z, H, row_weights):
                if self.half_life is not None:
                    keep = 0.5 ** (len(h) / self.half_life)
                    np.multiply(work.extra_precision, keep, out=work.extra_precision)
                    np.multiply(work.intercept_extra_precision, keep, out=work.intercept_extra_precision)
                if scores is None:
                    scores = z @ work.weights + work.intercepts
                block = sparse_block(z) if scipy.sparse.issparse(z) else DenseBlock(z)
                learn_block(work, state.alpha, block, h, scores[: len(h)], recent, of_rows, binary=self.binary)
                # Those of later rows are by weights that have changed.
                scores = None
        # Errors of labels are at most 1: if anything is not finite, the intercepts are not.
        blocks.check_finite(*(() if self.binary else (work.weights,)), work.intercepts)
        decay = max(state.decay * kept, _MIN_DECAY**2)
        after = work.extra_precision
        after /= decay
        learned = state._replace(
            scaling=scaled,
            rows=state.rows + len(H),
            intercepts=work.intercepts.astype(float),
            intercept_extra_precision=work.intercept_extra_precision,
            decay=decay,
            n_used_columns=state.n_used_columns + float(np.count_nonzero(unused & (after[:, 0] != 0.0))),
            weights=work.weights.astype(self._dtype, copy=False),
            extra_precision=after,
        )
        return learned if isinstance(gathered.columns, slice) else _in_tables(learned, state, gathered)

    def _with_recent_labels(self, state: RLSState, H: Array) -> RLSState:
        """Make targets that are other than 0 for the first time recent labels, in a new group if it is time."""
        is_new = np.isinf(state.first_seen) & (H > 0)
        if not is_new.any():
            return state
        new = is_new.any(axis=0)
        first_seen = np.where(new, state.rows, state.first_seen)
        if state.rows - state.recent_since < _RECENT_GROUP_ROWS:
            return state._replace(first_seen=first_seen, is_recent_label=state.is_recent_label | new)
        still_new = state.is_recent_label & (state.rows - state.first_seen < _NEW_LABEL_ROWS)
        extra_precision, of_intercepts = np.array(state.extra_precision), state.intercept_extra_precision.copy()
        extra_precision[:, 1], of_intercepts[1] = 0.0, 0.0
        started = state._replace(
            first_seen=first_seen,
            is_recent_label=still_new | new,
            recent_since=state.rows,
            intercept_extra_precision=of_intercepts,
        )
        return with_arrays(started, extra_precision=extra_precision)

    def forgetting_factor(self, n_rows: int) -> float:
        """Compute the share of the past that is kept after a number of rows."""
        return 1.0 if self.half_life is None else 0.5 ** (n_rows / self.half_life)

    def forget(self, state: RLSState, keep: float) -> RLSState:
        """Forget all but a share of the past: the weights stay, but new data changes them faster."""
        return state._replace(
            decay=state.decay * keep, intercept_extra_precision=state.intercept_extra_precision * keep
        )

    def rescale(self, state: RLSState, X: AnyMatrix) -> RLSState:
        """Change the scaling of columns whose unit has changed in a batch."""
        return state._replace(scaling=scaling.rescale(state.scaling, X))

    def derive(self, state: RLSState) -> Derived:
        """Collect what predicting needs."""
        scales = scaling.scale(state.scaling)
        return Derived(state.scaling, scales, state.weights, state.intercepts.astype(self._dtype))

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        with threads.limited(X.shape[0]):
            return self.predict_transformed(derived, self.transform(derived, X))

    def predict_transformed(self, derived: Derived, Z: AnyMatrix, weights: Array | None = None) -> FloatArray:
        """Compute the values of all pseudo labels from the result of `transform`, or from what was gathered for it."""
        product = product_of(Z, derived.weights if weights is None else weights)
        product += derived.intercepts
        return product

    def take(self, state: RLSState, moves: Moves) -> RLSState:
        """Move targets and features; new ones were 0 in all rows so far, and their weights are exactly 0."""
        taken: RLSState = growth.take(state, moves, scaling=partial(scaling.take, seed=self.seed))
        return taken

    def reset_features(self, state: RLSState, features: IntArray) -> RLSState:
        """Forget what was learned of features, if all are numeric; random features of dense data stay as they are."""
        if not state.scaling.kinds.all_numeric:
            return state
        return state._replace(
            scaling=scaling.reset(state.scaling, features),
            weights=with_rows(state.weights, features, np.zeros((len(features), len(state.intercepts)))),
            extra_precision=with_rows(state.extra_precision, features, np.zeros((len(features), 2))),
            warm_up=state.warm_up.without(features),
        )


def with_arrays(state: RLSState, *, weights: Array | None = None, extra_precision: Array | None = None) -> RLSState:
    """Put arrays that no other state uses into a state; as `VersionedRows`, where data is sparse."""
    given = {"weights": weights, "extra_precision": extra_precision}
    held = {name: array for name, array in given.items() if array is not None}
    if not state.scaling.is_dense:
        held = {name: VersionedRows.taking(array) for name, array in held.items()}  # type: ignore[misc]
    return state._replace(**held)  # type: ignore[arg-type]


def _in_tables(learned: RLSState, before: RLSState, gathered: Gathered) -> RLSState:
    """Put the rows of touched columns, which is all that was learned of sparse data, into the tables before."""
    columns: Any = gathered.columns
    weights: Any = VersionedRows.of(before.weights)
    extra_precision: Any = VersionedRows.of(before.extra_precision)
    return learned._replace(
        weights=weights.replaced(columns, learned.weights, gathered.weights),
        extra_precision=extra_precision.replaced(columns, learned.extra_precision, gathered.extra_precision),
    )


def _with_rescaled_weights(state: RLSState, after: ScalingState) -> RLSState:
    """Correct the scaling, and rescale the weights of columns where it changes, so that scores stay the same."""
    before = state.scaling
    is_wrong = after.sum_squares != before.sum_squares
    if not is_wrong.any():
        return state._replace(scaling=after)
    scales = scaling.scale(before)
    ratio = np.where(is_wrong, scaling.scale(after) / scales, 1.0)
    shift = np.where(is_wrong, (after.mean - before.mean) / scales, 0.0)
    m, weights, extra_precision = len(ratio), state.weights.copy(), state.extra_precision.copy()
    intercepts = state.intercepts + shift @ weights[:m]
    # Random features are made of all columns.
    weights[:m] *= ratio[:, None]
    weights[m:] *= 1.0 - is_wrong.mean()
    # The weights of these columns are not certain any more.
    extra_precision[:m][is_wrong], extra_precision[m:] = 0.0, 0.0
    return state._replace(scaling=after, weights=weights, extra_precision=extra_precision, intercepts=intercepts)
