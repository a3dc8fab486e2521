"""A decoder fitted to predicted codes, with bounds by which a row's best labels are found without scoring all.

The decoder of `labelrace.race.decoder` is fitted to true pseudo labels ``U``. Where there are far more labels than
pseudo labels, it is better to fit it to the values ``Û`` that the learners predict before they learn a row: what they
cannot predict gets little weight. The sums are ``G = Σ ÛᵀÛ``, ``C = Σ YᵀÛ`` (l × k), the labels' counts ``N`` and
``Σ û``, all forgotten at the same rate, so that a label's score is the ridge regression

    score_j = N_j/n + q · (C_j - N_j ū),    q = (û - ū) (G_c + ridge)⁻¹,    G_c = Σ (û - ū)ᵀ(û - ū).

``C`` and ``N`` are stored divided by one common ``scale``. So forgetting changes only this number, a batch changes only
the labels that it has, and a label that appears later is a row of zeros.

*Bounds, by which `labelrace.extreme.search` finds the best labels exactly.* With an intercept beside the codes,
``a = (1, û)``, and ``M`` the sum of ``aᵀa`` with the ridge, a score is ``a M⁻¹ A_jᵀ``, ``A_j = (N_j, C_j)``. By Cauchy
and Schwarz it is at most ``|a| |A_j|``, with norms defined by ``M⁻¹``. For ``|A_j|`` two bounds need no matrix product:
``sqrt(N_j)``, as a fit explains no more than the whole sum of squares; and the sum of the norms that the rows with the
label had when they were learned, as ``M`` only grows, except by forgetting, which shrinks ``A_j`` as well. The second
is stored next to the count. The state has the labels sorted by the smaller bound (``order``); forgetting does not
change it. Labels that occurred since they were sorted are few and in a list of their own (``unsorted``); they are
sorted in when they are more than a sixteenth of all, so that an occurrence of a label costs the same however many
labels there are.

Costs: memory is ``4 l (k + 2)`` bytes; a batch of ``n`` rows with ``y`` labels takes ``O(n k² + y k)``, the inverse
``O(k³)``.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.extreme import postings
from labelrace.extreme.kernels import kernel
from labelrace.linear.versioned_rows import VersionedRows
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# The ridge is the first number times a code's mean sum of squares, plus the second: where few rows have been predicted,
# their codes are close to 0. It is not relative to the variance, which is 0 where the first rows all have one code: the
# scores of rows with another one would be rounding errors of single precision.
_RELATIVE_RIDGE, _MIN_RIDGE = 1e-3, 1.0
# Recent occurrences of labels that are kept, which candidates are taken from first: with many labels, with few, and
# with many where postings add to the candidates.
_MAX_RECENT, _MAX_RECENT_OF_FEW_LABELS, _MAX_RECENT_WITH_POSTINGS = 8192, 4096, 2048
# Unsorted labels up to which they are not sorted in: this number, or the number of labels divided by the other, if that
# is larger.
_MIN_UNSORTED, _UNSORTED_DIVISOR = 4096, 16
# Scale below which the sums are multiplied by it.
_MIN_SCALE = 1e-12
# The least that others are taken to tell of a row that is left out: where it was alone, they tell nothing.
_LEAST_OF_OTHERS = 1e-3
# Smallest share of a label's count that is kept where its scores are lowered.
_MIN_COUNT_SHARE = 0.1
# Largest number of entries of the sums that are read at once.
_MAX_CELLS = 1 << 22


class State(NamedTuple):
    """The sums, and the order of the labels."""

    gram: Annotated[FloatArray, "c c"]  # sums of products of predicted codes
    total: Annotated[FloatArray, "c"]  # sums of predicted codes
    rows: float  # number of rows in the sums, less what is forgotten
    scale: float  # what ``sums`` are to be multiplied by
    # Of the rows that have a label: the sum of their predicted codes, their number, and the sum of their norms. All are
    # divided by ``scale``, the last one by its square root.
    sums: Annotated[Array, "l c+2", "float", VersionedRows]
    order: Annotated[IntArray, "_r", "<l"]  # labels by descending bound, as it was when the order was made
    unsorted: Annotated[IntArray, "_s", "<l"]  # labels that have occurred since then, ascending
    recent_labels: Annotated[IntArray, "_t", "<l"]  # labels of recent occurrences, newest last


class Derived(NamedTuple):
    """What scoring needs."""

    # The inverse of the codes' scatter matrix with the ridge, the mean code, and the number of rows.
    inverse: FloatArray
    mean: FloatArray
    rows: float
    # As in the state.
    scale: float
    sums: VersionedRows


class Queries(NamedTuple):
    """Rows to be scored: ``score_j = weights · (C_j, N_j)``, (n, k + 1), and the rows' norms, which bound it."""

    weights: Array
    norms: FloatArray


