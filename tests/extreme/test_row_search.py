"""The best labels of one row, found in one call, against the general way for many rows: the same up to round-off."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace.base import compiled
from labelrace.extreme import candidate_loops, row_search_loops
from labelrace.extreme import classifier as hashed
from labelrace.extreme import decoder as code_decoder
from labelrace.extreme import table_loops as residual_table_loops
from labelrace.extreme.row_search import RowSearch


@pytest.fixture(params=["plain", "compiled"])
def loops(request, monkeypatch):
    """Take the loops compiled, or as they are written."""
    if request.param == "compiled" and not compiled.is_available():
        pytest.skip("Numba is not there")
    if request.param == "plain":
        for module in (candidate_loops, row_search_loops, residual_table_loops):
            for kernel in vars(module).values():
                if isinstance(kernel, compiled.Kernel):
                    monkeypatch.setattr(kernel, "compiled", kernel.function)
    # Hashing overflows, which plain Python warns about.
    with np.errstate(over="ignore"):
        yield


@pytest.fixture(params=[(200, 2000, 32), (2500, 300, 32), (2500, 2048, 4096)], ids=["few", "many", "heads"])
def learned(request, monkeypatch):
    """Make a model, without compiled loops, of few labels or many, whose lists go on behind their heads or do not."""
    n_labels, n_recent, head = request.param
    monkeypatch.setattr(code_decoder, "HEAD", head)
    monkeypatch.setattr(code_decoder, "_RECENT_WITH_POSTINGS" if n_labels > 2048 else "_RECENT", n_recent)
    monkeypatch.setattr(hashed, "_COMPILED_FROM", np.inf)
    rng = np.random.default_rng(0)
    Y = scipy.sparse.random_array((1500, n_labels), density=3 / n_labels, format="csr", rng=rng)
    # Three labels that always come together, and so have one score by the decoder.
    together = np.repeat(rng.random((1500, 1)) < 0.1, 3, axis=1)
    Y = scipy.sparse.csr_array(scipy.sparse.hstack([Y[:, :7], together, Y[:, 10:]]))
    Y.data[:] = 1.0
    noise = scipy.sparse.random_array((1500, 100), density=0.05, format="csr", rng=rng)
    # Each label has a word of its own, but for these three.
    words = Y * (rng.random(Y.shape) < 0.8) * ~np.isin(np.arange(n_labels), [7, 8, 9])
    X = scipy.sparse.csr_array(scipy.sparse.hstack([words, noise]))
    X.eliminate_zeros()
    model = labelrace.make_model("race-hashed", max_memory="900kB", n_components=16, random_state=0)
    for start in range(0, 1400, 200):
        model.partial_fit(X[start : start + 200], Y[start : start + 200])
    return model, X[:1400], X[1400:1440], Y[:1400]


def search_of(model):
    derived = model._fitted.derived
    tables = derived.gained, derived.postings, derived.table
    return RowSearch(derived.decoder, derived.learners, tables, derived.rule, 1e100)


def assert_same(found, expected):
    """Compare lists of labels with probabilities; what is equally likely up to round-off may change places."""
    labels, likely = found
    np.testing.assert_allclose(likely, [value for _, value in expected], atol=1e-4)
    others = dict(expected)
    for label, value in zip(labels, likely, strict=True):
        assert others.get(label, expected[-1][1]) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_a_row_alone_is_the_row_among_many(learned, loops, k):
    model, _, test, _ = learned
    search, same = search_of(model), 0
    for place, expected in enumerate(model.predict_top(test, k)):
        found = search.best(test[place : place + 1], k)
        assert len(found[0]) == len(found[1]) == k
        # Which labels with nearly the same score by the decoder are the last candidates depends on round-off.
        assert_same([part[:5] for part in found], expected[:5])
        same += found[0][:5] == [label for label, _ in expected[:5]]
    assert same >= 38


def test_the_candidates_of_a_row_alone_are_those_among_many(learned, loops):
    model, _, test, _ = learned
    algorithm, derived = model._fitted.algorithm, model._fitted.derived
    search, many = search_of(model), algorithm.find_candidates(derived, test)
    labels, scores = many.best(many.labels.shape[1])
    for place in range(test.shape[0]):
        found = search.candidates(test[place : place + 1])
        np.testing.assert_allclose(found.scores[0], scores[place], atol=2e-4)
        assert len(set(found.labels[0]) & set(labels[place])) >= len(labels[place]) - 1


def test_of_equal_scores_the_first_label_comes_first(learned, loops):
    """A row without any feature, to which the table adds nothing."""
    model, _, test, _ = learned
    row = scipy.sparse.csr_array((1, test.shape[1]))
    expected, _ = model.predict_top(scipy.sparse.vstack([row, row], format="csr"), 3)
    labels, likely = search_of(model).best(row, 3)
    assert labels == [label for label, _ in expected] == [7, 8, 9]
    assert likely[0] == likely[2] == pytest.approx(expected[0][1])


def test_what_is_no_plain_row_is_left_to_the_general_way(learned, loops):
    model, X, test, Y = learned
    search, row = search_of(model), test[:1]
    assert search.best(row, 5) is not None
    reverse = scipy.sparse.csr_array((row.data[::-1], row.indices[::-1], row.indptr), row.shape)
    huge, missing, wild = row.copy(), row.copy(), row.copy()
    huge.data[0], missing.data[0], wild.indices[-1] = 1e101, np.nan, row.shape[1]
    wide = scipy.sparse.csr_array((row.data, row.indices, row.indptr), (1, row.shape[1] + 1))
    for other in (reverse, huge, missing, wild, wide, row.astype(np.float32)):
        assert search.best(other, 5) is None
    assert search.candidates(test[:2]) is None
    assert search.candidates(row.toarray()) is None
    model.partial_fit(X[:200], Y[:200])
    # Its tables are those of an older model.
    assert search.best(row, 5) is None


@pytest.mark.skipif(not compiled.is_available(), reason="Numba is not there")
def test_a_model_takes_the_short_way(monkeypatch):
    """Whatever kind of row is asked, and whether labels have names: what comes back is what many rows have."""
    monkeypatch.setattr(hashed, "_COMPILED_FROM", 0)
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((600, 300), density=0.05, format="csr", rng=rng)
    Y = (X[:, :60] > 0.5).astype(float)
    names = [f"label {place}" for place in range(60)]
    model = labelrace.make_model("race-hashed", max_memory="1MB", label_names=names, random_state=0)
    model.partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
    expected, calls = model.predict_top(X[:50], 3), []
    found = RowSearch.best
    monkeypatch.setattr(RowSearch, "best", lambda *given: calls.append(found(*given)) or calls[-1])
    for place in range(50):
        row = X[place : place + 1]
        for same in (row, scipy.sparse.csr_matrix(row)):
            [top] = model.predict_top(same, 3)
            assert calls.pop() is not None
            assert_same(list(zip(*top, strict=True)), expected[place])
        [top] = model.predict_top(row.astype(np.float32), 3)
        assert calls.pop() is None
        assert [label for label, _ in top] == [label for label, _ in expected[place]]
        model.predict_top(row.toarray(), 3)
        assert not calls
    assert len(model.predict_top(X[:1], 100)[0]) == 60
    with pytest.raises(ValueError, match="expecting 300 features"):
        model.predict_top(X[:1, :200], 3)
