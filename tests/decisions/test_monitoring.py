"""Adjusted scores, offsets of labels and what share of them is taken, against loops over rows and labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base import growth
from labelrace.base.growth import Moves
from labelrace.decisions import histogram, monitoring, rules
from labelrace.decisions.monitoring import init_counts

SHARES, POWERS = (0.0, 0.5, 1.0), (0.0, 0.09)


def update_counts(counts, scores, labels, label_rows=None):
    """Count rows, where labels are equally frequent unless that is told."""
    label_rows = np.ones(scores.shape[1]) if label_rows is None else label_rows
    return monitoring.update_counts(counts, scores, labels, label_rows)


class Loops:
    """The same, one row and one label at a time; histograms and the rule are taken as given."""

    def __init__(self, n_labels):
        self.histograms = [histogram.init() for _ in SHARES]
        self.offsets, self.counts, self.rows = [0.0] * n_labels, [0.0] * n_labels, 0.0
        self.f1, self.f1_rows, self.ndcg = [0.0] * 3, 0.0, [0.0] * 2

    def best(self):
        worth = [f / max(self.f1_rows, 1.0) + 0.006 * share for f, share in zip(self.f1, SHARES, strict=True)]
        return worth.index(max(worth))

    def rank(self, scores, labels, label_rows):
        """Rank the labels of each row by its score over a power of the label's frequency, and add up the nDCG@5."""
        for index, power in enumerate(POWERS):
            self.ndcg[index] *= 0.5 ** (len(scores) / 2000)
            for row, known in zip(scores, labels, strict=True):
                ranked = {s / label_rows[j] ** power: known[j] for j, s in enumerate(row) if not np.isnan(known[j])}
                best = [ranked[s] for s in sorted(ranked, reverse=True)[:5]]
                ideal = sorted(ranked.values(), reverse=True)[:5]
                gains = [sum(g / np.log2(i + 2) for i, g in enumerate(order)) for order in (best, ideal)]
                self.ndcg[index] += gains[0] / gains[1] if gains[1] else 0.0

    def learn(self, scores, labels):
        n, n_labels = scores.shape
        best = self.best()
        self.counts = [0.5 ** (n / 1000) * c + (labels[:, j] == 1).sum() for j, c in enumerate(self.counts)]
        first, self.rows = self.rows == 0, 0.5 ** (n / 1000) * self.rows + n
        offsets = list(self.offsets)
        for index, share in enumerate(SHARES):
            z = np.array(
                [[s - 0.1 * max(0.0, max(row)) - share * self.offsets[j] for j, s in enumerate(row)] for row in scores]
            )
            after = histogram.update(self.histograms[index], z, labels)
            rule = rules.make_rule("cardinality", after if first else self.histograms[index], None)
            self.histograms[index] = after
            self.f1[index] *= 0.5 ** (n / 500)
            for row, known in zip(rules.choose(rule, z), labels, strict=True):
                chosen = {j for j in range(n_labels) if row[j] and not np.isnan(known[j])}
                present = {j for j in range(n_labels) if known[j] == 1}
                size = len(chosen) + len(present)
                self.f1[index] += 2 * len(chosen & present) / size if size else 1.0
                for j in (chosen - present) | (present - chosen) if index == best else ():
                    step = 0.03 / (1000 * self.counts[j] / self.rows + 20)
                    offsets[j] += step if j in chosen else -step
        self.f1_rows = 0.5 ** (n / 500) * self.f1_rows + n
        self.offsets = [min(0.15, max(-0.15, offset)) for offset in offsets]


