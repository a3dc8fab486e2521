"""The decoder against the paper's recursion and against least squares on all rows, both written out."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.race import decoder

SEEDS = st.integers(0, 2**32 - 1)


def paper_recursion(batches):
    """Return β after every batch: a pseudo-inverse, then Woodbury's update."""
    H, Y = batches[0]
    T = 2 * Y - 1
    U, s, Vt = np.linalg.svd(H.T @ H)
    threshold = max(len(s) * s.max() * 2.0**-52, 2.0**-511)
    M = Vt.T @ np.diag([1 / value if value > threshold else 0.0 for value in s]) @ U.T
    beta = M @ H.T @ T
    yield beta
    for H, Y in batches[1:]:
        T = 2 * Y - 1
        M = M - M @ H.T @ np.linalg.inv(np.eye(len(H)) + H @ M @ H.T) @ H @ M
        beta = beta + M @ H.T @ (T - H @ beta)
        yield beta


def learned(batches, **settings):
    state = decoder.init(batches[0][1].shape[1], batches[0][0].shape[1])
    for H, Y in batches:
        state = decoder.update(state, H, Y, **settings)
    return state


def some_batches(rng, sizes, k, n_labels, hard):
    """Make pseudo labels, 0/1 or real, with random labels."""
    for n in sizes:
        H = (rng.random((n, k)) < 0.5).astype(float) if hard else rng.normal(size=(n, k))
        yield H, (rng.random((n, n_labels)) < 0.3).astype(float)


def stacked(batches):
    return tuple(np.vstack(part) for part in zip(*batches, strict=True))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(1, 6), st.lists(st.integers(1, 12), min_size=1, max_size=6), st.booleans())
def test_papers_recursion(seed, k, n_labels, sizes, hard):
    rng = np.random.default_rng(seed)
    batches = list(some_batches(rng, [3 * k, *sizes], k, n_labels, hard))
    state = decoder.init(n_labels, k)._replace(basis=decoder.first_range(batches[0][0]))
    for (H, Y), beta in zip(batches, paper_recursion(batches), strict=True):
        state = decoder.update(state, H, Y)
        np.testing.assert_allclose(decoder.solve(state), beta, rtol=0, atol=1e-8 * max(1, np.abs(beta).max()))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 6), st.integers(1, 5), st.data())
def test_papers_recursion_from_a_rank_deficient_batch(seed, k, n_labels, data):
    """The directions that the first batch lacks stay lost, whatever comes later."""
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(0, k - 1))
    H = rng.integers(-2, 3, size=(12, rank)) @ rng.integers(-2, 3, size=(rank, k)).astype(float)
    Y = (rng.random((12, n_labels)) < 0.4).astype(float)
    batches = [(H, Y), *some_batches(rng, [9, 1, 20], k, n_labels, hard=True)]
    basis = decoder.first_range(H)
    assert basis.shape[1] <= rank
    state = decoder.init(n_labels, k)._replace(basis=basis)
    for (H, Y), beta in zip(batches, paper_recursion(batches), strict=True):
        state = decoder.update(state, H, Y)
        np.testing.assert_allclose(decoder.solve(state), beta, rtol=0, atol=1e-7 * max(1, np.abs(beta).max()))
    lost = np.eye(k) - basis @ basis.T
    assert np.abs(lost @ decoder.solve(state)).max() < 1e-8


def test_lost_directions_would_have_been_of_use():
    """Restricted to the first batch's range, the decoder is not that of least squares on all rows."""
    rng = np.random.default_rng(0)
    batches = list(some_batches(rng, [20, 30], 3, 4, hard=True))
    batches[0][0][:, 1] = 1.0
    batches[0][0][:, 2] = 1.0
    free = learned(batches)
    restricted = free._replace(basis=decoder.first_range(batches[0][0]))
    assert restricted.basis.shape == (3, 2)
    assert np.abs(decoder.solve(free) - decoder.solve(restricted)).max() > 0.05


@pytest.mark.parametrize(("smallest", "kept"), [(2.0**-510, 1), (2.0**-512, 0), (0.0, 0)])
def test_first_range_drops_what_the_original_drops(smallest, kept):
    """The least singular value of ``HᵀH`` that counts is ``2⁻⁵¹¹``."""
    H = np.array([[np.sqrt(smallest)], [0.0]])
    assert decoder.first_range(H).shape == (1, kept)


@pytest.mark.parametrize(("ratio", "kept"), [(2.0**-26, 1), (2.0**-25, 2)])
def test_first_range_is_relative(ratio, kept):
    """Of two directions, the lesser counts if its singular value is above ``2 · 2⁻⁵²`` of the greater one's."""
    assert decoder.first_range(np.diag([1000.0, 1000.0 * ratio])).shape == (2, kept)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(1, 6), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans())
