"""The bank of ridge regressors against scikit-learn on all rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.learners.ridge import Ridge

SEEDS = st.integers(0, 2**32 - 1)


def reference(X, H, alpha, queries):
    return sklearn.linear_model.Ridge(alpha=alpha, solver="svd").fit(X, H).predict(queries)


@settings(max_examples=50, deadline=None)
@given(
    SEEDS,
    st.integers(1, 5),
    st.lists(st.integers(1, 39), max_size=5),
    st.sampled_from([1e-3, 1.0, 50.0]),
    st.booleans(),
)
def test_scikit_learn_on_all_rows(learn, seed, m, cuts, alpha, sparse):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, m)) * (rng.random((40, m)) < 0.6)
    H = rng.normal(size=(40, 3)) + X[:, :1] + 5
    make = scipy.sparse.csr_array if sparse else np.array
    bank = Ridge(alpha)
    got = bank.predict(bank.derive(learn(bank, [0] * m, make(X), H, cuts)), make(X))
    np.testing.assert_allclose(got, reference(X, H, alpha, X), rtol=0, atol=1e-8)


def test_dense_and_sparse_batches_mix():
    rng = np.random.default_rng(0)
    X, H = rng.normal(size=(40, 3)) + 3, rng.normal(size=(40, 2))
    bank = Ridge(0.5)
    for kinds in ((np.array, scipy.sparse.csr_array), (scipy.sparse.csr_array, np.array)):
        state = bank.update(bank.init(np.zeros(3, int), 2), kinds[0](X[:15]), H[:15])
        state = bank.update(state, kinds[1](X[15:]), H[15:])
        np.testing.assert_allclose(bank.predict(bank.derive(state), X), reference(X, H, 0.5, X), atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_nominal_columns_are_one_hot(learn, sparse):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 2, 60), rng.normal(size=60), rng.integers(0, 4, 60)]).astype(float)
    H = rng.normal(size=(60, 2)) + X[:, [2]]
    one_hot = np.column_stack([X[:, 1], X[:, 0], X[:, 2] == 1, X[:, 2] == 2, X[:, 2] == 3]).astype(float)
    make = scipy.sparse.csr_array if sparse else np.array
    bank = Ridge(0.3)
    got = bank.predict(bank.derive(learn(bank, [2, 0, 4], make(X), H, [7, 30])), make(X))
    np.testing.assert_allclose(got, reference(one_hot, H, 0.3, one_hot), atol=1e-9)


@pytest.mark.parametrize("cuts", [[], [1], [20, 40]])
def test_large_offsets(learn, cuts):
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(60, 3))
    X, H = Z + np.array([1e6, -1e6, 0.0]), Z @ rng.normal(size=(3, 2)) + rng.normal(size=(60, 2)) + 1000
    bank = Ridge(1.0)
    got = bank.predict(bank.derive(learn(bank, [0] * 3, X, H, cuts)), X)
    np.testing.assert_allclose(got, reference(Z, H, 1.0, Z), rtol=0, atol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("sparse", [False, True])
def test_merging_is_learning_all_rows(learn, offset, sparse):
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(50, 3))
    H = Z @ rng.normal(size=(3, 2)) + rng.normal(size=(50, 2))
    X = Z.copy() if sparse else Z + offset
    make = scipy.sparse.csr_array if sparse else np.array
    bank = Ridge(1.0)
    one, other = learn(bank, [0] * 3, make(X[:20]), H[:20]), learn(bank, [0] * 3, X[20:], H[20:])
    for merged in (bank.merge(one, other), bank.merge(other, one)):
        np.testing.assert_allclose(bank.predict(bank.derive(merged), X), reference(Z, H, 1.0, Z), atol=1e-6)


def test_merging_with_nothing(learn):
    rng = np.random.default_rng(4)
    Z, H = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    bank = Ridge(1.0)
    nothing, state = bank.init(np.zeros(3, int), 2), learn(bank, [0] * 3, Z + 1e6, H)
    for merged in (bank.merge(state, nothing), bank.merge(nothing, state)):
        got = bank.predict(bank.derive(merged), Z + 1e6)
        np.testing.assert_allclose(got, reference(Z, H, 1.0, Z), atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["duplicate", "sum", "constant", "few rows"])
def test_no_penalty_on_dependent_columns(learn, seed, kind):
    """Least squares has many solutions then. Any of them fits alike, and nobody is bothered with a warning."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(30, 4)).astype(float)
    extra = {"duplicate": X, "sum": X[:, :2] + X[:, 2:], "constant": np.full((30, 1), 0.1), "few rows": X[:, :0]}[kind]
    wide, H = np.hstack([X, extra]), rng.normal(size=(30, 2))
    if kind == "few rows":
        wide, X, H = wide[:3], X[:3], H[:3]
    design = np.column_stack([X, np.ones(len(X))])
    fitted = design @ np.linalg.lstsq(design, H, rcond=None)[0]
    bank = Ridge(0.0)
    state = learn(bank, [0] * wide.shape[1], wide, H, [2] if len(H) == 3 else [10, 20])
    with warnings.catch_warnings(record=True) as caught:
        # As outside of tests, where a warning is not an error.
        warnings.simplefilter("always")
        got = bank.predict(bank.derive(state), wide)
    np.testing.assert_allclose(got, fitted, atol=1e-8)
    assert [str(warning.message) for warning in caught] == []


def test_too_many_columns_are_an_error():
    bank = Ridge()
    with pytest.raises(ValueError, match=r"20001 feature columns.*learner='sgd'"):
        bank.init(np.zeros(20_001, int), 2)
    with pytest.raises(ValueError, match="m × m"):
        bank.init(np.array([30_000]), 2)
