"""The detector of drift, by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.decisions import drift

STATIONARY = {
    "normal": lambda rng, n: rng.normal(0.3, 0.1, n),
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "constant": lambda rng, n: np.full(n, 0.1),
}


def alarms(batches):
    """Count alarms; after one the past is forgotten."""
    state, count = drift.init(), 0
    for errors in batches:
        state = drift.update(state, errors)
        if drift.is_found(state):
            state, count = drift.init(), count + 1
    return count


@pytest.mark.parametrize("draw", STATIONARY.values(), ids=STATIONARY)
@pytest.mark.parametrize("sizes", [[100], [13], [50], [1000, 50], [500] * 9 + [60]], ids=str)
def test_nothing_is_found_where_nothing_changes(draw, sizes):
    rng = np.random.default_rng(0)
    count = sum(alarms(draw(rng, sizes[i % len(sizes)]) for i in range(100)) for _ in range(20))
    assert count <= 1


def test_past_batches_that_happen_to_agree_prove_nothing():
    """Three means are near each other often enough; their rows tell how far apart they could be."""
    rng = np.random.default_rng(3)
    assert sum(alarms(rng.normal(size=(5, 60))) for _ in range(400)) <= 1


def test_one_small_batch_after_large_ones_is_not_drift():
    """Its mean is ten times less certain than theirs: beyond five of their standard errors in most cases."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        assert not alarms([*(rng.normal(size=5000) for _ in range(31)), rng.normal(size=50)])


def test_large_batches_after_small_ones_are_not_drift():
    """Here it is the past that is less certain."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        assert not alarms(rng.normal(size=n) for n in [50] * 3 + [5000] * 16)


@pytest.mark.parametrize("draw", [STATIONARY["normal"], STATIONARY["exponential"]])
@pytest.mark.parametrize("n_before", [3, 8, 40, 200])
def test_errors_that_double_are_found_within_three_batches(draw, n_before):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        state = drift.init()
        for _ in range(n_before):
            state = drift.update(state, draw(rng, 200))
            assert not drift.is_found(state)
        late = []
        for _ in range(3):
            state = drift.update(state, 2 * draw(rng, 200))
            late.append(drift.is_found(state))
        assert any(late)


def test_small_growth_is_found_in_the_end():
    """By several batches together, none of which would do alone."""
    rng = np.random.default_rng(1)
    before = [rng.normal(0, 1, 400) for _ in range(20)]
    state = drift.init()
    for errors in before:
        state = drift.update(state, errors)
    found = []
    for _ in range(12):
        state = drift.update(state, rng.normal(0.16, 1, 400))
        found.append(drift.is_found(state))
    assert not found[0]
    assert any(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.integers(50, 300))
def test_improvement_is_not_drift(seed, factor, n):
    rng = np.random.default_rng(seed)
    errors = np.abs(rng.normal(size=(20, n))) + 1
    errors[10:] *= factor
    state = drift.init()
    for batch in errors:
        state = drift.update(state, batch)
        assert not drift.is_found(state)


def test_nothing_is_said_before_three_batches_have_passed():
    state = drift.init()
    assert not drift.is_found(state)
    for level in (0.0, 1.0, 1000.0):
        state = drift.update(state, level + np.linspace(0, 0.1, 60))
        assert not drift.is_found(state)
    state = drift.init()
    for level in (0.0, 0.0, 0.0, 1.0):
        state = drift.update(state, level + np.linspace(0, 0.1, 60))
    assert drift.is_found(state)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 80), min_size=1, max_size=60))
def test_small_batches_are_put_together(seed, sizes):
    """A batch takes in those after it until it has 50 rows; mean and variance are those of its rows."""
    rng = np.random.default_rng(seed)
    batches = [rng.exponential(size=n) + rng.normal() for n in sizes]
    state, groups = drift.init(), []
    for errors in batches:
        state = drift.update(state, errors)
        if groups and len(groups[-1]) < 50:
            groups[-1] = np.append(groups[-1], errors)
        else:
            groups.append(errors)
    groups = groups[-32:]
    np.testing.assert_array_equal(state.sizes, [len(g) for g in groups])
    np.testing.assert_allclose(state.means, [g.mean() for g in groups], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.variances, [g.var() / len(g) for g in groups], rtol=1e-9, atol=1e-12)


def test_small_batch_at_the_end_is_waited_for():
    state = drift.init()
    for _ in range(5):
        state = drift.update(state, np.linspace(0, 1, 50))
    state = drift.update(state, np.full(49, 9.0))
    assert not drift.is_found(state)
    assert drift.is_found(drift.update(state, np.full(1, 9.0)))


def test_the_noise_of_batches_counts():
    """Rows of a batch that err alike vary little within it, and much from batch to batch."""
    rng = np.random.default_rng(2)
    state = drift.init()
    for level in [*rng.normal(size=30), 2.5]:
        state = drift.update(state, level + 1e-3 * rng.normal(size=100))
    assert not drift.is_found(state)
    assert drift.is_found(drift.update(state, np.full(100, 50.0)))


def test_nothing_given_is_changed(assert_pure):
    state = drift.update(drift.update(drift.init(), np.linspace(0, 1, 60)), np.linspace(0, 1, 20))
    assert_pure(drift.is_found, assert_pure(drift.update, state, np.linspace(0, 1, 20)))


def found_by_definition(state):
    """Compare the last 1, 2, 4, … batches with those before them, at least three, one after the other."""
    n, recent = len(state.means), 1
    while n - recent >= 3:
        past = slice(0, n - recent)
        spread = max(np.var(state.means[past], ddof=1), np.mean(state.variances))
        noise = max(spread, np.mean(state.variances[n - recent :])) / recent
        noise += max(spread, np.mean(state.variances[past])) / (n - recent)
        if np.mean(state.means[n - recent :]) - np.mean(state.means[past]) > 5 * np.sqrt(noise):
            return True
        recent *= 2
    return False


def test_definition():
    """On histories near the limit, half of which are drifts."""
    rng, verdicts = np.random.default_rng(0), []
    for _ in range(4000):
        n = int(rng.integers(1, 33))
        means = rng.normal(1.0, 0.1, n)
        means[int(rng.integers(n)) :] += rng.uniform(0.2, 1.0)
        state = drift.DriftState(means, rng.uniform(0.0, 0.02, n), np.full(n, 100.0))
        verdicts.append((drift.is_found(state), found_by_definition(state)))
    got, expected = np.array(verdicts).T
    np.testing.assert_array_equal(got, expected)
    assert 0.2 < expected.mean() < 0.8
