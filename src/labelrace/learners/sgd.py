"""A bank of linear regressors by stochastic gradient descent on the squared loss, one step for each row, in order.

The step of row ``i`` with rate ``η`` and decay ``d`` is ``z = y - (w·x + c)``, ``w ← d w + η z x``, ``c ← c + η z``.
Rows depend on one another through their inner products alone, so a block of ``b`` rows is exact at once: the errors
``z`` solve the unit lower-triangular system

    (I + η (D ∘ XXᵀ + 1)) z = y - diag(dⁱ) X w₀ - c₀,    D[i, j] = d^(i-1-j) for j < i,

and then ``w_b = d^b w₀ + η Xᵀ (d^(b-1-i) zᵢ)``. All pseudo labels share the system.

*Nominal features* are indicators of their values, all but the first, so that ``X`` is the same for all pseudo labels.
The original codes them for each pseudo label, by ``V - 1`` columns: values are ranked by their mean target in the first
batch, and the value of rank ``r`` becomes ``r`` ones followed by zeros. With ``o`` the indicators of the value of rank
0, that code is linear, ``x' = C (x - o)``, and a step on ``x'`` with weights ``w'`` is, for ``w = Cᵀw'``,

    w·(x - o) = w'·x',    w ← d w + η z CᵀC (x - o),    x'ᵢ·x'ⱼ = min(rᵢ, rⱼ).

So the weights remain those of the indicators, and each pseudo label has an origin ``o`` and inner products of its own.
For ``V = 2``, where ``C = ±1``, only the origin is needed, and ``X`` stays sparse.

*Weights.* A step makes the error of its row ``1 - η (1 + |x|²)`` times as large. A row of weight ``v`` is learned by
one step of ``(1 - (1 - η (1 + |x|²))ᵛ) / (1 + |x|²)`` in place of ``η``: without a penalty that is the row ``v`` times
in succession. Steps so long that they change the sign of the error have no such power: they are ``v`` times as long.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.linalg

from labelrace.base import parameters
from labelrace.base.feature_kinds import FeatureKinds, KindsLike
from labelrace.base.growth import Moves
from labelrace.base.linalg import bounded_product
from labelrace.base.sparse import batch_rows, dense
from labelrace.exceptions import DivergenceError, DivergenceWarning
from labelrace.learners import design
from labelrace.learners.bank import Bank, Task
from labelrace.typing import AnyMatrix, FloatArray, IntArray

# Rows that are solved for at once: large enough for BLAS, small enough that the b² system stays cheap.
_BLOCK = 64
# An error this many times the targets' size cannot come from learning.
_DIVERGED = 1e8
# Steps that are still too long at this length are not the reason for diverging.
_SHORTEST = 1e-20
# The constants of Java's random numbers.
_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class SGDState(NamedTuple):
    """The linear models."""

    kinds: FeatureKinds
    weights: Annotated[FloatArray, "M t"]  # one column for each pseudo label
    intercepts: Annotated[FloatArray, "t"]  # the ``c`` above
    # Ranks of the values that the indicators stand for, for each pseudo label; that of a feature's first value is the
    # one left over. 1 for numeric columns. None where indicators are learned from directly.
    ranks: Annotated[IntArray | None, "M t", "new -1"]
    # What missing values are replaced by; None before the first batch, and where they are not allowed.
    fill: Annotated[FloatArray | None, "m"]
    first_batch_rows: float  # size of the first batch, 0 before it
    rate: float  # the step's length: what the settings say, unless it had to be shortened

    def why_malformed(self, size: Callable[[str], int]) -> str | None:
        """Return why ranks cannot be those of values; None if each feature's are an order of them."""
        groups = [] if self.ranks is None else self.kinds.value_groups
        for _, indicators in groups:
            ranks = _with_first_rank(self.ranks[indicators])  # type: ignore[index]
            if (np.sort(ranks, axis=1) != np.arange(ranks.shape[1])[:, None]).any():
                return "ranks that are no order of a feature's values"
        return None


class _Coding(NamedTuple):
    """How pseudo labels code nominal features."""

    origin: FloatArray  # (M, k): indicators of the values of rank 0
    shared: IntArray | slice  # columns of numeric and binary features, which differ in their origin alone
    # For the features with the same number of values, more than two: their indicators, (J, V - 1), and
    # the ranks of all their values, (J, V, k).
    ranked: list[tuple[IntArray, IntArray]]


class _Block(NamedTuple):
    """Some rows, the decay's powers, and for all pseudo labels or for each its own: rates and a triangular system."""

    rows: slice
    X: AnyMatrix
    rates: FloatArray
    powers: FloatArray
    systems: FloatArray


