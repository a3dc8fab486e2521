"""RACE made to win: several encoders, two kinds of learners, and one decoder that knows their errors.

Three things set it apart from the paper's algorithm.

*The decoder learns from predictions.* The paper fits ``β`` to the true pseudo labels, as if learners made no mistakes.
Here each batch is first predicted, and ``β`` is fitted to those predictions, ``Q``: what a learner cannot predict, the
decoder learns to pass over, and the sums are those of a test set, as the learners had not seen the batch.

*Soft codes of two kinds.* Naive Bayes on 0/1 pseudo labels gives log odds, scaled by the number of features and cut
off; ridge regression on real ones gives values. Naive Bayes is quick to learn, ridge goes on improving, and the decoder
weighs them. All encoders stand side by side as one. Where features are too many for ridge's ``m × m`` sums, naive Bayes
works alone.

*Two numbers follow the stream.* The decoder's ridge is the one, of a grid, with the smallest squared error so far on
batches not yet learned: with the eigenvectors of the codes' correlation matrix the errors of the whole grid cost what
one does. And the threshold keeps the number of predicted labels near the number of true ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from labelrace.algorithm import Algorithm
from labelrace.compression import decoder, encoder
from labelrace.learners.naive_bayes import NaiveBayes, NaiveBayesState
from labelrace.learners.ridge import Ridge, RidgeState
from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray

__all__ = ["Ensemble", "State"]

# Penalties of the decoder, in imagined rows.
GRID = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0])
# Log odds a feature, beyond which naive Bayes is no surer.
_CLIP = 0.1
# What the first batch counts for, whose codes were predicted by learners that had seen it.
_FIRST = 0.1
# Scores that a threshold is taken from at the most: enough for three digits, whatever the number of labels.
_MOST_SCORES = 1_000_000
# Share of the last batch in the threshold, at least.
_NEWEST = 0.2


class State(NamedTuple):
    """Everything the ensemble remembers.

    Attributes
    ----------
    encoder : encoder.State
        All encoders side by side: first the columns for naive Bayes, then those for ridge.
    learners : NaiveBayesState
        Naive Bayes on the first columns.
    regressors : RidgeState or None
        Ridge on the others.
    decoder : decoder.State
        Sums over codes, with a constant one in front.
    errors : (grid,) array
        Squared error of the decoder with each penalty, over the batches so far, up to a constant.
    threshold : float
        Score above which a label is predicted.
    tracked : float
        Batches that the threshold comes from.
    """

    encoder: encoder.State
    learners: NaiveBayesState
    regressors: RidgeState | None
    decoder: decoder.State
    errors: FloatArray
    threshold: float
    tracked: float


class Directions(NamedTuple):
    """The decoder's equations, centred and in the eigenvectors of the codes' correlations.

    Attributes
    ----------
    mean_code, mean_label : (K,) and (l,) arrays
        What was subtracted; labels are -1 and 1.
    scale : (K,) array
        Spread of each code, by which it was divided.
    values, vectors : (K,) and (K, K) arrays
        Eigenvalues and eigenvectors.
    targets : (K, l) array
        The right-hand side along the eigenvectors.
    rows : float
        Rows that the sums come from.
    """

    mean_code: FloatArray
    mean_label: FloatArray
    scale: FloatArray
    values: FloatArray
    vectors: FloatArray
    targets: FloatArray
    rows: float


class Derived(NamedTuple):
    """What predicting needs."""

    learners: Any
    regressors: Any
    directions: Directions
    beta: FloatArray
    threshold: float


@dataclass(frozen=True)
class Ensemble(Algorithm[State]):
    """The algorithm.

    Parameters
    ----------
    classifiers : NaiveBayes
        The learners of 0/1 pseudo labels.
    ridge : Ridge or None
        The learners of real ones.
    """

    classifiers: NaiveBayes
    ridge: Ridge | None

    @property
    def skips_missing(self) -> bool:
        """Whether a NaN in ``X`` is a missing value to be skipped: not where ridge learns, too."""
        return self.ridge is None

    def init(self, hyperplanes: encoder.State, n_classifiers: int, n_values: IntArray) -> State:
        """Make the state of a model that has seen nothing; ``n_classifiers`` columns are for naive Bayes."""
        n_labels, n_components = hyperplanes.A.shape
        return State(
            hyperplanes,
            self.classifiers.init(n_values, n_classifiers),
            None if self.ridge is None else self.ridge.init(n_values, n_components - n_classifiers),
            decoder.init(n_labels, n_components + 1),
            np.zeros(len(GRID)),
            0.0,
            0.0,
        )

    def update(self, state: State, X: AnyMatrix, Y: AnyMatrix, derived: Derived | None = None) -> State:
        """Learn a batch: the decoder from what the learners say of it, then the learners."""
        if state.decoder.rows > 0:
            derived = derived or self.derive(state)
            state = self._learn_codes(state, derived, self._codes(derived, X), Y)
            return self._learn_pseudo_labels(state, X, Y)
        # Nothing has been learned that could predict the first batch: it is predicted afterwards, and counts for less.
        state = self._learn_pseudo_labels(state, X, Y)
        learners, regressors = self._derive_learners(state)
        return self._learn_first_codes(state, _codes(self, learners, regressors, X), Y)

    def _learn_pseudo_labels(self, state: State, X: AnyMatrix, Y: AnyMatrix) -> State:
        H = encoder.encode(state.encoder, Y)
        n_classifiers = len(state.learners.rows) - 1
        learners = self.classifiers.update(state.learners, X, (H[:, :n_classifiers] >= 0).astype(float))
        regressors = state.regressors
        if self.ridge is not None and regressors is not None:
            regressors = self.ridge.update(regressors, X, H[:, n_classifiers:])
        return state._replace(learners=learners, regressors=regressors)

    def _learn_codes(self, state: State, derived: Derived, Q: FloatArray, Y: AnyMatrix) -> State:
        errors = state.errors + grid_errors(derived.directions, Q, Y)
        threshold, tracked = _follow(state, _cut(Q, derived.beta, Y))
        sums = decoder.update(state.decoder, Q, Y)
        return state._replace(decoder=sums, errors=errors, threshold=threshold, tracked=tracked)

    def _learn_first_codes(self, state: State, Q: FloatArray, Y: AnyMatrix) -> State:
        sums = decoder.update(state.decoder, np.sqrt(_FIRST) * Q, Y)
        # Weights of rows are squares in QᵀQ, but not in QᵀY: that, too, is to count for less.
        scale = np.sqrt(_FIRST)
        sums = decoder.fold(sums)
        sums = sums._replace(cross=scale * sums.cross, total=scale * sums.total, rows=_FIRST * sums.rows)
        state = state._replace(decoder=sums)
        beta = solution(directions(sums), _best(state.errors))
        return state._replace(threshold=_cut(Q, beta, Y), tracked=_FIRST)

    def derive(self, state: State) -> Derived:
        """Compute what predicting needs."""
        learners, regressors = self._derive_learners(state)
        along = directions(state.decoder)
        return Derived(learners, regressors, along, solution(along, _best(state.errors)), state.threshold)

    def _derive_learners(self, state: State) -> tuple[Any, Any]:
        regressors = None if self.ridge is None else self.ridge.derive(state.regressors)  # type: ignore[arg-type]
        return self.classifiers.derive(state.learners), regressors

    def _codes(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        return _codes(self, derived.learners, derived.regressors, X)

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Decode the codes; the threshold is at zero."""
        return self._codes(derived, X) @ derived.beta - derived.threshold

    def predict(self, derived: Derived, X: AnyMatrix) -> BoolArray:
        """Mark the labels whose score is above the threshold."""
        return self.scores(derived, X) > 0

    def compact(self, state: State) -> State:
        """Return the same state in its smallest form, for keeping."""
        return state._replace(decoder=decoder.fold(state.decoder))

    def why_unmergeable(self, one: State, other: State) -> str | None:
        """Say why two models cannot be merged: never."""
        return "the decoder has learned from predictions, which depend on what was learned before"