def test_least_squares_on_all_rows(seed, k, n_labels, sizes, hard):
    rng = np.random.default_rng(seed)
    batches = list(some_batches(rng, [*sizes, 4 * k + 10], k, n_labels, hard))
    H, Y = stacked(batches)
    fitted = H @ np.linalg.lstsq(H, 2 * Y - 1, rcond=None)[0]
    np.testing.assert_allclose(H @ decoder.solve(learned(batches)), fitted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(H @ decoder.solve(learned([(H, Y)])), fitted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 1e4])
def test_ridge_is_the_closed_form(alpha):
    rng = np.random.default_rng(1)
    batches = list(some_batches(rng, [8, 5], 4, 6, hard=True))
    H, Y = stacked(batches)
    expected = np.linalg.inv(H.T @ H + alpha * np.eye(4)) @ H.T @ (2 * Y - 1)
    np.testing.assert_allclose(decoder.solve(learned(batches), ridge=alpha), expected, atol=1e-12)


def test_ridge_within_the_first_range():
    """In coordinates of the range it is ridge as ever."""
    rng = np.random.default_rng(2)
    batches = list(some_batches(rng, [20, 15], 3, 4, hard=False))
    batches[0][0][:, 2] = 0.0
    basis = decoder.first_range(batches[0][0])
    state = learned(batches)._replace(basis=basis)
    H, Y = stacked(batches)
    expected = np.zeros((3, 4))
    expected[:2] = np.linalg.inv(H[:, :2].T @ H[:, :2] + 2.0 * np.eye(2)) @ H[:, :2].T @ (2 * Y - 1)
    np.testing.assert_allclose(decoder.solve(state, ridge=2.0), expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4), st.booleans())
def test_bad_scales_still_decode_what_was_learned(seed, k, singular):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(40, k))
    Y = (rng.random((40, 5)) < 0.4).astype(float)
    fitted = H @ np.linalg.lstsq(H, 2 * Y - 1, rcond=None)[0]
    if singular:
        H = np.hstack([H, H[:, :1], np.zeros((40, 1)), H @ rng.normal(size=(k, 1))])
    H = H * 10.0 ** rng.integers(-8, 9, size=H.shape[1])
    beta = decoder.solve(learned([(H[:7], Y[:7]), (H[7:], Y[7:])]))
    np.testing.assert_allclose(H @ beta, fitted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("restricted", [False, True])
def test_pseudo_labels_that_are_all_zero(restricted):
    H, Y = np.zeros((5, 3)), np.eye(5, 4)
    state = decoder.init(4, 3)
    if restricted:
        state = state._replace(basis=decoder.first_range(H))
    for labels in (Y, scipy.sparse.csr_array(Y)):
        np.testing.assert_array_equal(decoder.solve(decoder.update(state, H, labels)), np.zeros((3, 4)))
    later = decoder.solve(decoder.update(decoder.update(state, H, Y), np.eye(5, 3), Y))
    expected = np.zeros((3, 4)) if restricted else 2 * np.eye(3, 4) - 1
    np.testing.assert_allclose(later, expected, atol=1e-12)


def test_nothing_learned_decodes_nothing():
    np.testing.assert_array_equal(decoder.solve(decoder.init(4, 3)), np.zeros((3, 4)))


@pytest.mark.parametrize("sparse", [False, True])
def test_merging_is_learning_all_rows(sparse):
    rng = np.random.default_rng(3)
    batches = list(some_batches(rng, [20, 7, 13, 4], 4, 30, hard=True))
    as_given = [(H, scipy.sparse.csr_array(Y) if sparse else Y) for H, Y in batches]
    merged = decoder.merge(learned(as_given[:1]), learned(as_given[1:]))
    np.testing.assert_allclose(decoder.solve(merged), decoder.solve(learned(batches)), atol=1e-12)
    assert merged.rows == 44
    again = decoder.update(merged, *as_given[0])
    np.testing.assert_allclose(decoder.solve(again), decoder.solve(learned([*batches, batches[0]])), atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_merging_with_forgetting_adds_what_each_remembers(sparse):
    rng = np.random.default_rng(4)
    batches = list(some_batches(rng, [20, 9, 13, 8], 3, 12, hard=False))
    as_given = [(H, scipy.sparse.csr_array(Y) if sparse else Y) for H, Y in batches]
    merged = decoder.merge(learned(as_given[:3], forgetting=0.5), learned(as_given[3:], forgetting=0.9))
    H, Y = stacked(batches)
    weights = np.repeat([0.25, 0.5, 1.0, 1.0], [20, 9, 13, 8])[:, None]
    expected = np.linalg.inv(H.T @ (weights * H)) @ H.T @ (weights * (2 * Y - 1))
    np.testing.assert_allclose(decoder.solve(merged), expected, atol=1e-12)


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_nothing_given_is_changed(assert_pure, make):
    first, second = some_batches(np.random.default_rng(5), [20, 9], 3, 12, hard=False)
    state = learned([(first[0], make(first[1]))])
    assert_pure(decoder.update, state, second[0], make(second[1]), 0.5)
    assert_pure(decoder.merge, state, state)
    assert_pure(decoder.grow, state, 2)
    assert_pure(decoder.solve, state)
