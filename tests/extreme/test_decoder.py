"""The decoder of predicted codes against least squares over all rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from labelrace.base import growth
from labelrace.base.growth import Moves
from labelrace.extreme import codes as hashed_codes
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import label_lists, search
from labelrace.extreme.search import Rows, SearchIndex
from labelrace.linear.versioned_rows import VersionedRows

K, L = 6, 700


def some_rows(seed, n):
    """Make codes and labels that go with them, some labels far more often than others."""
    rng = np.random.default_rng(seed)
    labels = np.minimum(rng.zipf(1.3, size=(n, 4)) - 1, L - 1)
    Y = np.zeros((n, L))
    np.put_along_axis(Y, labels, 1.0, axis=1)
    U = hashed_codes.encode(Y, K) + 0.5 * rng.normal(size=(n, K))
    return U, scipy.sparse.csr_array(Y)


def learned(keep, n_batches=12, n=40):
    state = code_decoder.init(L, K)
    rows = [some_rows(seed, n) for seed in range(n_batches)]
    for U, Y in rows:
        state = code_decoder.update(state, U, Y, keep)
    weights = np.repeat(keep ** np.arange(n_batches)[::-1], n)
    return state, np.vstack([U for U, _ in rows]), scipy.sparse.vstack([Y for _, Y in rows]).toarray(), weights


def naive_scores(U, Y, weights, queries, ridge=None):
    """Ridge regression of the labels on the codes, about their means; the ridge is the decoder's if none is given."""
    n = weights.sum()
    mean, frequency = weights @ U / n, weights @ Y / n
    centred = U - mean
    G = (weights[:, None] * centred).T @ centred
    if ridge is None:
        ridge = 1e-3 * np.trace((weights[:, None] * U).T @ U) / K + 1.0
    G += ridge * np.eye(K)
    return frequency + (queries - mean) @ np.linalg.solve(G, (weights[:, None] * centred).T @ (Y - frequency))


@pytest.mark.parametrize("keep", [1.0, 0.9, 1e-7])
def test_scores_are_those_of_least_squares(keep):
    """With a scale that is small, and one that had to be multiplied out."""
    state, U, Y, weights = learned(keep, 3 if keep < 0.5 else 12)
    codes, _ = some_rows(99, 25)
    derived = code_decoder.derive(state)
    queries = code_decoder.queries(derived, codes)
    expected = naive_scores(U, Y, weights, codes)
    np.testing.assert_allclose(code_decoder.all_scores(derived, queries), expected, atol=2e-4)
    labels = np.array([0, 3, 5, 699])
    beta, constants = code_decoder.coefficients(derived, labels)
    np.testing.assert_allclose(codes @ beta + constants, expected[:, labels], atol=2e-4)
    rows = np.array([0, 7, 7, 24])
    np.testing.assert_allclose(
        code_decoder.pair_scores(derived, queries, rows, labels), expected[rows, labels], atol=2e-4
    )


def test_leave_one_out_scores_are_those_of_a_decoder_without_the_row():
    """The ridge is that of all rows. Of one row alone nothing is left."""
    U, Y = some_rows(0, 20)
    derived = code_decoder.derive(code_decoder.update(code_decoder.init(L, K), U, Y))
    queries = code_decoder.queries(derived, U)
    got = code_decoder.leave_one_out_scores(code_decoder.all_scores(derived, queries), Y.toarray(), queries)
    ridge = 1e-3 * np.square(U).sum() / K + 1.0
    for row in range(20):
        others = np.arange(20) != row
        expected = naive_scores(U[others], Y.toarray()[others], np.ones(19), U[[row]], ridge)
        np.testing.assert_allclose(got[[row]], expected, atol=2e-4)
    derived = code_decoder.derive(code_decoder.update(code_decoder.init(L, K), U[:1], Y[:1]))
    queries = code_decoder.queries(derived, U[:1])
    alone = code_decoder.leave_one_out_scores(code_decoder.all_scores(derived, queries), Y[:1].toarray(), queries)
    np.testing.assert_allclose(alone, 0.0, atol=1e-3)


@pytest.mark.parametrize("keep", [1.0, 0.9, 1e-7])
def test_the_order_is_that_of_the_bounds(keep, monkeypatch):
    """Of all labels that have occurred, each once, though only the unsorted ones are sorted in."""
    monkeypatch.setattr(code_decoder, "_MIN_UNSORTED", 120)
    state, _, Y, _ = learned(keep, 12)
    bounds = code_decoder.bounds(np.asarray(state.sums))
    unchanged = state.order[~np.isin(state.order, state.unsorted)]
    assert len(unchanged) > 50
    assert (np.diff(bounds[unchanged]) <= 1e-6 * bounds[unchanged][:-1]).all()
    assert len(set(state.order.tolist())) == len(state.order)
    assert set(state.order.tolist()) | set(state.unsorted.tolist()) == set(np.flatnonzero(Y.any(axis=0)).tolist())


