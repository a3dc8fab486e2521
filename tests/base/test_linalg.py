"""The generalised inverse against what defines one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base.linalg import generalised_inverse

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(1, 6))
def test_regular_matrix_is_inverted(seed, k):
    H = np.random.default_rng(seed).normal(size=(k + 20, k))
    gram = H.T @ H
    np.testing.assert_allclose(generalised_inverse(gram) @ gram, np.eye(k), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(2, 6), st.data())
def test_singular_matrix_is_inverted_on_its_range(seed, k, data):
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(1, k - 1))
    H = rng.normal(size=(30, rank)) @ rng.normal(size=(rank, k))
    gram = H.T @ H
    inverse = generalised_inverse(gram)
    np.testing.assert_allclose(gram @ inverse @ gram, gram, rtol=0, atol=1e-8 * np.abs(gram).max())
    np.testing.assert_allclose(inverse, inverse.T, rtol=0, atol=1e-10 * np.abs(inverse).max())
    assert np.linalg.matrix_rank(inverse @ gram, tol=1e-6) == rank


def test_small_is_not_singular():
    """Directions sixteen orders of magnitude apart are all inverted."""
    sizes = np.array([1e-8, 1e-4, 1.0, 1e8])
    H = np.random.default_rng(0).normal(size=(40, 4))
    unscaled = np.linalg.inv(H.T @ H)
    got = generalised_inverse((H * sizes).T @ (H * sizes))
    np.testing.assert_allclose(got * np.outer(sizes, sizes), unscaled, rtol=1e-8, atol=1e-10)


def test_duplicate_of_another_size_is_one_direction():
    column = np.random.default_rng(1).normal(size=(20, 1))
    H = np.hstack([column, 1e6 * column])
    gram = H.T @ H
    inverse = generalised_inverse(gram)
    np.testing.assert_allclose(gram @ inverse @ gram, gram, rtol=1e-8)
    assert np.abs(inverse).max() < 10 / gram[0, 0]


@pytest.mark.parametrize("k", [0, 1, 3])
def test_nothing_is_the_inverse_of_nothing(k):
    np.testing.assert_array_equal(generalised_inverse(np.zeros((k, k))), np.zeros((k, k)))


def test_argument_stays_as_it_was():
    gram = np.array([[2.0, 1.0], [1.0, 2.0]])
    generalised_inverse(gram)
    np.testing.assert_array_equal(gram, [[2.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize("tiny", [1e-300, 1e-308, 1e-310, 5e-324])
def test_smallest_numbers_do_not_spoil_the_rest(tiny):
    """What forgetting has almost forgotten: neither a warning nor a loss of the other directions."""
    inverse = generalised_inverse(np.diag([tiny, 4.0, 0.25]))
    np.testing.assert_allclose(inverse[1:, 1:], np.diag([0.25, 4.0]))
    assert np.isfinite(inverse).all()