def some_rows(seed, n, n_labels=6, unknown=0.0, rise=0.0):
    """Make scores that tell of labels; those of the first label are too high by ``rise``."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, n_labels)) < np.linspace(0.5, 0.05, n_labels)).astype(float)
    scores = 0.4 * labels + 0.3 * rng.random((n, n_labels))
    scores[:, 0] += rise
    return scores, np.where(rng.random(labels.shape) < unknown, np.nan, labels)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from([1, 7, 60, 300]), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.4]),
)
def test_loops_over_rows_and_labels(seed, sizes, unknown, rise):
    counts, loops = init_counts(6), Loops(6)
    label_rows = np.random.default_rng(seed).integers(1, 1000, 6).astype(float)
    for number, n in enumerate(sizes):
        scores, labels = some_rows(seed + number, n, unknown=unknown, rise=rise)
        counts = update_counts(counts, scores, labels, label_rows)
        loops.learn(scores, labels)
        loops.rank(scores, labels, label_rows)
    np.testing.assert_allclose(counts.ndcg, loops.ndcg)
    np.testing.assert_allclose(counts.offsets, loops.offsets, atol=1e-12)
    np.testing.assert_allclose(counts.present, loops.counts)
    np.testing.assert_allclose(counts.f1, loops.f1)
    assert monitoring.best_share(counts) == loops.best()
    for index, expected in enumerate(loops.histograms):
        np.testing.assert_allclose(counts.histograms.of(index).seen, expected.seen)


def test_a_label_that_is_predicted_too_often_gets_an_offset():
    counts = init_counts(6)
    for number in range(60):
        counts = update_counts(counts, *some_rows(number, 100, rise=0.25))
    assert counts.offsets[0] > 0.02
    assert monitoring.best_share(counts) == 2
    assert np.abs(counts.offsets).max() <= 0.15


def test_offsets_that_do_harm_are_not_taken():
    """Where offsets point the wrong way, the example F1 is better without them."""
    counts = init_counts(6)._replace(offsets=np.array([0.0, 0.15, -0.15, 0.15, -0.15, -0.15]))
    for number in range(5):
        before = counts.offsets
        scores, labels = some_rows(number, 200)
        counts = update_counts(counts, scores - 0.15 * labels, labels)._replace(offsets=before)
    assert monitoring.best_share(counts) == 0


def test_new_labels_have_no_offset():
    counts = update_counts(init_counts(3), *some_rows(0, 50, 3))
    grown = growth.take(counts, Moves({"o": growth.longer(3, 5)}))
    np.testing.assert_array_equal(grown.offsets, [*counts.offsets, 0.0, 0.0])
    np.testing.assert_array_equal(grown.present, [*counts.present, 0.0, 0.0])


def test_the_share_of_the_best_score():
    scores = np.array([[0.5, 0.1, -0.2], [-0.5, -0.1, -0.2]], np.float32)
    lowered = rules.adjusted(scores, np.array([0.0, 0.1, -0.1], np.float32))
    assert lowered.dtype == np.float32
    np.testing.assert_allclose(lowered, [[0.45, -0.05, -0.15], [-0.5, -0.2, -0.1]], atol=1e-6)


@pytest.mark.parametrize("n", [1, 500])
def test_rows_of_which_nothing_is_predicted_nor_present(n):
    counts = update_counts(init_counts(2), np.zeros((n, 2)), np.zeros((n, 2)))
    assert counts.f1.tolist() == [n] * 3
    np.testing.assert_array_equal(counts.offsets, 0.0)


def test_no_more_than_half_of_the_offsets_until_rows_show_that_all_are_worth_it():
    monitor = monitoring.init(2)
    for f1, expected in (([60.0, 60.0, 60.0], 1), ([60.0, 58.0, 60.0], 0), ([60.0, 60.0, 50.0], 1)):
        known = monitor._replace(counts=monitor.counts._replace(f1=np.array(f1), f1_rows=100.0))
        limited = monitoring.half_at_most(known)
        assert monitoring.best_share(limited.counts) == expected
        np.testing.assert_array_equal(limited.counts.f1[:2], f1[:2])
        assert limited.counts.f1[2] <= f1[2]
    assert monitoring.best_share(monitoring.half_at_most(monitor).counts) < 2


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([1, 3, 20, 40]), min_size=1, max_size=12))
def test_few_rows_wait_and_are_counted_together(sizes):
    """Rows are counted in their order, as soon as there are 32 of them, and no monitor before changes."""
    monitor, n_waiting, expected = monitoring.init(4), 0, init_counts(4)
    scores, labels = some_rows(0, sum(sizes), 4)
    start, first = 0, 0
    for size in sizes:
        here, before = slice(start, start + size), np.array(monitor.waiting)
        older, monitor = monitor, monitoring.observe(monitor, scores[here], labels[here])
        np.testing.assert_array_equal(older.waiting, before)
        start, n_waiting = start + size, n_waiting + size
        if n_waiting >= 32:
            expected, first, n_waiting = update_counts(expected, scores[first:start], labels[first:start]), start, 0
        np.testing.assert_array_equal(monitor.waiting, [scores[first:start], labels[first:start]])
        np.testing.assert_array_equal(monitor.counts.histograms.seen, expected.histograms.seen)
        np.testing.assert_array_equal(monitor.counts.offsets, expected.offsets)


def test_labels_are_ranked_by_the_power_of_their_frequency_that_ranks_best():
    """Scores that are shrunken by a power of the frequency are put right; others stay as they are."""
    rng, label_rows = np.random.default_rng(0), np.logspace(0, 3, 12)
    labels = (rng.random((2000, 12)) < 0.2).astype(float)
    fair = 0.3 * labels + 0.3 * rng.random(labels.shape)
    for power in POWERS:
        monitor = monitoring.init(12)._replace(label_rows=label_rows)
        monitor = monitoring.count_rows(monitor, fair * label_rows**power / label_rows.max() ** power, labels)
        factors = monitoring.rank(monitor).factors
        np.testing.assert_allclose(factors / factors[0], label_rows**-power)
        # Labels of the usual frequency keep their scores.
        assert np.exp(label_rows @ np.log(factors) / label_rows.sum()) == pytest.approx(1.0)


def test_labels_are_counted_in_all_rows():
    monitor = monitoring.count_labels(monitoring.init(3), np.array([[1.0, 0.0, np.nan]] * 8))
    monitor = monitoring.count_labels(monitor, np.array([[0.0, 1.0, 1.0]] * 2))
    np.testing.assert_allclose(monitor.label_rows, [8 * 0.5 ** (2 / 8000), 2.0, 2.0])
