"""Candidates against all labels, scored one by one as the definitions say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import labelrace
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import label_lists, postings, residual_table, search
from labelrace.extreme.search import Rows, SearchIndex
from labelrace.linear.versioned_rows import VersionedRows

K, M = 6, 40


def learned(seed, n_labels, n_batches=8, n=40, few_unsorted=60, n_recent=30):
    """Make a decoder whose labels are in all three lists: recent ones, unsorted ones, and the order."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_decoder, "_MIN_UNSORTED", few_unsorted)
        patch.setattr(code_decoder, "_n_recent", lambda n_labels, uses_postings: n_recent)
        state = code_decoder.init(n_labels, K)
        for _ in range(n_batches):
            labels = np.minimum(rng.zipf(1.3, size=(n, 4)) - 1, n_labels - 1)
            Y = np.zeros((n, n_labels))
            np.put_along_axis(Y, labels, 1.0, axis=1)
            U = 0.3 * rng.normal(size=(n, K)) + np.sin(labels[:, :1] * np.arange(1, K + 1))
            state = code_decoder.update(state, U, scipy.sparse.csr_array(Y), 0.95)
    return state


def prepared(seed, n_labels, n_rows=12, n_head=label_lists.N_HEAD, **sizes):
    """Make what is searched, and rows, both with random postings and a random table."""
    rng = np.random.default_rng(seed)
    state = learned(seed, n_labels, **sizes)
    decoder = code_decoder.derive(state)
    lists = np.where(
        rng.random((M, postings.LABELS_PER_FEATURE)) < 0.7,
        rng.integers(1, n_labels + 1, (M, postings.LABELS_PER_FEATURE)),
        0,
    )
    table = rng.normal(0, 0.2, (4096, 1)).astype(np.float32)
    index = SearchIndex(
        decoder,
        label_lists.build_lists(decoder, state, n_head),
        VersionedRows.taking(
            lists.astype(np.int32) if n_labels > 2048 else np.zeros((0, postings.LABELS_PER_FEATURE), np.int32)
        ),
        VersionedRows.taking(table),
    )
    Z = scipy.sparse.random_array((n_rows, M), density=0.2, format="csr", dtype=np.float32, rng=rng)
    queries = code_decoder.queries(decoder, rng.normal(size=(n_rows, K)))
    extra_precision = rng.integers(0, 5, (M, 2)).astype(float)
    return index, Rows(queries, Z, extra_precision)


def offered_by(index, rows, row):
    """List the labels that the four rarest features of a row offer, of each the newest first."""
    features = rows.Z.indices[rows.Z.indptr[row] : rows.Z.indptr[row + 1]]
    lists, rarity = np.asarray(index.postings), rows.extra_precision[:, 0]
    rarest = sorted((f for f in features.tolist() if rarity[f] > 0), key=lambda f: (rarity[f], f))[:4]
    return [lists[f, d] - 1 for d in range(postings.LABELS_PER_FEATURE) for f in rarest if lists[f, d]]


