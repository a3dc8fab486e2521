"""Rows that are learned one at a time: by loops, by NumPy and in blocks, with the same result."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelrace.base import compiled as compiling
from labelrace.linear import rls, row_loops, single_rows
from labelrace.linear.rls import RLS

LOOPS = pytest.mark.parametrize(
    "loops",
    [
        "plain",
        pytest.param("compiled", marks=pytest.mark.skipif(not compiling.is_available(), reason="Numba is not there")),
    ],
)


@pytest.fixture(autouse=True)
def taken(request, monkeypatch):
    """Run the loops as they are written, or compiled; both must give the same."""
    if "loops" in request.fixturenames and request.getfixturevalue("loops") == "plain":
        for kernel in vars(row_loops).values():
            if isinstance(kernel, compiling.Kernel):
                monkeypatch.setattr(kernel, "compiled", kernel.function)


def stream(seed, kind, n, m=14, k=6, n_first=80):
    """Make rows with labels that come late, that are not known, and values that are missing, constant or far out."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(n, m)) + (0 if kind == "sparse" else 10)
    if kind == "sparse":
        X *= rng.random(X.shape) < 0.2
    else:
        # One column that begins to vary, and outliers.
        X[: n_first + 20, 0] = 3.0
        X[n_first:][rng.random((n - n_first, m)) < 0.01] *= 1e4
    Y = (X @ rng.normal(size=(m, k)) > np.median(X @ rng.normal(size=(m, k)))).astype(float)
    for late in range(3):
        Y[: n_first + 15 * (late + 1), k - 1 - late] = 0
        Y[n_first + 15 * (late + 1), k - 1 - late] = 1
    Y[rng.random(Y.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.02] = np.nan
    X[n_first + 5] = 0
    return X, Y


def assert_same(one, other, rtol):
    """Compare all parts of two states; what was gained after it is faded."""
    assert one.young.tolist() == other.young.tolist()
    assert (one.in_use, one.rows, one.founded) == (other.in_use, other.rows, other.founded)
    np.testing.assert_array_equal(one.first_rows, other.first_rows)
    for name in ("weights", "intercepts", "intercept_gained"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=rtol, err_msg=name)
    gained = (np.asarray(state.gained) * state.fading for state in (one, other))
    np.testing.assert_allclose(*gained, rtol=rtol, atol=rtol)
    for name, part, like in zip(one.scaling._fields, one.scaling, other.scaling, strict=True):
        np.testing.assert_allclose(part, like, rtol=1e-9, atol=1e-9, err_msg=name)


@LOOPS
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["sparse", "dense"]),
    single=st.booleans(),
    half_life=st.sampled_from([None, 40.0, 0.5]),
    n_random=st.sampled_from([0, 4]),
    founded_often=st.booleans(),
)
def test_loops_give_what_numpy_gives(loops, seed, kind, single, half_life, n_random, founded_often):
    """Also where labels are new, young or not known, and where so much is forgotten that it is multiplied out."""
    X, Y = stream(seed, kind, 140)
    bank = RLS(half_life=half_life, single=single, binary=True, n_random_features=n_random)
    by_loops = by_numpy = bank.update(bank.init(np.zeros(X.shape[1], int), Y.shape[1]), X[:80], Y[:80])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rls, "_GENERATION", 10.0 if founded_often else 1000.0)
        patch.setattr(rls, "_NEW", 8.0 if founded_often else 750.0)
        for i in range(80, 140):
            x = scipy.sparse.csr_array(X[i : i + 1]) if kind == "sparse" and i % 3 else X[i : i + 1]
            one = single_rows.learn(bank, by_loops, x, Y[i], compiled=True)
            here, other = (single_rows.learn(bank, by_numpy, x, Y[i], compiled=form) for form in (True, False))
            np.testing.assert_allclose(one[0], other[0], rtol=1e-4, atol=1e-3 if single else 1e-9)
            # From the same state, so that round-off does not add up.
            assert_same(here[1], other[1], 2e-4 if single else 1e-8)
            by_loops, by_numpy = one[1], other[1]
    assert by_numpy.young.any() or np.isinf(by_numpy.first_rows).any() or founded_often


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_generations_that_single_rows_found_begin_anew(kind, monkeypatch):
    """What the generation before has gained is not taken for theirs, also of the columns of the row that founds it."""
    monkeypatch.setattr(rls, "_GENERATION", 10.0)
    monkeypatch.setattr(rls, "_NEW", 5.0)
    X, Y = stream(0, kind, 140)
    X, Y = np.nan_to_num(X), np.nan_to_num(Y)
    bank = RLS(half_life=100.0, binary=True, n_random_features=3)
    block = row = bank.update(bank.init(np.zeros(X.shape[1], int), Y.shape[1]), X[:80], Y[:80])
    founded = set()
    for i in range(80, 140):
        x = X[i : i + 1]
        block, row = (
            bank.learn(block, x, Y[i : i + 1]),
            single_rows.learn(bank, row, x, Y[i])[1],
        )
        assert_same(row, block, 1e-8)
        founded.add(row.founded)
    assert len(founded) > 2


@LOOPS
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_row_leaves_the_states_before_as_they_were(loops, kind, compiled):
    """So is what another copy of one of them learns; and the row may be changed by its owner afterwards."""
    X, Y = stream(3, kind, 140)
    bank = RLS(single=True, binary=True)
    before = bank.update(bank.init(np.zeros(X.shape[1], int), Y.shape[1]), X[:80], Y[:80])
    weights, gained = np.array(before.weights), np.array(before.gained)
    x, further = (scipy.sparse.csr_array(X[i : i + 1]) if kind == "sparse" else X[i : i + 1] for i in (90, 91))
    one = single_rows.learn(bank, before, x, Y[90], compiled=compiled)[1]
    learned = np.array(one.weights)
    assert (learned != weights).any()
    for _ in range(2):
        # The array holds the version of the first copy; the others go their own way.
        other = single_rows.learn(bank, before, x, Y[90], compiled=compiled)[1]
        np.testing.assert_array_equal(other.weights, learned)
    single_rows.learn(bank, one, further, Y[91], compiled=compiled)
    if kind == "sparse":
        x.indices[:] = further.indices[:] = 0
    np.testing.assert_array_equal(one.weights, learned)
    np.testing.assert_array_equal(before.weights, weights)
    np.testing.assert_array_equal(before.gained, gained)


@LOOPS
def test_what_overflows_is_refused(loops):
    X, Y = stream(4, "dense", 140)
    X = np.nan_to_num(X)
    bank = RLS(binary=True, n_random_features=0)
    state = bank.update(bank.init(np.zeros(X.shape[1], int), Y.shape[1]), X[:80], Y[:80])
    state = state._replace(intercepts=np.full_like(state.intercepts, np.inf))
    with np.errstate(invalid="ignore"), pytest.raises(rls.steps.DivergenceError, match="scale them down"):
        single_rows.learn(bank, state, X[90:91], np.zeros(Y.shape[1]), compiled=True)