@dataclass(frozen=True)
class SGD(Bank[SGDState]):
    """Linear regressors, one for each pseudo label, that take one gradient step for each row.

    Parameters
    ----------
    rate : float, default=1e-4
        The step's length.
    normalised : bool, default=False
        Whether the rate is divided by ``1 + |x|²``. Steps are then stable on features of any scale if ``rate < 2``.
    penalty : float, default=1e-4
        L2 penalty: the weights shrink by ``1 - rate · penalty`` at each step.
    penalty_per_row : bool, default=False
        Whether the penalty is divided by the size of the first batch, as in Weka.
    first_epochs : int, default=1
        Number of passes over the first batch. Every later batch is passed over once.
    shuffle_seed : int or None, default=None
        Shuffles the first batch, once, as Weka does with this seed; None for the order given.
    nominal_coding : {"indicators", "cumulative"}, default="indicators"
        How a nominal feature is coded: by indicators of its values, or, as in Weka, for each pseudo label by columns
        that are 1 up to the rank of the value. Values are ranked by their mean target in the first batch.
    fill_missing : bool, default=False
        Whether missing values (NaN) are replaced by the mean, or the most frequent value, of the first batch, as in
        Weka. Otherwise they are not allowed.
    on_divergence : {"error", "shorten"}, default="error"
        What happens where the steps are too long for the features: an error, or the batch is learned again with steps
        a tenth as long, which then stay so, and a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from labelrace.base.feature_kinds import FeatureKinds
    >>> from labelrace.learners.sgd import SGD
    >>> X = np.array([[0.0], [1.0]] * 200)
    >>> bank = SGD(rate=0.5, normalised=True, penalty=0.0)
    >>> state = bank.update(bank.init(FeatureKinds.numbers(1), n_components=1), X, 3 * X - 1)
    >>> bank.predict(bank.derive(state), np.array([[0.0], [1.0], [2.0]])).round(3).ravel()
    array([-1.,  2.,  5.])
    """

    rate: float = 1e-4
    normalised: bool = False
    penalty: float = 1e-4
    penalty_per_row: bool = False
    first_epochs: int = 1
    shuffle_seed: int | None = None
    nominal_coding: Literal["indicators", "cumulative"] = "indicators"
    fill_missing: bool = False
    on_divergence: Literal["error", "shorten"] = "error"

    task: ClassVar[Task] = "regression"
    state_type: ClassVar[type] = SGDState
    unweighted: ClassVar[None] = None

    def __post_init__(self) -> None:
        parameters.check_number("rate", self.rate, 0, open_low=True)
        parameters.check_number("penalty", self.penalty, 0)
        parameters.check_whole("first_epochs", self.first_epochs, 1)
        parameters.check_choice("nominal_coding", self.nominal_coding, ("indicators", "cumulative"))
        parameters.check_choice("on_divergence", self.on_divergence, ("error", "shorten"))

    @classmethod
    def weka(cls) -> SGD:
        """Return the settings of the learner that the paper used.

        On unscaled features the original continued with NaN; here the steps are shortened.
        """
        return cls(
            penalty_per_row=True,
            first_epochs=500,
            shuffle_seed=1,
            nominal_coding="cumulative",
            fill_missing=True,
            on_divergence="shorten",
        )

    @property
    def skips_missing(self) -> bool:
        """Whether NaN in ``X`` is allowed: where it is filled."""
        return self.fill_missing

    def init(self, kinds: KindsLike, n_components: int) -> SGDState:
        """Make models with zero weights."""
        kinds = FeatureKinds.of(kinds)
        weights = np.zeros((kinds.width, n_components))
        return SGDState(kinds, weights, np.zeros(n_components), None, None, 0.0, self.rate)

    def update(self, state: SGDState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None = None) -> SGDState:
        """Learn the rows of ``X`` with their pseudo labels ``H``, in order.

        Raises
        ------
        DivergenceError
            Where the errors grow beyond all bounds and the settings do not allow for shorter steps.
        """
        while True:
            try:
                return self._learn(state, X, H, row_weights)
            except DivergenceError:
                # The rate of a file may be any number, and no step is shorter than an infinite one.
                if self.on_divergence == "error" or not _SHORTEST <= state.rate < np.inf:
                    raise
                shorter = state.rate / 10
                warnings.warn(
                    f"SGD diverged with steps of {state.rate:.0e}; it goes on with {shorter:.0e}. "
                    "It would learn faster on scaled features (StandardScaler).",
                    DivergenceWarning,
                    stacklevel=2,
                )
                state = state._replace(rate=shorter)

    def _learn(self, state: SGDState, X: AnyMatrix, H: AnyMatrix, row_weights: FloatArray | None) -> SGDState:
        """Take the steps of a batch."""
        H, epochs = dense(H), 1
        with np.errstate(over="ignore", invalid="ignore"):
            if state.first_batch_rows == 0:
                state, epochs = self._with_first_batch(state, X, H), self.first_epochs
                if self.shuffle_seed is not None:
                    order = java_shuffle(len(H), self.shuffle_seed)
                    X, H, row_weights = batch_rows(order, X, H, row_weights)
            coding, bound = _coding(state), _DIVERGED * (1.0 + np.abs(H).max())
            blocks = list(self._blocks(state, coding, _design(state, X), row_weights))
            for _ in range(epochs):
                for block in blocks:
                    state = _learn_block(state, coding, block, H[block.rows], bound)
        return state

    def _with_first_batch(self, state: SGDState, X: AnyMatrix, H: FloatArray) -> SGDState:
        """Take from the first batch what is fixed from then on: its size, what to fill in, the ranks of values."""
        fill = design.fill_values(X, state.kinds) if self.fill_missing else None
        state = state._replace(first_batch_rows=float(len(H)), fill=fill)
        if self.nominal_coding == "cumulative" and not state.kinds.all_numeric:
            state = state._replace(ranks=_ranks(_design(state, X), H, state.kinds))
        return state

    def _blocks(
        self, state: SGDState, coding: _Coding | None, X: AnyMatrix, row_weights: FloatArray | None
    ) -> Iterator[_Block]:
        """Cut a batch into blocks, each with its triangular system."""
        rows = state.first_batch_rows if self.penalty_per_row else 1.0
        decay = 1.0 - state.rate * self.penalty / rows
        for start in range(0, X.shape[0], _BLOCK):
            block = slice(start, min(start + _BLOCK, X.shape[0]))
            x, n = X[block], block.stop - start
            inner = _inner_products(x, coding)
            lengths = 1.0 + np.diagonal(inner, axis1=1, axis2=2)
            rates = state.rate / lengths if self.normalised else np.full((1, n), state.rate)
            if row_weights is not None:
                rates = _weighted_rates(rates, lengths, row_weights[block])
            powers = np.power(decay, np.arange(n + 1.0))
            lag = np.clip(np.subtract.outer(np.arange(n), np.arange(n)) - 1, 0, None)
            systems = np.tril((powers[lag] * inner + 1.0) * rates[:, None, :], -1)
            yield _Block(block, x, rates, powers, systems)

    def derive(self, state: SGDState) -> SGDState:
        """Return the state with the origins' part moved into the intercepts."""
        return state._replace(intercepts=state.intercepts - _at_origin(state, _coding(state)), ranks=None)

    def predict(self, derived: SGDState, X: AnyMatrix) -> FloatArray:
        """Compute the values of all pseudo labels."""
        return bounded_product(_design(derived, X), derived.weights, derived.intercepts)

    def take(self, state: SGDState, moves: Moves) -> SGDState:
        """Move targets and features; of new ones, weights have stayed 0, and all values have equal means."""
        taken = super().take(state, moves)
        if taken.ranks is None:
            return taken
        return taken._replace(ranks=np.where(taken.ranks < 0, taken.kinds.value_order[:, None], taken.ranks))


