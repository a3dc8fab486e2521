"""Compiled loops against the forms in NumPy: the same result up to round-off, whatever the rows and labels are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import labelrace
from labelrace.core import compiled
from labelrace.learners import candidates, code_decoder, label_search, residual_table

pytestmark = pytest.mark.skipif(not compiled.is_available(), reason="Numba is not installed")
SEEDS = st.integers(0, 2**32 - 1)


def both(task):
    """Return what a task gives with compiled loops, and without."""
    with_loops = task()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "is_available", lambda: False)
        return with_loops, task()


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([64, 1 << 12, 1 << 20]), st.integers(1, 20))
def test_the_table(seed, n_slots, width):
    """Of few slots, too, where pairs take them from one another; rows may be empty, labels not known."""

    def learn():
        rng, tables = np.random.default_rng(seed), [residual_table.init(n_slots)]
        for n in (3, 30, 30):
            Z = scipy.sparse.random_array((n, 60), density=0.1, format="csr", dtype=np.float32, rng=rng)
            labels = np.argsort(rng.random((n, 40)), axis=1)[:, :width]
            base = rng.normal(0.2, 0.3, labels.shape).astype(np.float32)
            targets = rng.choice([0.0, 1.0, np.nan], size=labels.shape, p=[0.6, 0.3, 0.1])
            tables.append(residual_table.learn(tables[-1], Z, labels, base, targets, np.full(60, 2.0)))
        # The last two are of the newest version, and of one before it.
        return [np.asarray(tables[-1]), *(residual_table.scores(table, Z, labels) for table in tables[-2:])]

    for one, other in zip(*both(learn), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)


def test_an_old_version_of_the_table_is_read_to_the_bit():
    """Whether somebody learns meanwhile must not be seen in what is predicted."""
    rng = np.random.default_rng(0)
    Z = scipy.sparse.random_array((20, 60), density=0.2, format="csr", dtype=np.float32, rng=rng)
    labels = np.argsort(rng.random((20, 40)), axis=1)[:, :8]
    given = Z, labels, np.zeros((20, 8), np.float32), (rng.random((20, 8)) < 0.5).astype(float), np.ones(60)
    table = residual_table.learn(residual_table.init(4096), *given)
    newest = residual_table.scores(table, Z, labels)
    residual_table.learn(table, *given)
    np.testing.assert_array_equal(residual_table.scores(table, Z, labels), newest)


def decoder_of(rng, n_labels, k=6):
    state = code_decoder.init(n_labels, k)
    for _ in range(6):
        Y = scipy.sparse.random_array((40, n_labels), density=0.05, format="csr", rng=rng)
        Y.data[:] = 1.0
        state = code_decoder.update(state, rng.normal(size=(40, k)), Y, 0.9)
    return code_decoder.derive(state)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from([30, 300]), st.integers(1, 40), st.integers(0, 10))
def test_the_best_labels(seed, n_labels, n_best, n_exact):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_decoder, "_RECENT", 50)
        patch.setattr(code_decoder, "_FEW_APART", 40)
        for module in (code_decoder, label_search):
            patch.setattr(module, "HEAD", 16)
        rng = np.random.default_rng(seed)
        derived = decoder_of(rng, n_labels)
        asked = code_decoder.queries(derived, rng.normal(size=(70, 6)))
        n_best = min(n_best, n_labels)
        (labels, scores), (others, expected) = both(lambda: label_search.best(derived, asked, n_best, n_exact))
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    # Labels whose scores are equal, such as those that never occurred, may come in another order.
    differ = labels != others
    apart = np.diff(expected, axis=1, prepend=np.inf, append=-np.inf)
    assert not (differ & (apart[:, :-1] < -1e-4) & (apart[:, 1:] < -1e-4)).any()


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12))
def test_what_the_table_learns(seed, n_present):
    rng = np.random.default_rng(seed)
    derived = decoder_of(rng, 300)
    asked = code_decoder.queries(derived, rng.normal(size=(20, 6)))
    Y = scipy.sparse.random_array((20, 300), density=n_present / 300, format="csr", rng=rng)
    Y.data[:] = rng.choice([1.0, 0.0, np.nan], size=Y.nnz, p=[0.8, 0.1, 0.1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "count", lambda n_labels, are_offered: 8)
        one, other = both(lambda: candidates.to_learn(derived, asked, Y))
    for part, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-5)


def test_a_model_learns_and_predicts_the_same():
    """Rows asked alone go another way than many, and both say the same with and without compiled loops."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((1500, 300), density=0.03, format="csr", rng=rng)
    Y = scipy.sparse.csr_array((X[:, :200] > 0.6).astype(int))

    def learn():
        model = labelrace.make_model("race-hashed", max_memory="300kB", n_components=16, random_state=0)
        for start in range(0, 1400, 200):
            model.partial_fit(X[start : start + 200], Y[start : start + 200])
        together = model.predict_top(X[1400:], 5)
        return together, [model.predict_top(X[row : row + 1], 5)[0] for row in range(1400, 1500)]

    results = [rows for form in both(learn) for rows in form]
    for rows in results[1:]:
        labels, likely = (
            [np.array([[entry[part] for entry in row] for row in some]) for some in (rows, results[0])]
            for part in (0, 1)
        )
        assert (labels[0] == labels[1]).mean() > 0.995
        np.testing.assert_allclose(*likely, atol=2e-3)
