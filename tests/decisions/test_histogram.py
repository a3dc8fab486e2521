"""Thresholds, floors and probabilities against searches through the scores themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from labelrace.decisions import calibration, histogram, rules

SEEDS = st.integers(0, 2**32 - 1)
WIDTH = 1 / 256


def some_scores(seed, n=60, n_labels=8, share=0.25):
    """Draw labels, and scores that know something of them."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, n_labels)) < share).astype(float)
    return 0.3 * labels + rng.normal(0.2, 0.25, size=(n, n_labels)), labels


def counted(*batches):
    counts = histogram.init()
    for scores, labels in batches:
        counts = histogram.update(counts, scores, labels)
    return counts


def weights(sizes):
    """Weigh each row: half is left after 200 rows, counted in batches."""
    after = np.cumsum(sizes[::-1])[::-1]
    return np.concatenate([np.full(n, 0.5 ** ((a - n) / 200)) for n, a in zip(sizes, after, strict=True)])


def bin_of(score):
    return min(max(int(np.floor((score + 0.5) * 256)), 0), 511)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.lists(st.integers(1, 150), min_size=1, max_size=4), st.booleans())
def test_counts(seed, sizes, partial):
    rng = np.random.default_rng(seed)
    batches = [some_scores(rng.integers(2**32), n, 4) for n in sizes]
    for scores, labels in batches:
        scores[0] += [-3, 3, 0, 0]
        if partial:
            labels[rng.random(labels.shape) < 0.2] = np.nan
    got = counted(*batches)
    seen, present, best, rows, bare = np.zeros(512), np.zeros(512), np.zeros(512), 0.0, 0.0
    pairs = [(s, y) for scores, labels in batches for s, y in zip(scores, labels, strict=True)]
    for (s, y), weight in zip(pairs, weights(sizes), strict=True):
        for score, label in zip(s, y, strict=True):
            seen[bin_of(score)] += 0.0 if np.isnan(label) else weight
            present[bin_of(score)] += weight if label == 1 else 0.0
        best[bin_of(max(s))] += weight
        rows += weight
        bare += weight * np.prod([1 - min(max(a, 0), 1) if np.isnan(b) else 1 - b for a, b in zip(s, y, strict=True)])
    for part, expected in zip(got, (seen, present, best, rows, bare), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-9, atol=1e-9)


def best_count(fallen, labels):
    """From .9 to 1.08 times the number of labels, the one with the best micro F; of fewer than 100 labels, theirs."""
    present = labels.sum()
    best, count = -1.0, present
    for lowest in sorted(set(fallen.tolist()), reverse=True) if present >= 100 else ():
        above = fallen >= lowest
        ratio = above.sum() / present
        worth = 2 * labels[above].sum() / (above.sum() + present) - 0.02 * abs(ratio - 1)
        if 0.9 <= ratio <= 1.08 and worth > best:
            best, count = worth, above.sum()
    return count


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 80), st.sampled_from([0.02, 0.25, 0.7, 0.98]))
def test_threshold_predicts_about_as_many_labels_as_there_are(seed, n, share):
    """Off by what the bin of the threshold holds, at the most."""
    scores, labels = some_scores(seed, n, share=share)
    threshold = rules.threshold_and_floor(counted((scores, labels)))[0]
    fallen = np.array([bin_of(s) for s in scores.flat])
    most = np.bincount(fallen).max() if labels.any() else 0
    wanted = best_count(fallen, labels.ravel())
    nearly = max(0.005 * wanted, 0.5)
    assert abs((scores > threshold).sum() - wanted) <= most + nearly
    # Of all thresholds, those with the right number lie between two scores: this one is not a bin away from them.
    ranked, count = np.sort(scores.ravel())[::-1], int(wanted)
    if 0 < count < scores.size and not ranked[count] - WIDTH <= threshold <= ranked[count - 1] + WIDTH:
        # In the middle of a wide gap, with next to none inside.
        assert (np.abs(scores - threshold) < 7 * WIDTH).sum() <= 2 * nearly


def test_threshold_within_a_bin_is_even():
    scores = np.full((1, 100), 0.5 + WIDTH / 2)
    labels = np.zeros((1, 100))
    labels[0, :30] = 1.0
    assert rules.threshold_and_floor(counted((scores, labels)))[0] == pytest.approx(0.5 + 0.7 * WIDTH)


def test_threshold_in_a_wide_gap_is_in_its_middle():
    counts = counted((np.array([[0.9, 0.1]]), np.array([[1.0, 0.0]])))
    assert rules.threshold_and_floor(counts)[0] == pytest.approx(0.5, abs=WIDTH)


