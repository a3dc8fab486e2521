"""The random model behind the synthetic streams: how factors make features and labels.

A row has hidden factors, standard normal numbers. Label ``j`` is present where its score, a unit combination of the
factors and of chance, exceeds a threshold. The score is standard normal whatever the combination, so the threshold
that gives the label its frequency is known exactly, in every concept and on the way from one to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import ndtri, softmax

from labelrace.typing import AnyMatrix, BoolArray, FloatArray, IntArray, SparseMatrix

if TYPE_CHECKING:
    from labelrace.streams.synthetic import SyntheticStream

__all__ = ["Drift", "Structure", "draw_rows", "draw_structure"]

Drift: TypeAlias = Literal["none", "sudden", "gradual", "incremental", "recurring"]

_POPULARITY = 0.7  # Zipf exponent of the words
_CONTRAST = 2.5  # how much the topics differ in the words they use: standard deviation of log frequencies
_FOCUS = 1.5  # how much a factor favours its topics
_SAMPLE = 1 << 20  # cells of the rows that the length of a row is calibrated on
_STRUCTURE, _ROWS = 0, 1  # what a seed is used for


class _Words(NamedTuple):
    """How sparse rows are drawn, word by word; the last topic is chance."""

    steps: FloatArray  # see `_steps`: the words of each topic
    n_features: int
    length: float  # mean number of words drawn for a row, some of them more than once
    noise: float


class Structure(NamedTuple):
    """What is drawn once for a stream."""

    thresholds: FloatArray
    late: BoolArray
    features: FloatArray | _Words
    concepts: FloatArray

    @property
    def cells(self) -> int:
        """How many numbers are drawn for a row, about."""
        own = self.features.length if isinstance(self.features, _Words) else self.features.shape[1]
        return int(own) + len(self.thresholds)


def draw_structure(stream: SyntheticStream) -> Structure:
    """Draw what the factors of a stream mean, and how frequent its labels are."""
    rng = np.random.default_rng([stream.seed, _STRUCTURE])
    ranks = rng.permutation(stream.n_labels)
    late = rng.permutation(stream.n_labels) < round(stream.new_labels * stream.n_labels)
    presence = np.where(late, 1 - stream.new_labels_at, 1.0)
    frequencies = _label_frequencies(ranks, presence, stream.cardinality, stream.zipf, stream.most_frequent)
    features: FloatArray | _Words
    if stream.density is None:
        features = _draw_loadings(rng, stream.n_factors, stream.n_features)
    else:
        features = _make_words(rng, stream.n_factors, stream.n_features, stream.density, stream.noise)
    # Last, so that streams that differ by their drift alone have the same features.
    count = 2 if stream.drift == "recurring" else 1 + len(stream.drifts)
    concepts = _draw_concepts(rng, stream.n_factors, stream.n_labels, count)
    return Structure(-ndtri(frequencies), late, features, concepts)


def draw_rows(stream: SyntheticStream, structure: Structure, rows: IntArray) -> tuple[AnyMatrix, SparseMatrix]:
    """Draw the rows of the given numbers, by a generator that the first of them seeds."""
    rng = np.random.default_rng([stream.seed, _ROWS, rows[0]])
    factors = rng.standard_normal((len(rows), stream.n_factors))
    if isinstance(structure.features, _Words):
        X = _draw_words(rng, factors, structure.features)
    else:
        X = _draw_features(rng, factors, structure.features, stream.noise)
    chance = rng.standard_normal((len(rows), stream.n_labels), dtype=np.float32)
    scores = np.sqrt(stream.noise) * chance
    time = rows / stream.n_rows
    shares = _concept_shares(stream, time, rng)
    for number in np.flatnonzero(shares.any(axis=0)):
        concept = structure.concepts[number % len(structure.concepts)]
        scores += np.sqrt(1 - stream.noise) * shares[:, [number]] * (factors @ concept)
    present = scores > structure.thresholds
    present[time < stream.new_labels_at] &= ~structure.late
    return X, csr_array(present, dtype=np.int8)


def _concept_shares(stream: SyntheticStream, time: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return what each concept, in the order of their time, has to say in each row; squares add up to 1."""
    progress = _drift_progress(time, stream.drifts, stream.drift_takes)
    if stream.drift == "gradual":
        progress = np.floor(progress) + (rng.random(len(time)) < progress % 1)
    row, concept, share = np.arange(len(time)), progress.astype(np.intp), progress % 1
    shares = np.zeros((len(time), len(stream.drifts) + 2))  # one more, never seen, so that each concept has a next
    shares[row, concept] = np.cos(0.5 * np.pi * share)
    shares[row, concept + 1] = np.sin(0.5 * np.pi * share)
    return shares


