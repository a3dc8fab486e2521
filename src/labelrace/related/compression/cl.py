"""Compressed labeling on distilled label sets (CL): random bits of label sets, decoded by hypothesis tests.

A label set's code are ``k`` bits, ``1[y A ≥ 0]`` with a Gaussian ``A``; ridge regressions predict them. Two sets' bits
agree with the probability ``1 - arccos(|y ∩ d| / √(|y| |d|)) / π``, so the share of bits in which a predicted code
agrees with that of a set ``d`` tells whether ``d`` is a part of the label set. That is tested for each of the
*distilled* sets, frequent combinations of labels and all single labels: ``d`` is accepted where the share is nearer, by
Kullback-Leibler divergence, to the mean agreement with label sets that contain ``d`` than to that with others. A
prediction is the union of the accepted sets.

The method is reconstructed: a greedy choice stands in for the paper's recursive clustering, and the tests' prior odds,
on by default, are an addition. It needs bits that are nearly all right.

Codes are drawn once, so sums of features and bits and counts of distinct label sets are all there is to keep; distilled
sets and their probabilities are found on reading.

Cost: a batch ``n m²`` (sparse rows ``nnz(x)²`` each), ``nnz(x) k`` and ``|y| k`` a row; reading ``m³``, and ``d²`` a
distilled set for ``d`` distinct label sets; a prediction ``m k`` and ``k`` a distilled set. State: ``m² + m k`` and the
distinct label sets. Online, mergeable, growable, all exact up to 10,000 distinct label sets.

References
----------
Zhou, T., Tao, D. and Wu, X.: Compressed labeling on distilled labelsets for multi-label learning. Machine Learning 88
(2012).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from labelrace.base import parameters, random_draws
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.growth import SAME, Moves
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense
from labelrace.learners import sums
from labelrace.learners.regression import Linear
from labelrace.related.compression import base, label_sets
from labelrace.related.compression.base import Compression, CompressionClassifier, Derived, Settings, View
from labelrace.related.compression.label_sets import LabelSets
from labelrace.typing import AnyMatrix, FloatArray

# Distinct label sets, the most frequent, that are distilled from.
_MAX_DISTILLED = 2000
# Probabilities of agreement are kept this far from 0 and 1.
_MARGIN = 1e-12


class State(NamedTuple):
    """As `labelrace.related.compression.base.State`, with bits instead of labels, and the label sets."""

    kinds: FeatureKinds
    by_rows: Annotated[float, SAME]
    first_labels: Annotated[float, "<l+1", SAME]
    sums: Annotated[sums.State, "f=M"]
    sets: LabelSets
    n_labels: Annotated[float, "=l", SAME]


class Code(NamedTuple):
    """The bits' models and the tests."""

    linear: Linear  # models of the bits, coded -1 and 1
    distilled: FloatArray  # (d, l): the sets that are tested for
    bits: FloatArray  # (d, k): their codes, -1 and 1
    # (d,): what a bit that agrees, and one that does not, adds to the log likelihood ratio.
    agree: FloatArray
    differ: FloatArray
    prior: FloatArray  # (d,): log odds of a set before its test; 0 where they are left out