def _weighted_rates(rates: FloatArray, lengths: FloatArray, row_weights: FloatArray) -> FloatArray:
    """Compute the lengths of steps that do what as many steps in succession do as rows have weight."""
    shares = rates * lengths
    with np.errstate(divide="ignore", invalid="ignore"):
        in_succession = -np.expm1(row_weights * np.log1p(-shares)) / lengths
    return np.where(shares <= 1.0, in_succession, row_weights * rates)


def _design(state: SGDState, X: AnyMatrix) -> AnyMatrix:
    """Fill in missing values and code nominal features by indicators."""
    return state.kinds.design(X if state.fill is None else design.filled(X, state.fill))


def _ranks(X: AnyMatrix, H: FloatArray, kinds: FeatureKinds) -> IntArray:
    """Rank the values of each nominal feature by their mean target, for each pseudo label; of equal ones, by number."""
    ranks = np.ones((X.shape[1], H.shape[1]), dtype=np.intp)
    counts, sums, total = np.asarray(X.sum(axis=0), dtype=float), X.T @ H, H.sum(axis=0)
    for _, indicators in kinds.value_groups:
        count = design.with_first(counts[indicators], np.array(float(len(H))))[..., None]
        of_value = np.where(count > 0, design.with_first(sums[indicators], total), 0.0)
        # A value that does not occur has the mean of all rows: of the same sum, so that they tie to the last digit.
        overall = np.repeat(of_value.sum(axis=1, keepdims=True) / len(H), count.shape[1], axis=1)
        means = np.divide(of_value, count, out=overall, where=count > 0)
        ranks[indicators] = means.argsort(axis=1, kind="stable").argsort(axis=1)[:, 1:]
    return ranks


