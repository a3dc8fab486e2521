"""Forgetting against least squares with explicit weights."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.race import decoder

LABELS = {"dense": np.array, "sparse": scipy.sparse.csr_array}


def weighted_least_squares(batches, factor):
    """Solve with the weight ``factor ** (batches since)`` for every row."""
    k, n_labels = batches[0][0].shape[1], batches[0][1].shape[1]
    G, C = np.zeros((k, k)), np.zeros((k, n_labels))
    for age, (H, Y) in enumerate(reversed(batches)):
        for h, y in zip(H, Y, strict=True):
            G += factor**age * np.outer(h, h)
            C += factor**age * np.outer(h, 2 * y - 1)
    return np.linalg.solve(G, C)


def some_batches(rng, sizes, k, n_labels):
    return [(rng.normal(size=(n, k)), (rng.random((n, n_labels)) < 0.3).astype(float)) for n in sizes]


def learned(batches, factor, make=np.array):
    state = decoder.init(batches[0][1].shape[1], batches[0][0].shape[1])
    for H, Y in batches:
        state = decoder.update(state, H, make(Y), factor)
    return state


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.floats(0.05, 1.0), st.sampled_from(sorted(LABELS)))
def test_weighted_least_squares(seed, k, factor, kind):
    batches = some_batches(np.random.default_rng(seed), [7, 3, 1, 4 * k + 10], k, 12)
    got = decoder.solve(learned(batches, factor, LABELS[kind]))
    np.testing.assert_allclose(got, weighted_least_squares(batches, factor), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", sorted(LABELS))
@pytest.mark.parametrize("factor", [0.5, 1e-30])
def test_thousands_of_batches(kind, factor):
    """The running scale would be ``2⁻⁵⁰⁰⁰``: it must not reach zero, nor what it scales infinity."""
    rng = np.random.default_rng(0)
    batches = some_batches(rng, [2] * 5000, 2, 6)
    state = learned(batches, factor, LABELS[kind])
    np.testing.assert_allclose(decoder.solve(state), weighted_least_squares(batches[-120:], factor), atol=1e-11)
    assert state.rows * state.scale == pytest.approx(2 / (1 - factor))
    for array in (state.gram, state.total, decoder.fold(state).cross):
        assert np.isfinite(array).all()
        assert array.any()


def test_ridge_is_not_forgotten():
    """The penalty is added to the sums as they count now, not as they are kept."""
    batches = some_batches(np.random.default_rng(1), [10, 10, 10], 3, 5)
    weights = np.repeat([0.09, 0.3, 1.0], 10)[:, None]
    H, Y = (np.vstack(part) for part in zip(*batches, strict=True))
    expected = np.linalg.solve(H.T @ (weights * H) + 2 * np.eye(3), H.T @ (weights * (2 * Y - 1)))
    np.testing.assert_allclose(decoder.solve(learned(batches, 0.3), ridge=2.0), expected, atol=1e-12)


def test_forgetting_within_the_first_range():
    batches = some_batches(np.random.default_rng(2), [10, 10], 3, 5)
    batches[0][0][:, 0] = 0.0
    state = learned(batches, 0.4)._replace(basis=decoder.first_range(batches[0][0]))
    expected = np.zeros((3, 5))
    expected[1:] = weighted_least_squares([(H[:, 1:], Y) for H, Y in batches], 0.4)
    np.testing.assert_allclose(decoder.solve(state), expected, atol=1e-11)


def test_pseudo_label_that_is_never_one_again():
    """Its sums fade through the smallest numbers there are to zero; what the others decode is not touched by that."""
    rng = np.random.default_rng(3)
    batches = some_batches(rng, [8, 8], 3, 4)
    batches[1][0][:, 0] = 0.0
    H, Y = batches[1]
    fitted = H @ np.linalg.lstsq(H, 2 * Y - 1, rcond=None)[0]
    state = decoder.update(decoder.init(4, 3), *batches[0], 0.5)
    for age in range(1200):
        state = decoder.update(state, H, Y, 0.5)
        if age > 60:
            np.testing.assert_allclose(H @ decoder.solve(state), fitted, atol=1e-9, err_msg=f"after {age} batches")
