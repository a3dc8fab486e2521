"""Seeded multi-label streams, with and without drift.

A row has hidden factors, standard normal numbers. Label ``j`` is present if its score, a linear combination of the
factors and of noise with unit variance, exceeds a threshold. The score is standard normal whatever the combination, so
the threshold that gives the label its frequency is known exactly, in every concept and during drifts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import ndtri, softmax

from labelrace.base.categorical_mask import CategoricalMask
from labelrace.base.parameters import check_choice, check_whole
from labelrace.streams.catalog import entry_of, plain_name
from labelrace.streams.dataset import Batch, Dataset, collect, rebatch
from labelrace.typing import BoolArray, FloatArray, IntArray, SparseMatrix

Drift: TypeAlias = Literal["none", "sudden", "gradual", "incremental", "recurring"]

# Rows are generated in chunks: the approximate number of values, which bounds the memory, and the most rows.
_CELLS, _MAX_ROWS = 1 << 19, 1024
_INTEGERS = {"n_rows": 1, "n_features": 1, "n_labels": 1, "n_factors": 2, "seed": 0}
_POPULARITY = 0.7  # Zipf exponent of the words
_CONTRAST = 2.5  # how much the topics differ in the words they use: standard deviation of log frequencies
_FOCUS = 1.5  # how much a factor favours its topics
_SAMPLE = 1 << 20  # cells of the rows that the length of a row is calibrated on
_STRUCTURE, _ROWS = 0, 1  # what a seed is used for


@dataclass(frozen=True, repr=False, kw_only=True)
class SyntheticStream:
    """A stream of random rows whose labels can partly be learned from the features.

    Hidden factors determine both: features are noisy functions of them, and a label is present if a combination of
    the factors, plus noise, is large. So labels correlate with each other and with the features. The frequencies of
    labels follow Zipf's law and give the chosen cardinality.

    A drift changes how the labels depend on the factors. The distribution of the features and the frequency of each
    label stay the same, so that a drift can only be noticed by worse predictions.

    Parameters
    ----------
    n_rows, n_features, n_labels : int, default=10_000, 50, 40
    cardinality : float, default=3.0
        Mean number of labels of a row.
    density : float or None, default=None
        Share of non-zeros, at most 0.5, of sparse binary features; None for dense numeric ones.
    n_factors : int, default=8
        At least 2. The fewer there are, the more the labels correlate.
    noise : float, default=0.1
        Share of noise, from 0 (none) to below 1, in the features and in the labels.
    zipf : float, default=1.0
        How fast the frequencies of labels fall: that of the label of rank ``r`` is proportional to ``r ** -zipf``.
    most_frequent : float, default=0.9
        Frequency that no label exceeds.
    drift : {"none", "sudden", "gradual", "incremental", "recurring"}, default="none"
        A new concept replaces the old one at one row ("sudden"); in a growing share of the rows ("gradual"); by a
        continuous change from one to the other ("incremental"); or alternates with it ("recurring").
    drift_at : float, sequence of float or None, default=None
        The times of the drifts, as shares of the rows. By default in the middle, and after each quarter for recurring
        drift.
    drift_width : float, default=0.2
        Share of the stream that a gradual or incremental drift takes, half of it before ``drift_at``.
    new_labels, new_labels_at : float, default=0.0, 0.5
        Share of the labels that do not occur in the first ``new_labels_at`` of the stream.
    seed : int, default=0
    name : str, default="synthetic"
        The name of the data; "synthetic" is prepended if it is not part of the name.

    Examples
    --------
    >>> stream = SyntheticStream(n_rows=1000, n_features=30, n_labels=20, cardinality=2.5, drift="sudden")
    >>> stream
    SyntheticStream('synthetic': 1000 rows, 30 dense features, 20 labels, cardinality 2.5, sudden drift)
    >>> [X.shape for X, Y in stream.batches(400)]
    [(400, 30), (400, 30), (200, 30)]
    >>> stream.load()
    Dataset('synthetic': 1000 rows, 30 features (0 categorical), 20 labels, cardinality 2.5...)
    """

    n_rows: int = 10_000
    n_features: int = 50
    n_labels: int = 40
    cardinality: float = 3.0
    density: float | None = None
    n_factors: int = 8
    noise: float = 0.1
    zipf: float = 1.0
    most_frequent: float = 0.9
    drift: Drift = "none"
    drift_at: float | Sequence[float] | None = None
    drift_width: float = 0.2
    new_labels: float = 0.0
    new_labels_at: float = 0.5
    seed: int = 0
    name: str = "synthetic"

    def __post_init__(self) -> None:
        _check_parameters(self)
        if "synthetic" not in self.name.lower():
            object.__setattr__(self, "name", f"synthetic {self.name}")

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        kind = "dense features" if self.density is None else f"binary features ({100 * self.density:.3g}% dense)"
        drift = "no drift" if self.drift == "none" else f"{self.drift} drift"
        return (
            f"SyntheticStream({self.name!r}: {self.n_rows} rows, {self.n_features} {kind}, "
            f"{self.n_labels} labels, cardinality {self.cardinality:g}, {drift})"
        )

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"x{number}" for number in range(self.n_features))

    @cached_property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels."""
        return tuple(f"label{number}" for number in range(self.n_labels))

    @cached_property
    def categorical(self) -> CategoricalMask:
        """Mask of the nominal features: all of the sparse ones, none of the dense ones."""
        return CategoricalMask(np.full(self.n_features, 0 if self.density is None else 2))

    @property
    def drifts(self) -> tuple[float, ...]:
        """The times of the drifts, as shares of the rows."""
        if self.drift == "none":
            return ()
        if self.drift_at is None:
            return (0.25, 0.5, 0.75) if self.drift == "recurring" else (0.5,)
        return tuple(self.drift_at) if isinstance(self.drift_at, Sequence) else (self.drift_at,)

    @property
    def drift_takes(self) -> float:
        """Share of the stream that each drift takes: 0 for a sudden one."""
        return self.drift_width if self.drift in ("gradual", "incremental") else 0.0

    def batches(self, size: int) -> Iterator[Batch]:
        """Iterate over (X, Y), from the first row on, in batches of `size` rows; the last one may be shorter.

        The rows are the same for each call and each size; they are generated on demand.

        Parameters
        ----------
        size : int

        Yields
        ------
        X, Y : matrices
        """
        check_whole("batch size", size, 1)  # not in the generator, so that this call raises the error
        return rebatch(self._chunks(), size)

    def load(self) -> Dataset:
        """Return the whole stream as a dataset in memory.

        Returns
        -------
        Dataset
        """
        return collect(self)

    def _chunks(self) -> Iterator[Batch]:
        structure = _draw_structure(self)
        size = min(max(_CELLS // structure.cells, 1), _MAX_ROWS)
        for start in range(0, self.n_rows, size):
            yield _draw_rows(self, structure, np.arange(start, min(start + size, self.n_rows)))


# Table 1 of the paper; the catalog has the sizes. Densities and label frequencies are fitted to the public files of
# CAL500, delicious, enron and (frequencies) rcv1v2; the densities of NUS-WIDE and rcv1v2 are estimates. The originals
# of these two have counts of visual words and weights of words, here the features are binary.
_SHAPES: dict[str, dict[str, float]] = {
    "CAL500": {"cardinality": 26.044, "zipf": 1.0, "most_frequent": 0.7},
    "delicious": {"cardinality": 19.020, "density": 0.0366, "zipf": 1.0, "most_frequent": 0.4},
    "enron": {"cardinality": 3.378, "density": 0.084, "zipf": 1.35, "most_frequent": 0.5},
    "mediamill": {"cardinality": 4.376},
    "NUS-WIDE": {"cardinality": 1.869, "density": 0.05},
    "rcv1v2": {"cardinality": 2.880, "density": 0.0016, "zipf": 0.9, "most_frequent": 0.23},
}


def like(name: str, n_rows: int | None = None, seed: int = 0, **changes: Any) -> SyntheticStream:
    """Make a synthetic stream with the shape of one of the paper's six datasets.

    Rows, features, labels, cardinality, density and kind of features are those of the dataset; the values are random.

    Parameters
    ----------
    name : str
        CAL500, delicious, enron, mediamill, NUS-WIDE or rcv1v2; case and hyphens do not matter.
    n_rows : int or None, default=None
        As many rows as the dataset has, by default.
    seed : int, default=0
    **changes
        Other parameters of `SyntheticStream`.

    Returns
    -------
    SyntheticStream

    Examples
    --------
    >>> like("nuswide", n_rows=2000, drift="gradual")
    SyntheticStream('synthetic like NUS-WIDE': 2000 rows, 500 binary features (5% dense), 81 labels,
    cardinality 1.869, gradual drift)
    """
    full = next((full for full in _SHAPES if plain_name(full) == plain_name(name)), None)
    entry = None if full is None else entry_of(full)
    if full is None or entry is None:
        raise ValueError(f"There is no shape {name!r}. Known shapes: {', '.join(_SHAPES)}.")
    rows = entry.rows if n_rows is None else n_rows
    sizes = {"n_rows": rows, "n_features": entry.features, "n_labels": entry.labels}
    parameters: dict[str, Any] = {"name": f"synthetic like {full}", **sizes, **_SHAPES[full], "seed": seed, **changes}
    return SyntheticStream(**parameters)


def _check_parameters(stream: SyntheticStream) -> None:
    """Raise ValueError for a parameter out of its range."""
    for name, least in _INTEGERS.items():
        check_whole(name, getattr(stream, name), least)
    check_choice("drift", stream.drift, get_args(Drift))
    times, min_gap = stream.drifts, stream.drift_takes - 1e-9  # with a tolerance for rounding
    ranges = {
        "cardinality": ("above 0", stream.cardinality > 0),
        "density": ("None, or above 0 and at most 0.5", stream.density is None or 0 < stream.density <= 0.5),
        "noise": ("at least 0 and below 1", 0 <= stream.noise < 1),
        "zipf": ("from 0 to 10", 0 <= stream.zipf <= 10),
        "most_frequent": ("above 0 and below 1", 0 < stream.most_frequent < 1),
        "drift_width": ("above 0 and at most 1", 0 < stream.drift_width <= 1),
        "new_labels": ("from 0 to 1", 0 <= stream.new_labels <= 1),
        "new_labels_at": ("at least 0 and below 1", 0 <= stream.new_labels_at < 1),
        # Each drift must end before the next begins.
        "drift_at": (
            f"above 0 and below 1, in order and at least {stream.drift_takes:g} (drift_width) apart",
            all(0 < time < 1 for time in times) and all(a < b and b - a >= min_gap for a, b in pairwise(times)),
        ),
    }
    for name, (what, holds) in ranges.items():
        if not holds:
            raise ValueError(f"{name} must be {what}, got {getattr(stream, name)!r}.")
    late = round(stream.new_labels * stream.n_labels)
    most = stream.most_frequent * (stream.n_labels - late * stream.new_labels_at)
    if stream.cardinality >= most:
        lateness = f", and {late} of them only after {stream.new_labels_at:g} of the stream" if late else ""
        raise ValueError(
            f"cardinality must be below {most:g}, got {stream.cardinality!r}: there are {stream.n_labels} labels, "
            f"each in at most most_frequent={stream.most_frequent:g} of the rows{lateness}"
        )


class _Words(NamedTuple):
    """How sparse rows are drawn, word by word; the last topic is noise."""

    steps: FloatArray  # see `_steps`: the words of each topic
    n_features: int
    length: float  # mean number of words drawn for a row, some of them more than once
    noise: float


class _Structure(NamedTuple):
    """The random structure of a stream, drawn once."""

    thresholds: FloatArray
    late: BoolArray
    features: FloatArray | _Words  # unit vectors for dense features; topics for words
    concepts: FloatArray

    @property
    def cells(self) -> int:
        """About how many numbers are drawn for a row."""
        own = self.features.length if isinstance(self.features, _Words) else self.features.shape[1]
        return int(own) + len(self.thresholds)


def _draw_structure(stream: SyntheticStream) -> _Structure:
    """Draw how features and labels depend on the factors, and the frequencies of the labels."""
    rng = np.random.default_rng([stream.seed, _STRUCTURE])
    ranks = rng.permutation(stream.n_labels)
    late = rng.permutation(stream.n_labels) < round(stream.new_labels * stream.n_labels)
    presence = np.where(late, 1 - stream.new_labels_at, 1.0)
    frequencies = _label_frequencies(ranks, presence, stream.cardinality, stream.zipf, stream.most_frequent)
    features: FloatArray | _Words
    if stream.density is None:
        loadings = rng.standard_normal((stream.n_factors, stream.n_features))
        features = loadings / np.linalg.norm(loadings, axis=0)
    else:
        features = _make_words(rng, stream.n_factors, stream.n_features, stream.density, stream.noise)
    # Last, so that streams that differ by their drift alone have the same features.
    count = 2 if stream.drift == "recurring" else 1 + len(stream.drifts)
    concepts = _draw_concepts(rng, stream.n_factors, stream.n_labels, count)
    return _Structure(-ndtri(frequencies), late, features, concepts)


def _draw_rows(stream: SyntheticStream, structure: _Structure, rows: IntArray) -> Batch:
    """Draw the rows of the given numbers, with a generator seeded by the first of them."""
    rng = np.random.default_rng([stream.seed, _ROWS, rows[0]])
    factors = rng.standard_normal((len(rows), stream.n_factors))
    if isinstance(structure.features, _Words):
        X = _draw_words(rng, factors, structure.features)
    else:
        blur = rng.standard_normal((len(rows), stream.n_features))
        X = np.sqrt(1 - stream.noise) * (factors @ structure.features) + np.sqrt(stream.noise) * blur
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
    """Return the share of each concept, in temporal order, in each row; squares add up to 1."""
    # How far the drifts are: 0 before the first, 0.5 in its middle, 1 after it, and so on.
    if stream.drift_takes == 0:
        progress = np.searchsorted(stream.drifts, time, side="right").astype(float)
    else:
        since = (time[:, None] - np.asarray(stream.drifts)) / stream.drift_takes
        progress = np.clip(since + 0.5, 0, 1).sum(axis=1)
    if stream.drift == "gradual":
        progress = np.floor(progress) + (rng.random(len(time)) < progress % 1)
    row, concept, share = np.arange(len(time)), progress.astype(np.intp), progress % 1
    shares = np.zeros((len(time), len(stream.drifts) + 2))  # one more, so that each concept has a successor
    shares[row, concept] = np.cos(0.5 * np.pi * share)
    shares[row, concept + 1] = np.sin(0.5 * np.pi * share)
    return shares


def _label_frequencies(
    ranks: IntArray, presence: FloatArray, cardinality: float, zipf: float, most: float
) -> FloatArray:
    """Return frequencies that fall with the rank, at most ``most``, with a mean of ``cardinality`` labels.

    ``presence`` is the share of the stream in which a label occurs at all.
    """
    weights = (ranks + 1.0) ** -zipf

    def excess(log_scale: float) -> float:
        return float(np.minimum(np.exp(log_scale) * weights, most) @ presence) - cardinality

    # At the lower bound the labels are too rare even if all were as frequent as the first; at the upper bound all have
    # the frequency `most`.
    low, high = np.log(0.5 * cardinality / len(ranks)), np.log(2 * most / weights.min())
    return np.minimum(np.exp(brentq(excess, low, high)) * weights, most)


def _draw_concepts(rng: np.random.Generator, n_factors: int, n_labels: int, count: int) -> FloatArray:
    """Draw how the labels depend on the factors: unit vectors, shape (count, factors, labels).

    A label's vector is orthogonal to that of the concept before, so that all labels drift equally: the new score does
    not depend on the old one.
    """
    concepts = rng.standard_normal((count, n_factors, n_labels))
    for number, concept in enumerate(concepts):
        if number:
            before = concepts[number - 1]
            concept -= before * (before * concept).sum(axis=0)
        concept /= np.linalg.norm(concept, axis=0)
    return concepts


def _make_words(rng: np.random.Generator, n_factors: int, n_features: int, density: float, noise: float) -> _Words:
    """Make topics, two for each factor (one for each sign), and find the length of rows that gives the density."""
    popularity = rng.permutation((np.arange(n_features) + 1.0) ** -_POPULARITY)
    topics = popularity * np.exp(_CONTRAST * rng.standard_normal((2 * n_factors + 1, n_features)))
    topics[-1] = popularity
    topics /= topics.sum(axis=1, keepdims=True)
    rows = min(max(_SAMPLE // n_features, 32), 512)
    mixed = _topic_shares(rng.standard_normal((rows, n_factors)), noise) @ topics

    def excess(log_length: float) -> float:
        # Words are a Poisson process: one of mean m is in the row at least once with probability 1 - exp(-m).
        return float(np.mean(-np.expm1(-np.exp(log_length) * mixed))) - density

    length = float(np.exp(brentq(excess, np.log(0.5 * density * n_features), np.log(2 / mixed.min()))))
    return _Words(_steps(topics), n_features, length, noise)


def _topic_shares(factors: FloatArray, noise: float) -> FloatArray:
    shares = softmax(_FOCUS * np.hstack([factors, -factors]), axis=1)
    return np.hstack([(1 - noise) * shares, np.full((len(factors), 1), noise)])


def _draw_words(rng: np.random.Generator, factors: FloatArray, words: _Words) -> SparseMatrix:
    """Draw sparse binary features: for each word of a row a topic, and the word from the topic."""
    n_rows, n_features = len(factors), words.n_features
    shares = _topic_shares(factors, words.noise)
    row = np.repeat(np.arange(n_rows), rng.poisson(words.length, n_rows))
    topic = _choose(rng, row, _steps(shares), shares.shape[1])
    word = _choose(rng, topic, words.steps, n_features)
    cells = np.unique(row * n_features + word)
    start = np.searchsorted(cells, np.arange(n_rows + 1) * n_features)
    return csr_array((np.ones(len(cells)), cells % n_features, start), shape=(n_rows, n_features))


def _steps(distributions: FloatArray) -> FloatArray:
    """Concatenate the cumulative distributions of all rows: that of row ``i`` rises from ``i`` to ``i + 1``."""
    cumulative = np.cumsum(distributions, axis=1)
    return (cumulative / cumulative[:, -1:] + np.arange(len(cumulative))[:, None]).ravel()


def _choose(rng: np.random.Generator, which: IntArray, steps: FloatArray, count: int) -> IntArray:
    """Draw one of ``count`` choices from each of the distributions ``which``, with a single search."""
    positions = np.searchsorted(steps, which + rng.random(len(which)), side="right")
    # If rounding takes a draw to the end of its distribution, it is the last choice, not the first of the next one.
    return np.minimum(positions - which * count, count - 1)