def _codes(ensemble: Ensemble, learners: Any, regressors: Any, X: AnyMatrix) -> FloatArray:
    """Predict all pseudo labels, softly, with a constant one in front: (n, K + 1)."""
    odds = ensemble.classifiers.predict(learners, X) / X.shape[1]
    parts = [np.ones((X.shape[0], 1)), np.clip(odds, -_CLIP, _CLIP)]
    if ensemble.ridge is not None:
        parts.append(ensemble.ridge.predict(regressors, X))
    return np.hstack(parts)


def directions(sums: decoder.State) -> Directions:
    """Centre the decoder's sums, scale them to correlations and find their eigenvectors."""
    d = decoder.fold(sums)
    gram, rows = d.gram * d.scale, d.rows * d.scale
    mean_code, mean_label = gram[0, 1:] / rows, (2 * d.cross[:, 0] - d.total[0]) * d.scale / rows
    targets = (2 * d.cross[:, 1:].T - d.total[1:, None]) * d.scale - np.outer(gram[0, 1:], mean_label)
    centred = gram[1:, 1:] - np.outer(gram[0, 1:], mean_code)
    spread = np.sqrt(np.maximum(np.diag(centred), 0.0))
    # A code that does not vary says nothing; dividing by its size instead of by nearly nothing keeps it so.
    scale = np.where(spread > 1e-9 * np.sqrt(np.maximum(np.diag(gram)[1:], 1e-300)), spread, np.inf)
    values, vectors = np.linalg.eigh(centred / scale[:, None] / scale)
    return Directions(mean_code, mean_label, scale, values, vectors, vectors.T @ (targets / scale[:, None]), rows)