def _as_table(sums: FloatArray) -> Any:
    return VersionedRows.taking(sums.astype(np.float32))


def init(n_labels: int, n_components: int) -> State:
    """Make a decoder that has seen nothing."""
    k, none = n_components, np.zeros(0, np.intp)
    return State(
        gram=np.zeros((k, k)),
        total=np.zeros(k),
        rows=0.0,
        scale=1.0,
        sums=_as_table(np.zeros((n_labels, k + 2))),
        order=none,
        unsorted=none,
        recent_labels=none,
    )


def update(
    state: State,
    U: FloatArray,
    Y: AnyMatrix,
    keep: float = 1.0,
    norms: FloatArray | None = None,
    *,
    uses_postings: bool = False,
) -> State:
    """Add rows with the codes ``U`` that were predicted for them; entries of the sparse ``Y`` are from 0 to 1.

    ``norms`` are those that `queries` computed for them, if it was called. With ``uses_postings``, fewer recent labels
    are kept.
    """
    state = forget(state, keep)
    state = state._replace(gram=state.gram + U.T @ U, total=state.total + U.sum(axis=0), rows=state.rows + len(U))
    # Forgetting makes the norms of earlier rows larger; that of a row that is in the sums is at most 1.
    norms = _solved(state).norms(U) if norms is None else np.minimum(norms / np.sqrt(keep), 1.0)
    touched, indices = np.unique(Y.indices, return_inverse=True)
    touched = touched.astype(np.intp)
    # The rows of Y, compressed, are the columns of its transpose.
    of_labels = scipy.sparse.csc_array((Y.data.astype(float), indices, Y.indptr), shape=(len(touched), Y.shape[0]))
    root = np.sqrt(state.scale)
    sums_of_batch = of_labels @ np.column_stack([U / state.scale, np.full(len(U), 1.0 / state.scale), norms / root])
    table = VersionedRows.of(state.sums)
    before = table.rows(touched)
    sums: Any = table.replaced(touched, (before + sums_of_batch).astype(np.float32), before)
    occurrences = np.concatenate([state.recent_labels, Y.indices[Y.data > 0]])
    recent_labels = occurrences[-_n_recent(Y.shape[1], uses_postings=uses_postings) :].astype(np.intp)
    return _with_occurred(state._replace(sums=sums, recent_labels=recent_labels), touched)


def _n_recent(n_labels: int, *, uses_postings: bool = False) -> int:
    """Return how many recent occurrences of labels are kept."""
    if not postings.enabled(n_labels):
        return _MAX_RECENT_OF_FEW_LABELS
    return _MAX_RECENT_WITH_POSTINGS if uses_postings else _MAX_RECENT


