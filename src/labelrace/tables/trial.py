"""The trial of encoders of texts: a second model reads words alone, until one of the two is found to be better.

An encoder may help much, above all while few rows are known, or it may hurt. So in its first
`DECIDED_AFTER` rows a tagger with encoders has two models, which learn the same rows: one reads the words and the
encodings, the other one only the words. Both are tested on the same rows before these are learned, and the one with
the better F1 on recent rows predicts. Then the other one is dropped. If words alone are better, the encoders are not
called any more. Until the decision learning takes the time and memory of two models; texts are encoded once.

All encoders of a tagger are tried together. There is no trial where encoders replace the words (``encoders_only``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.tables import suggestions, vocabulary
from labelrace.tables.column_blocks import encoder_hashes
from labelrace.tables.features import FeatureState, Rows
from labelrace.tables.state import f1
from labelrace.tables.suggestions import Suggestions
from labelrace.typing import IntArray, SparseMatrix

if TYPE_CHECKING:
    from labelrace.tables.known import Known

DECIDED_AFTER = 10_000
"""Rows after which one of the two models is dropped."""

# Rows after which half of the differences of F1 is forgotten.
_HALF_LIFE = 1000.0


class Trial(NamedTuple):
    """The model that does not predict: the one without encoders if the other one has them, and the reverse."""

    model: Any
    suggestions: Suggestions = Suggestions()  # the sums of its rows
    n_rows: int = 0  # rows on which both were tested
    difference: float = 0.0  # how much larger its F1 was, summed over these rows, older ones less


class Batch(NamedTuple):
    """Rows to be learned, with the outputs of all encoders."""

    before: Rows | None  # as they are read before they are learned; None for the first ones
    matrix: SparseMatrix
    reused: IntArray  # columns that were taken from other words
    tags: Sequence[set[str]]


def uses_encoders(features: FeatureState) -> bool:
    """Return whether a column is read with an encoder."""
    return any(column.width and column.uses_encoder for column in features.columns)


def using(features: FeatureState, used: bool) -> FeatureState:
    """Return the same with all encoders used, or none."""
    columns = (column._replace(uses_encoder=used) if column.width else column for column in features.columns)
    return features._replace(columns=tuple(columns))


def to_read(known: Known | None) -> FeatureState | None:
    """Return the features that read tables to be learned: with all encoders while they are on trial."""
    if known is None:
        return None
    return known.state.features if known.trial is None else using(known.state.features, True)


def seen_by(known: Known | None, matrix: SparseMatrix) -> SparseMatrix:
    """Remove the encodings from a matrix, if the model that predicts does not read them."""
    if known is None or known.trial is None or uses_encoders(known.state.features):
        return matrix
    return _without_encoders(known.state.features, matrix)


def _without_encoders(features: FeatureState, matrix: SparseMatrix) -> SparseMatrix:
    found = [vocabulary.find(features.vocabulary, encoder_hashes(c.name, c.width)) for c in features.columns]
    columns, is_read = np.concatenate(found), np.ones(matrix.shape[1], dtype=bool)
    # Some may be known only after these rows.
    is_read[columns[(columns >= 0) & (columns < matrix.shape[1])]] = False
    mask = is_read[matrix.indices]
    ends = np.append(0, np.cumsum(mask))[matrix.indptr]
    return scipy.sparse.csr_array((matrix.data[mask], matrix.indices[mask], ends.astype(np.int32)), shape=matrix.shape)


def learn(known: Known | None, after: Known, batch: Batch, new_model: Callable[[], Any]) -> Known:
    """Let the second model learn a batch, compare both on it, and decide.

    Parameters
    ----------
    known : Known
        The value before the batch; None if it is the first one.
    after : Known
        The value after it, but for the second model.
    batch : Batch
    new_model : callable
        Makes a model that has learned nothing.
    """
    if known is None:
        is_tried = uses_encoders(after.state.features) and not after.features.encoders_only
        return after.on_trial(Trial(_learned(new_model(), after, batch, False))) if is_tried else after
    if known.trial is None or batch.before is None:
        return after
    used, second = uses_encoders(known.state.features), known.second()
    rows = [
        batch.before._replace(matrix=_without_encoders(after.state.features, batch.before.matrix)),
        batch.before,
    ]
    observed = second.observe(rows[not used], batch.tags).suggestions
    model = _learned(copy.copy(known.trial.model), after, batch, not used)
    more = _difference(known, second, rows[used], rows[not used], batch.tags)
    keep, n_rows = 0.5 ** (len(more) / _HALF_LIFE), known.trial.n_rows + len(batch.tags)
    trial = Trial(model, observed, n_rows, keep * known.trial.difference + float(more.sum()))
    return after.reading_encoders(used).on_trial(trial).decided(n_rows >= DECIDED_AFTER)


def _learned(model: Any, after: Known, batch: Batch, used: bool) -> Any:
    """Let a model learn a batch, with or without encodings."""
    if len(batch.reused) and model.is_fitted:
        model.reset_features(batch.reused)
    matrix = batch.matrix if used else _without_encoders(after.state.features, batch.matrix)
    return model.partial_fit(matrix, list(batch.tags))


def _difference(one: Known, other: Known, rows: Rows, others: Rows, tags: Sequence[set[str]]) -> Any:
    """Compute by how much the F1 of the second is larger, for some of the rows."""
    some = suggestions.monitored(len(tags)).tolist()
    pairs = zip(some, one.predict(rows.take(some)), other.predict(others.take(some)), strict=True)
    return np.array([f1(tags[row], second) - f1(tags[row], first) for row, first, second in pairs])
