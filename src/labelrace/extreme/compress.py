"""How the default model becomes that of compressed labels (`labelrace.extreme.classifier`) when its weights do not fit.

The weights are projected to the codes of the labels, the decoder is fitted to what the model predicts for recent rows,
and the largest weights that these two do not reproduce are put into the residual table. Recent rows are kept for that
from half of the budget on. `LabelRace.successor_state` (`labelrace.linear.classifier`) decides when.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelrace.decisions.monitoring import Monitor
from labelrace.extreme import codes as hashed_codes
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import residual_table
from labelrace.extreme.classifier import HashedRace, State
from labelrace.linear import classifier as linear
from labelrace.linear.rls import RLS, RLSState, with_arrays
from labelrace.linear.warm_up import WarmUp
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Recent rows that fitting a decoder to them needs, and the largest number of rows of the stream that they are weighted
# as.
_MIN_ROWS, _MAX_EQUIVALENT_ROWS = 32, 12_000.0
# Largest number of scores or weights that are computed at once: small, so that memory is reused.
_MAX_CELLS = 500_000
# Labels that a quantile of the lost weights is estimated from, and the share of the slots that are filled.
_SAMPLED_LABELS, _FILLED_SHARE = 64, 0.05
# Noise that is added to the codes, as a share of their variance: for rows that have been learned, codes are predicted
# with too little error, and a decoder fitted to them would overstate every later step of the learners.
_NOISE_SHARE = 0.5
# Columns whose weights are projected at once.
_COLUMNS_AT_ONCE = 128


def compress(algorithm: HashedRace, state: linear.State) -> State:
    """Make the model of compressed labels that predicts about the same for recent rows; of a fork, what predicts."""
    monitor, X = state.monitor, state.recent_rows.matrix(state.learners)
    # Copied once: it may be as large as the memory budget.
    learners = state.learners._replace(weights=np.asarray(state.learners.weights))
    weights, intercepts, n_labels = learners.weights, learners.intercepts, len(learners.intercepts)
    empty = algorithm.empty(learners.scaling.kinds, n_labels, X)
    codes = hashed_codes.encoder_matrix(n_labels, len(empty.decoder.total))
    compressed, Z, U = _compressed_learners(algorithm.bank, learners, monitor, codes, X)
    is_fitted = len(U) >= _MIN_ROWS
    if is_fitted:
        # Weighted as more rows than there were, so that the decoder changes slowly: the table corrects this decoder.
        rows = min(_MAX_EQUIVALENT_ROWS, 8.0 * len(U))
        decoder = code_decoder.from_predictions(U, _predicted(Z, weights, intercepts), n_labels, rows, _NOISE_SHARE)
    else:
        decoder = code_decoder.from_frequencies(codes, np.maximum(monitor.counts.present, 1e-3))
    table, table_means = residual_table.init(len(empty.table)), np.zeros(n_labels)
    means = np.asarray(Z.mean(axis=0)).ravel() if is_fitted else np.zeros(Z.shape[1])
    importance = np.sqrt(learners.decay * np.asarray(learners.extra_precision)[:, 0])
    code_weights = np.asarray(compressed.weights)
    for features, labels, values in _lost_weights(weights, code_weights, decoder, importance, len(table)):
        table = residual_table.added(table, features, labels, values)
        table_means += np.bincount(labels, means[features] * values, minlength=n_labels)
    if is_fitted:
        # The means of most labels' scores are below 0, which is no error of an absent label: they are kept.
        decoder = code_decoder.with_means(decoder, intercepts + means @ weights - table_means)
    return empty._replace(
        learners=compressed,
        decoder=decoder,
        table=table,
        counts=monitor.counts.histograms.of(0),
        counts_left_out=monitor.counts.histograms.of(0),
        n_alarms=state.n_alarms,
        n_drifts=state.n_drifts,
    )


def _compressed_learners(
    bank: RLS, learners: RLSState, monitor: Monitor, codes: AnyMatrix, X: AnyMatrix
) -> tuple[RLSState, AnyMatrix, FloatArray]:
    """Project the learners to codes; return them, the transformed rows, and the codes that they predict for these."""
    compressed = project(learners, codes)._replace(warm_up=WarmUp.empty())
    linear = bank.derive(compressed)
    Z = bank.transform(linear, X)
    U = bank.predict_transformed(linear, Z).astype(float)
    if len(U) < _MIN_ROWS:
        return compressed, Z, U
    # A score below 0 is no error of an absent label, but the learners of codes would correct it. So the means of the
    # codes are set to what the labels' frequencies give.
    shift = (monitor.counts.present / max(monitor.counts.rows, 1.0)) @ codes - U.mean(axis=0)
    intercepts = (compressed.intercepts + shift).astype(compressed.intercepts.dtype)
    return compressed._replace(intercepts=intercepts), Z, U + shift


def project(learners: RLSState, A: AnyMatrix) -> RLSState:
    """Make learners of the pseudo labels ``Y A`` from learners of the labels ``Y``; none is a recent label."""
    k = A.shape[1]
    projected = learners._replace(
        intercepts=learners.intercepts @ A, first_seen=np.zeros(k), is_recent_label=np.zeros(k, bool)
    )
    weights = np.asarray(learners.weights)
    A = A.astype(weights.dtype)
    # Some rows at a time: SciPy copies and transposes what is multiplied by a sparse array.
    firsts = range(0, max(len(weights), 1), _COLUMNS_AT_ONCE)
    parts = [weights[first : first + _COLUMNS_AT_ONCE] @ A for first in firsts]
    return with_arrays(projected, weights=np.concatenate(parts))


def _predicted(Z: AnyMatrix, weights: Array, intercepts: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the first row and the scores of some rows at a time, clipped to [0, 1]."""
    size = max(1, _MAX_CELLS // len(intercepts))
    for first in range(0, Z.shape[0], size):
        scores = Z[first : first + size] @ weights + intercepts
        yield first, np.clip(scores, 0.0, 1.0).astype(np.float32)


def _label_blocks(n_labels: int, n_rows: int) -> list[slice]:
    """Cut labels into blocks with a bounded number of cells."""
    size = max(1, _MAX_CELLS // max(n_rows, 1))
    return [slice(first, min(first + size, n_labels)) for first in range(0, n_labels, size)]


def _lost_weights(
    weights: Array, code_weights: Array, decoder_state: code_decoder.State, importance: FloatArray, n_slots: int
) -> Iterator[tuple[IntArray, IntArray, Array]]:
    """Yield features, labels and values of the largest weights that codes and decoder do not reproduce."""
    decoder, n_labels = code_decoder.derive(decoder_state), weights.shape[1]

    def lost(labels: IntArray, here: IntArray | slice) -> Array:
        beta, _ = code_decoder.coefficients(decoder, labels)
        reproduced = code_weights @ beta.astype(code_weights.dtype)
        return np.subtract(weights[:, here], reproduced, out=reproduced)

    sample = np.linspace(0, n_labels - 1, min(n_labels, _SAMPLED_LABELS)).astype(np.intp)
    share = min(1.0, _FILLED_SHARE * n_slots / max(weights.size, 1))
    least = max(float(np.quantile(np.abs(lost(sample, sample)) * importance[:, None], 1.0 - share)), 1e-9)
    with np.errstate(divide="ignore"):
        least_of_features = (least / importance).astype(code_weights.dtype)[:, None]
    for here in _label_blocks(n_labels, len(weights)):
        labels = np.arange(here.start, here.stop)
        values = lost(labels, here)
        features, columns = np.nonzero(np.abs(values) >= least_of_features)
        yield features, labels[columns], values[features, columns]