def naive_candidates(index, rows, row, n_exact):
    """Take the best recent labels and the best of all, and put those that features offer behind the first ones."""
    scores = code_decoder.all_scores(index.decoder, rows.queries)[row]
    uses_postings = len(index.postings) > 0
    n_labels, pool = len(scores), index.lists.labels[: index.lists.sizes[0]]
    size = 256 if n_labels <= 2048 else 32 if uses_postings else 64
    size = min(n_labels, max(size, n_exact + 12 if uses_postings else n_exact))
    has_occurred = np.asarray(index.decoder.sums)[:, -2] > 0
    others = np.flatnonzero(~has_occurred)[: max(size - len(pool), 0)]
    known = [*pool, *others]
    if len(known) < size:
        known = [*known, *(set(np.flatnonzero(has_occurred).tolist()) - set(pool.tolist()))]
    best = sorted(known, key=lambda j: -scores[j])[:size]
    exact = sorted(range(n_labels), key=lambda j: -scores[j])[:n_exact]
    best = sorted({*best, *(j for j in exact if has_occurred[j])}, key=lambda j: -scores[j])[:size]
    if uses_postings:
        offered = list(dict.fromkeys(j for j in offered_by(index, rows, row) if j not in best[: size - 12]))
        best = list(dict.fromkeys([*best[: size - 12], *offered, *best[size - 12 :]]))[:size]
    return best, scores


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([3, 40, 700, 3000]),
    st.sampled_from([0, 8, 4096]),
    st.sampled_from([0, 16, 50]),
    st.integers(1, 300),
)
def test_candidates_are_those_of_the_definition(seed, n_labels, n_head, n_exact, n_recent):
    """In whatever list labels are, and wherever its head ends; with the weights of the table added."""
    index, rows = prepared(seed, n_labels, n_head=n_head, n_recent=n_recent)
    found = search.find(index, rows, n_exact)
    for row in range(len(found.labels)):
        expected, scores = naive_candidates(index, rows, row, n_exact)
        labels = found.labels[row]
        assert len(set(labels.tolist())) == len(labels) == len(expected)
        # Which of nearly equal labels is the last depends on round-off.
        apart = sorted(set(labels.tolist()) ^ set(expected))
        assert len(apart) <= 2
        assert np.ptp(scores[apart]) < 1e-4 if apart else True
        whole = scores[labels] + residual_table.scores(index.table, rows.Z[[row]], labels[None])[0]
        np.testing.assert_allclose(found.scores[row], whole - 0.1 * max(whole.max(), 0.0), atol=1e-4)
        assert (np.diff(found.scores[row]) <= 0).all()


def test_some_rows_are_found_as_among_all():
    index, rows = prepared(0, 3000)
    every, some = search.find(index, rows), np.array([7, 2])
    for part, of_all in zip(search.find(index, rows, some=some), every, strict=True):
        np.testing.assert_array_equal(part, of_all[some])


def test_the_best_of_the_pool_are_found_once_for_monitoring_and_learning():
    index, rows = prepared(0, 3000)
    in_pool, some = search.find_in_pool(index, rows), np.array([7, 2])
    before = in_pool.labels.copy(), in_pool.scores.copy()
    found = search.find(index, rows, some=some, in_pool=in_pool)
    for part, of_all in zip(found, search.find(index, rows), strict=True):
        np.testing.assert_array_equal(part, of_all[some])
    for part, copied in zip(in_pool, before, strict=True):
        np.testing.assert_array_equal(part, copied)


def test_the_precision_of_features_may_be_gathered():
    index, rows = prepared(0, 3000)
    touched, columns = np.unique(rows.Z.indices, return_inverse=True)
    gathered = rows._replace(extra_precision=rows.extra_precision[touched], columns=columns.astype(np.int32))
    for one, other in zip(search.find(index, rows), search.find(index, gathered), strict=True):
        np.testing.assert_array_equal(one, other)


def test_labels_that_bounds_rule_out_are_not_looked_at():
    """Were they, they would be the best by far: their sums are made huge after their bounds were taken."""
    index, rows = prepared(1, 700, n_head=0, n_recent=300)
    decoder, lists = index.decoder, index.lists
    pool = lists.labels[: lists.sizes[0]]
    worst = np.sort(code_decoder.all_scores(decoder, rows.queries)[:, pool], axis=1)[:, -5]
    bounds = np.sqrt(decoder.scale) * code_decoder.bounds(np.asarray(decoder.sums))
    is_ruled_out = (rows.queries.norms[:, None] * bounds * 1.001 < worst[:, None]).all(axis=0)
    ruled_out = np.setdiff1d(np.flatnonzero(is_ruled_out & (bounds > 0)), pool)
    assert len(ruled_out) > 20
    sums = decoder.sums.rows(ruled_out)
    sums[:, :K] = 1e6
    huge = decoder.sums.replaced(ruled_out, sums)
    other = index._replace(decoder=decoder._replace(sums=huge))
    for one, two in zip(search.find(index, rows, 5), search.find(other, rows, 5), strict=True):
        np.testing.assert_array_equal(one, two)


