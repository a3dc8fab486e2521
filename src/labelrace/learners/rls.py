"""A bank of linear models by recursive least squares, exact within a block of rows, diagonal across blocks.

Recursive least squares keeps, beside the weights ``w``, how sure it is of them: a precision matrix ``XᵀX + αI``, which
is ``m × m``. Here only its diagonal ``d`` is kept. For the next block of rows ``Z`` with residuals ``E = H - Z w``,

    w ← w + D⁻¹Zᵀ (Z D⁻¹Zᵀ + I)⁻¹ E,      d ← d + diag(ZᵀZ),

which is the minimiser of ``|H - Z w|² + |w - w_before|²_D``: an implicit step, stable at any scale, with no step size
to choose. The weights of frequent features move little, those of new ones fast. The matrix in the middle is as large as
the block, not as the features, so the cost is that of a few products with ``Z``; sparse rows stay sparse, and all
targets share it. One block from nothing is ridge regression exactly.

*The penalty* ``α`` is chosen on the first rows by their leave-one-out error, which has a closed form for a whole grid.
While the first batches are small, their rows are kept in a warm-up buffer of up to 128, and learned again, with a
penalty chosen anew, whenever their number has doubled.

*Forgetting* multiplies the precision: half of it is gone after ``half_life`` rows, and the weights follow new data as
fast as old data has been forgotten. Several half-lives make several members, all linear, so that any weighting of
them is one linear model again.

Diagonal precision for linear models online is from Crammer, Kulesza and Dredze ("Adaptive regularization of weight
vectors", 2009); implicit steps are treated by Kulis and Bartlett ("Implicit online learning", 2010).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace import parameters
from labelrace.exceptions import DivergenceError
from labelrace.learners import columns, scaling
from labelrace.learners.bank import Bank, Task
from labelrace.learners.scaling import ScalingState
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["ALPHAS", "RLS", "Derived", "RLSState", "WarmUp", "best_alpha"]

# Penalties to choose from, for rows of length one.
ALPHAS = np.array([0.1, 0.3, 1.0, 3.0, 10.0])

# Rows of a block: its matrix costs their square a row, and smaller blocks lose what is exact within them. Sparse ones
# are larger as each costs some calls to SciPy.
_BLOCK, _SPARSE_BLOCK = 64, 128
# Rows of the warm-up buffer, and rows that the penalty is chosen on, at most.
_WARM_UP, _PENALTY_ROWS = 128, 256
# Rows whose leave-one-out errors are computed together, at least.
_PENALTY_BLOCK = 128
# Columns up to which a sparse block is made dense for its matrix, and up to which empty columns are not left out.
_MAX_DENSE, _FEW_COLUMNS = 16_384, 2048
# Columns for each non-zero up to which occurring columns are marked rather than found by sorting.
_MAX_MARKED = 8
# Precision of the intercept before the first row.
_INTERCEPT = 1.0


class WarmUp(NamedTuple):
    """Buffer of the first rows, until there are enough of them to choose the penalty.

    Attributes
    ----------
    values, indices, indptr : arrays
        The rows of ``X``, in compressed-row form.
    targets : (n, k) array
        Their targets.
    n_used : float
        Number of rows that the penalty was last chosen on; 0 where the buffer is not in use.
    """

    values: FloatArray
    indices: IntArray
    indptr: IntArray
    targets: FloatArray
    n_used: float

    @classmethod
    def empty(cls, n_components: int) -> WarmUp:
        """Make a buffer without rows."""
        return cls(np.zeros(0), np.zeros(0, np.intp), np.zeros(1, np.intp), np.zeros((0, n_components)), 0.0)

    @classmethod
    def of(cls, X: AnyMatrix, H: FloatArray, n_used: float) -> WarmUp:
        """Copy rows."""
        rows = scipy.sparse.csr_array(X)
        indices, indptr = rows.indices.astype(np.intp), rows.indptr.astype(np.intp)
        return cls(rows.data.astype(float), indices, indptr, H.copy(), float(n_used))

    def with_batch(self, X: AnyMatrix, H: FloatArray) -> tuple[AnyMatrix, FloatArray]:
        """Append a batch, which may have more columns; return rows and targets."""
        shape = (len(self.targets), X.shape[1])
        rows = scipy.sparse.csr_array((self.values, self.indices, self.indptr), shape=shape)
        return scipy.sparse.vstack([rows, scipy.sparse.csr_array(X)], format="csr"), np.vstack([self.targets, H])


class RLSState(NamedTuple):
    """Weights and their precision, for each member.

    Attributes
    ----------
    scaling : ScalingState
        How columns are scaled.
    alpha : float
        The penalty.
    weights : (E, M, k) array
        In single or double precision.
    intercepts : (E, k) array
    precision : (E, M) array
        ``diag(ZᵀZ)`` so far, forgotten rows less.
    rows : (E,) array
        Rows so far, forgotten rows less: the intercepts' precision.
    warm_up : WarmUp
        Buffer of the first rows.
    """

    scaling: ScalingState
    alpha: float
    weights: Array
    intercepts: FloatArray
    precision: FloatArray
    rows: FloatArray
    warm_up: WarmUp


class Derived(NamedTuple):
    """The linear models, members averaged; ``scales`` is what the columns are divided by."""

    scaling: ScalingState
    scales: FloatArray
    weights: Array
    intercepts: FloatArray


@dataclass(frozen=True)
class RLS(Bank[RLSState]):
    """Linear models by diagonal recursive least squares, one for each pseudo label.

    Parameters
    ----------
    alpha : float or None, default=None
        Penalty on the squared weights, where a row has length one. None for the best of a grid on the first rows.
    half_lives : tuple of float or None, default=(None,)
        Rows after which half is forgotten, one entry for each member; None for never.
    n_random_features : int, default=128
        Random features, on dense data; see `labelrace.learners.scaling`.
    seed : int, default=0
        Seed of their directions.
    single : bool, default=False
        Whether to work in single precision, at half the memory and twice the speed.

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
    half_lives: tuple[float | None, ...] = (None,)
    n_random_features: int = 128
    seed: int = 0
    single: bool = False

    task: ClassVar[Task] = "regression"
    skips_missing: ClassVar[bool] = True
    state_type: ClassVar[type] = RLSState

    def __post_init__(self) -> None:
        if not isinstance(self.half_lives, (list, tuple)) or not self.half_lives:
            raise ValueError(
                f"half_lives must be a tuple of numbers or None, got {self.half_lives!r}; (None,) forgets nothing."
            )
        if self.alpha is not None:
            # In single precision the errors that a smaller penalty leaves are lost beside the rounding it adds.
            parameters.check_number("alpha", self.alpha, 1e-5 if self.single else 0, open_low=not self.single)
        for half_life in self.half_lives:
            if half_life is not None:
                parameters.check_number("half_life", half_life, 0, open_low=True)
        # A list comes from a file, numbers of any type from users.
        as_floats = tuple(None if half_life is None else float(half_life) for half_life in self.half_lives)
        object.__setattr__(self, "half_lives", as_floats)
        parameters.check_whole("n_random_features", self.n_random_features, 0)
        parameters.check_whole("seed", self.seed, 0)

    def init(self, n_values: IntArray, n_components: int) -> RLSState:
        """Make learners that have seen nothing; the first rows decide which columns they have."""
        alpha = ALPHAS[-1] if self.alpha is None else self.alpha
        return self._zeros(scaling.init(n_values, self._dtype), n_components, alpha)

    @property
    def _dtype(self) -> type[np.floating]:
        return np.float32 if self.single else np.float64

    def _zeros(self, scaled: ScalingState, n_components: int, alpha: float) -> RLSState:
        """Make the state of learners with zero weights on given columns."""
        n_members, m = len(self.half_lives), scaling.n_columns(scaled)
        return RLSState(
            scaled,
            float(alpha),
            np.zeros((n_members, m, n_components), self._dtype),
            np.zeros((n_members, n_components)),
            np.zeros((n_members, m)),
            np.zeros(n_members),
            WarmUp.empty(n_components),
        )

    def transform(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Compute the columns that the linear models use."""
        return scaling.transform(derived.scaling, X, derived.scales)

    def update(self, state: RLSState, X: AnyMatrix, H: AnyMatrix, Z: AnyMatrix | None = None) -> RLSState:
        """Learn the rows of ``X`` with their pseudo labels ``H``; ``Z`` is `transform` of ``X``, if there is one."""
        H = np.asarray(columns.dense(H), dtype=float)
        n_values = columns.widest_values(state.scaling.n_values, X)
        if (n_values > state.scaling.n_values).any():
            state, Z = self._widened(state, n_values), None
        if state.rows[0] == 0:
            return self._start(state, X, H)
        if state.warm_up.n_used:
            return self._warm_up(state, X, H)
        return self._continue(state, X, H, Z)

    def _start(self, state: RLSState, X: AnyMatrix, H: FloatArray) -> RLSState:
        """Learn the first rows: scale them, choose the penalty on them, and keep them if they are few."""
        n_values, rng = state.scaling.n_values, np.random.default_rng(self.seed)
        scaled = scaling.update(scaling.start(X, n_values, self.n_random_features, rng, self._dtype), X)
        Z = scaling.transform(scaled, X)
        alpha = best_alpha(Z[:_PENALTY_ROWS], H[:_PENALTY_ROWS]) if self.alpha is None else self.alpha
        learned = self._learn(self._zeros(scaled, H.shape[1], alpha), Z, H)
        n = X.shape[0]
        return learned._replace(warm_up=WarmUp.of(X, H, n)) if n < _WARM_UP else learned

    def _warm_up(self, state: RLSState, X: AnyMatrix, H: FloatArray) -> RLSState:
        """Learn a batch while the buffer is in use: start again with all rows where their number has doubled."""
        rows, targets = state.warm_up.with_batch(X, H)
        n_used = state.warm_up.n_used
        if rows.shape[0] < min(2 * n_used, _WARM_UP):
            return self._continue(state, X, H)._replace(warm_up=WarmUp.of(rows, targets, n_used))
        rows = rows if scipy.sparse.issparse(X) else rows.toarray()
        return self._start(self.init(state.scaling.n_values, H.shape[1]), rows, targets)

    def _continue(self, state: RLSState, X: AnyMatrix, H: FloatArray, Z: AnyMatrix | None = None) -> RLSState:
        Z = scaling.transform(state.scaling, X) if Z is None else Z
        learned = self._learn(self._forget_rows(state, X.shape[0]), Z, H)
        return learned._replace(scaling=scaling.update(state.scaling, X, self.factors(X.shape[0]).min()))

    def _forget_rows(self, state: RLSState, n_rows: int) -> RLSState:
        factors = self.factors(n_rows)
        return state._replace(precision=state.precision * factors[:, None], rows=state.rows * factors)

    def factors(self, n_rows: int) -> FloatArray:
        """Compute the share of its past that each member keeps after a number of rows."""
        return np.array([1.0 if half is None else 0.5 ** (n_rows / half) for half in self.half_lives])

    def forget(self, state: RLSState, keep: float) -> RLSState:
        """Forget all but a share of the past: the weights stay, but new data changes them faster."""
        return state._replace(precision=state.precision * keep, rows=state.rows * keep)

    def rescale(self, state: RLSState, X: AnyMatrix) -> RLSState:
        """Scale anew the columns whose unit has changed in a batch."""
        return state._replace(scaling=scaling.rescale(state.scaling, X))

    def replace(self, state: RLSState, member: int, by: int, keep: float) -> RLSState:
        """Replace a member by a copy of another that has forgotten all but a share."""
        weights, intercepts = state.weights.copy(), state.intercepts.copy()
        precision, rows = state.precision.copy(), state.rows.copy()
        weights[member], intercepts[member] = weights[by], intercepts[by]
        precision[member], rows[member] = keep * precision[by], keep * rows[by]
        return state._replace(weights=weights, intercepts=intercepts, precision=precision, rows=rows)

    def _learn(self, state: RLSState, Z: AnyMatrix, H: FloatArray) -> RLSState:
        """Learn block by block, on copies: a failure leaves the state as it was."""
        new = state._replace(
            weights=state.weights.copy(),
            precision=state.precision.copy(),
            intercepts=state.intercepts.copy(),
            rows=state.rows.copy(),
        )
        size, H = _SPARSE_BLOCK if scipy.sparse.issparse(Z) else _BLOCK, H.astype(self._dtype, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, Z.shape[0], size):
                self._learn_block(new, Z[start : start + size], H[start : start + size])
        return new

    def _learn_block(self, new: RLSState, z: AnyMatrix, h: FloatArray) -> None:
        """Write what a block teaches into the arrays of ``new``."""
        z, touched = _without_empty_columns(z)
        squares = _column_squares(z)
        for e in range(len(new.rows)):
            w, d = new.weights[e, touched], new.precision[e, touched]
            errors = h - new.intercepts[e].astype(self._dtype) - z @ w
            change, shift = _block_step(z, errors, 1.0 / (new.alpha + d), 1.0 / (_INTERCEPT + float(new.rows[e])))
            w += change
            d += squares
            if not isinstance(touched, slice):
                # An index array gives copies, not views.
                new.weights[e, touched], new.precision[e, touched] = w, d
            new.intercepts[e] += shift
            if not np.isfinite(w.sum() + shift.sum()):
                raise DivergenceError("Y or X holds values so large that sums of them overflow: scale them down.")
        new.rows[:] += z.shape[0]

    def derive(self, state: RLSState, shares: FloatArray | None = None) -> Derived:
        """Average the members, equally or by the given shares."""
        members = self.members(state)
        if len(members) == 1:
            return members[0]
        shares = np.full(len(members), 1.0 / len(members)) if shares is None else shares
        shares = shares.astype(self._dtype, copy=False)
        weights, intercepts = np.tensordot(shares, state.weights, 1), shares @ state.intercepts.astype(self._dtype)
        return members[0]._replace(weights=weights, intercepts=intercepts)

    def members(self, state: RLSState) -> list[Derived]:
        """List the members' models."""
        scales, intercepts = scaling.scale(state.scaling), state.intercepts.astype(self._dtype)
        return [Derived(state.scaling, scales, *model) for model in zip(state.weights, intercepts, strict=True)]

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return self.predict_transformed(derived, self.transform(derived, X))

    def predict_transformed(self, derived: Derived, Z: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels from the result of `transform`."""
        return Z @ derived.weights + derived.intercepts

    def grow_components(self, state: RLSState, n_components: int) -> RLSState:
        """Add pseudo labels that were 0 in all rows so far: their weights are exactly 0."""
        n_new = n_components - state.intercepts.shape[1]
        return state._replace(
            weights=np.pad(state.weights, ((0, 0), (0, 0), (0, n_new))),
            intercepts=np.pad(state.intercepts, ((0, 0), (0, n_new))),
            warm_up=state.warm_up._replace(targets=np.pad(state.warm_up.targets, ((0, 0), (0, n_new)))),
        )

    def grow_features(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add features that were 0 in all rows so far."""
        return self._widened(state, columns.appended(state.scaling.n_values, n_values))

    def _widened(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add columns, of new features or of new values of nominal ones, that were 0 in all rows so far."""
        if state.rows[0] == 0:
            return self.init(n_values, state.intercepts.shape[1])
        rng = np.random.default_rng([self.seed, len(n_values)])
        scaled = scaling.grow(state.scaling, n_values, rng)
        n_random, m = scaled.directions.shape[1], scaling.n_columns(scaled)
        kept = columns.places(state.scaling.n_values, n_values)
        kept = np.concatenate([kept, m - n_random + np.arange(n_random)])
        weights = np.zeros((len(state.rows), m, state.intercepts.shape[1]), self._dtype)
        precision = np.zeros((len(state.rows), m))
        weights[:, kept], precision[:, kept] = state.weights, state.precision
        return state._replace(scaling=scaled, weights=weights, precision=precision)


def _block_step(z: AnyMatrix, errors: FloatArray, inverse: FloatArray, freedom: float) -> tuple[FloatArray, FloatArray]:
    """Compute the change of weights and intercepts by a block; see the module's docstring."""
    inverse = inverse.astype(z.dtype, copy=False)
    middle = _weighted_gram(z, inverse)
    middle += freedom
    middle.flat[:: len(middle) + 1] += 1.0
    # LAPACK solves for many targets more slowly than it inverts, and the matrix is far from singular.
    many = errors.shape[1] > len(middle)
    pull = np.linalg.inv(middle) @ errors if many else np.linalg.solve(middle, errors)
    change = z.T @ pull
    change *= inverse[:, None]
    return change, freedom * pull.sum(axis=0)


def _weighted_gram(z: AnyMatrix, weights: FloatArray) -> FloatArray:
    """Compute ``z diag(weights) zᵀ`` for some rows."""
    if not scipy.sparse.issparse(z):
        # The root on either side makes the product symmetric, at half the cost.
        scaled = z * np.sqrt(weights)
        return scaled @ scaled.T
    values = z.data * weights[z.indices]
    if z.shape[1] > _MAX_DENSE:
        return np.asarray((scipy.sparse.csr_array((values, z.indices, z.indptr), shape=z.shape) @ z.T).toarray())
    # Sparse times dense is quicker than sparse times sparse, if the dense one is in the memory order SciPy needs.
    right = np.zeros(z.shape[::-1], z.dtype)
    right[z.indices, np.repeat(np.arange(z.shape[0]), np.diff(z.indptr))] = values
    return np.asarray(z @ right)


def _column_squares(z: AnyMatrix) -> FloatArray:
    """Sum the squares of each column."""
    if not scipy.sparse.issparse(z):
        return np.einsum("ij,ij->j", z, z)
    return np.bincount(z.indices, weights=z.data * z.data, minlength=z.shape[1]).astype(float)


def _without_empty_columns(z: AnyMatrix) -> tuple[AnyMatrix, IntArray | slice]:
    """Leave out the empty columns of wide sparse rows; return the others and their places."""
    if not scipy.sparse.issparse(z) or z.shape[1] <= max(_FEW_COLUMNS, z.nnz):
        return z, slice(None)
    if z.shape[1] <= _MAX_MARKED * z.nnz:
        # Marking columns is quicker than sorting indices, unless there are far more columns than indices.
        occurs = np.zeros(z.shape[1], dtype=bool)
        occurs[z.indices] = True
        touched, places = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[z.indices]
    else:
        touched, places = np.unique(z.indices, return_inverse=True)
    return scipy.sparse.csr_array((z.data, places, z.indptr), shape=(z.shape[0], len(touched))), touched


def best_alpha(Z: AnyMatrix, H: FloatArray) -> float:
    """Choose the penalty with the smallest leave-one-out error of ridge regression, over all targets and blocks."""
    if Z.shape[0] < 2:
        return float(ALPHAS[len(ALPHAS) // 2])
    # In blocks, as the eigenvalues of two halves cost a quarter of those of all.
    n_blocks = max(1, Z.shape[0] // _PENALTY_BLOCK)
    places = np.arange(n_blocks + 1) * Z.shape[0] // n_blocks
    errors = np.sum([_left_out_errors(Z[a:b], H[a:b]) for a, b in itertools.pairwise(places)], axis=0)
    # Of equal ones, as where a target is constant, the largest.
    return float(ALPHAS[::-1][int(np.argmin(errors[::-1]))])


def _left_out_errors(Z: AnyMatrix, H: FloatArray) -> FloatArray:
    """Sum the squares of the leave-one-out errors for each penalty.

    With ``K = ZZᵀ = U diag(v) Uᵀ`` and the residual matrix ``R = (K/α + I)⁻¹``, the error of row ``i`` without itself
    is ``(R H)ᵢ / Rᵢᵢ``. The means of the targets, which stand for the intercepts, are subtracted first.
    """
    Z, _ = _without_empty_columns(Z)
    kernel = _weighted_gram(Z, np.ones(Z.shape[1], Z.dtype))
    values, vectors = np.linalg.eigh(kernel.astype(float, copy=False))
    squares, errors = vectors * vectors, []
    # The learners refuse targets that are too large to be squared.
    with np.errstate(over="ignore", invalid="ignore"):
        along = vectors.T @ (H - H.mean(axis=0))
        for alpha in ALPHAS:
            shrink = 1.0 / (np.maximum(values, 0.0) / alpha + 1.0)
            left_out = (vectors @ (shrink[:, None] * along)) / (squares @ shrink)[:, None]
            errors.append(float(np.einsum("ij,ij->", left_out, left_out)))
    return np.array(errors)
