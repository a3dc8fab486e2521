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
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace import parameters
from labelrace.exceptions import DivergenceError
from labelrace.learners import columns, products, scaling, threads
from labelrace.learners.bank import Bank, Task
from labelrace.learners.scaling import ScalingState
from labelrace.learners.table import Table
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

__all__ = ["ALPHAS", "EXACT_ROWS", "RLS", "Derived", "RLSState", "Start", "WarmUp", "first_rows"]

# Penalties to choose from, for rows of length one, and what the chosen one is multiplied by.
ALPHAS = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
_MARGIN = 1.25
# Rows that are learned exactly at the most.
EXACT_ROWS = 512
# Rows of a block: its matrix costs their square a row, and smaller blocks lose what is exact within them. Sparse ones
# are larger as each costs some calls to SciPy.
_BLOCK, _SPARSE_BLOCK = 64, 128
# Share of non-zeros, of the columns that occur, from which sparse rows are learned as dense ones.
_DENSE = 0.1
# Precision of the intercept before the first row.
_INTERCEPT = 1.0
# Rows after which the next generation may be founded, and up to which a label is new.
_GENERATION, _NEW = 1000.0, 750.0
# What is left of `gained` at the least before it is multiplied out.
_LEAST_FADING = 1e-30
# Scores of the start that are computed at once.
_CELLS = 1 << 22


class WarmUp(NamedTuple):
    """Buffer of the first rows, until there are enough of them.

    Attributes
    ----------
    values, indices, indptr : arrays
        The rows of ``X``, in compressed-row form.
    target_values, target_indices, target_indptr : arrays
        Their targets, likewise.
    n_used : float
        Number of rows that were last learned exactly; 0 where the buffer is not in use.
    """

    values: FloatArray
    indices: IntArray
    indptr: IntArray
    target_values: FloatArray
    target_indices: IntArray
    target_indptr: IntArray
    n_used: float

    @classmethod
    def empty(cls) -> WarmUp:
        """Make a buffer without rows."""
        none = (np.zeros(0), np.zeros(0, np.intp), np.zeros(1, np.intp))
        return cls(*none, *none, 0.0)

    def with_batch(self, X: AnyMatrix, Y: AnyMatrix) -> WarmUp:
        """Append a batch, which may have more columns."""
        n = len(self.indptr) - 1
        rows, targets = (
            scipy.sparse.vstack([scipy.sparse.csr_array(old, shape=(n, new.shape[1])), scipy.sparse.csr_array(new)])
            for new, old in ((X, self[:3]), (Y, self[3:6]))
        )
        return WarmUp(*_parts(rows), *_parts(targets), self.n_used)

    def is_due(self) -> bool:
        """Tell whether the rows have doubled since they were last learned exactly."""
        return len(self.indptr) - 1 >= 2 * self.n_used

    def rows(self, like: AnyMatrix, n_targets: int) -> tuple[AnyMatrix, AnyMatrix]:
        """Return rows and targets, the rows in the form of ``like``."""
        n = len(self.indptr) - 1
        X = scipy.sparse.csr_array(self[:3], shape=(n, like.shape[1]))
        Y = scipy.sparse.csr_array(self[3:6], shape=(n, n_targets))
        return (X if scipy.sparse.issparse(like) else X.toarray()), Y

    def used(self) -> WarmUp:
        """Return the buffer after its rows were learned exactly: empty where twice as many would be too many."""
        n = len(self.indptr) - 1
        return self._replace(n_used=float(n)) if 2 * n <= EXACT_ROWS else WarmUp.empty()


