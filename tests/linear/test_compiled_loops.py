"""Compiled loops against the forms in NumPy: the same result up to round-off, whatever the rows and labels are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import labelrace
from labelrace.base import compiled
from labelrace.extreme import candidate_loops, candidates, postings
from labelrace.extreme import classifier as hashed
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import search as label_search
from labelrace.extreme import table as residual_table

pytestmark = pytest.mark.skipif(not compiled.is_available(), reason="Numba is not installed")
SEEDS = st.integers(0, 2**32 - 1)


def both(task):
    """Return what a task gives with compiled loops, and without."""
    return task(True), task(False)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([64, 1 << 12, 1 << 20]), st.integers(1, 20))
def test_the_table(seed, n_slots, width):
    """Of few slots, too, where pairs take them from one another; rows may be empty, labels not known."""

    def learn(loops):
        rng, tables = np.random.default_rng(seed), [residual_table.init(n_slots)]
        for n in (3, 30, 30):
            Z = scipy.sparse.random_array((n, 60), density=0.1, format="csr", dtype=np.float32, rng=rng)
            labels = np.argsort(rng.random((n, 40)), axis=1)[:, :width]
            base = rng.normal(0.2, 0.3, labels.shape).astype(np.float32)
            targets = rng.choice([0.0, 1.0, np.nan], size=labels.shape, p=[0.6, 0.3, 0.1])
            tables.append(residual_table.learn(tables[-1], Z, labels, base, targets, np.full(60, 2.0), compiled=loops))
        # The last two are of the newest version, and of one before it.
        return [
            np.asarray(tables[-1]),
            *(residual_table.scores(table, Z, labels, compiled=loops) for table in tables[-2:]),
        ]

    for one, other in zip(*both(learn), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)


def test_an_old_version_of_the_table_is_read_to_the_bit():
    """Whether somebody learns meanwhile must not be seen in what is predicted."""
    rng = np.random.default_rng(0)
    Z = scipy.sparse.random_array((20, 60), density=0.2, format="csr", dtype=np.float32, rng=rng)
    labels = np.argsort(rng.random((20, 40)), axis=1)[:, :8]
    given = Z, labels, np.zeros((20, 8), np.float32), (rng.random((20, 8)) < 0.5).astype(float), np.ones(60)
    table = residual_table.learn(residual_table.init(4096), *given, compiled=True)
    newest = residual_table.scores(table, Z, labels, compiled=True)
    residual_table.learn(table, *given, compiled=True)
    np.testing.assert_array_equal(residual_table.scores(table, Z, labels, compiled=True), newest)


def decoder_of(rng, n_labels, k=6, n_head=16):
    state = code_decoder.init(n_labels, k)
    for _ in range(6):
        Y = scipy.sparse.random_array((40, n_labels), density=0.05, format="csr", rng=rng)
        Y.data[:] = 1.0
        state = code_decoder.update(state, rng.normal(size=(40, k)), Y, 0.9)
    return code_decoder.derive(state, n_head=n_head)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from([30, 300]), st.integers(1, 40), st.integers(0, 10), st.sampled_from([0, 16]))
def test_the_best_labels(seed, n_labels, n_best, n_exact, n_head):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_decoder, "_RECENT", 50)
        patch.setattr(code_decoder, "_FEW_APART", 40)
        rng = np.random.default_rng(seed)
        derived = decoder_of(rng, n_labels, n_head=n_head)
        asked = code_decoder.queries(derived, rng.normal(size=(70, 6)))
        n_best = min(n_best, n_labels)
        (labels, scores), (others, expected) = both(
            lambda loops: label_search.best(derived._replace(compiled=loops), asked, n_best, n_exact)
        )
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    # Labels whose scores are equal, such as those that never occurred, may come in another order.
    differ = labels != others
    apart = np.diff(expected, axis=1, prepend=np.inf, append=-np.inf)
    assert not (differ & (apart[:, :-1] < -1e-4) & (apart[:, 1:] < -1e-4)).any()


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 60), st.sampled_from([1e-9, 1.0, 1e9]))
def test_the_largest_scores(seed, n_best, size):
    """Of scores that are negative, equal or zero, and beyond the levels that they are counted by."""
    rng = np.random.default_rng(seed)
    scores = (size * rng.normal(rng.normal(), 1.0, (5, 60))).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = rng.choice([0.0, 0.25 * size])
    places, values = candidate_loops.best_of(scores, n_best)
    np.testing.assert_array_equal(values, -np.sort(-scores, axis=1)[:, :n_best])
    np.testing.assert_array_equal(np.take_along_axis(scores, places, axis=1), values)
    assert all(len(set(row)) == n_best for row in places.tolist())


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12), st.booleans())
def test_what_the_table_learns(seed, n_present, are_offered):
    rng = np.random.default_rng(seed)
    derived = decoder_of(rng, 300)
    asked = code_decoder.queries(derived, rng.normal(size=(20, 6)))
    Y = scipy.sparse.random_array((20, 300), density=n_present / 300, format="csr", rng=rng)
    Y.data[:] = rng.choice([1.0, 0.0, np.nan], size=Y.nnz, p=[0.8, 0.1, 0.1])
    offers = rng.integers(-1, 300, (20, 6)) if are_offered else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "count", lambda n_labels, are_offered: 8)
        patch.setattr(candidates, "OFFERED", 3)

        def to_learn(loops):
            decoder = derived._replace(compiled=loops)
            recent = candidates.of_recent(decoder, asked, are_offered=offers is not None)
            return candidates.to_learn(decoder, asked, Y, recent, offers)

        one, other = both(to_learn)
    for part, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-5)


def rows_of_words(rng, n, n_features):
    Z = scipy.sparse.random_array((n, n_features), density=0.1, format="csr", dtype=np.float32, rng=rng)
    Z.data[rng.random(Z.nnz) < 0.1] = 0.0
    return Z


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_labels_that_features_keep_and_offer(seed, sizes):
    def learn(loops):
        rng, table, found = np.random.default_rng(seed), postings.init(), []
        for n in sizes:
            Z, gained = rows_of_words(rng, n, 60), rng.integers(0, 4, (60, 2)).astype(float)
            Y = scipy.sparse.random_array((n, 3000), density=0.001, format="csr", rng=rng)
            Y.data[:] = rng.choice([1.0, 0.0, np.nan], size=Y.nnz, p=[0.8, 0.1, 0.1])
            of_entries = postings.gained_by_entry(gained, Z)
            found.append(postings.offered(table, Z, of_entries, compiled=loops))
            table = postings.update(table, Z, np.zeros(60, int), of_entries, Y, compiled=loops)
        return np.asarray(table), [labels for labels in found if labels is not None]

    (one, offers), (other, expected) = both(learn)
    np.testing.assert_array_equal(one, other)
    for labels, others in zip(offers, expected, strict=True):
        np.testing.assert_array_equal(labels, others)


def words_and_labels(n_labels, rng):
    """Each label has a word of its own, among others."""
    Y = scipy.sparse.random_array((1500, n_labels), density=3 / n_labels, format="csr", rng=rng)
    Y.data[:] = 1.0
    noise = scipy.sparse.random_array((1500, 100), density=0.05, format="csr", rng=rng)
    return scipy.sparse.csr_array(scipy.sparse.hstack([Y, noise])), Y


@pytest.mark.parametrize(("n_labels", "n_recent"), [(200, 2000), (2500, 300)])
def test_a_model_learns_and_predicts_the_same(n_labels, n_recent):
    """Rows asked alone go another way than many, and both say the same with and without compiled loops."""
    X, Y = words_and_labels(n_labels, np.random.default_rng(0))

    def learn(loops):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hashed, "_COMPILED_FROM", 0 if loops else np.inf)
            # So few that the lists of labels go on behind their heads.
            patch.setattr(code_decoder, "HEAD", 32)
            patch.setattr(code_decoder, "_RECENT_WITH_POSTINGS" if n_labels > 2048 else "_RECENT", n_recent)
            model = labelrace.make_model("race-hashed", max_memory="900kB", n_components=16, random_state=0)
            for start in range(0, 1400, 200):
                model.partial_fit(X[start : start + 200], Y[start : start + 200])
            assert (model._fitted.derived.of_row is not None) == loops
            together = model.predict_top(X[1400:], 5)
            return together, [model.predict_top(X[row : row + 1], 5)[0] for row in range(1400, 1500)]

    results = [rows for form in both(learn) for rows in form]
    for rows in results[1:]:
        labels, likely = (
            [np.array([[entry[part] for entry in row] for row in some]) for some in (rows, results[0])]
            for part in (0, 1)
        )
        assert (labels[0] == labels[1]).mean() > 0.99
        np.testing.assert_allclose(*likely, atol=2e-3)


def test_who_learns_little_never_waits_for_a_compiler(monkeypatch):
    def fail():
        raise AssertionError("it asked for compiled loops")

    monkeypatch.setattr(compiled, "is_available", fail)
    X, Y = words_and_labels(60, np.random.default_rng(0))
    model = labelrace.make_model("race-hashed", random_state=0)
    for start in range(0, 1500, 500):
        model.partial_fit(X[start : start + 500], Y[start : start + 500])
    model.predict_top(X[:1])