def test_threshold_in_a_narrow_gap_is_at_its_upper_end():
    counts = counted((np.array([[0.55, 0.5]]), np.array([[1.0, 0.0]])))
    assert 0.55 - WIDTH <= rules.threshold_and_floor(counts)[0] < 0.55


def test_no_label_at_all():
    scores, labels = some_scores(0, share=0.0)
    counts = counted((scores, labels))
    assert rules.threshold_and_floor(counts)[0] > scores.max()
    assert rules.threshold_and_floor(counts)[1] > scores.max()
    # Nor is anything predicted while nothing has been counted.
    assert rules.threshold_and_floor(histogram.init())[0] > 1
    assert rules.threshold_and_floor(histogram.init())[1] == np.inf


def test_every_label():
    scores, labels = some_scores(1, share=1.1)
    assert rules.threshold_and_floor(counted((scores, labels)))[0] < scores.min()


def test_labels_known_in_part():
    """What is not known counts neither as a score nor as a label; a row is as bare as the unknown are unlikely."""
    scores = np.array([[0.9, 0.1, 0.8], [0.7, 0.2, 0.6]])
    labels = np.array([[1.0, 0.0, np.nan], [np.nan, 0.0, 0.0]])
    counts = counted((scores, labels))
    assert counts.seen.sum() == 4
    assert 0.6 < rules.threshold_and_floor(counts)[0] <= 0.9
    assert (counts.rows, counts.empty_rows) == (2, pytest.approx(0.3))


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 80), st.sampled_from([0.02, 0.1, 0.3]))
def test_floor_leaves_as_many_rows_empty_as_are(seed, n, share):
    scores, labels = some_scores(seed, n, share=share)
    floor = rules.threshold_and_floor(counted((scores, labels)))[1]
    best, bare = scores.max(axis=1), int((labels.sum(axis=1) == 0).sum())
    if not bare:
        assert floor == -np.inf
    else:
        most = np.bincount([bin_of(s) for s in best]).max()
        assert abs((best <= floor).sum() - bare) <= most
        ranked = np.sort(best)
        if bare < n:
            assert ranked[bare - 1] - WIDTH <= floor <= ranked[bare] + WIDTH


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.integers(13, 200))
def test_probabilities_are_isotonic_regression_of_groups_of_scores(seed, n):
    """By scikit-learn, of all scores as they are, with a twentieth of one in each bin that is right about itself.

    Bins are put together from above, until 100 scores are reached; between groups of one share it is interpolated.
    """
    scores, labels = some_scores(seed, n)
    got = calibration.calibrate(counted((scores, labels)))
    centres = (np.arange(512) + 0.5) / 256 - 0.5
    bins = np.concatenate([[bin_of(s) for s in scores.flat], np.arange(512)])
    targets = np.concatenate([labels.ravel(), np.clip(centres, 0, 1)])
    weights = np.concatenate([np.ones(scores.size), np.full(512, 0.05)])
    above = np.array([weights[bins >= index].sum() for index in range(512)])
    groups = -(above // 100)[bins]
    shares = IsotonicRegression().fit(groups, targets, sample_weight=weights).predict(groups)
    for share in np.unique(shares):
        here = shares == share
        at = np.average(centres[bins[here]], weights=weights[here])
        assert np.interp(at, centres, got) == pytest.approx(np.clip(share, 1e-6, 1 - 1e-6), abs=5e-3)
    assert (np.diff(got) > 0).all()
    assert 0 < got.min() < got.max() < 1


def test_scores_nobody_has_seen_are_taken_at_face_value():
    got = calibration.calibrate(histogram.init())
    np.testing.assert_allclose(got, np.clip(histogram.CENTRES, 0.0, 1.0), atol=3e-6)
    assert (np.diff(got) > 0).all()


@given(SEEDS, st.integers(0, 100))
def test_equal_probabilities_are_those_of_equal_scores(seed, n):
    scores, labels = some_scores(seed, n + 1)
    asked = np.sort(np.random.default_rng(seed).uniform(-0.49, 1.49, 200))
    likely = calibration.interpolate(calibration.calibrate(counted((scores, labels))), asked)
    assert (np.diff(likely)[np.diff(asked) > 1e-9] > 0).all()


def test_nothing_given_is_changed(assert_pure):
    scores, labels = some_scores(2)
    labels[0, 0] = np.nan
    counts = counted((scores, labels))
    assert_pure(histogram.update, counts, scores, labels)
    for read in (rules.threshold_and_floor, calibration.calibrate):
        assert_pure(read, counts)