def _shrinkage(along: Directions, penalty: FloatArray | float) -> FloatArray:
    """Compute what each direction is multiplied by; a penalty is in imagined rows."""
    return 1.0 / (np.maximum(along.values, 0.0) + np.asarray(penalty)[..., None] / along.rows)


def solution(along: Directions, penalty: float) -> FloatArray:
    """Solve for the decoder, (K + 1, l), constant first."""
    beta = (along.vectors @ (_shrinkage(along, penalty)[:, None] * along.targets)) / along.scale[:, None]
    return np.vstack([along.mean_label - along.mean_code @ beta, beta])


def grid_errors(along: Directions, Q: FloatArray, Y: AnyMatrix) -> FloatArray:
    """Compute the squared error on a batch for each penalty of the grid, up to what they have in common.

    With the decoder ``V D V'C`` and ``D`` the shrinkage, the error is ``Σ DᵢDⱼ (V'gV ∘ EE')ᵢⱼ - 2 Σ Dᵢ (V'c ∘ E)ᵢ``,
    where ``E = V'C`` and ``g``, ``c`` are the batch's centred sums: products that serve the whole grid.
    """
    Z = ((Q[:, 1:] - along.mean_code) / along.scale) @ along.vectors
    # Z'(T - mean) without the dense T: T is 2 Y - 1.
    cross = 2.0 * (Y.T @ Z).T - np.outer(Z.sum(axis=0), 1.0 + along.mean_label)
    D = _shrinkage(along, GRID)
    quadratic = (Z.T @ Z) * (along.targets @ along.targets.T)
    return np.einsum("gi,ij,gj->g", D, quadratic, D) - 2.0 * D @ (cross * along.targets).sum(axis=1)


def _best(errors: FloatArray) -> float:
    """Choose the penalty with the smallest error; before any is known, one in the middle."""
    return float(GRID[int(np.argmin(errors))] if errors.any() else GRID[len(GRID) // 2])


def _cut(Q: FloatArray, beta: FloatArray, Y: AnyMatrix) -> float:
    """Find the score above which as many labels would have been predicted as there are."""
    rows = max(1, min(len(Q), _MOST_SCORES // beta.shape[1]))
    scores = (Q[:rows] @ beta).ravel()
    n_true = int(Y[:rows].sum()) if scipy.sparse.issparse(Y) else int(np.sum(Y[:rows]))
    if n_true == 0:
        return float(scores.max())
    place = len(scores) - min(n_true, len(scores))
    return float(np.partition(scores, place)[place]) - 1e-12


def _follow(state: State, cut: float) -> tuple[float, float]:
    """Move the threshold towards the last batch's."""
    tracked = state.tracked + 1.0
    weight = max(1.0 / tracked, _NEWEST)
    return (1.0 - weight) * state.threshold + weight * cut, tracked