@dataclass(frozen=True)
class CompressedLabeling(Compression):
    """The algorithm."""

    # "log2", "log2_squared" or int: number of bits; those of the labels at the start, if not given as a number.
    n_components: str | int
    prior: bool  # whether the prior odds of a set count
    encoder: tuple[tuple[float, ...], ...] | None  # the encoder, where it is given
    settings: Settings  # penalty, scaling and forgetting
    seed: int = 0  # what the encoder is drawn from

    state_type = State
    keeps_yy = False
    reads_any_k = False

    def count(self, n_labels: int) -> int:
        """Compute the number of bits, which an encoder that is given settles; there may be more than labels."""
        if self.encoder is not None:
            return len(self.encoder[0])
        if isinstance(self.n_components, str):
            return parameters.component_count(self.n_components, n_labels)
        return self.n_components

    def init(self, schema: Schema, rng: np.random.Generator) -> Any:
        """Make empty sums; an encoder that is given must fit the labels."""
        base.check_given("encoder", self.encoder, schema.n_labels)
        k, n_labels = self.count(schema.n_labels), float(schema.n_labels)
        bits = self.keeper.init(schema.kinds.width, k)
        return State(schema.kinds, self.first_scaling(), n_labels, bits, label_sets.empty(), n_labels)

    def update(
        self, state: Any, X: AnyMatrix, Y: AnyMatrix, derived: Any = None, row_weights: FloatArray | None = None
    ) -> Any:
        """Add a batch to the sums, and its label sets to the counts."""
        updated: Any = super().update(state, X, Y, derived, row_weights)
        sets = label_sets.scale(state.sets, self.settings.forgetting)
        return updated._replace(sets=label_sets.add(sets, Y, row_weights=row_weights))

    def targets(self, state: Any, Y: AnyMatrix) -> AnyMatrix:
        """Return the label sets' bits, 0 and 1."""
        return (np.asarray(Y @ self._drawn(Y.shape[1], len(state.sums.sum_y))) >= 0).astype(float)

    def _drawn(self, n_labels: int, k: int) -> FloatArray:
        return random_draws.normal(self.seed, n_labels, k) if self.encoder is None else np.array(self.encoder)

    def code(self, view: View) -> Code:
        """Regress the bits, distil label sets and find the tests' probabilities."""
        n_labels, known = int(view.state.n_labels), view.state.sets
        weights, sets = known.counts, label_sets.matrix(known, n_labels)
        frequent = np.sort(np.argsort(-weights, kind="stable")[:_MAX_DISTILLED])
        distilled = distil(dense(sets[frequent]), weights[frequent])
        common, lengths = np.asarray(sets @ distilled.T), distilled.sum(axis=1)
        cosine = common / np.sqrt(np.maximum(np.outer(np.asarray(sets.sum(axis=1)), lengths), 1.0))
        agreement = 1.0 - np.arccos(np.minimum(cosine, 1.0)) / np.pi
        contained = (common == lengths) * weights[:, None]
        p1, p0 = (_mean_agreement(agreement, rows) for rows in (contained, weights[:, None] - contained))
        prior = (contained.sum(axis=0) + 1.0) / (weights.sum() + 2.0)
        log_odds = np.log(prior / (1.0 - prior)) if self.prior else np.zeros(len(prior))
        bits = np.where(distilled @ self._drawn(n_labels, view.n_labels) >= 0, 1.0, -1.0)
        ratios = np.log(p1 / p0), np.log((1.0 - p1) / (1.0 - p0))
        return Code(view.fit(view.coding("signs")), distilled, bits, *ratios, log_odds)

    def evidence(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Compute the log likelihood ratio of each distilled set, with its prior odds, (n, d)."""
        code: Code = derived.code
        bits = np.where(self.codes(derived, X) >= 0, 1.0, -1.0)
        k = bits.shape[1]
        agreeing = (bits @ code.bits.T + k) / 2.0
        return agreeing * code.agree + (k - agreeing) * code.differ + code.prior

    def scores(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Return for each label the largest evidence for a set that has it; a label in no set comes last."""
        evidence, distilled = self.evidence(derived, X), derived.code.distilled
        lowest = np.minimum(evidence.min(axis=1, initial=0.0), 0.0) - 1.0
        scores = np.tile(lowest[:, None], distilled.shape[1])
        labels, sets = np.nonzero(distilled.T)
        labels, first = np.unique(labels, return_index=True)
        if len(labels):
            scores[:, labels] = np.maximum(np.maximum.reduceat(evidence[:, sets], first, axis=1), lowest[:, None])
        return scores

    def predict(self, derived: Derived, X: AnyMatrix) -> Any:
        """Unite the sets that are accepted."""
        return self.scores(derived, X) > 0

    def probabilities(self, derived: Derived, X: AnyMatrix) -> FloatArray:
        """Turn log odds into probabilities."""
        return expit(self.scores(derived, X))

    def why_unmergeable(self, one: base.State, other: base.State) -> str | None:
        """Return why two states cannot be merged exactly; also where they know too many label sets."""
        known = len(one.sets.keys) + len(other.sets.keys)  # type: ignore[attr-defined]
        if known > label_sets.CAPACITY:
            return f"their label sets may be more than the {label_sets.CAPACITY} that are counted"
        return super().why_unmergeable(one, other)

    def parts(self) -> Mapping[str, Any]:
        """Return what keeps the sums, and what counts label sets."""
        return {**super().parts(), "sets": label_sets}

    def take(self, state: Any, moves: Moves) -> Any:
        """Move features, and append labels; known ones must stay, as their random bits belong to their positions."""
        base.refuse_other_order(moves, "bits")
        return super().take(state, moves)

    def why_no_new_labels(self) -> str | None:
        """Return why labels cannot be added: where the encoder is given."""
        return None if self.encoder is None else "encoder= gives rows to the first labels only"


def _mean_agreement(agreement: FloatArray, rows: FloatArray) -> FloatArray:
    """Compute the mean agreement with each distilled set over rows; one half where there are none."""
    total, weights = (rows * agreement).sum(axis=0), rows.sum(axis=0)
    means = np.divide(total, weights, out=np.full_like(total, 0.5), where=weights > 0)
    return np.clip(means, _MARGIN, 1.0 - _MARGIN)


def distil(sets: FloatArray, weights: FloatArray) -> FloatArray:
    """Choose label sets that many rows have in common, then all single labels that occur, (d, l).

    Of what is left of the rows' label sets, the one with the most labels in rows that contain it is chosen, if there
    are two such rows, and taken out of them; again and again.

    Examples
    --------
    >>> import numpy as np
    >>> distil(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([3.0, 1.0]))
    array([[1., 1., 0.],
           [1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    chosen, left = [], _Residuals(sets, weights)
    while len(best := left.most_common()):
        chosen.append(best)
        left.take_out(best)
    singles = np.eye(sets.shape[1])[sets.any(axis=0)]
    together = np.vstack([*chosen, singles]) if chosen else singles
    _, first = np.unique(together, axis=0, return_index=True)
    return together[np.sort(first)]


class _Residuals:
    """What is left of label sets, and for each residual the rows that contain it, updated as residuals shrink."""

    def __init__(self, sets: FloatArray, weights: FloatArray) -> None:
        there = sets.any(axis=1)
        self._sets, self._weights = sets[there], weights[there]
        self._sizes = self._sets.sum(axis=1)
        self._contains = self._sets @ self._sets.T == self._sizes
        self._rows = self._weights @ self._contains

    def most_common(self) -> FloatArray:
        """Return the residual with the most labels in rows that contain it, the first of equals; or nothing."""
        worth = np.where(self._rows >= 2, self._rows * self._sizes, 0.0)
        if not worth.any():
            return np.zeros(0)
        best = np.flatnonzero(worth == worth.max())
        first: FloatArray = self._sets[min(best, key=lambda row: self._sets[row].tolist())]
        return first.copy()

    def take_out(self, members: FloatArray) -> None:
        """Take labels out of the residuals that contain all of them."""
        changed = self._sets @ members == members.sum()
        self._sets[changed] -= members
        self._sizes[changed] -= members.sum()
        before, common = self._contains[changed], self._sets[changed] @ self._sets.T
        now = common == self._sizes
        self._contains[changed] = now
        self._contains[:, changed] = (common == self._sizes[changed, None]).T
        self._rows += self._weights[changed] @ (now.astype(float) - before)
        self._rows[changed] = self._weights @ self._contains[:, changed]
        there = self._sizes > 0
        if there.mean() < 0.5:
            self._sets, self._weights = self._sets[there], self._weights[there]
            self._sizes, self._rows = self._sizes[there], self._rows[there]
            self._contains = self._contains[np.ix_(there, there)]


class CompressedLabelingClassifier(CompressionClassifier):
    """Compressed labeling: random bits of label sets, decoded by tests for distilled label sets.

    Parameters
    ----------
    n_components : {"log2", "log2_squared"} or int, default="log2_squared"
        Number of bits.
    prior : bool, default=True
        Whether a set's prior odds count in its test.
    encoder : (l, k) array-like or None, default=None
        The encoder; None draws it. With one that is given there can be no new labels.
    random_state : int, Generator, RandomState or None, default=None
        What the encoder is drawn from.

    See Also
    --------
    CompressedSensingClassifier : Random codes that are real numbers.

    Examples
    --------
    >>> from labelrace import CompressedLabelingClassifier, measures
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> (X, Y), (X_test, Y_test) = SyntheticStream(n_rows=600, n_features=20, n_labels=12, seed=0).batches(300)
    >>> predicted = CompressedLabelingClassifier(n_components=24, random_state=0).partial_fit(X, Y).predict(X_test)
    >>> round(measures.evaluate(Y_test, predicted, measures="micro_f1")["micro_f1"], 2)
    0.59
    """

    published: ClassVar[Mapping[str, Any]] = {"prior": False}

    n_components: str | int = "log2_squared"
    prior: bool = True
    encoder: Any = None
    random_state: Any = None

    def _algorithm(self, seed: int) -> CompressedLabeling:
        parameters.check_flag("prior", self.prior)
        k: Any = self.n_components
        if isinstance(k, str):
            parameters.component_count(k, 2)
        else:
            parameters.check_whole("n_components", k, 1)
        how = bool(self.prior), self._settings()
        if self.encoder is None:
            return CompressedLabeling(k, how[0], None, how[1], seed)
        return CompressedLabeling(k, how[0], base.given_encoder(self.encoder), how[1])