def test_bounds_hold():
    """By the lengths that rows had before they were learned, though all fades; and these are worth something."""
    state = code_decoder.init(L, K)
    for seed in range(12):
        U, Y = some_rows(seed, 40)
        lengths = code_decoder.queries(code_decoder.derive(state), U).norms if seed else None
        state = code_decoder.update(state, U, Y, 0.9, lengths)
    derived = code_decoder.derive(state)
    queries = code_decoder.queries(derived, some_rows(97, 50)[0])
    scores, counts = (
        code_decoder.all_scores(derived, queries),
        np.sqrt(derived.scale) * np.asarray(derived.sums)[:, -2:],
    )
    for bounds in (np.sqrt(np.sqrt(derived.scale) * counts[:, 0]), counts[:, 1]):
        assert (scores <= queries.norms[:, None] * bounds + 1e-5).all()
    rare = (counts[:, 0] > 0) & (counts[:, 1] < 0.5 * np.sqrt(np.sqrt(derived.scale) * counts[:, 0]))
    assert rare.sum() > 100


def test_labels_that_come_later_cost_a_row_of_zeros():
    state, *_ = learned(0.9)
    grown = growth.take(state, Moves({"l": growth.longer(L, L + 50)}))
    pairs = [(d := code_decoder.derive(one), code_decoder.queries(d, some_rows(3, 9)[0])) for one in (state, grown)]
    before, after = (code_decoder.all_scores(*pair) for pair in pairs)
    np.testing.assert_array_equal(after[:, :L], before)
    assert not after[:, L:].any()


def test_a_decoder_made_of_predictions_with_other_means():
    """It is least squares of these scores; constants are added as far as the search for the best stays exact."""
    U, _ = some_rows(0, 300)
    rng = np.random.default_rng(1)
    predicted = np.clip(U @ rng.normal(0, 0.05, (K, L)) + rng.normal(0, 0.05, L), 0.0, 1.0)
    blocks = [(first, predicted[first : first + 70]) for first in range(0, 300, 70)]
    state = code_decoder.from_predictions(U, iter(blocks), L, 600.0)
    codes, _ = some_rows(99, 25)

    def scores_of(state):
        derived = code_decoder.derive(state)
        queries = code_decoder.queries(derived, codes)
        return derived, queries, code_decoder.all_scores(derived, queries)

    before = scores_of(state)[2]
    np.testing.assert_allclose(before, naive_scores(U, predicted, np.full(300, 2.0), codes), atol=2e-4)
    frequencies = predicted.mean(axis=0)
    wanted = frequencies + np.where(np.arange(L) % 2, 0.03, -0.03)
    moved = code_decoder.with_means(state, wanted)
    derived, queries, after = scores_of(moved)
    shifts = (after - before).mean(axis=0)
    np.testing.assert_allclose(after - before, np.tile(shifts, (25, 1)), atol=2e-4)
    np.testing.assert_allclose(shifts[1::2], 0.03, atol=2e-4)
    assert (shifts[::2] < 1e-5).all()
    assert (shifts[::2] > -0.0301).all()
    assert (shifts[::2] < -0.001).mean() > 0.3
    # None is above its bound, and so the best are found.
    bounds = queries.norms[:, None] * code_decoder.bounds(np.asarray(moved.sums))
    assert (after <= bounds * 1.0001 + 1e-6).all()
    none = VersionedRows.taking(np.zeros((0, 8), np.int32)), VersionedRows.taking(np.zeros((16, 1), np.float32))
    index = SearchIndex(derived, label_lists.build_lists(derived, moved), *none)
    rows = Rows(queries, scipy.sparse.csr_array((25, 3), dtype=np.float32), np.zeros((3, 2)))
    best = np.take_along_axis(after, search.find(index, rows, 20).labels[:, :20], axis=1)
    np.testing.assert_allclose(best, -np.sort(-after, axis=1)[:, :20], atol=1e-5)


def test_codes_that_are_taken_to_be_uncertain_count_for_less():
    U, Y = some_rows(0, 300)
    made = [code_decoder.from_predictions(U, [(0, Y.toarray())], L, 300.0, noise) for noise in (0.0, 1.0)]
    plain, shrunk = (code_decoder.coefficients(code_decoder.derive(state), np.arange(L)) for state in made)
    assert np.linalg.norm(shrunk[0]) < 0.7 * np.linalg.norm(plain[0])
