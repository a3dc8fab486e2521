"""A bank of linear regressors by stochastic gradient descent on the squared loss, one step a row, in order.

The step of row ``i`` with rate ``η`` and decay ``d`` is ``z = y - (w·x + c)``, ``w ← d w + η z x``, ``c ← c + η z``.
Rows depend on one another through their inner products alone, so a block of ``b`` rows is exact at once: the errors
``z`` solve the unit lower-triangular system

    (I + η (D ∘ XXᵀ + 1)) z = y - diag(dⁱ) X w₀ - c₀,    D[i, j] = d^(i-1-j) for j < i,

and then ``w_b = d^b w₀ + η Xᵀ (d^(b-1-i) zᵢ)``. All pseudo labels share the system.

*The original's coding of binary features.* It codes a binary feature, for each pseudo label, as 1 for the value with
the larger mean target in the first batch. Where that turns a feature round, ``x' = 1 - x``, the steps are those on
``x - 1`` with the weight's sign changed. So each pseudo label has an origin, 0 or 1 in each feature, and ``X`` is used
as it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import scipy.linalg

from labelrace import parameters
from labelrace.exceptions import DivergenceError, DivergenceWarning
from labelrace.learners import columns
from labelrace.learners.bank import Bank, Task
from labelrace.typing import AnyMatrix, FloatArray, IntArray

__all__ = ["SGD", "SGDState", "java_shuffle"]

# Rows that are solved for at once: large enough for BLAS, small enough that the b² system stays cheap.
_BLOCK = 64
# An error this many times the targets' size cannot come from learning.
_DIVERGED = 1e8
# Steps that are still too long at this length are not the reason for diverging.
_SHORTEST = 1e-20
# The constants of Java's random numbers.
_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class SGDState(NamedTuple):
    """The linear models.

    Attributes
    ----------
    n_values : (m,) array
        Number of values of each nominal feature, 0 for a numeric one.
    weights : (M, k) array
        One column a pseudo label.
    intercepts : (k,) array
        The ``c`` above.
    origin : (M, k) array or None
        What is subtracted from the features, for each pseudo label; None for nothing.
    first_rows : float
        Size of the first batch, 0 before it.
    rate : float
        The step's length: what the settings say, unless it had to be shortened.
    """

    n_values: IntArray
    weights: FloatArray
    intercepts: FloatArray
    origin: FloatArray | None
    first_rows: float
    rate: float


class _Block(NamedTuple):
    """Some rows, the decay's powers, and for all pseudo labels or for each its own: rates and a triangular system."""

    rows: slice
    X: AnyMatrix
    rates: FloatArray
    powers: FloatArray
    systems: FloatArray


