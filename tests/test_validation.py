"""Checks of what users give, one by one; tests/estimators tries them where they are used."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from labelrace import parameters, validation
from labelrace.streams.categorical import CategoricalMask

LABELS = hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 1))
# A busy machine is slow now and then.
QUICK = settings(max_examples=50, deadline=None)
KINDS = ["dense", "csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
DTYPES = [bool, np.int8, np.uint16, np.int64, np.float32, np.float64]


@QUICK
@given(Y=LABELS, dtype=st.sampled_from(DTYPES), kind=st.sampled_from(KINDS))
def test_labels_of_all_kinds_become_the_same(Y, dtype, kind):
    given_labels = Y.astype(dtype) if kind == "dense" else sparse.coo_array(Y.astype(dtype)).asformat(kind)
    checked = validation.check_labels(given_labels, len(Y), Y.shape[1])
    if kind == "dense":
        assert checked.dtype == np.float64
        assert not np.shares_memory(checked, given_labels)
    else:
        assert checked.format == "csr"
        assert checked.has_canonical_format
        checked = checked.toarray()
    np.testing.assert_array_equal(checked, Y)


@QUICK
@given(
    Y=LABELS,
    value=st.floats(width=32).filter(lambda value: value not in (0, 1)),
    cell=st.integers(0, 35),
    is_sparse=st.booleans(),
)
def test_every_other_value_is_refused_wherever_it_is(Y, value, cell, is_sparse):
    wrong = Y.astype(float)
    wrong.flat[cell % wrong.size] = value
    with pytest.raises(ValueError, match=r"Y contains NaN" if math.isnan(value) else "Y must hold 0 and 1"):
        validation.check_labels(sparse.csr_array(wrong) if is_sparse else wrong, *Y.shape)


@QUICK
@given(Y=LABELS, value=st.integers(-128, 127).filter(lambda value: value not in (0, 1)), is_sparse=st.booleans())
def test_every_other_whole_number_is_refused_and_shown(Y, value, is_sparse):
    Y[-1, -1] = value
    with pytest.raises(ValueError, match=f"Y must hold 0 and 1, but it holds {value}[.:]"):
        validation.check_labels(sparse.csr_array(Y) if is_sparse else Y, *Y.shape)


def test_labels_as_objects_and_nullable_numbers():
    Y = np.array([[1, 0], [0, 1]])
    for same in (Y.astype(object), Y.tolist(), pd.DataFrame(Y).astype("Int64"), pd.DataFrame(Y).astype("boolean")):
        np.testing.assert_array_equal(validation.check_labels(same, 2, 2), Y)
    with pytest.raises(ValueError, match="Y has no labels"):
        validation.check_labels(Y[:, :0], 2, None)


def test_repeated_cells_of_sparse_labels_add_up():
    twice = sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(ValueError, match="it holds 2"):
        validation.check_labels(twice, 1, 2)
    once = sparse.coo_array(([1, 0], ([0, 0], [1, 1])), shape=(1, 2))
    assert validation.check_labels(once, 1, 2).toarray().tolist() == [[0, 1]]


@pytest.mark.parametrize("good", [0, 0.5, 1, np.float32(0.5), np.int8(1)])
def test_numbers_in_a_range(good):
    parameters.check_number("x", good, 0, 1)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, -np.inf, True, "1", None, [1], 1j])
def test_what_is_no_number_in_a_range(bad):
    with pytest.raises(ValueError, match=r"x=.* does not do: give a number at least 0 and at most 1"):
        parameters.check_number("x", bad, 0, 1)
    with pytest.raises(ValueError, match=r"x=0 does not do: give a number above 0\."):
        parameters.check_number("x", 0, 0, open_low=True)


@pytest.mark.parametrize("bad", ["c", None, 1, ["a"], b"a"])
def test_what_is_none_of_the_choices(bad):
    parameters.check_choice("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match=r"x=.* is not known: use one of 'a', 'b'"):
        parameters.check_choice("x", bad, ("a", "b"))


@QUICK
@given(n_labels=st.integers(1, 10**6))
def test_numbers_of_components(n_labels):
    k = validation.component_count("log2", n_labels)
    assert 1 <= k <= n_labels
    assert 2**k >= n_labels > 2 ** (k - 1) or n_labels == 1 == k
    assert validation.component_count("log2_squared", n_labels) == min(k * k, n_labels)
    assert validation.component_count(n_labels, n_labels) == n_labels
    with pytest.raises(ValueError, match="fewer labels"):
        validation.component_count(n_labels + 1, n_labels)


def test_numbers_of_values_of_nominal_features():
    names = np.array(["x", "y", "z"], dtype=object)
    for chosen in ([0, 2], [True, False, True], ["z", "x"], np.array(["x", "z"]), (-1, 0)):
        assert validation.categorical_values(chosen, 3, names).tolist() == [2, 0, 2]
    assert validation.categorical_values(CategoricalMask([5, 0, 1]), 3, None).tolist() == [5, 0, 2]
    assert validation.categorical_values(None, 3, None).tolist() == [0, 0, 0]
    assert validation.categorical_values("y", 3, names).tolist() == [0, 2, 0]
    assert validation.categorical_values(1, 3, None).tolist() == [0, 2, 0]


def test_codes():
    n_values = np.array([2, 0, 2])
    good = np.array([[0, -1.5, 3], [np.nan, np.nan, 2.0**24 - 1]])
    validation.check_codes(good, n_values)
    validation.check_codes(sparse.csr_array(good), n_values)
    validation.check_codes(-good, np.zeros(3, dtype=int))
    for code in (-1.0, 0.5, 2.0**24):
        for column in (0, 2):
            bad = good.copy()
            bad[0, column] = code
            for X in (bad, sparse.csr_array(bad)):
                with pytest.raises(ValueError, match="in a column of categorical_features"):
                    validation.check_codes(X, n_values)


def test_generators():
    generator = np.random.default_rng(0)
    assert validation.generator(generator) is generator
    assert validation.generator(1).random() == validation.generator(np.int64(1)).random()
    state = np.random.RandomState(4)
    assert validation.generator(state).random() != validation.generator(state).random()
    for bad in ("dice", -1, 1.5, object()):
        with pytest.raises(ValueError, match=r"random_state=.* does not do: give a whole number"):
            validation.generator(bad)


def test_names_of_labels():
    frame = pd.DataFrame(np.eye(2), columns=["a", "b"])
    names = validation.check_label_names
    assert names(np.eye(2), None, None, 2) is None
    assert list(names(frame, None, None, 2)) == ["a", "b"]
    assert list(names(np.eye(2), ["u", "v"], None, 2)) == ["u", "v"]
    assert list(names(pd.DataFrame(np.eye(2)), ["u", "v"], None, 2)) == ["u", "v"]
    learned = np.array(["a", "b"], dtype=object)
    assert names(np.eye(2), None, learned, 2) is learned
    assert list(names(frame, ["u", "v"], learned, 2)) == ["a", "b"]
    for other, match in ((["a", "c"], "differ in 'b', 'c'"), (["b", "a"], "their order differs")):
        with pytest.raises(ValueError, match=f"columns of Y are not the labels learned before: .*{match}"):
            names(frame.set_axis(other, axis=1), None, learned, 2)
