"""Adjusted scores, offsets of labels and what share of them is taken, against loops over rows and labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base.compiled import Kernel, is_available
from labelrace.decisions import monitor as monitoring
from labelrace.decisions import score_loops, thresholds
from labelrace.decisions.monitor import add_together, begin, monitor, new_monitor
from labelrace.decisions.thresholds import add_scores, choose, make_rule, new_histogram

SHARES = (0.0, 0.5, 1.0)


class Loops:
    """The same, one row and one label at a time; histograms and the rule are taken as given."""

    def __init__(self, n_labels):
        self.histograms = [new_histogram() for _ in SHARES]
        self.offsets, self.counts, self.rows = [0.0] * n_labels, [0.0] * n_labels, 0.0
        self.f1, self.f1_rows = [0.0] * 3, 0.0

    def best(self):
        worth = [f / max(self.f1_rows, 1.0) + 0.006 * share for f, share in zip(self.f1, SHARES, strict=True)]
        return worth.index(max(worth))

    def learn(self, scores, labels):
        n, n_labels = scores.shape
        best = self.best()
        self.counts = [0.5 ** (n / 1000) * c + (labels[:, j] == 1).sum() for j, c in enumerate(self.counts)]
        first, self.rows = self.rows == 0, 0.5 ** (n / 1000) * self.rows + n
        offsets = list(self.offsets)
        for place, share in enumerate(SHARES):
            z = np.array(
                [[s - 0.1 * max(0.0, max(row)) - share * self.offsets[j] for j, s in enumerate(row)] for row in scores]
            )
            after = add_scores(self.histograms[place], z, labels)
            rule = make_rule("cardinality", after if first else self.histograms[place], None)
            self.histograms[place] = after
            self.f1[place] *= 0.5 ** (n / 500)
            for row, known in zip(choose(rule, z), labels, strict=True):
                chosen = {j for j in range(n_labels) if row[j] and not np.isnan(known[j])}
                present = {j for j in range(n_labels) if known[j] == 1}
                size = len(chosen) + len(present)
                self.f1[place] += 2 * len(chosen & present) / size if size else 1.0
                for j in (chosen - present) | (present - chosen) if place == best else ():
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
    watched, loops = new_monitor(6), Loops(6)
    for number, n in enumerate(sizes):
        scores, labels = some_rows(seed + number, n, unknown=unknown, rise=rise)
        watched = monitor(watched, scores, labels)[0]
        loops.learn(scores, labels)
    np.testing.assert_allclose(watched.offsets, loops.offsets, atol=1e-12)
    np.testing.assert_allclose(watched.present, loops.counts)
    np.testing.assert_allclose(watched.f1, loops.f1)
    assert monitoring.best_share(watched) == loops.best()
    for place, expected in enumerate(loops.histograms):
        np.testing.assert_allclose(watched.histograms.of(place).seen, expected.seen)


def test_a_label_that_is_predicted_too_often_gets_an_offset():
    watched = new_monitor(6)
    for number in range(60):
        watched = monitor(watched, *some_rows(number, 100, rise=0.25))[0]
    assert watched.offsets[0] > 0.02
    assert monitoring.best_share(watched) == 2
    assert np.abs(watched.offsets).max() <= 0.15


def test_offsets_that_do_harm_are_not_taken():
    """Where offsets point the wrong way, the example F is better without them."""
    watched = new_monitor(6)._replace(offsets=np.array([0.0, 0.15, -0.15, 0.15, -0.15, -0.15]))
    for number in range(5):
        before = watched.offsets
        scores, labels = some_rows(number, 200)
        watched = monitor(watched, scores - 0.15 * labels, labels)[0]._replace(offsets=before)
    assert monitoring.best_share(watched) == 0


def test_new_labels_have_no_offset():
    watched = monitor(new_monitor(3), *some_rows(0, 50, 3))[0]
    grown = monitoring.grow_monitor(watched, 5)
    np.testing.assert_array_equal(grown.offsets, [*watched.offsets, 0.0, 0.0])
    np.testing.assert_array_equal(grown.present, [*watched.present, 0.0, 0.0])


def test_the_share_of_the_best_score():
    scores = np.array([[0.5, 0.1, -0.2], [-0.5, -0.1, -0.2]], np.float32)
    lowered = thresholds.adjusted(scores, np.array([0.0, 0.1, -0.1], np.float32))
    assert lowered.dtype == np.float32
    np.testing.assert_allclose(lowered, [[0.45, -0.05, -0.15], [-0.5, -0.2, -0.1]], atol=1e-6)


@pytest.mark.parametrize("n", [1, 500])
def test_rows_of_which_nothing_is_predicted_nor_present(n):
    watched = monitor(new_monitor(2), np.zeros((n, 2)), np.zeros((n, 2)))[0]
    assert watched.f1.tolist() == [n] * 3
    np.testing.assert_array_equal(watched.offsets, 0.0)


@pytest.mark.parametrize(
    "loops",
    [
        "plain",
        pytest.param(
            "compiled", marks=pytest.mark.skipif(not is_available(), reason="there is nothing to compile with")
        ),
    ],
)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.sampled_from([1, 3, 40]), min_size=1, max_size=3),
    unknown=st.sampled_from([0.0, 0.3]),
    rise=st.sampled_from([-0.6, 0.0, 0.3]),
)
def test_compiled_loops_count_the_same(loops, seed, sizes, unknown, rise):
    watched = monitor(new_monitor(6), *some_rows(seed, 20, unknown=unknown, rise=rise))[0]
    for number, n in enumerate(sizes):
        scores, labels = some_rows(seed + number + 1, n, unknown=unknown, rise=rise)
        # Outside of all bins, and equal ones.
        scores[0, :3] = [-7.0, 9.0, 9.0]
        scores[-1] = -0.3
        before = begin(6)._replace(monitor=watched)
        expected = add_together(before, scores, labels)
        with pytest.MonkeyPatch.context() as patch:
            if loops == "plain":
                for kernel in (value for value in vars(score_loops).values() if isinstance(value, Kernel)):
                    patch.setattr(kernel, "compiled", kernel.function)
            found = add_together(before, scores, labels, compiled=True)
        for part, like in zip(found.drift, expected.drift, strict=True):
            np.testing.assert_allclose(part, like, rtol=1e-12, atol=1e-12)
        watched, expected = found.monitor, expected.monitor
        for part, like in zip(watched.histograms, expected.histograms, strict=True):
            np.testing.assert_allclose(part, like, rtol=1e-12, atol=1e-12)
        for part, like in zip(watched[1:], expected[1:], strict=True):
            np.testing.assert_allclose(part, like, rtol=1e-12, atol=1e-12)


def test_no_more_than_half_of_the_offsets_until_rows_show_that_all_are_worth_it():
    watch = monitoring.begin(2)
    for f1, expected in (([60.0, 60.0, 60.0], 1), ([60.0, 58.0, 60.0], 0), ([60.0, 60.0, 50.0], 1)):
        known = watch._replace(monitor=watch.monitor._replace(f1=np.array(f1), f1_rows=100.0))
        limited = monitoring.half_at_most(known)
        assert monitoring.best_share(limited.monitor) == expected
        np.testing.assert_array_equal(limited.monitor.f1[:2], f1[:2])
        assert limited.monitor.f1[2] <= f1[2]
    assert monitoring.best_share(monitoring.half_at_most(watch).monitor) < 2