def _with_occurred(state: State, touched: IntArray) -> State:
    """Add labels that have occurred to those unsorted; sort these into the order where they have become many."""
    unsorted = distinct(np.concatenate([state.unsorted, touched]))
    if len(unsorted) <= max(_MIN_UNSORTED, len(state.order) // _UNSORTED_DIVISOR):
        return state._replace(unsorted=unsorted)
    sums, is_unsorted = VersionedRows.of(state.sums), np.zeros(len(state.sums), bool)
    is_unsorted[unsorted] = True
    # The others were forgotten at the same rate, and are still in order.
    others = state.order[~is_unsorted[state.order]]
    by_bound = unsorted[_by_bound(sums.rows(unsorted))]
    descending, new = (-bounds(sums.rows(labels)) for labels in (others, by_bound))
    order = np.insert(others, np.searchsorted(descending, new, side="right"), by_bound)
    return state._replace(order=order, unsorted=np.zeros(0, np.intp))


def distinct(labels: IntArray) -> IntArray:
    """Sort labels, each once: faster than `numpy.unique` where they are few."""
    ascending = np.sort(labels)
    return ascending[np.diff(ascending, prepend=-1) > 0]


def bounds(sums: Array) -> Array:
    """Compute bounds of labels from rows of the state's ``sums``; to be multiplied by the square root of the scale."""
    return np.minimum(np.sqrt(sums[:, -2]), sums[:, -1])


def _by_bound(sums: Array) -> IntArray:
    """Sort the labels that have occurred by descending bound."""
    occurred = np.flatnonzero(sums[:, -2] > 0)
    return np.asarray(occurred[np.argsort(-bounds(sums[occurred]), kind="stable")])


def forget(state: State, keep: float) -> State:
    """Forget all but a share of the past."""
    if keep == 1.0:
        return state
    after = state._replace(
        gram=state.gram * keep, total=state.total * keep, rows=state.rows * keep, scale=state.scale * keep
    )
    if after.scale >= _MIN_SCALE:
        return after
    sums = _as_table(np.asarray(after.sums) * _scales(after).astype(np.float32))
    return after._replace(scale=1.0, sums=sums)


def _scales(state: State, share: float = 1.0) -> FloatArray:
    """Return the factors of the columns of the sums: ``scale`` and the share that is kept."""
    scales = np.full(len(state.total) + 2, share * state.scale)
    scales[-1] = np.sqrt(scales[-1])
    return scales


def added(one: State, other: State, kept: float, *, uses_postings: bool = False) -> State:
    """Add the sums of two decoders of the same labels and codes, and keep a share of them."""
    sums = np.asarray(one.sums) * _scales(one, kept) + np.asarray(other.sums) * _scales(other, kept)
    half = _n_recent(len(sums), uses_postings=uses_postings) // 2
    return State(
        gram=kept * (one.gram + other.gram),
        total=kept * (one.total + other.total),
        rows=kept * (one.rows + other.rows),
        scale=1.0,
        sums=_as_table(sums),
        order=_by_bound(sums.astype(np.float32)),
        unsorted=np.zeros(0, np.intp),
        recent_labels=np.concatenate([one.recent_labels[-half:], other.recent_labels[-half:]]),
    )


def from_predictions(U: FloatArray, blocks: Any, n_labels: int, rows: float, noise: float = 0.0) -> State:
    """Make a decoder of the scores that another model gives to some rows, as if there were ``rows`` of them.

    ``blocks`` yields the first row and the scores, clipped to [0, 1], of some rows at a time. Codes are taken to be as
    uncertain as if a share ``noise`` of their variance were added.
    """
    weight = rows / len(U)
    gram = weight * (U.T @ U) + np.diag(noise * rows * U.var(axis=0))
    made = init(0, U.shape[1])._replace(gram=gram, total=weight * U.sum(axis=0), rows=rows)
    counted = np.hstack([U, np.ones((len(U), 1)), _solved(made).norms(U)[:, None]]).astype(np.float32)
    sums = np.zeros((n_labels, counted.shape[1]), np.float32)
    for first, scores in blocks:
        sums += scores.T @ counted[first : first + len(scores)]
    sums *= np.float32(weight)
    return _with_sums(made, sums)


def _with_sums(state: State, sums: Array) -> State:
    """Replace the sums of a state that has not learned rows yet."""
    order = _by_bound(sums)
    # The labels with the largest bounds count as recent.
    recent_labels = order[: _n_recent(len(sums))][::-1]
    return state._replace(sums=_as_table(sums), order=order, recent_labels=recent_labels)


def with_means(state: State, means: FloatArray) -> State:
    """Shift the scores of labels so that their means over all rows are the given ones, as far as the bounds allow."""
    solved, sums = _solved(state), np.asarray(state.sums).astype(float)
    before = state.scale * sums[:, -2]
    centred = state.scale * sums[:, :-2] - before[:, None] * solved.mean
    # A count bounds the squared norm of a label's sums; this is the part of it that the codes contribute.
    squared_norm = np.einsum("ij,ij->i", centred @ solved.inverse, centred)
    least = np.maximum(squared_norm / np.maximum(1.0 - before / solved.rows, 0.1), _MIN_COUNT_SHARE * before)
    after = np.clip(means * solved.rows, np.minimum(least, before), np.maximum(before, 0.5 * solved.rows))
    sums[:, :-2] = (centred + after[:, None] * solved.mean) / state.scale
    sums[:, -2] = after / state.scale
    # As if rows with the mean code had been added or removed.
    sums[:, -1] += np.abs(after - before) / np.sqrt(solved.rows * state.scale)
    return _with_sums(state, sums)


def from_frequencies(codes: AnyMatrix, frequencies: FloatArray) -> State:
    """Make a decoder from how often labels occur, as if each row had one label."""
    rows = frequencies.sum()
    of_labels = scipy.sparse.csr_array(codes.multiply(frequencies[:, None]))
    gram = np.asarray((codes.T @ of_labels).todense())
    made = init(0, codes.shape[1])._replace(
        gram=gram, total=np.asarray(of_labels.sum(axis=0)).ravel(), rows=float(rows)
    )
    return _with_sums(made, np.column_stack([of_labels.toarray(), frequencies, np.sqrt(frequencies)]))


class _Solved(NamedTuple):
    """The inverse of the codes' scatter matrix with the ridge, the mean code, and the number of rows."""

    inverse: FloatArray
    mean: FloatArray
    rows: float

    def norms(self, U: FloatArray) -> FloatArray:
        """Compute the norms of rows with these codes and an intercept."""
        centred = U - self.mean
        squares = np.einsum("ij,ij->i", centred @ self.inverse, centred)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) + 1.0 / self.rows))


