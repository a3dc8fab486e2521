"""How the default model becomes that of compressed labels (`labelrace.extreme.classifier`) when its weights do not fit.

The weights are projected to the codes of the labels, the decoder is fitted to what the model predicts for recent rows,
and the largest weights that both together do not give go to the table. Recent rows are kept for that from half of the
budget on. `LabelRace.successor_state` (`labelrace.linear.classifier`) decides when.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelrace.decisions.monitoring import Monitor
from labelrace.extreme import classifier as hashed
from labelrace.extreme import codes as hashed_codes
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import residual_table
from labelrace.extreme.classifier import HashedRace
from labelrace.linear.rls import RLS, RLSState, with_arrays
from labelrace.linear.warm_up import WarmUp
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# How many recent rows there must be for the decoder to be fitted to them, and how many rows of the stream they stand
# for there at most.
_FEWEST_ROWS, _WORTH_ROWS = 32, 12_000.0
# Scores and weights that are computed at once: in small parts, so that memory is used again instead of asked for anew.
_CELLS = 500_000
# Labels whose weights are looked at to tell which are large, and the share of the slots that are filled.
_SAMPLE, _FILLED = 64, 0.05
# Noise that is added to the codes, as a share of their variance: for rows that have been learned, codes are predicted
# with too little error, and a decoder fitted to them would overstate every later step of the learners.
_NOISE = 0.5
# Columns whose weights are projected at once.
_PROJECTED = 128


def compress(
    algorithm: HashedRace, learners: RLSState, monitor: Monitor, n_drifts: float, X: AnyMatrix
) -> hashed.State:
    """Make the model of compressed labels that predicts about the same, by what both say of some rows."""
    # One copy, of what may be as large as the budget.
    learners = learners._replace(weights=np.asarray(learners.weights))
    weights, intercepts, n_labels = learners.weights, learners.intercepts, len(learners.intercepts)
    empty = algorithm.empty(learners.scaling.kinds, n_labels)
    codes = hashed_codes.matrix(n_labels, len(empty.decoder.total))
    coded, Z, U = _coded(algorithm.bank, learners, monitor, codes, X)
    is_fitted = len(U) >= _FEWEST_ROWS
    if is_fitted:
        # More than have been learned: the table makes up for what this decoder lacks, and for no other one.
        rows = min(_WORTH_ROWS, 8.0 * len(U))
        decoder = code_decoder.from_predictions(U, _predicted(Z, weights, intercepts), n_labels, rows, _NOISE)
    else:
        decoder = code_decoder.from_frequencies(codes, np.maximum(monitor.counts.present, 1e-3))
    table, given = residual_table.init(len(empty.table)), np.zeros(n_labels)
    means = np.asarray(Z.mean(axis=0)).ravel() if is_fitted else np.zeros(Z.shape[1])
    importance = np.sqrt(learners.decay * np.asarray(learners.extra_precision)[:, 0])
    for features, labels, values in _lost(weights, np.asarray(coded.weights), decoder, importance, len(table)):
        table = residual_table.added(table, features, labels, values)
        given += np.bincount(labels, means[features] * values, minlength=n_labels)
    if is_fitted:
        # The means of most labels' scores are below 0, which is no error of an absent label: they are kept.
        decoder = code_decoder.with_means(decoder, intercepts + means @ weights - given)
    return empty._replace(
        learners=coded, decoder=decoder, table=table, counts=monitor.counts.histograms.of(0), n_drifts=n_drifts
    )


def _coded(
    bank: RLS, learners: RLSState, monitor: Monitor, codes: AnyMatrix, X: AnyMatrix
) -> tuple[RLSState, AnyMatrix, FloatArray]:
    """Project the learners to codes; return them with what they make of rows, and the codes that they predict."""
    coded = project(learners, codes)._replace(warm_up=WarmUp.empty())
    linear = bank.derive(coded)
    Z = bank.transform(linear, X)
    U = bank.predict_transformed(linear, Z).astype(float)
    if len(U) < _FEWEST_ROWS:
        return coded, Z, U
    # A score below 0 is no error of an absent label, but the learners of codes would correct it. So the means of the
    # codes are set to what the labels' frequencies give.
    apart = (monitor.counts.present / max(monitor.counts.rows, 1.0)) @ codes - U.mean(axis=0)
    intercepts = (coded.intercepts + apart).astype(coded.intercepts.dtype)
    return coded._replace(intercepts=intercepts), Z, U + apart


def project(learners: RLSState, A: AnyMatrix) -> RLSState:
    """Make learners of the pseudo labels ``Y A`` from learners of the labels ``Y``; none is a recent label."""
    k = A.shape[1]
    projected = learners._replace(
        intercepts=learners.intercepts @ A, first_seen=np.zeros(k), is_recent_label=np.zeros(k, bool)
    )
    weights = np.asarray(learners.weights)
    A = A.astype(weights.dtype)
    # Some rows at a time: SciPy copies what is multiplied with a sparse array, with rows and columns exchanged.
    parts = [weights[first : first + _PROJECTED] @ A for first in range(0, max(len(weights), 1), _PROJECTED)]
    return with_arrays(projected, weights=np.concatenate(parts))


def _predicted(Z: AnyMatrix, weights: Array, intercepts: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Yield the first row and the scores of some rows at a time, clipped to [0, 1]."""
    size = max(1, _CELLS // len(intercepts))
    for first in range(0, Z.shape[0], size):
        scores = Z[first : first + size] @ weights + intercepts
        yield first, np.clip(scores, 0.0, 1.0).astype(np.float32)


def _label_blocks(n_labels: int, n_rows: int) -> list[slice]:
    """Cut labels into blocks with a bounded number of cells."""
    size = max(1, _CELLS // max(n_rows, 1))
    return [slice(first, min(first + size, n_labels)) for first in range(0, n_labels, size)]


def _lost(
    weights: Array, coded: Array, sums: code_decoder.State, importance: FloatArray, n_slots: int
) -> Iterator[tuple[IntArray, IntArray, Array]]:
    """Yield the weights, by feature and label, that codes and decoder lose most of."""
    decoder, n_labels = code_decoder.derive(sums), weights.shape[1]

    def lost(labels: IntArray, here: IntArray | slice) -> Array:
        beta, _ = code_decoder.coefficients(decoder, labels)
        given = coded @ beta.astype(coded.dtype)
        return np.subtract(weights[:, here], given, out=given)

    sample = np.linspace(0, n_labels - 1, min(n_labels, _SAMPLE)).astype(np.intp)
    share = min(1.0, _FILLED * n_slots / max(weights.size, 1))
    least = max(float(np.quantile(np.abs(lost(sample, sample)) * importance[:, None], 1.0 - share)), 1e-9)
    with np.errstate(divide="ignore"):
        least_of_features = (least / importance).astype(coded.dtype)[:, None]
    for here in _label_blocks(n_labels, len(weights)):
        labels = np.arange(here.start, here.stop)
        values = lost(labels, here)
        features, columns = np.nonzero(np.abs(values) >= least_of_features)
        yield features, labels[columns], values[features, columns]