@dataclass(frozen=True)
class SGD(Bank[SGDState]):
    """Linear regressors, one for each pseudo label, that take one gradient step a row.

    Parameters
    ----------
    rate : float
        The step's length.
    normalised : bool
        Whether the rate is divided by ``1 + |x|²``. Steps are then stable on features of any scale if ``rate < 2``.
    penalty : float
        L2 penalty: the weights shrink by ``1 - rate · penalty`` at each step.
    penalty_per_row : bool
        Whether the penalty is divided by the size of the first batch, as in Weka.
    first_epochs : int
        How often the first batch is gone through. Every later batch is gone through once.
    shuffle_seed : int or None
        Shuffles the first batch, once, as Weka does with this seed; None for the order given.
    on_divergence : {"error", "shorten"}
        What happens where the steps are too long for the features: an error, or the batch is learned again with steps
        a tenth as long, which then stay so, and a warning.
    orient_binary : bool
        Whether a binary feature is coded, for each pseudo label, as 1 for the value with the larger mean target in
        the first batch, as in Weka.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.learners.sgd import SGD
    >>> X = np.array([[0.0], [1.0]] * 200)
    >>> bank = SGD(rate=0.5, normalised=True, penalty=0.0)
    >>> state = bank.update(bank.init(np.array([0]), n_components=1), X, 3 * X - 1)
    >>> bank.predict(bank.derive(state), np.array([[0.0], [1.0], [2.0]])).round(3).ravel()
    array([-1.,  2.,  5.])
    """

    rate: float = 1e-4
    normalised: bool = False
    penalty: float = 1e-4
    penalty_per_row: bool = False
    first_epochs: int = 1
    shuffle_seed: int | None = None
    orient_binary: bool = False
    on_divergence: Literal["error", "shorten"] = "error"

    task: ClassVar[Task] = "regression"
    state_type: ClassVar[type] = SGDState

    def __post_init__(self) -> None:
        parameters.check_number("rate", self.rate, 0, open_low=True)
        parameters.check_number("penalty", self.penalty, 0)
        parameters.check_whole("first_epochs", self.first_epochs, 1)
        parameters.check_choice("on_divergence", self.on_divergence, ("error", "shorten"))

    @classmethod
    def weka(cls) -> SGD:
        """Return the settings and habits of the learner that the paper used.

        On unscaled features the original went on with NaN; here the steps are shortened.
        """
        return cls(penalty_per_row=True, first_epochs=500, shuffle_seed=1, orient_binary=True, on_divergence="shorten")

    def init(self, n_values: IntArray, n_components: int) -> SGDState:
        """Make models with zero weights."""
        weights = np.zeros((columns.width(n_values), n_components))
        return SGDState(n_values, weights, np.zeros(n_components), None, 0.0, self.rate)

    def update(self, state: SGDState, X: AnyMatrix, H: AnyMatrix) -> SGDState:
        """Learn the rows of ``X`` with their pseudo labels ``H``, in order.

        Raises
        ------
        DivergenceError
            Where the errors grow beyond all bounds and the settings do not allow for shorter steps.
        """
        while True:
            try:
                return self._learn(state, X, H)
            except DivergenceError:
                if self.on_divergence == "error" or state.rate < _SHORTEST:
                    raise
                shorter = state.rate / 10
                warnings.warn(
                    f"SGD diverged with steps of {state.rate:.0e}; it goes on with {shorter:.0e}. "
                    "It would learn faster on scaled features (StandardScaler).",
                    DivergenceWarning,
                    stacklevel=2,
                )
                state = state._replace(rate=shorter)

    def _learn(self, state: SGDState, X: AnyMatrix, H: AnyMatrix) -> SGDState:
        """Take the steps of a batch."""
        X, H, epochs = columns.design(X, state.n_values), columns.dense(H), 1
        if state.first_rows == 0:
            epochs = self.first_epochs
            if self.orient_binary:
                state = state._replace(origin=_origin(X, H, state.n_values))
            if self.shuffle_seed is not None:
                order = java_shuffle(len(H), self.shuffle_seed)
                X, H = X[order], H[order]
            state = state._replace(first_rows=float(len(H)))
        bound = _DIVERGED * (1.0 + np.abs(H).max())
        with np.errstate(over="ignore", invalid="ignore"):
            blocks = list(self._blocks(state, X))
            for _ in range(epochs):
                for block in blocks:
                    state = _learn_block(state, block, H[block.rows], bound)
        return state

    def _blocks(self, state: SGDState, X: AnyMatrix) -> Iterator[_Block]:
        """Cut a batch into blocks, each with its triangular system."""
        rows = state.first_rows if self.penalty_per_row else 1.0
        decay = 1.0 - state.rate * self.penalty / rows
        for start in range(0, X.shape[0], _BLOCK):
            block = slice(start, min(start + _BLOCK, X.shape[0]))
            x = X[block]
            inner = columns.dense(x @ x.T)
            about_origin = _about_origin(inner, x, state.origin)
            lengths = np.diagonal(about_origin, axis1=1, axis2=2) if self.normalised else np.zeros((1, len(inner)))
            rates = state.rate / (1.0 + lengths)
            powers = np.power(decay, np.arange(len(inner) + 1.0))
            lag = np.clip(np.subtract.outer(np.arange(len(inner)), np.arange(len(inner))) - 1, 0, None)
            systems = np.tril((powers[lag] * about_origin + 1.0) * rates[:, None, :], -1)
            yield _Block(block, x, rates, powers, systems)

    def derive(self, state: SGDState) -> SGDState:
        """Return the state with the origins' part moved into the intercepts."""
        return state._replace(intercepts=state.intercepts - _at_origin(state), origin=None)

    def predict(self, derived: SGDState, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return columns.design(X, derived.n_values) @ derived.weights + derived.intercepts

    def grow_components(self, state: SGDState, n_components: int) -> SGDState:
        """Add regressors that have seen no pseudo label but 0: their weights have stayed 0."""
        n_new = n_components - len(state.intercepts)
        zeros = np.zeros((len(state.weights), n_new))
        origin = None if state.origin is None else np.hstack([state.origin, zeros])
        intercepts = columns.pad_rows(state.intercepts, n_components)
        return state._replace(weights=np.hstack([state.weights, zeros]), intercepts=intercepts, origin=origin)

    def grow_features(self, state: SGDState, n_values: IntArray) -> SGDState:
        """Add features that have been 0, or of the first value, in all rows."""
        n_values = columns.appended(state.n_values, n_values)
        kept = columns.places(state.n_values, n_values)
        weights = np.zeros((columns.width(n_values), len(state.intercepts)))
        weights[kept], origin = state.weights, state.origin
        if origin is not None:
            # Of two values with the same mean target, the first is the one that is coded as 0.
            origin = np.zeros_like(weights)
            origin[kept] = state.origin
        return state._replace(n_values=n_values, weights=weights, origin=origin)


def _at_origin(state: SGDState) -> FloatArray | float:
    """Compute what the weights give at the origin of each pseudo label."""
    return 0.0 if state.origin is None else (state.origin * state.weights).sum(axis=0)


def _about_origin(inner: FloatArray, X: AnyMatrix, origin: FloatArray | None) -> FloatArray:
    """Turn inner products of rows into those of ``x - origin``, for each pseudo label: ``(1 or k, b, b)``."""
    if origin is None:
        return inner[None]
    along = (X @ origin).T
    own = (origin * origin).sum(axis=0)
    return inner - along[:, :, None] - along[:, None, :] + own[:, None, None]


def _origin(X: AnyMatrix, H: FloatArray, n_values: IntArray) -> FloatArray:
    """Find, for each pseudo label, the binary features whose first value has the larger mean target."""
    count = np.asarray(X.sum(axis=0), dtype=float)[:, None]
    with_one, total = X.T @ H, H.sum(axis=0)
    mean = total / len(H)
    # A value that does not occur has the mean of all rows.
    ones = np.divide(with_one, count, out=np.tile(mean, (len(count), 1)), where=count > 0)
    others = len(H) - count
    zeros = np.divide(total - with_one, others, out=np.tile(mean, (len(count), 1)), where=others > 0)
    return np.where(columns.binary(n_values)[:, None] & (zeros > ones), 1.0, 0.0)


def _learn_block(state: SGDState, block: _Block, Y: FloatArray, bound: float) -> SGDState:
    """Take the steps of one block."""
    weights, intercepts, origin = state.weights, state.intercepts, state.origin
    before = block.X @ weights - _at_origin(state)
    right = Y - block.powers[:-1, None] * before - intercepts
    errors = _errors(block.systems, right)
    # The comparison is false for NaN, too.
    if not np.abs(errors).max() < bound:
        raise DivergenceError(
            "SGD diverged: its errors grew beyond all bounds, so the steps are too long for these features. "
            "Scale the features (StandardScaler), lower the rate, or use SGD(normalised=True)."
        )
    steps = block.rates.T * errors
    remaining = block.powers[-2::-1, None] * steps
    weights = block.powers[-1] * weights + block.X.T @ remaining
    if origin is not None:
        weights -= origin * remaining.sum(axis=0)
    return state._replace(weights=weights, intercepts=intercepts + steps.sum(axis=0))


def _errors(systems: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for the error of every step; the systems' unit diagonals are implied."""

    def solve(system: FloatArray, side: FloatArray) -> FloatArray:
        return scipy.linalg.solve_triangular(system, side, lower=True, unit_diagonal=True, check_finite=False)

    if len(systems) == 1:
        return solve(systems[0], right)
    return np.column_stack([solve(system, side) for system, side in zip(systems, right.T, strict=True)])


class _JavaRandom:
    """The 48-bit linear congruential generator that the Java platform prescribes."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next31(self) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> 17

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to ``bound - 1``."""
        if bound & (bound - 1) == 0:
            return (bound * self._next31()) >> 31
        while True:
            bits = self._next31()
            value = bits % bound
            # Rejects the incomplete last range, where Java's 32-bit sum overflows.
            if bits - value + bound - 1 < 1 << 31:
                return value


def java_shuffle(n: int, seed: int) -> IntArray:
    """Return the order in which Weka's ``Instances.randomize`` puts ``n`` rows.

    Examples
    --------
    >>> java_shuffle(5, seed=1)
    array([2, 3, 1, 4, 0])
    """
    random = _JavaRandom(seed)
    order = np.arange(n)
    for j in range(n - 1, 0, -1):
        i = random.below(j + 1)
        order[[i, j]] = order[[j, i]]
    return order
