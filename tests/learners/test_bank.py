"""What every bank promises: sparse targets, reasons why states do not merge, states that fit their annotations."""

import typing

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import SGDClassifier

from labelrace.learners.adapter import Adapter
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD
from labelrace.linear.rls import RLS
from labelrace.typing import Array, BoolArray, FloatArray, IntArray

BANKS = {
    "density": NaiveBayes(),
    "binned": NaiveBayes(numeric="binned"),
    "sgd": SGD(rate=0.01),
    "weka's sgd": SGD(rate=0.01, nominal_coding="cumulative", fill_missing=True, shuffle_seed=1, first_epochs=3),
    "ridge": Ridge(),
    "rls": RLS(n_random_features=3),
    "single rls": RLS(half_life=20.0, single=True),
    "adapter": Adapter(SGDClassifier(random_state=0)),
}


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("bank", sorted(BANKS))
def test_sparse_targets_are_dense_targets(learn, bank, make):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 2, 90), rng.integers(0, 3, 90)])
    H = (rng.random((90, 3)) < 0.3).astype(float)
    if BANKS[bank].skips_missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    dense, sparse = (
        BANKS[bank].predict(BANKS[bank].derive(learn(BANKS[bank], [0, 0, 2, 3], make(X), targets, [70])), make(X))
        for targets in (H, scipy.sparse.csr_array(H))
    )
    assert isinstance(sparse, np.ndarray)
    np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("name", sorted(set(BANKS) - {"adapter"}))
def test_nothing_is_written_into(learn, assert_pure, name, make):
    bank, rng = BANKS[name], np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 2, 90), rng.integers(0, 3, 90)])
    H = (rng.random((90, 3)) < 0.3).astype(float)
    if bank.skips_missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    state = learn(bank, [0, 0, 2, 3], make(X), H)
    before = bank.predict(bank.derive(state), make(X))
    beyond = X.copy()
    beyond[3] = [1, 1, 0, 4]
    assert_pure(bank.update, state, make(beyond), H)
    if bank.why_unmergeable(state, state) is None:
        assert_pure(bank.merge, state, state)
    np.testing.assert_array_equal(assert_pure(bank.predict, assert_pure(bank.derive, state), make(X)), before)


@pytest.mark.parametrize("bank", sorted(BANKS))
def test_unmergeable_banks_say_why(bank):
    state = BANKS[bank].init(np.zeros(2, int), 1)
    mergeable = BANKS[bank].why_unmergeable(state, state) is None
    assert mergeable == (bank in {"binned", "density", "ridge"})
    if bank in {"sgd", "adapter"}:
        with pytest.raises(NotImplementedError, match="order of the rows"):
            BANKS[bank].merge(state, state)


DTYPES = {Array: np.inexact, FloatArray: np.float64, IntArray: np.intp, BoolArray: np.bool_}


def assert_annotated(state, state_type, path):
    """Compare every field, also inside of fields, with the type that its annotation resolves to."""
    assert type(state) is state_type, path
    hints = typing.get_type_hints(state_type)
    assert list(hints) == list(state._fields)
    for name, value in state._asdict().items():
        options = set(typing.get_args(hints[name])) if type(None) in typing.get_args(hints[name]) else {hints[name]}
        if value is None:
            assert type(None) in options, f"{path}.{name}"
            continue
        [kind] = options - {type(None)}
        if hasattr(value, "_fields"):
            assert_annotated(value, kind, f"{path}.{name}")
        elif isinstance(value, np.ndarray):
            assert np.issubdtype(value.dtype, DTYPES[kind]), f"{path}.{name}"
        else:
            assert type(value) is kind, f"{path}.{name}"


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
@pytest.mark.parametrize("n", [0, 5, 90])
@pytest.mark.parametrize("bank", sorted(set(BANKS) - {"adapter"}))
def test_states_are_as_annotated(bank, n, make):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 2, 90), rng.integers(0, 3, 90)])
    if BANKS[bank].skips_missing:
        X[3] = np.nan
    state = BANKS[bank].init(np.array([0, 0, 2, 3]), 3)
    if n:
        state = BANKS[bank].update(state, make(X[:n]), (rng.random((n, 3)) < 0.3).astype(float))
    assert_annotated(state, BANKS[bank].state_type, bank)