def test_postings_beside_fewer_labels_than_they_may_offer():
    """As a file may hold them that nobody has written so."""
    index, rows = prepared(0, 3)
    lists = np.random.default_rng(0).integers(0, 4, (M, postings.LABELS_PER_FEATURE)).astype(np.int32)
    found = search.find(index._replace(postings=VersionedRows.taking(lists)), rows)
    assert [sorted(row) for row in found.labels.tolist()] == [[0, 1, 2]] * 12


@pytest.mark.parametrize("n_labels", [40, 3000])
def test_true_labels_replace_the_last_candidates(n_labels):
    index, rows = prepared(3, n_labels)
    rng = np.random.default_rng(0)
    Y = np.where(rng.random((12, n_labels)) < 3 / n_labels, 1.0, 0.0)
    Y[rng.random(Y.shape) < 0.05] = np.nan
    sparse = scipy.sparse.csr_array(Y)
    scores = code_decoder.all_scores(index.decoder, rows.queries)
    labels, base, targets = search.candidates_to_learn(index, rows, sparse, search.find_in_pool(index, rows))
    for row in range(12):
        before, _ = naive_candidates(index, rows, row, 0)
        true = np.flatnonzero(Y[row] == 1)
        assert set(true) <= set(labels[row].tolist())
        missed = [label for label in true if label not in before]
        kept = [label for label in before if label in labels[row]]
        assert len(kept) == len(before) - len(missed)
        np.testing.assert_allclose(base[row], scores[row, labels[row]], atol=1e-4)
        expected = Y[row, labels[row]]
        if n_labels > 2048:
            # Absent labels that are unlikely teach nothing.
            expected = np.where((expected == 0) & (base[row] < 0.01), np.nan, expected)
        np.testing.assert_array_equal(targets[row], expected)


def test_a_row_alone_is_the_row_among_many():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((900, 300), density=0.05, format="csr", rng=rng)
    Y = (X[:, :60] > 0.5).astype(float)
    model = labelrace.make_model("race-hashed", max_memory="1MB", random_state=0)
    for start in range(0, 800, 200):
        model.partial_fit(X[start : start + 200], Y[start : start + 200])
    together = model.predict_top(X[800:], 5)
    for row, expected in enumerate(together):
        [alone] = model.predict_top(X[800 + row : 801 + row], 5)
        assert [label for label, _ in alone] == [label for label, _ in expected]
        np.testing.assert_allclose([p for _, p in alone], [p for _, p in expected], atol=1e-4)


def test_of_equal_scores_the_first_label_comes_first():
    """Three labels that always come together, and rows without any feature, to which the table adds nothing."""
    rng = np.random.default_rng(0)
    Y = (rng.random((600, 50)) < 0.05).astype(int)
    Y[:, [7, 8, 9]] = rng.random((600, 1)) < 0.3
    X = scipy.sparse.csr_array((rng.random((600, 30)) < 0.1) * 1.0)
    model = labelrace.make_model("race-hashed", max_memory="1MB", random_state=0)
    model.partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    [top] = model.predict_top(scipy.sparse.csr_array((1, 30)), 3)
    assert [label for label, _ in top] == [7, 8, 9]


def test_a_model_that_has_learned_on_leaves_the_one_before_as_it_was():
    """What predicts by an older state reads its tables as they were, while the newer one has changed them."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((900, 3000), density=0.005, format="csr", rng=rng)
    Y = scipy.sparse.csr_array((X > 0.5).astype(float))
    model = labelrace.make_model("race-hashed", max_memory="3MB", random_state=0)
    model.partial_fit(X[:300], Y[:300]).partial_fit(X[300:600], Y[300:600])
    before = model._fitted
    expected = before.algorithm.predict_best(before.derived, X[600:], 5)
    newer = before.algorithm.update(before.state, X[600:], Y[600:])
    of_newer = before.algorithm.predict_best(before.algorithm.derive(newer), X[600:], 5)
    found = before.algorithm.predict_best(before.derived, X[600:], 5)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    again = before.algorithm.predict_best(before.algorithm.derive(newer), X[600:], 5)
    np.testing.assert_array_equal(again[0], of_newer[0])
    assert (of_newer[0] != expected[0]).any()