class RLSState(NamedTuple):
    """Weights and their precision.

    Attributes
    ----------
    scaling : ScalingState
        How columns are scaled.
    alpha : float
        The penalty, which is the precision before the first row.
    weights : (M, k) array, or Table for sparse data
        In single or double precision.
    intercepts : (k,) array
    gained : (M, 2) array, or Table for sparse data
        How far the precision of the old generation, and of the young one, is above the penalty; to be multiplied by
        ``fading``.
    fading : float
        Product of what was kept of ``gained``, so that columns that a batch does not touch are forgotten, too.
    in_use : float
        Columns that were other than 0.
    intercept_gained : (2,) array
        The same for the intercepts, above 1.
    rows : float
        Rows learned so far.
    first_rows : (k,) array
        Rows learned before each target was first other than 0; infinite where it never was.
    young : (k,) array of bool
        Whether a target belongs to the young generation.
    founded : float
        Rows learned before the young generation was founded; minus infinity if there was none.
    warm_up : WarmUp
        Buffer of the first rows.
    """

    scaling: ScalingState
    alpha: float
    weights: Array
    intercepts: FloatArray
    gained: FloatArray
    fading: float
    in_use: float
    intercept_gained: FloatArray
    rows: float
    first_rows: FloatArray
    young: BoolArray
    founded: float
    warm_up: WarmUp


class Derived(NamedTuple):
    """The linear models; ``scales`` is what the columns are divided by."""

    scaling: ScalingState
    scales: FloatArray
    weights: Array
    intercepts: Array