def _coding(state: SGDState) -> _Coding | None:
    """Derive from the ranks how each pseudo label codes nominal features; None where all code them alike."""
    if state.ranks is None:
        return None
    ranked, is_shared = [], np.ones(len(state.ranks), bool)
    for _, indicators in state.kinds.value_groups:
        if indicators.shape[1] > 1:
            ranked.append((indicators, _with_first_rank(state.ranks[indicators])))
            is_shared[indicators] = False
    shared = np.flatnonzero(is_shared) if ranked else slice(None)
    return _Coding((state.ranks == 0).astype(float), shared, ranked)


def _with_first_rank(ranks: IntArray) -> IntArray:
    """Put the rank of the first value before those of the others, ``(J, V - 1, k)``."""
    n_values = ranks.shape[1] + 1
    # The ranks 0 … V - 1 of a feature sum to V (V - 1) / 2.
    return design.with_first(ranks, np.array(n_values * (n_values - 1) // 2))


def _at_origin(state: SGDState, coding: _Coding | None) -> FloatArray | float:
    """Compute what the weights give at the origin of each pseudo label."""
    return 0.0 if coding is None else (coding.origin * state.weights).sum(axis=0)


def _inner_products(X: AnyMatrix, coding: _Coding | None) -> FloatArray:
    """Compute the inner products of rows as they are coded, for all pseudo labels or each: ``(1 or k, b, b)``."""
    if coding is None:
        return dense(X @ X.T)[None]
    shared, origin = X[:, coding.shared] if coding.ranked else X, coding.origin[coding.shared]
    along, own = (shared @ origin).T, (origin * origin).sum(axis=0)
    inner = dense(shared @ shared.T) - along[:, :, None] - along[:, None, :] + own[:, None, None]
    for indicators, ranks in coding.ranked:
        for of_feature, of_value in zip(indicators, ranks, strict=True):
            rank = (of_value[0] + dense(X[:, of_feature]) @ (of_value[1:] - of_value[0])).T
            inner += np.minimum(rank[:, :, None], rank[:, None, :])
    return inner


def _learn_block(state: SGDState, coding: _Coding | None, block: _Block, Y: FloatArray, bound: float) -> SGDState:
    """Take the steps of one block."""
    before = block.X @ state.weights - _at_origin(state, coding)
    right = Y - block.powers[:-1, None] * before - state.intercepts
    errors = _errors(block.systems, right)
    # The comparison is false for NaN, too.
    if not np.abs(errors).max() < bound:
        raise DivergenceError(
            "SGD diverged: its errors grew beyond all bounds, so the steps are too long for these features. "
            "Scale the features (StandardScaler), lower the rate, or use SGD(normalised=True)."
        )
    steps = block.rates.T * errors
    remaining = block.powers[-2::-1, None] * steps
    change = block.X.T @ remaining
    if coding is not None:
        change = _coded_change(coding, change, remaining.sum(axis=0))
    weights = block.powers[-1] * state.weights + change
    return state._replace(weights=weights, intercepts=state.intercepts + steps.sum(axis=0))


def _coded_change(coding: _Coding, sums: FloatArray, total: FloatArray) -> FloatArray:
    """Turn the sum of steps by indicator, and that of all rows, into the change of weights, ``Σ η z CᵀC (x - o)``."""
    change = sums - coding.origin * total
    for indicators, ranks in coding.ranked:
        by_rank = np.empty(ranks.shape)
        np.put_along_axis(by_rank, ranks, design.with_first(sums[indicators], total), axis=1)
        # A coded column sums the steps of all values that rank above it, and is 1 for each of them.
        coded = by_rank[:, :0:-1].cumsum(axis=1)[:, ::-1]
        of_rank = np.concatenate([np.zeros_like(coded[:, :1]), coded.cumsum(axis=1)], axis=1)
        of_value = np.take_along_axis(of_rank, ranks, axis=1)
        change[indicators] = of_value[:, 1:] - of_value[:, :1]
    return change


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