def _label_frequencies(
    ranks: IntArray, presence: FloatArray, cardinality: float, zipf: float, most: float
) -> FloatArray:
    """Return frequencies that fall with the labels' rank, none above ``most``, for a mean of ``cardinality`` labels.

    ``presence`` is the share of the stream in which a label occurs at all.
    """
    weights = (ranks + 1.0) ** -zipf

    def excess(log_scale: float) -> float:
        return float(np.minimum(np.exp(log_scale) * weights, most) @ presence) - cardinality

    # At the lower end the labels are too rare even if all were as frequent as the first; at the upper, all have `most`.
    low, high = np.log(0.5 * cardinality / len(ranks)), np.log(2 * most / weights.min())
    return np.minimum(np.exp(brentq(excess, low, high)) * weights, most)


def _draw_concepts(rng: np.random.Generator, n_factors: int, n_labels: int, count: int) -> FloatArray:
    """Draw what the factors mean for the labels: unit vectors, shape (count, factors, labels).

    A label's vector is orthogonal to that of the concept before, so that all labels drift by the same amount: the old
    score tells nothing of the new one.
    """
    concepts = rng.standard_normal((count, n_factors, n_labels))
    for number, concept in enumerate(concepts):
        if number:
            before = concepts[number - 1]
            concept -= before * (before * concept).sum(axis=0)
        concept /= np.linalg.norm(concept, axis=0)
    return concepts


def _drift_progress(time: FloatArray, drift_at: tuple[float, ...], width: float) -> FloatArray:
    """Return how far the stream has drifted at each time: 0 before the first drift, 1 after it, 0.5 in its middle."""
    if width == 0:
        return np.searchsorted(drift_at, time, side="right").astype(float)
    return np.clip((time[:, None] - np.asarray(drift_at)) / width + 0.5, 0, 1).sum(axis=1)


def _draw_loadings(rng: np.random.Generator, n_factors: int, n_features: int) -> FloatArray:
    """Draw what the factors mean for dense features: unit vectors, shape (factors, features)."""
    loadings = rng.standard_normal((n_factors, n_features))
    return loadings / np.linalg.norm(loadings, axis=0)


def _draw_features(rng: np.random.Generator, factors: FloatArray, loadings: FloatArray, noise: float) -> FloatArray:
    """Draw dense features: combinations of the factors, blurred."""
    chance = rng.standard_normal((len(factors), loadings.shape[1]))
    return np.sqrt(1 - noise) * (factors @ loadings) + np.sqrt(noise) * chance


def _make_words(rng: np.random.Generator, n_factors: int, n_features: int, density: float, noise: float) -> _Words:
    """Make topics, one for either end of each factor, and the length of rows that gives the wanted density."""
    popularity = rng.permutation((np.arange(n_features) + 1.0) ** -_POPULARITY)
    topics = popularity * np.exp(_CONTRAST * rng.standard_normal((2 * n_factors + 1, n_features)))
    topics[-1] = popularity
    topics /= topics.sum(axis=1, keepdims=True)
    rows = min(max(_SAMPLE // n_features, 32), 512)
    mixed = _topic_shares(rng.standard_normal((rows, n_factors)), noise) @ topics

    def excess(log_length: float) -> float:
        # Words come by a Poisson process: one of mean m is in the row, once or more, with probability 1 - exp(-m).
        return float(np.mean(-np.expm1(-np.exp(log_length) * mixed))) - density

    length = float(np.exp(brentq(excess, np.log(0.5 * density * n_features), np.log(2 / mixed.min()))))
    return _Words(_steps(topics), n_features, length, noise)


def _topic_shares(factors: FloatArray, noise: float) -> FloatArray:
    shares = softmax(_FOCUS * np.hstack([factors, -factors]), axis=1)
    return np.hstack([(1 - noise) * shares, np.full((len(factors), 1), noise)])


def _draw_words(rng: np.random.Generator, factors: FloatArray, words: _Words) -> SparseMatrix:
    """Draw sparse binary features: for each word of a row a topic, and from the topic the word."""
    n_rows, n_features = len(factors), words.n_features
    shares = _topic_shares(factors, words.noise)
    row = np.repeat(np.arange(n_rows), rng.poisson(words.length, n_rows))
    topic = _choose(rng, row, _steps(shares), shares.shape[1])
    word = _choose(rng, topic, words.steps, n_features)
    cells = np.unique(row * n_features + word)
    start = np.searchsorted(cells, np.arange(n_rows + 1) * n_features)
    return csr_array((np.ones(len(cells)), cells % n_features, start), shape=(n_rows, n_features))


def _steps(distributions: FloatArray) -> FloatArray:
    """Put cumulative distributions, one a row, end to end: that in row ``i`` rises from ``i`` to ``i + 1``."""
    cumulative = np.cumsum(distributions, axis=1)
    return (cumulative / cumulative[:, -1:] + np.arange(len(cumulative))[:, None]).ravel()


def _choose(rng: np.random.Generator, which: IntArray, steps: FloatArray, count: int) -> IntArray:
    """Draw one of ``count`` choices from each of the distributions ``which``, in one search for all."""
    found = np.searchsorted(steps, which + rng.random(len(which)), side="right")
    # Where rounding takes a draw to the very end of its distribution, it is the last choice, not the next one's first.
    return np.minimum(found - which * count, count - 1)
