"""A bank of linear models by recursive least squares, exact within a block of rows, diagonal across blocks.

Recursive least squares keeps, beside the weights ``W``, how sure it is of them: a precision matrix ``ZᵀZ + αI``, which
is ``m × m``. Here only a diagonal ``D`` is kept, and a number ``d_b`` for the intercepts ``b``. For the next block of
rows ``Z`` with targets ``Y``,

    M = Z D⁻¹ Zᵀ + 1/d_b + I,    E = Y - ZW - b,    W ← W + D⁻¹ Zᵀ M⁻¹ E,    b ← b + 1ᵀ M⁻¹ E / d_b,

which is the minimiser of ``|Y - ZW - b|² + |W - W_before|²_D + d_b |b - b_before|²``: an implicit step, stable at any
scale, with no step size to choose. The matrix ``M`` is as large as the block, not as the features; sparse rows stay
sparse, and all targets share it.

*The precision a block leaves* is the marginal one, ``d ← d / (1 - q/d)`` with ``q = diag(Zᵀ M⁻¹ Z)``: one over the
diagonal of ``(D + ZᵀZ)⁻¹``. Adding ``diag(ZᵀZ)`` instead takes columns for independent, and gets sure too fast.

*The start is exact.* The first rows are kept, and learned again by ridge regression whenever their number has doubled,
up to 512. One eigendecomposition of ``ZZᵀ`` gives the leave-one-out scores of every row for a grid of penalties. The
best one, a quarter larger, is the penalty from then on: blocks that come later are learned less exactly.

*Forgetting* brings the precision back towards the penalty: half of what it is above it is gone after ``half_life``
rows.

*Labels as targets* (``binary``). A score beyond its target, above 1 or below 0, is no error (squared hinge), nor is
that of a label that is not known (NaN). A label that occurs for the first time after the start has weights of exactly
zero, and would be learned as slowly as if it had been absent for good reason. So such labels form a young generation
with a precision of its own, from the penalty up; when the next generation is founded, after 1,000 rows, those that are
no longer new join the old ones.

Diagonal precision for linear models online is from Crammer, Kulesza and Dredze ("Adaptive regularization of weight
vectors", 2009); implicit steps are treated by Kulis and Bartlett ("Implicit online learning", 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.base import missing_labels, parameters, threads
from labelrace.base.axes import Moves
from labelrace.base.feature_kinds import FeatureKinds, KindsLike
from labelrace.base.sparse import dense, dense_floats
from labelrace.learners import design as columns
from labelrace.learners.bank import Bank, Task
from labelrace.linear import blocks as products
from labelrace.linear import scaling, steps
from labelrace.linear.penalty import ALPHAS, INTERCEPT, best_alpha, inverse_of
from labelrace.linear.scaling import ScalingState
from labelrace.linear.steps import Work, check_finite, learn_blocks
from labelrace.linear.versioned import VersionedRows, product_of, replaced_rows, rows_of, with_rows
from labelrace.linear.warm_up import WarmUp, first_rows
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

# Rows after which the next generation may be founded, and up to which a label is new.
_GENERATION, _NEW = 1000.0, 750.0
# Columns whose weights are projected at once.
_PROJECTED = 128
# Share of the leave-one-out error with random features below which that without them is clearly better.
_CLEARLY = 0.98
# What is left of `gained` at the least before it is multiplied out.
LEAST_FADING = 1e-30


class RLSState(NamedTuple):
    """Weights and their precision."""

    scaling: ScalingState  # how columns are scaled
    alpha: Annotated[float, ">0"]  # the penalty, which is the precision before the first row
    weights: Annotated[Array, "M+r t", "float"]  # in single or double precision; of sparse data a VersionedRows
    intercepts: Annotated[FloatArray, "t"]
    # How far the precision of the old generation, and of the young one, is above the penalty; to be multiplied by
    # ``fading``. Of sparse data a VersionedRows.
    gained: Annotated[FloatArray, "M+r 2"]
    # Product of what was kept of ``gained``, so that columns that a batch does not touch are forgotten, too.
    fading: Annotated[float, ">0"]
    in_use: Annotated[float, ">=0"]  # columns that were other than 0
    intercept_gained: Annotated[FloatArray, "2"]  # the same for the intercepts, above 1
    rows: Annotated[float, ">=0"]  # rows learned so far
    # Rows learned before each target was first other than 0; infinite where it never was.
    first_rows: Annotated[FloatArray, "t", "inf"]
    young: Annotated[BoolArray, "t"]  # whether a target belongs to the young generation
    # Rows learned before the young generation was founded; minus infinity if there was none.
    founded: Annotated[float, "inf"]
    warm_up: Annotated[WarmUp, "w~t"]  # buffer of the first rows


class Derived(NamedTuple):
    """The linear models; ``scales`` is what the columns are divided by."""

    scaling: ScalingState
    scales: FloatArray
    weights: Array
    intercepts: Array


class Gathered(NamedTuple):
    """Rows without their empty columns, the places of the others, and the weights and what was gained there."""

    Z: AnyMatrix
    places: IntArray | slice
    weights: Array
    gained: FloatArray

    def columns(self) -> IntArray | None:
        """Tell which of the columns each non-zero is in; a single row has one in each. None where rows are dense."""
        if isinstance(self.places, slice):
            return None
        return self.Z.indices if scipy.sparse.issparse(self.Z) else np.arange(self.Z.shape[1])


class Start(NamedTuple):
    """What the exact start gives."""

    state: RLSState
    # (n, n): ``M⁻¹`` of all rows at the chosen penalty, from which `left_out` has the leave-one-out scores.
    inverse: FloatArray

    def left_out(self, H: FloatArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Compute the scores that some rows have in models that learned all rows but the one."""
        return H[rows] - (self.inverse[rows] @ H) / self.inverse.diagonal()[rows][:, None]


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

    def __post_init__(self) -> None:
        if self.alpha is not None:
            # In single precision the errors that a smaller penalty leaves are lost beside the rounding it adds.
            parameters.check_number("alpha", self.alpha, 1e-5 if self.single else 0, open_low=not self.single)
        if self.half_life is not None:
            parameters.check_number("half_life", self.half_life, 0, open_low=True)
            object.__setattr__(self, "half_life", float(self.half_life))
        parameters.check_whole("n_random_features", self.n_random_features, 0)
        parameters.check_whole("seed", self.seed, 0)

    @property
    def _dtype(self) -> type[np.floating]:
        return np.float32 if self.single else np.float64

    def init(self, kinds: KindsLike, n_components: int) -> RLSState:
        """Make learners that have seen nothing; the first rows decide which columns they have."""
        return self._zeros(scaling.init(FeatureKinds.of(kinds).n_values, self._dtype), n_components, float(ALPHAS[-1]))

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

    def with_zeros(self, state: RLSState) -> RLSState:
        """Make learners with zero weights that scale columns as these do, and have their penalty."""
        empty = self._zeros(state.scaling, len(state.intercepts), state.alpha)
        empty = empty._replace(first_rows=np.zeros(len(state.intercepts)))
        return with_arrays(empty, weights=empty.weights, gained=empty.gained)

    def n_columns(self, state: RLSState, X: AnyMatrix) -> int:
        """Count the columns that the first rows need weights for."""
        if scaling.is_sparse(X):
            return len(np.unique(scipy.sparse.csr_array(X).indices))
        return columns.width(state.scaling.n_values) + self.n_random_features

    def transform(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Compute the columns that the linear models use."""
        return scaling.transform(derived.scaling, X, derived.scales)

    def update(self, state: RLSState, X: AnyMatrix, H: AnyMatrix) -> RLSState:
        """Learn the rows of ``X`` with their pseudo labels ``H``."""
        known, X, H = self.rows_to_learn(state, X, H)
        if known is not None:
            return self.learn(known, X, H)
        first, others = first_rows(X.shape[0])
        begun = self.start(state, X[first], H[first]).state._replace(warm_up=WarmUp.of(X[first], H[first]))
        return self.learn(begun, X[others], H[others]) if len(others) else begun

    def rows_to_learn(
        self, state: RLSState, X: AnyMatrix, Y: AnyMatrix
    ) -> tuple[RLSState | None, AnyMatrix, AnyMatrix]:
        """Decide how a batch is learned: return the state to go on from, None to begin from nothing, and the rows.

        The first rows are kept, with targets ``Y``, as long as they are few: whenever they have doubled, all that was
        learned is given up, and the model begins again with all of them.
        """
        if state.rows == 0 or scaling.has_become_dense(state.scaling):
            return None, X, Y
        if not state.warm_up.n_used:
            return state, X, Y
        kept = state.warm_up.with_batch(X, Y)
        if kept.is_due():
            return None, *kept.rows(X, Y.shape[1])
        return state._replace(warm_up=kept), X, Y

    def start(self, state: RLSState, X: AnyMatrix, H: AnyMatrix) -> Start:
        """Learn the first rows exactly: scale them, choose penalty and columns on them, and solve."""
        n_values, H = columns.widest_values(state.scaling.n_values, X), dense_floats(H)
        if self.binary:
            H = missing_labels.fill_with_means(H)
        found = self._start(X, n_values, H, self.n_random_features)
        if not found.state.scaling.directions.size:
            return found
        plain = self._start(X, n_values, H, 0)
        with np.errstate(over="ignore", invalid="ignore"):
            without, error = (np.square(H - self._clipped(one.left_out(H))).sum() for one in (plain, found))
        return plain if without < _CLEARLY * error else found

    def _start(self, X: AnyMatrix, n_values: IntArray, H: FloatArray, n_random_features: int) -> Start:
        """Scale the first rows and solve for them, with so many random features if they are dense."""
        rng = np.random.default_rng(self.seed)
        scaled = scaling.update(scaling.start(X, n_values, n_random_features, rng, self._dtype), X)
        Z, touched = products.without_empty_columns(scaling.transform(scaled, X))
        with threads.limited(len(H)):
            return self._solved(scaled, Z, touched, H)

    def _clipped(self, scores: FloatArray) -> FloatArray:
        """Clip the scores of labels: below 0 and above 1 they are as good as 0 and 1."""
        return np.clip(scores, 0.0, 1.0) if self.binary else scores

    def _solved(self, scaled: ScalingState, Z: AnyMatrix, touched: IntArray | slice, H: FloatArray) -> Start:
        """Solve for the first rows, at the best penalty."""
        block = products.block_of(Z)
        kernel = block.gram(np.ones(Z.shape[1], Z.dtype)).astype(float, copy=False)
        values, vectors = np.linalg.eigh(kernel)
        values = np.maximum(values, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            alpha = best_alpha(values, vectors, H, clip=self.binary) if self.alpha is None else float(self.alpha)
            inverse = inverse_of(values, vectors, alpha)
            pull = inverse @ H
            empty = self._zeros(scaled, H.shape[1], alpha)
            weights = Z.T @ pull.astype(self._dtype) / self._dtype(alpha)
            intercepts = pull.sum(axis=0) / INTERCEPT
        check_finite(weights, intercepts)
        q = block.quadratic(inverse.astype(self._dtype))
        empty.weights[touched] = weights
        empty.gained[touched, 0] = steps.marginal(np.full(len(q), alpha), q, block.squares()) - alpha
        empty.intercept_gained[0] = INTERCEPT / (1.0 - inverse.sum() / INTERCEPT) - INTERCEPT
        learned = empty._replace(
            intercepts=intercepts,
            rows=float(len(H)),
            in_use=float(np.count_nonzero(empty.gained[touched, 0])),
            first_rows=np.where((H != 0).any(axis=0), 0.0, np.inf),
        )
        return Start(with_arrays(learned, weights=empty.weights, gained=empty.gained), inverse)

    def gather(self, state: RLSState, Z: AnyMatrix, *, compiled: bool = False) -> Gathered:
        """Take the weights that rows touch from among all, once for predicting and learning them."""
        Z, places = products.without_empty_columns(Z, compiled=compiled)
        return Gathered(Z, places, rows_of(state.weights, places), rows_of(state.gained, places))

    def learn(
        self,
        state: RLSState,
        X: AnyMatrix,
        H: AnyMatrix,
        *,
        gathered: Gathered | None = None,
        compiled: bool = False,
    ) -> RLSState:
        """Learn rows after the start; ``gathered`` is what `gather` gave for them, if it was called before.

        With ``compiled``, compiled loops are used where there are some, which give the same up to round-off.
        """
        n_values = columns.widest_values(state.scaling.n_values, X)
        if n_values is not state.scaling.n_values:
            state, gathered = self._widened(state, n_values), None
        if gathered is None:
            gathered = self.gather(state, scaling.transform(state.scaling, X))
        H, gained = np.asarray(dense(H), dtype=self._dtype), state.gained
        if self.binary:
            state = self.with_generations(state, H)
        if state.fading < LEAST_FADING:
            state = multiplied_out(state)
        if state.gained is not gained:
            gathered = gathered._replace(gained=rows_of(state.gained, gathered.places))
        with threads.limited(len(H)):
            learned = self._learn_blocks(state, gathered, H, compiled=compiled)
        learned = learned._replace(rows=state.rows + X.shape[0])
        return self.with_scaling(learned, scaling.update(state.scaling, X, self.factor(X.shape[0])))

    def with_scaling(self, state: RLSState, scaled: ScalingState) -> RLSState:
        """Use a new scaling; where the old one was wrong, convert the weights and reset their precision."""
        revised = scaling.revised(scaled)
        if revised is state.scaling:
            return state
        if revised is scaled or not (is_wrong := revised.square != scaled.square).any():
            return state._replace(scaling=revised)
        work = Work(state.weights, state.gained, state.intercepts, state.intercept_gained)
        weights, gained, intercepts, _ = steps.follow_scaling(work, scaled, revised, is_wrong)
        return state._replace(scaling=revised, weights=weights, gained=gained, intercepts=intercepts)

    def with_generations(self, state: RLSState, H: Array) -> RLSState:
        """Put targets that are other than 0 for the first time into the young generation, founding it if need be."""
        new = np.isinf(state.first_rows) & (H > 0).any(axis=0)
        if not new.any():
            return state
        first_rows = np.where(new, state.rows, state.first_rows)
        if state.rows - state.founded < _GENERATION:
            return state._replace(first_rows=first_rows, young=state.young | new)
        still_new = state.young & (state.rows - state.first_rows < _NEW)
        gained, intercept_gained = np.array(state.gained), state.intercept_gained.copy()
        gained[:, 1], intercept_gained[1] = 0.0, 0.0
        founded = state._replace(
            first_rows=first_rows, young=still_new | new, founded=state.rows, intercept_gained=intercept_gained
        )
        return with_arrays(founded, gained=gained)

    def factor(self, n_rows: int) -> float:
        """Compute the share of the past that is kept after a number of rows."""
        return 1.0 if self.half_life is None else 0.5 ** (n_rows / self.half_life)

    def forget(self, state: RLSState, keep: float) -> RLSState:
        """Forget all but a share of the past: the weights stay, but new data changes them faster."""
        return state._replace(fading=state.fading * keep, intercept_gained=state.intercept_gained * keep)

    def rescale(self, state: RLSState, X: AnyMatrix) -> RLSState:
        """Scale anew the columns whose unit has changed in a batch."""
        return state._replace(scaling=scaling.rescale(state.scaling, X))

    def _learn_blocks(self, state: RLSState, gathered: Gathered, H: Array, *, compiled: bool) -> RLSState:
        """Learn block by block, on a copy of the rows that are touched: a failure leaves the state as it was."""
        Z, touched, weights_before, gained_before = gathered
        weights, gained = weights_before.copy(), gained_before * state.fading
        unused = gained[:, 0] == 0.0
        work = Work(weights, gained, state.intercepts.astype(self._dtype), state.intercept_gained.copy())
        young = np.flatnonzero(state.young)
        learn_blocks(work, state.alpha, Z, H, young, keep=self.factor, binary=self.binary, compiled=compiled)
        # Errors of labels are at most 1, so that what is not finite shows in the intercepts.
        check_finite(*(() if self.binary else (weights,)), work.intercepts)
        fading = max(state.fading * self.factor(len(H)), LEAST_FADING**2)
        gained /= fading
        return state._replace(
            intercepts=work.intercepts.astype(float),
            intercept_gained=work.intercept_gained,
            fading=fading,
            in_use=state.in_use + float(np.count_nonzero(unused & (gained[:, 0] != 0.0))),
            weights=replaced_rows(state.weights, touched, weights, weights_before),
            gained=replaced_rows(state.gained, touched, gained, gained_before),
        )

    def derive(self, state: RLSState) -> Derived:
        """Collect what predicting needs."""
        scales = scaling.scale(state.scaling)
        return Derived(state.scaling, scales, state.weights, state.intercepts.astype(self._dtype))

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        if X.shape[0] == 1 and columns.all_numeric(derived.scaling.n_values):
            values, places = scaling.transform_row(derived.scaling, X, derived.scales)
            return (values @ rows_of(derived.weights, places) + derived.intercepts)[None]
        return self.predict_transformed(derived, self.transform(derived, X))

    def predict_transformed(self, derived: Derived, Z: AnyMatrix, weights: Array | None = None) -> FloatArray:
        """Compute the values of all pseudo labels from the result of `transform`, or from what was gathered for it."""
        with threads.limited(Z.shape[0]):
            product = product_of(Z, derived.weights if weights is None else weights)
        product += derived.intercepts
        return product

    def project(self, state: RLSState, A: FloatArray) -> RLSState:
        """Make the learners of the pseudo labels ``Y A`` of learners of the labels ``Y``, all of one generation."""
        k = A.shape[1]
        projected = state._replace(intercepts=state.intercepts @ A, first_rows=np.zeros(k), young=np.zeros(k, bool))
        weights, A = np.asarray(state.weights), A.astype(self._dtype)
        # Some rows at a time: SciPy copies what is multiplied with a sparse array, with rows and columns exchanged.
        parts = [weights[first : first + _PROJECTED] @ A for first in range(0, max(len(weights), 1), _PROJECTED)]
        return with_arrays(projected, weights=np.concatenate(parts))

    def take(self, state: RLSState, moves: Moves) -> RLSState:
        """Move targets and features."""
        features, targets = moves.source("m", len(state.scaling.n_values)), moves.source("t", len(state.intercepts))
        if (features is None or len(features) == len(state.scaling.n_values)) and (
            targets is None or len(targets) == len(state.intercepts)
        ):
            order = np.arange(len(state.scaling.n_values)) if features is None else features
            return self.reordered(state, targets, order)
        if moves.kinds is not None:
            state = self.grow_features(state, moves.kinds.n_values)
        return state if targets is None else self.grow_components(state, len(targets))

    def grow_components(self, state: RLSState, n_components: int) -> RLSState:
        """Add pseudo labels that were 0 in all rows so far: their weights are exactly 0."""
        n_new = n_components - len(state.intercepts)
        grown = state._replace(
            intercepts=np.pad(state.intercepts, (0, n_new)),
            first_rows=np.pad(state.first_rows, (0, n_new), constant_values=np.inf),
            young=np.pad(state.young, (0, n_new)),
        )
        return with_arrays(grown, weights=np.pad(np.asarray(state.weights), ((0, 0), (0, n_new))))

    def grow_features(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add features that were 0 in all rows so far."""
        return self._widened(state, columns.appended(state.scaling.n_values, n_values))

    def reset_features(self, state: RLSState, features: IntArray) -> RLSState:
        """Forget what was learned of features, if all are numeric; random features of dense data stay as they are."""
        if not columns.all_numeric(state.scaling.n_values):
            return state
        return state._replace(
            scaling=scaling.reset(state.scaling, features),
            weights=with_rows(state.weights, features, np.zeros((len(features), len(state.intercepts)))),
            gained=with_rows(state.gained, features, np.zeros((len(features), 2))),
            warm_up=state.warm_up.without(features),
        )

    def reordered(self, state: RLSState, targets: IntArray | None, features: IntArray) -> RLSState:
        """Put targets and features in another order; a buffer of first rows must have been used up."""
        scaled, targets = state.scaling, np.arange(len(state.intercepts)) if targets is None else targets
        design = columns.order_of(scaled.n_values, features).design
        n_random = scaled.directions.shape[1]
        places = np.concatenate([design, len(design) + np.arange(n_random)])
        if scaled.length:
            scaled = scaling.reordered(scaled, design)
        moved = state._replace(
            scaling=scaled._replace(n_values=scaled.n_values[features]),
            intercepts=state.intercepts[targets],
            first_rows=state.first_rows[targets],
            young=state.young[targets],
        )
        weights, gained = np.asarray(state.weights)[np.ix_(places, targets)], np.asarray(state.gained)[places]
        return with_arrays(moved, weights=weights, gained=gained)

    def _widened(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add columns, of new features or of new values of nominal ones, that were 0 in all rows so far."""
        if state.rows == 0:
            return self.init(FeatureKinds(n_values), len(state.intercepts))
        rng = np.random.default_rng([self.seed, len(n_values)])
        scaled = scaling.grow(state.scaling, n_values, rng)
        n_random, m = scaled.directions.shape[1], scaling.n_columns(scaled)
        if not scaled.length and columns.all_numeric(n_values):
            tables: Any = [VersionedRows.of(one).grown(m) for one in (state.weights, state.gained)]
            return state._replace(scaling=scaled, weights=tables[0], gained=tables[1])
        kept = columns.places(state.scaling.n_values, n_values)
        kept = np.concatenate([kept, m - n_random + np.arange(n_random)])
        weights, gained = np.zeros((m, len(state.intercepts)), self._dtype), np.zeros((m, 2))
        weights[kept], gained[kept] = np.asarray(state.weights), np.asarray(state.gained)
        return with_arrays(state._replace(scaling=scaled), weights=weights, gained=gained)


def with_arrays(state: RLSState, *, weights: Array | None = None, gained: Array | None = None) -> RLSState:
    """Put arrays that nobody else has into a state: as tables, where data is sparse."""
    if weights is not None:
        state = state._replace(weights=weights if state.scaling.length else VersionedRows.taking(weights))  # type: ignore[arg-type]
    if gained is not None:
        state = state._replace(gained=gained if state.scaling.length else VersionedRows.taking(gained))  # type: ignore[arg-type]
    return state


def multiplied_out(state: RLSState) -> RLSState:
    """Multiply what was kept into `gained`."""
    return with_arrays(state._replace(fading=1.0), gained=np.asarray(state.gained) * state.fading)
