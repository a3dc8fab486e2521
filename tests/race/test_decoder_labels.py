"""The decoder with sparse labels, which wait in blocks before they are added up, and with labels that come later."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.race import decoder

SEEDS = st.integers(0, 2**32 - 1)


def learned(state, batches, make=np.array, **settings):
    for H, Y in batches:
        state = decoder.update(state, H, make(Y), **settings)
    return state


def some_batches(rng, sizes, k, n_labels):
    return [
        (rng.normal(size=(n, k)), (rng.random((n, n_labels)) < rng.choice([0.02, 0.1, 0.5])).astype(float))
        for n in sizes
    ]


def naive_sums(batches):
    """Add up ``YᵀH`` cell by cell."""
    sums = np.zeros((batches[0][1].shape[1], batches[0][0].shape[1]))
    for H, Y in batches:
        for h, y in zip(H, Y, strict=True):
            for j in np.flatnonzero(y):
                sums[j] += h
    return sums


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 40), st.lists(st.integers(1, 8), min_size=1, max_size=12))
def test_sparse_labels_are_dense_labels(seed, k, n_labels, sizes):
    batches = some_batches(np.random.default_rng(seed), [*sizes, 4 * k + 8], k, n_labels)
    empty = decoder.init(n_labels, k)
    dense, sparse = learned(empty, batches), learned(empty, batches, scipy.sparse.csr_array)
    np.testing.assert_allclose(decoder.fold(sparse).cross, naive_sums(batches), atol=1e-11)
    np.testing.assert_allclose(dense.cross, naive_sums(batches), atol=1e-11)
    np.testing.assert_allclose(decoder.solve(sparse), decoder.solve(dense), rtol=1e-7, atol=1e-8)


def test_dense_and_sparse_batches_mix():
    batches = some_batches(np.random.default_rng(0), [5] * 8, 3, 50)
    state = decoder.init(50, 3)
    for i, (H, Y) in enumerate(batches):
        state = decoder.update(state, H, scipy.sparse.csr_array(Y) if i % 2 else Y)
    np.testing.assert_allclose(decoder.fold(state).cross, naive_sums(batches), atol=1e-12)


def test_batches_without_any_label():
    rng = np.random.default_rng(1)
    H = rng.normal(size=(6, 3))
    none = np.zeros((6, 20))
    state = learned(decoder.init(20, 3), [(H, none)] * 3, scipy.sparse.csr_array)
    np.testing.assert_allclose(H @ decoder.solve(state), H @ np.linalg.lstsq(H, none - 1, rcond=None)[0], atol=1e-12)


@pytest.mark.parametrize("per_row", [1, 3, 40])
def test_single_rows_wait_in_few_blocks(per_row):
    """Row by row with many labels: what waits is folded in before it outgrows the sums, and is in few blocks."""
    rng = np.random.default_rng(per_row)
    n_labels, k = 600, 2
    state, sums, folded = decoder.init(n_labels, k), np.zeros((n_labels, k)), 0
    for _ in range(700):
        h, labels = rng.normal(size=(1, k)), rng.choice(n_labels, size=per_row, replace=False)
        sums[labels] += h
        one_row = scipy.sparse.csr_array((np.ones(per_row), (np.zeros(per_row, int), labels)), shape=(1, n_labels))
        state = decoder.update(state, h, one_row)
        waiting = sum(len(block.labels) for block in state.pending)
        assert waiting < n_labels
        assert len(state.pending) <= math.log2(n_labels) + 1
        folded += not state.pending
    assert folded == pytest.approx(700 * per_row / n_labels, abs=1 + 0.1 * folded)
    np.testing.assert_allclose(decoder.fold(state).cross, sums, atol=1e-12)
    assert decoder.fold(state).pending == ()


def test_waiting_blocks_belong_to_their_state():
    """Two futures of one state do not see each other's rows."""
    batches = some_batches(np.random.default_rng(2), [4, 3, 3], 2, 200)
    common = learned(decoder.init(200, 2), batches[:1], scipy.sparse.csr_array)
    assert common.pending
    left = learned(common, batches[1:2], scipy.sparse.csr_array)
    right = learned(common, batches[2:], scipy.sparse.csr_array)
    np.testing.assert_allclose(decoder.fold(common).cross, naive_sums(batches[:1]), atol=1e-12)
    np.testing.assert_allclose(decoder.fold(left).cross, naive_sums(batches[:2]), atol=1e-12)
    np.testing.assert_allclose(decoder.fold(right).cross, naive_sums([batches[0], batches[2]]), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 3), st.integers(1, 30), st.integers(1, 5), st.booleans(), st.sampled_from([1.0, 0.7]))
def test_new_label_is_one_that_was_absent(seed, k, n_labels, n_new, sparse, forgetting):
    rng = np.random.default_rng(seed)
    before, after = some_batches(rng, [10 + 4 * k, 3], k, n_labels), some_batches(rng, [6, 2], k, n_labels + n_new)
    make = scipy.sparse.csr_array if sparse else np.array
    known = [(H, np.hstack([Y, np.zeros((len(Y), n_new))])) for H, Y in before]
    grown = decoder.grow(learned(decoder.init(n_labels, k), before, make, forgetting=forgetting), n_new)
    always = learned(decoder.init(n_labels + n_new, k), known, make, forgetting=forgetting)
    np.testing.assert_allclose(decoder.solve(grown), decoder.solve(always), rtol=0, atol=1e-9)
    grown, always = (learned(state, after, make, forgetting=forgetting) for state in (grown, always))
    np.testing.assert_allclose(decoder.solve(grown), decoder.solve(always), rtol=0, atol=1e-9)
