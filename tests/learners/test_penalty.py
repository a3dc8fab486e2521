"""The penalty against refitting without each row."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.learners.penalty import ALPHAS, best_alpha


def left_out_errors(Z, H, alpha):
    """Fit as often as there are rows, each time without one, and predict that one; targets from their means."""
    H, errors = H - H.mean(axis=0), []
    for i in range(len(Z)):
        z, h = np.delete(Z, i, axis=0), np.delete(H, i, axis=0)
        errors.append(H[i] - Z[i] @ np.linalg.inv(z.T @ z + alpha * np.eye(Z.shape[1])) @ z.T @ h)
    return np.sum(np.square(errors))


def some_rows(seed, n, noise):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    return Z, Z @ rng.normal(size=(6, 2)) + noise * rng.normal(size=(n, 2)) + 5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 25), st.sampled_from([0.0, 0.3, 1.0, 3.0]), st.booleans())
def test_refitting_without_each_row(seed, n, noise, compressed):
    Z, H = some_rows(seed, n, noise)
    errors = [left_out_errors(Z, H, alpha) for alpha in ALPHAS]
    got = best_alpha(scipy.sparse.csr_array(Z) if compressed else Z, H)
    assert errors[list(ALPHAS).index(got)] <= min(errors) * (1 + 1e-9)


@pytest.mark.parametrize(("n", "cuts"), [(255, [0, 255]), (256, [0, 128, 256]), (300, [0, 150, 300])])
def test_many_rows_are_judged_in_blocks(n, cuts):
    """Rows on either side of a cut are of opposite meaning: only who cuts there finds that they tell something."""
    Z, H = some_rows(1, n, 0.3)
    H[cuts[-2] :] *= -1.0
    errors = [sum(left_out_errors(Z[a:b], H[a:b], alpha) for a, b in pairwise(cuts)) for alpha in ALPHAS]
    assert best_alpha(Z, H) == ALPHAS[np.argmin(errors)]
    if len(cuts) > 2:
        assert best_alpha(Z, H) != ALPHAS[np.argmin([left_out_errors(Z, H, alpha) for alpha in ALPHAS])]


def test_every_penalty_is_the_best_somewhere():
    """The test above would be empty if one penalty always won."""
    noises = [0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0]
    chosen = {best_alpha(*some_rows(seed, 25, noise)) for seed in range(20) for noise in noises}
    assert chosen == set(ALPHAS)


def test_of_equals_the_largest():
    Z, H = some_rows(0, 10, 1.0)
    assert best_alpha(Z, np.full((10, 2), 0.25)) == max(ALPHAS)
    assert best_alpha(np.zeros((10, 3)), H) == max(ALPHAS)


def test_one_row_tells_nothing():
    assert min(ALPHAS) < best_alpha(*some_rows(0, 1, 1.0)) < max(ALPHAS)


def test_targets_that_are_always_zero_have_no_say():
    for seed in range(20):
        Z, H = some_rows(seed, 25, seed / 10)
        assert best_alpha(Z, np.hstack([H, np.zeros((25, 3))])) == best_alpha(Z, H)


@pytest.mark.parametrize("size", [1e-200, 1e150, 1e200, 1e308])
def test_targets_of_any_size(size):
    Z, H = some_rows(1, 20, 0.5)
    assert best_alpha(Z, size * (H / 10)) in ALPHAS
