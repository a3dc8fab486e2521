"""The running sums: against products of whole matrices, in every regime of storage, and the sketch's error."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base import random_draws
from labelrace.base.growth import Moves, longer
from labelrace.base.linalg import signed, top_eigenpairs
from labelrace.exceptions import DivergenceError
from labelrace.learners import sums
from labelrace.learners.sums import Sums, matrix_of

MAKE = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}


def some_rows(seed, n=40, m=4, n_labels=7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)).round(2) + rng.normal(size=m) * 10
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, (rng.random((n, n_labels)) < rng.random(n_labels)).astype(float)


def read(keeper, state):
    """Return the sums about zero, with YᵀY."""
    m, n_labels = len(state.shift), len(state.sum_y)
    xy = matrix_of(state.xy, (m, n_labels))
    xy = xy.toarray() if scipy.sparse.issparse(xy) else xy
    outer = np.outer(state.sum_x, state.shift)
    return (
        state.rows,
        state.sum_x + state.rows * state.shift,
        state.sum_y,
        state.xx + outer + outer.T + state.rows * np.outer(state.shift, state.shift),
        xy + np.outer(state.shift, state.sum_y),
        keeper.label_gram(state).dense(),
    )


def direct(X, Y, w):
    wx, wy = w[:, None] * X, w[:, None] * Y
    return w.sum(), wx.sum(axis=0), wy.sum(axis=0), X.T @ wx, X.T @ wy, Y.T @ wy


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-8)


# Tables up to this number of cells are dense: with 0 all are sparse.
@pytest.fixture(params=[sums._DENSE_CELLS, 0], ids=["dense tables", "sparse tables"])
def tables(request, monkeypatch):
    monkeypatch.setattr(sums, "_DENSE_CELLS", request.param)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("form_x", MAKE)
@pytest.mark.parametrize("form_y", MAKE)
@pytest.mark.parametrize("keep", [1.0, 0.7])
def test_sums_are_those_of_all_rows(form_x, form_y, keep):
    (X, Y), keeper = some_rows(1), Sums()
    state, weights = keeper.init(4, 7), np.zeros(0)
    for part in (slice(0, 1), slice(1, 15), slice(15, 40)):
        before = keeper.decay(state, keep)
        state = keeper.update(before, MAKE[form_x](X[part]), MAKE[form_y](Y[part]))
        weights = np.append(keep * weights, np.ones(len(X[part])))
    assert_same(read(keeper, state), direct(X, Y, weights))


@pytest.mark.usefixtures("tables")
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(1, 39), max_size=4), sparse=st.booleans())
def test_any_order_of_batches_merges_and_growth(seed, cuts, sparse):
    (X, Y), keeper, make = some_rows(seed), Sums(), MAKE["sparse" if sparse else "dense"]
    edges = sorted({0, 40, *cuts})
    parts = [slice(*edge) for edge in pairwise(edges)]
    # The last two labels and the last feature are known to the first part from the start, to the others later.
    Y[parts[0], 5:], X[:, 3] = 0.0, 0.0
    states = []
    for number, part in enumerate(parts):
        if number % 2:
            state = keeper.update(keeper.init(4, 7), make(X[part]), make(Y[part]))
        elif number == 0:
            state = keeper.update(keeper.init(3, 5), make(X[part, :3]), make(Y[part, :5]))
            state = keeper.take(state, Moves({"y": longer(5, 7), "f": longer(3, 4)}))
        else:
            state = keeper.update(states.pop(), make(X[part]), make(Y[part]))
        states.append(state)
    while len(states) > 1:
        states = [keeper.merge(states[-1], states[0]), *states[1:-1]]
    assert_same(read(keeper, states[0]), direct(X, Y, np.ones(40)))


def test_nothing_is_written_into(assert_pure):
    (X, Y), keeper = some_rows(2), Sums()
    state = keeper.update(keeper.init(4, 7), X[:20], Y[:20])
    assert_pure(keeper.update, state, X[20:], Y[20:])
    assert_pure(keeper.merge, state, state)
    assert_pure(keeper.decay, state, 0.5)
    assert_pure(keeper.take, state, Moves({"y": longer(7, 9)}))


def test_large_means_lose_no_digits():
    (X, Y), keeper = some_rows(3), Sums()
    near = keeper.update(keeper.update(keeper.init(4, 7), X[:9], Y[:9]), X[9:], Y[9:])
    far = keeper.update(keeper.update(keeper.init(4, 7), X[:9] + 1e9, Y[:9]), X[9:] + 1e9, Y[9:])

    def centred(state):
        return state.xx - np.outer(state.sum_x, state.sum_x) / state.rows

    np.testing.assert_allclose(centred(far), centred(near), rtol=1e-6, atol=1e-4)


def test_many_labels_are_never_rows_times_labels(monkeypatch):
    """With 200,000 labels what is kept is what occurs, and the sketch."""
    monkeypatch.setattr(sums, "_DENSE_CELLS", 10_000)
    rng = np.random.default_rng(0)
    Y = scipy.sparse.csr_array(
        (np.ones(60), (np.repeat(np.arange(20), 3), rng.integers(0, 200_000, 60))), (20, 200_000)
    )
    Y.data[:] = 1
    keeper = Sums(sketch_size=4)
    state = keeper.update(keeper.init(30, 200_000), rng.normal(size=(20, 30)), Y)
    assert len(state.xy.data) <= 30 * 60
    assert len(state.yy.data) <= 4 * 60
    assert state.xy.dense.size == state.yy.dense.size == 0
    exact, V = Sums(exact_labels=10**6), rng.normal(size=(200_000, 2))
    state = exact.update(exact.init(1, 200_000), np.zeros((20, 1)), Y)
    np.testing.assert_allclose(exact.label_gram(state).times(V), Y.T @ (Y @ V))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sketch_is_exact_up_to_its_rank_and_a_function_of_the_sums(seed):
    rng = np.random.default_rng(seed)
    base = (rng.random((6, 50)) < 0.3).astype(float)
    Y, X = base[rng.integers(0, 6, 80)], np.zeros((80, 1))
    exact, sketch = Sums(exact_labels=100), Sums(exact_labels=20, sketch_size=12, seed=seed)
    whole = sketch.update(sketch.init(1, 50), X, Y)
    np.testing.assert_allclose(sketch.label_gram(whole).dense(), Y.T @ Y, atol=1e-7 * len(Y))
    parts = sketch.merge(
        sketch.update(sketch.init(1, 50), X[:30], Y[:30]), sketch.update(sketch.init(1, 50), X[30:], Y[30:])
    )
    np.testing.assert_allclose(parts.yy.dense, whole.yy.dense, atol=1e-9)
    # Growing over the limit turns the exact table into the sketch.
    narrow = Y * (np.arange(50) < 18)
    grown = sketch.take(sketch.update(sketch.init(1, 18), X, narrow[:, :18]), Moves({"y": longer(18, 50)}))
    np.testing.assert_allclose(grown.yy.dense, sketch.update(sketch.init(1, 50), X, narrow).yy.dense, atol=1e-9)
    few = np.array([3, 7])
    np.testing.assert_allclose(
        sketch.label_gram(whole).columns(few), exact.label_gram(exact.update(exact.init(1, 50), X, Y)).columns(few),
        atol=1e-6,
    )  # fmt: skip


def test_the_error_of_the_sketch():
    """Of 300 labels with a long tail, directions from 48 signs keep within 2 % of what the best directions keep."""
    rng = np.random.default_rng(0)
    topics = rng.random((15, 300)) ** 6
    Y = (rng.random((2000, 300)) < topics[rng.integers(0, 15, 2000)]).astype(float)
    keeper = Sums(exact_labels=100, sketch_size=48, seed=1)
    state = keeper.update(keeper.init(1, 300), np.zeros((2000, 1)), scipy.sparse.csr_array(Y))
    gram, total = Y.T @ Y, float((Y**2).sum())
    best, _ = top_eigenpairs(gram, 15)
    _, V = top_eigenpairs(keeper.label_gram(state).dense(), 15)
    kept = np.einsum("ij,ij->", V, gram @ V)
    assert best.sum() / total < 0.9
    assert 0.98 * best.sum() < kept <= best.sum() + 1e-6


def test_draws_belong_to_places():
    for draw in (random_draws.uniform, random_draws.normal, random_draws.signs):
        np.testing.assert_array_equal(draw(3, 5, 4), draw(3, 9, 7)[:5, :4])
        assert not np.array_equal(draw(3, 5, 4), draw(4, 5, 4))
        assert not np.array_equal(draw(3, 5, 4), draw(3 + 2**70, 5, 4))
    many = random_draws.uniform(0, 1000, 100)
    assert 0 < many.min() < many.max() < 1
    np.testing.assert_allclose([many.mean(), many.var()], [1 / 2, 1 / 12], atol=2e-3)
    assert np.abs(np.corrcoef(many.T) - np.eye(100)).max() < 0.15
    assert np.abs(np.corrcoef(many[:100]) - np.eye(100)).max() < 0.6
    normal = random_draws.normal(1, 1000, 100)
    np.testing.assert_allclose([normal.mean(), normal.var()], [0, 1], atol=1e-2)
    assert abs(random_draws.signs(2, 1000, 100).mean()) < 1e-2


def test_eigenpairs_agree_however_they_are_computed():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(90, 60)) * np.linspace(1, 3, 60)
    gram = factor.T @ factor
    values, vectors = np.linalg.eigh(gram)
    operator = scipy.sparse.linalg.LinearOperator(gram.shape, matvec=lambda v: gram @ v, dtype=float)
    for matrix, k in ((gram, 1), (gram, 5), (gram, 40), (operator, 5)):
        found, directions = top_eigenpairs(matrix, k)
        np.testing.assert_allclose(found, values[::-1][:k], rtol=1e-9)
        np.testing.assert_allclose(directions, signed(vectors[:, ::-1][:, :k]), atol=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_eigenpairs_beyond_the_rank_are_zero(rank):
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(rank, 700))
    gram = factor.T @ factor
    for matrix in (gram, scipy.sparse.linalg.aslinearoperator(gram)):
        values, vectors = top_eigenpairs(matrix, 6)
        np.testing.assert_allclose(values[rank:], 0, atol=1e-9)
        np.testing.assert_allclose(vectors[:, :rank] * values[:rank] @ vectors[:, :rank].T, gram, atol=1e-9)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"X must have at most 20000 feature columns, got 47236"):
        Sums().init(47_236, 100)
    with pytest.raises(DivergenceError, match="overflow"):
        Sums().update(Sums().init(1, 1), np.array([[1e200], [-1e200]]), np.ones((2, 1)))