def _solved(state: State) -> _Solved:
    """Invert the codes' scatter matrix, with the ridge."""
    n, k = max(state.rows, 1e-300), len(state.total)
    mean = state.total / n
    centred = state.gram - np.outer(mean, state.total)
    ridge = _RELATIVE_RIDGE * max(float(np.trace(state.gram)), 0.0) / k + _MIN_RIDGE
    return _Solved(np.asarray(np.linalg.inv(centred + ridge * np.eye(k)), float), mean, n)


def derive(state: State) -> Derived:
    """Invert the codes' scatter matrix, with the ridge."""
    return Derived(*_solved(state), state.scale, VersionedRows.of(state.sums))


@kernel("void(float64[:, ::1], float64[:, ::1], float64[::1], float64, float64, float32[:, ::1], float64[::1])")
def write_queries(U: Any, inverse: Any, mean: Any, rows: Any, scale: Any, weights: Any, norms: Any) -> None:
    """Compute the weights and norms of rows with these predicted codes, which are written.

    ``inverse``, ``mean``, ``rows`` and ``scale`` are those of `Derived`.
    """
    k, centred = U.shape[1], U - mean
    solved = np.dot(centred, inverse)
    for row in range(len(U)):
        square, constant = 0.0, 1.0 / rows
        for j in range(k):
            square += solved[row, j] * centred[row, j]
            constant -= solved[row, j] * mean[j]
            weights[row, j] = scale * solved[row, j]
        weights[row, k], norms[row] = scale * constant, np.sqrt(max(square, 0.0) + 1.0 / rows)


def queries(derived: Derived, U: FloatArray) -> Queries:
    """Prepare the scoring of rows with these predicted codes."""
    prepared = Queries(np.empty((len(U), U.shape[1] + 1), np.float32), np.empty(len(U)))
    write_queries(U, *derived[:4], *prepared)
    return prepared


def leave_one_out_scores(scores: Array, labels: FloatArray, queries: Queries) -> FloatArray:
    """Compute what scores of rows that were learned last, (n, c), would be without the row itself, at the same ridge.

    ``labels`` are 1 and 0, or NaN where it is not known; the squares of the norms are how much a row tells of itself.
    """
    own = np.square(queries.norms)[:, None]
    left_out: FloatArray = (scores - own * np.nan_to_num(labels)) / np.maximum(1.0 - own, _LEAST_OF_OTHERS)
    return left_out


def coefficients(derived: Derived, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Compute the coefficients of some labels: their scores are ``û β + c``, with β, (k, L), and c, (L,)."""
    sums = derived.scale * derived.sums.rows(labels).astype(float)
    counts = sums[:, -2]
    centred = sums[:, :-2] - counts[:, None] * derived.mean
    beta = derived.inverse @ centred.T
    return beta, counts / derived.rows - derived.mean @ beta


def some_scores(derived: Derived, queries: Queries, labels: IntArray) -> Array:
    """Compute the scores of some labels for all rows, (n, L)."""
    return np.asarray(queries.weights @ derived.sums.rows(labels)[:, :-1].T)


def all_scores(derived: Derived, queries: Queries) -> Array:
    """Compute the scores of all labels, (n, l)."""
    n_labels = derived.sums.shape[0]
    scores = np.empty((len(queries.weights), n_labels), np.float32)
    size = max(1, _MAX_CELLS // queries.weights.shape[1])
    for first in range(0, n_labels, size):
        labels = np.arange(first, min(first + size, n_labels))
        scores[:, labels] = some_scores(derived, queries, labels)
    return scores


def pair_scores(derived: Derived, queries: Queries, rows: IntArray, labels: IntArray) -> Array:
    """Compute the scores of single pairs of a row and a label."""
    scores = np.empty(len(rows), np.float32)
    size = max(1, _MAX_CELLS // queries.weights.shape[1])
    for first in range(0, len(rows), size):
        here = slice(first, first + size)
        sums = derived.sums.rows(labels[here])
        scores[here] = np.einsum("ij,ij->i", queries.weights[rows[here]], sums[:, :-1])
    return scores
