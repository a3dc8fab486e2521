"""A bank of linear models by recursive least squares, exact within a block of rows, diagonal across blocks.

Recursive least squares keeps, beside the weights ``w``, how sure it is of them: a precision matrix ``XᵀX + αI``, which
is ``m × m``. Here only its diagonal ``d`` is kept. For the next block of rows ``Z`` with residuals ``E = H - Z w``,

    w ← w + D⁻¹Zᵀ (Z D⁻¹Zᵀ + I)⁻¹ E,      d ← d + diag(ZᵀZ),

which is the minimiser of ``|H - Z w|² + |w - w_before|²_D``: an implicit step, stable at any scale, with no step size
to choose. Features often seen move little, new ones fast. The matrix in the middle is as large as the block, not as the
features, so the cost is that of a few products with ``Z``; sparse rows stay sparse, and all targets share it. One block
from nothing is ridge regression exactly.

*The penalty* ``α`` is chosen on the first rows by their leave-one-out error, which has a closed form for a whole grid.
These rows, up to 128, are kept while they come in small batches, and learned again when they have doubled.

*Forgetting* multiplies the precision: half of it is gone after ``half_life`` rows, and the weights follow new data as
fast as old data has been forgotten. Several half-lives make several members, all linear, so that any weighting of
them is one linear model again.

Diagonal precision for linear models online is from Crammer, Kulesza and Dredze ("Adaptive regularization of weight
vectors", 2009); implicit steps are treated by Kulis and Bartlett ("Implicit online learning", 2010).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse

from labelrace import parameters
from labelrace.exceptions import DivergenceError
from labelrace.learners import blocks, columns, features, held
from labelrace.learners.bank import Bank, Task
from labelrace.learners.features import FeatureState
from labelrace.learners.held import Held
from labelrace.learners.penalty import ALPHAS, best_alpha
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["RLS", "RLSState"]

# Rows of a block: its matrix costs their square a row, and smaller blocks lose what is exact within them. Sparse ones
# are larger as each costs some calls to SciPy.
_BLOCK, _SPARSE_BLOCK = 64, 128
# Rows that the penalty is chosen on: kept up to the first number, looked at up to the second.
_HELD, _JUDGED = 128, 256
# Precision of the intercept before the first row.
_INTERCEPT = 1.0


class RLSState(NamedTuple):
    """Weights and how sure they are, for each member.

    Attributes
    ----------
    features : FeatureState
        How columns are scaled.
    alpha : float
        The penalty.
    weights : (E, M, k) array
    intercepts : (E, k) array
    precision : (E, M) array
        ``diag(ZᵀZ)`` so far, forgotten rows less.
    rows : (E,) array
        Rows so far, forgotten rows less: the intercepts' precision.
    held : Held
        The first rows, until there are enough to choose the penalty.
    """

    features: FeatureState
    alpha: float
    weights: FloatArray
    intercepts: FloatArray
    precision: FloatArray
    rows: FloatArray
    held: Held


class Derived(NamedTuple):
    """The linear models, members averaged; ``scales`` is what features are divided by."""

    features: FeatureState
    scales: FloatArray
    weights: FloatArray
    intercepts: FloatArray


@dataclass(frozen=True)
class RLS(Bank[RLSState]):
    """Linear models by diagonal recursive least squares, one for each pseudo label.

    Parameters
    ----------
    alpha : float or None
        Penalty on the squared weights, where a row has length one. None for the best of a grid on the first rows.
    half_lives : tuple of float or None
        Rows after which half is forgotten, one entry a member; None for never.
    n_bends : int
        Columns that bend, on dense data; see `labelrace.learners.features`.
    seed : int
        Seed of their directions.
    single : bool
        Whether to work in single precision, at half the memory and twice the speed.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.learners.rls import RLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> bank = RLS(n_bends=0)
    >>> state = bank.update(bank.init(np.zeros(3, int), n_components=1), X, X @ np.array([[1.0], [2.0], [0.0]]))
    >>> bank.predict(bank.derive(state), np.array([[1.0, 1.0, 1.0]])).round(1)
    array([[3.]])
    """

    alpha: float | None = None
    half_lives: tuple[float | None, ...] = (None,)
    n_bends: int = 128
    seed: int = 0
    single: bool = False

    task: ClassVar[Task] = "regression"
    skips_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.half_lives, (list, tuple)) or not self.half_lives:
            raise ValueError(
                f"half_lives={self.half_lives!r} does not do: give a tuple of numbers or None, such as (None,)."
            )
        if self.alpha is not None:
            # In single precision, what a smaller penalty leaves of the errors is lost beside what it adds.
            parameters.check_number("alpha", self.alpha, 1e-5 if self.single else 0, open_low=not self.single)
        for half_life in self.half_lives:
            if half_life is not None:
                parameters.check_number("half_life", half_life, 0, open_low=True)
        # From a file they come as a list, from users as numbers of any kind.
        as_floats = tuple(None if half_life is None else float(half_life) for half_life in self.half_lives)
        object.__setattr__(self, "half_lives", as_floats)
        parameters.check_whole("n_bends", self.n_bends, 0)
        parameters.check_whole("seed", self.seed, 0)

    def init(self, n_values: IntArray, n_components: int) -> RLSState:
        """Make learners that have seen nothing; what columns they have, the first rows will tell."""
        alpha = ALPHAS[-1] if self.alpha is None else self.alpha
        return self._blank(features.unseen(n_values, self._kind), n_components, alpha)

    @property
    def _kind(self) -> type[np.floating]:
        return np.float32 if self.single else np.float64

    def _blank(self, seen: FeatureState, n_components: int, alpha: float) -> RLSState:
        n_members, m = len(self.half_lives), features.n_columns(seen)
        return RLSState(
            seen,
            float(alpha),
            np.zeros((n_members, m, n_components), self._kind),
            np.zeros((n_members, n_components)),
            np.zeros((n_members, m)),
            np.zeros(n_members),
            held.nothing(n_components),
        )

    def init_like(self, blank: RLSState, tensors: dict[str, Array], path: str) -> RLSState:
        """Make a blank state with the shapes of saved arrays, which are given by their paths."""

        def shaped(part: str, state: NamedTuple) -> dict[str, Array]:
            found = {name: tensors.get(f"{path}.{part}{name}") for name in state._fields}
            return {name: np.zeros_like(array) for name, array in found.items() if array is not None and array.ndim}

        # NamedTuples of fields by name are beyond mypy.
        seen: FeatureState = blank.features._replace(**shaped("features.", blank.features))  # type: ignore[arg-type]
        kept: Held = blank.held._replace(**shaped("held.", blank.held))  # type: ignore[arg-type]
        like: RLSState = blank._replace(**shaped("", blank), features=seen, held=kept)  # type: ignore[arg-type]
        n_members, k = len(self.half_lives), blank.intercepts.shape[1]
        # How many columns nominal features have, the numbers of their values tell: the zeros above do not.
        m = features.n_columns(seen._replace(n_values=blank.features.n_values))
        if like.weights.shape != (n_members, m, k) or like.precision.shape != (n_members, m):
            raise ValueError(f"{path}.weights is of another shape than the features")
        return like

    def see(self, derived: Derived, X: AnyMatrix) -> AnyMatrix:
        """Compute the columns that the models see."""
        return features.transform(derived.features, X, derived.scales)

    def update(self, state: RLSState, X: AnyMatrix, H: AnyMatrix, Z: AnyMatrix | None = None) -> RLSState:
        """Learn the rows of ``X`` with their pseudo labels ``H``; ``Z`` is what `see` makes of ``X``, if at hand."""
        H = H.toarray() if scipy.sparse.issparse(H) else np.asarray(H, dtype=float)
        n_values = columns.widest_values(state.features.n_values, X)
        if (n_values > state.features.n_values).any():
            state, Z = self._widened(state, n_values), None
        if state.rows[0] == 0:
            return self._begin(state, X, H)
        if state.held.n_used:
            return self._begin_again(state, X, H)
        return self._go_on(state, X, H, Z)

    def _begin(self, state: RLSState, X: AnyMatrix, H: FloatArray) -> RLSState:
        """Learn the first rows, after a look at them."""
        n_values, rng = state.features.n_values, np.random.default_rng(self.seed)
        seen = features.learn(features.start(X, n_values, self.n_bends, rng, self._kind), X)
        Z = features.transform(seen, X)
        alpha = best_alpha(Z[:_JUDGED], H[:_JUDGED]) if self.alpha is None else self.alpha
        learned = self._learn(self._blank(seen, H.shape[1], alpha), Z, H)
        return learned._replace(held=held.hold(X, H)) if X.shape[0] < _HELD else learned

    def _begin_again(self, state: RLSState, X: AnyMatrix, H: FloatArray) -> RLSState:
        """Learn a batch that comes while the first rows are still being collected."""
        rows, targets = held.rows(state.held, X.shape[1]), np.vstack([state.held.targets, H])
        rows = scipy.sparse.vstack([rows, scipy.sparse.csr_array(X)], format="csr")
        if rows.shape[0] < min(2 * state.held.n_used, _HELD):
            return self._go_on(state, X, H)._replace(held=held.hold(rows, targets, state.held.n_used))
        form = rows if scipy.sparse.issparse(X) else rows.toarray()
        return self._begin(self.init(state.features.n_values, H.shape[1]), form, targets)

    def _go_on(self, state: RLSState, X: AnyMatrix, H: FloatArray, Z: AnyMatrix | None = None) -> RLSState:
        Z = features.transform(state.features, X) if Z is None else Z
        learned = self._learn(self._forget_rows(state, X.shape[0]), Z, H)
        return learned._replace(features=features.learn(state.features, X, self.factors(X.shape[0]).min()))

    def _forget_rows(self, state: RLSState, n_rows: int) -> RLSState:
        factors = self.factors(n_rows)
        return state._replace(precision=state.precision * factors[:, None], rows=state.rows * factors)

    def factors(self, n_rows: int) -> FloatArray:
        """Compute what each member remembers after so many rows."""
        return np.array([1.0 if half is None else 0.5 ** (n_rows / half) for half in self.half_lives])

    def forget(self, state: RLSState, keep: float) -> RLSState:
        """Forget all but a share of what was learned: the weights stay, but give way to new data."""
        return state._replace(precision=state.precision * keep, rows=state.rows * keep)

    def restart(self, state: RLSState, X: AnyMatrix) -> RLSState:
        """Scale anew the features whose unit a batch shows to be another one."""
        return state._replace(features=features.restart(state.features, X))

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
        size, H = _SPARSE_BLOCK if scipy.sparse.issparse(Z) else _BLOCK, H.astype(self._kind, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, Z.shape[0], size):
                self._learn_block(new, Z[start : start + size], H[start : start + size])
        return new

    def _learn_block(self, new: RLSState, z: AnyMatrix, h: FloatArray) -> None:
        """Write what a block teaches into the arrays of ``new``."""
        z, touched = blocks.compact(z)
        squares = blocks.column_squares(z)
        for e in range(len(new.rows)):
            w, d = new.weights[e, touched], new.precision[e, touched]
            errors = h - new.intercepts[e].astype(self._kind) - z @ w
            change, shift = blocks.step(z, errors, 1.0 / (new.alpha + d), 1.0 / (_INTERCEPT + float(new.rows[e])))
            w += change
            d += squares
            if not isinstance(touched, slice):
                # Columns were left out: these are copies, not views.
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
        shares = shares.astype(self._kind, copy=False)
        weights, intercepts = np.tensordot(shares, state.weights, 1), shares @ state.intercepts.astype(self._kind)
        return members[0]._replace(weights=weights, intercepts=intercepts)

    def members(self, state: RLSState) -> list[Derived]:
        """List the members' models."""
        scales, intercepts = features.scale(state.features), state.intercepts.astype(self._kind)
        return [Derived(state.features, scales, *model) for model in zip(state.weights, intercepts, strict=True)]

    def predict(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return self.predict_seen(derived, self.see(derived, X))

    def predict_seen(self, derived: Derived, Z: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels from what `see` makes of the rows."""
        return Z @ derived.weights + derived.intercepts

    def grow_components(self, state: RLSState, n_components: int) -> RLSState:
        """Add pseudo labels that were 0 in all rows so far: their weights are exactly 0."""
        n_new = n_components - state.intercepts.shape[1]
        return state._replace(
            weights=np.pad(state.weights, ((0, 0), (0, 0), (0, n_new))),
            intercepts=np.pad(state.intercepts, ((0, 0), (0, n_new))),
            held=state.held._replace(targets=np.pad(state.held.targets, ((0, 0), (0, n_new)))),
        )

    def grow_features(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add features that were 0 in all rows so far."""
        return self._widened(state, columns.appended(state.features.n_values, n_values))

    def _widened(self, state: RLSState, n_values: IntArray) -> RLSState:
        """Add columns, of new features or of new values of nominal ones, that were 0 in all rows so far."""
        if state.rows[0] == 0:
            return self.init(n_values, state.intercepts.shape[1])
        rng = np.random.default_rng([self.seed, len(n_values)])
        seen = features.grow(state.features, n_values, rng)
        n_bends, m = seen.directions.shape[1], features.n_columns(seen)
        kept = columns.places(state.features.n_values, n_values)
        kept = np.concatenate([kept, m - n_bends + np.arange(n_bends)])
        weights = np.zeros((len(state.rows), m, state.intercepts.shape[1]), self._kind)
        precision = np.zeros((len(state.rows), m))
        weights[:, kept], precision[:, kept] = state.weights, state.precision
        return state._replace(features=seen, weights=weights, precision=precision)