class Start(NamedTuple):
    """What the exact start gives.

    Attributes
    ----------
    state : RLSState
    inverse : (n, n) array
        ``M⁻¹`` of all rows at the chosen penalty, from which `left_out` has the leave-one-out scores.
    """

    state: RLSState
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
        Random features, on dense data; see `labelrace.learners.scaling`.
    seed : int, default=0
        Seed of their directions.
    single : bool, default=False
        Whether to work in single precision, at half the memory and twice the speed.
    binary : bool, default=False
        Whether targets are labels: 0, 1, or NaN where not known.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.learners.rls import RLS
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

    def init(self, n_values: IntArray, n_components: int) -> RLSState:
        """Make learners that have seen nothing; the first rows decide which columns they have."""
        return self._zeros(scaling.init(n_values, self._dtype), n_components, float(ALPHAS[-1]))

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
        return _as_tables(empty, empty.weights, empty.gained) if _is_table(state.weights) else empty

    def transform(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Compute the columns that the linear models use."""
        return scaling.transform(derived.scaling, X, derived.scales)

    def update(self, state: RLSState, X: AnyMatrix, H: AnyMatrix) -> RLSState:
        """Learn the rows of ``X`` with their pseudo labels ``H``."""
        if state.rows == 0:
            first, others = first_rows(X.shape[0])
            buffer = WarmUp.empty().with_batch(X[first], H[first])
            state = self.start(state, X[first], H[first]).state._replace(warm_up=buffer.used())
            return self.update(state, X[others], H[others]) if len(others) else state
        if not state.warm_up.n_used:
            return self.learn(state, X, H)
        buffer = state.warm_up.with_batch(X, H)
        if not buffer.is_due():
            return self.learn(state, X, H)._replace(warm_up=buffer)
        rows, targets = buffer.rows(X, H.shape[1])
        return self.update(self.init(state.scaling.n_values, H.shape[1]), rows, columns.dense(targets))

    def start(self, state: RLSState, X: AnyMatrix, H: AnyMatrix) -> Start:
        """Learn the first rows exactly: scale them, choose the penalty on them, and solve."""
        n_values = columns.widest_values(state.scaling.n_values, X)
        rng = np.random.default_rng(self.seed)
        scaled = scaling.update(scaling.start(X, n_values, self.n_random_features, rng, self._dtype), X)
        Z, touched = products.without_empty_columns(scaling.transform(scaled, X))
        H = np.asarray(columns.dense(H), dtype=float)
        if self.binary:
            H = _with_means(H)
        with threads.limited(len(H)):
            return self._solved(scaled, Z, touched, H)

    def _solved(self, scaled: ScalingState, Z: AnyMatrix, touched: IntArray | slice, H: FloatArray) -> Start:
        """Solve for the first rows, at the best penalty."""
        block = products.block_of(Z)
        kernel = block.gram(np.ones(Z.shape[1], Z.dtype)).astype(float, copy=False)
        values, vectors = np.linalg.eigh(kernel)
        values = np.maximum(values, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            alpha = _MARGIN * self._best_alpha(values, vectors, H) if self.alpha is None else float(self.alpha)
            inverse = _inverse(values, vectors, alpha)
            pull = inverse @ H
            empty = self._zeros(scaled, H.shape[1], alpha)
            weights = Z.T @ pull.astype(self._dtype) / self._dtype(alpha)
            intercepts = pull.sum(axis=0) / _INTERCEPT
        _check_finite(weights, intercepts)
        q = block.quadratic(inverse.astype(self._dtype))
        empty.weights[touched] = weights
        empty.gained[touched, 0] = _marginal(np.full(len(q), alpha), q, block.squares()) - alpha
        empty.intercept_gained[0] = _INTERCEPT / (1.0 - inverse.sum() / _INTERCEPT) - _INTERCEPT
        learned = empty._replace(
            intercepts=intercepts,
            rows=float(len(H)),
            in_use=float(np.count_nonzero(empty.gained[touched, 0])),
            first_rows=np.where((H != 0).any(axis=0), 0.0, np.inf),
        )
        if not scaled.length:
            learned = _as_tables(learned, empty.weights, empty.gained)
        return Start(learned, inverse)

    def _best_alpha(self, values: FloatArray, vectors: FloatArray, H: FloatArray) -> float:
        """Choose the penalty with the smallest leave-one-out error, over all targets; of equals the largest."""
        if len(values) < 2:
            return float(ALPHAS[len(ALPHAS) // 2])
        errors, ones = np.zeros(len(ALPHAS)), vectors.sum(axis=0)
        squares, size = vectors * vectors, max(1, _CELLS // len(H))
        for first in range(0, H.shape[1], size):
            part = H[:, first : first + size]
            along = vectors.T @ part
            for place, alpha in enumerate(ALPHAS):
                # As `_inverse` has it, but for no more than its diagonal and its product with the targets.
                shrink = 1.0 / (values / alpha + 1.0)
                sums = vectors @ (shrink * ones)
                share = sums / (_INTERCEPT + sums.sum())
                diagonal = squares @ shrink - sums * share
                left_out = vectors @ (shrink[:, None] * along) - share[:, None] * (sums @ part)
                left_out /= diagonal[:, None]
                if self.binary:
                    left_out = part - np.clip(part - left_out, 0.0, 1.0)
                errors[place] += np.square(left_out).sum()
        # What is equal but for rounding, as where a target is constant, is equal.
        least = errors.min() * (1 + 1e-9) + 1e-300
        return float(ALPHAS[np.flatnonzero(errors <= least).max(initial=0)])

    def learn(self, state: RLSState, X: AnyMatrix, H: AnyMatrix, Z: AnyMatrix | None = None) -> RLSState:
        """Learn rows after the start; ``Z`` is `transform` of ``X``, if there is one."""
        n_values = columns.widest_values(state.scaling.n_values, X)
        if n_values is not state.scaling.n_values:
            state, Z = self._widened(state, n_values), None
        Z = scaling.transform(state.scaling, X) if Z is None else Z
        H = np.asarray(columns.dense(H), dtype=self._dtype)
        if self.binary:
            state = self._with_generations(state, H)
        with threads.limited(len(H)):
            learned = self._learn_blocks(state, Z, H)
        return learned._replace(
            scaling=scaling.update(state.scaling, X, self.factor(X.shape[0])), rows=state.rows + X.shape[0]
        )

    def _with_generations(self, state: RLSState, H: Array) -> RLSState:
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
        is_table = _is_table(state.gained)
        return _as_tables(founded, None, gained) if is_table else founded._replace(gained=gained)

    def factor(self, n_rows: int) -> float:
        """Compute the share of the past that is kept after a number of rows."""
        return 1.0 if self.half_life is None else 0.5 ** (n_rows / self.half_life)

    def forget(self, state: RLSState, keep: float) -> RLSState:
        """Forget all but a share of the past: the weights stay, but new data changes them faster."""
        return state._replace(fading=state.fading * keep, intercept_gained=state.intercept_gained * keep)

    def rescale(self, state: RLSState, X: AnyMatrix) -> RLSState:
        """Scale anew the columns whose unit has changed in a batch."""
        return state._replace(scaling=scaling.rescale(state.scaling, X))

    def _learn_blocks(self, state: RLSState, Z: AnyMatrix, H: Array) -> RLSState:
        """Learn block by block, on a copy of the rows that are touched: a failure leaves the state as it was."""
        size = _SPARSE_BLOCK if scipy.sparse.issparse(Z) else _BLOCK
        if state.fading < _LEAST_FADING:
            state = _multiplied_out(state)
        is_sparse = not state.scaling.length
        Z, touched = products.without_empty_columns(Z)
        before = _rows_of(state.weights, touched), _rows_of(state.gained, touched)
        weights, gained = before[0].copy(), before[1] * state.fading
        if scipy.sparse.issparse(Z) and Z.nnz > _DENSE * Z.shape[0] * Z.shape[1]:
            Z = Z.toarray()
        unused = gained[:, 0] == 0.0
        work = _Work(weights, gained, state.intercepts.astype(self._dtype), state.intercept_gained.copy())
        young = np.flatnonzero(state.young)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if Z.shape[0] <= size:
                self._learn_block(work, state.alpha, Z, H, young)
            else:
                for start in range(0, Z.shape[0], size):
                    self._learn_block(work, state.alpha, Z[start : start + size], H[start : start + size], young)
        # Errors of labels are at most 1, so that what is not finite shows in the intercepts.
        _check_finite(weights[:0] if self.binary else weights, work.intercepts)
        fading = max(state.fading * self.factor(Z.shape[0]), _LEAST_FADING**2)
        gained /= fading
        learned = state._replace(
            intercepts=work.intercepts.astype(float),
            intercept_gained=work.intercept_gained,
            fading=fading,
            in_use=state.in_use + float(np.count_nonzero(gained[unused, 0])),
        )
        if not is_sparse:
            return learned._replace(weights=weights, gained=gained)
        return learned._replace(
            weights=Table.of(state.weights).replaced(touched, weights, before[0]),  # type: ignore[arg-type]
            gained=Table.of(state.gained).replaced(touched, gained, before[1]),  # type: ignore[arg-type]
        )

    def _learn_block(self, work: _Work, alpha: float, z: AnyMatrix, h: Array, young: IntArray) -> None:
        """Write what a block teaches into the arrays."""
        errors = h - z @ work.weights
        errors -= work.intercepts
        if self.binary:
            errors = _hinged(errors, h)
        factor = self.factor(z.shape[0])
        if factor != 1.0:
            np.multiply(work.gained, factor, out=work.gained)
            np.multiply(work.intercept_gained, factor, out=work.intercept_gained)
        block = products.block_of(z)
        touched, squares, pulls = block.touched, block.squares(), []
        for generation in range(2 if len(young) else 1):
            precision = alpha + work.gained[touched, generation]
            freedom = 1.0 / (_INTERCEPT + float(work.intercept_gained[generation]))
            variance = self._spread(1.0 / precision, touched, z.shape[1])
            inverse = products.block_inverse(block, variance, freedom)
            marginal = _marginal(precision, block.quadratic(inverse), squares)
            work.gained[touched, generation] = marginal - alpha
            total = float(inverse.sum(dtype=float))
            gain = 1.0 / freedom / max(1.0 - total * freedom, 1.0 / (1.0 + z.shape[0] * freedom))
            work.intercept_gained[generation] = gain - _INTERCEPT
            pull = inverse @ (errors[:, young] if generation else errors)
            pulls.append((pull, freedom * pull.sum(axis=0), variance))
        pull, shift, variance = pulls[0]
        if len(young):
            # These are for the young generation, with its own precision.
            pull[:, young], shift[young] = 0.0, pulls[1][1]
            change = np.zeros((z.shape[1], len(young)), self._dtype)
            block.add_transposed(change, pulls[1][2], pulls[1][0])
            work.weights[:, young] += change
        block.add_transposed(work.weights, variance, pull)
        np.add(work.intercepts, shift, out=work.intercepts)

    def _spread(self, values: FloatArray, touched: IntArray | slice, width: int) -> Array:
        """Put the values of the columns that occur where these are among all."""
        if isinstance(touched, slice):
            return values.astype(self._dtype)
        spread = np.zeros(width, self._dtype)
        spread[touched] = values
        return spread

    def derive(self, state: RLSState) -> Derived:
        """Collect what predicting needs."""
        scales = scaling.scale(state.scaling)
        return Derived(state.scaling, scales, state.weights, state.intercepts.astype(self._dtype))

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return self.predict_transformed(derived, self.transform(derived, X))

    def predict_transformed(self, derived: Derived, Z: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels from the result of `transform`."""
        weights: Any = derived.weights
        with threads.limited(Z.shape[0]):
            product = weights.times(Z) if isinstance(weights, Table) else Z @ weights
        product += derived.intercepts
        return np.asarray(product)

    def project(self, state: RLSState, A: FloatArray) -> RLSState:
        """Make the learners of the pseudo labels ``Y A`` of learners of the labels ``Y``, all of one generation."""
        k = A.shape[1]
        weights = np.asarray(state.weights) @ A.astype(self._dtype)
        projected = state._replace(
            intercepts=state.intercepts @ A, first_rows=np.zeros(k), young=np.zeros(k, bool), weights=weights
        )
        return _as_tables(projected, weights, None) if _is_table(state.weights) else projected

    def grow_components(self, state: RLSState, n_components: int) -> RLSState:
        """Add pseudo labels that were 0 in all rows so far: their weights are exactly 0."""
        n_new = n_components - len(state.intercepts)
        weights = np.pad(np.asarray(state.weights), ((0, 0), (0, n_new)))
        grown = state._replace(
            weights=weights,
            intercepts=np.pad(state.intercepts, (0, n_new)),
            first_rows=np.pad(state.first_rows, (0, n_new), constant_values=np.inf),
            young=np.pad(state.young, (0, n_new)),
        )
        return _as_tables(grown, weights, None) if _is_table(state.weights) else grown

    def grow_features(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add features that were 0 in all rows so far."""
        return self._widened(state, columns.appended(state.scaling.n_values, n_values))

    def reset_features(self, state: RLSState, features: IntArray) -> RLSState:
        """Forget what was learned of numeric features of sparse data."""
        if not _is_table(state.weights) or not columns.all_numeric(state.scaling.n_values):
            return state
        zeros = np.zeros((len(features), len(state.intercepts)), self._dtype), np.zeros((len(features), 2))
        weights: Any = Table.of(state.weights).replaced(features, zeros[0])
        gained: Any = Table.of(state.gained).replaced(features, zeros[1])
        return state._replace(weights=weights, gained=gained)

    def reordered(self, state: RLSState, targets: IntArray | None, features: IntArray) -> RLSState:
        """Put targets and features in another order; a buffer of first rows must have been used up."""
        scaled, targets = state.scaling, np.arange(len(state.intercepts)) if targets is None else targets
        design = columns.order_of(scaled.n_values, features).design
        n_random = scaled.directions.shape[1]
        places = np.concatenate([design, len(design) + np.arange(n_random)])
        if scaled.length:
            scaled = scaled._replace(
                mean=scaled.mean[design], square=scaled.square[design], directions=scaled.directions[design]
            )
        weights, gained = np.asarray(state.weights)[np.ix_(places, targets)], np.asarray(state.gained)[places]
        moved = state._replace(
            scaling=scaled._replace(n_values=scaled.n_values[features]),
            weights=weights,
            gained=gained,
            intercepts=state.intercepts[targets],
            first_rows=state.first_rows[targets],
            young=state.young[targets],
        )
        return _as_tables(moved, weights, gained) if _is_table(state.weights) else moved

    def _widened(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add columns, of new features or of new values of nominal ones, that were 0 in all rows so far."""
        if state.rows == 0:
            return self.init(n_values, len(state.intercepts))
        rng = np.random.default_rng([self.seed, len(n_values)])
        scaled = scaling.grow(state.scaling, n_values, rng)
        n_random, m = scaled.directions.shape[1], scaling.n_columns(scaled)
        if not scaled.length and columns.all_numeric(n_values):
            tables: Any = [Table.of(one).grown(m) for one in (state.weights, state.gained)]
            return state._replace(scaling=scaled, weights=tables[0], gained=tables[1])
        kept = columns.places(state.scaling.n_values, n_values)
        kept = np.concatenate([kept, m - n_random + np.arange(n_random)])
        weights, gained = np.zeros((m, len(state.intercepts)), self._dtype), np.zeros((m, 2))
        weights[kept], gained[kept] = np.asarray(state.weights), np.asarray(state.gained)
        grown = state._replace(scaling=scaled, weights=weights, gained=gained)
        return _as_tables(grown, weights, gained) if _is_table(state.weights) else grown


class _Work(NamedTuple):
    """Arrays that a batch is learned in: the rows it touches, and the intercepts."""

    weights: Array
    gained: FloatArray
    intercepts: Array
    intercept_gained: FloatArray


def _is_table(array: Any) -> bool:
    """Tell whether rows are those of a table, as they are of sparse data."""
    return isinstance(array, Table)


def _rows_of(array: Any, touched: IntArray | slice) -> Array:
    """Take some rows."""
    if isinstance(array, Table) and not isinstance(touched, slice):
        return array.rows(touched)
    return np.asarray(np.asarray(array)[touched])


def _as_tables(state: RLSState, weights: Array | None, gained: Array | None) -> RLSState:
    """Put arrays that nobody else has into a state as tables."""
    if weights is not None:
        state = state._replace(weights=Table.taking(weights))  # type: ignore[arg-type]
    if gained is not None:
        state = state._replace(gained=Table.taking(gained))  # type: ignore[arg-type]
    return state


def _multiplied_out(state: RLSState) -> RLSState:
    """Multiply what was kept into `gained`."""
    gained, state = np.asarray(state.gained) * state.fading, state._replace(fading=1.0)
    return _as_tables(state, None, gained) if _is_table(state.gained) else state._replace(gained=gained)


def first_rows(n: int) -> tuple[IntArray, IntArray]:
    """Choose the rows of a first batch that are learned exactly, and the order of the others.

    A first batch may be a whole table, and sorted: both the exact rows and every block are taken from all over it.

    Examples
    --------
    >>> first, others = first_rows(2000)
    >>> len(first), others[:4].tolist()
    (512, [1, 17, 33, 49])
    """
    n_first = min(n, EXACT_ROWS)
    first = np.arange(n_first) * n // n_first
    others = np.setdiff1d(np.arange(n), first, assume_unique=True)
    n_blocks = -(-len(others) // _SPARSE_BLOCK)
    return first, others[np.argsort(np.arange(len(others)) % max(n_blocks, 1), kind="stable")]


def _parts(rows: AnyMatrix) -> tuple[FloatArray, IntArray, IntArray]:
    """Take sparse rows apart."""
    rows = scipy.sparse.csr_array(rows)
    return rows.data.astype(float), rows.indices.astype(np.intp), rows.indptr.astype(np.intp)


def _with_means(H: FloatArray) -> FloatArray:
    """Put each target's mean where it is not known, 0 where it never is."""
    missing = np.isnan(H)
    if not missing.any():
        return H
    means = np.where(missing, 0.0, H).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, means, H)


def _inverse(values: FloatArray, vectors: FloatArray, alpha: float) -> FloatArray:
    """Compute ``(ZZᵀ/α + 1/d_b + I)⁻¹`` from the eigenvalues and eigenvectors of ``ZZᵀ``."""
    inverse = (vectors / (values / alpha + 1.0)) @ vectors.T
    # The intercept adds a matrix of rank one (Sherman and Morrison, 1950).
    sums = inverse.sum(axis=1)
    inverse -= np.outer(sums, sums / (_INTERCEPT + sums.sum()))
    return inverse


def _hinged(errors: Array, h: Array) -> Array:
    """Leave out the errors of scores beyond their target, below 0 or above 1, and of labels that are not known."""
    hinged = np.where(h > 0, np.maximum(errors, 0.0), np.minimum(errors, 0.0))
    if np.isnan(hinged.sum()):
        hinged[np.isnan(h)] = 0.0
    return hinged


def _marginal(precision: FloatArray, q: FloatArray, squares: FloatArray) -> FloatArray:
    """Compute the precision after a block: that of columns taken for independent is never exceeded, nor lost."""
    with np.errstate(divide="ignore"):
        marginal = precision / np.maximum(1.0 - q / precision, 0.0)
    return np.clip(marginal, precision, precision + squares)


def _check_finite(weights: Array, intercepts: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = weights.sum(dtype=float) + intercepts.sum(dtype=float)
    if not np.isfinite(total):
        raise DivergenceError("Y or X holds values so large that sums of them overflow: scale them down.")
