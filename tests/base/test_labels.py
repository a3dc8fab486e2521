"""Labels of all kinds, as what they mean: a matrix of 0 and 1, and names."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.labels import check_label_matrix, first_labels, next_labels
from labelrace.base.schema import Schema
from labelrace.base.sparse import dense

LABELS = hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 1))
# A busy machine is slow now and then.
QUICK = settings(max_examples=50, deadline=None)
KINDS = ["dense", "csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
DTYPES = [bool, np.int8, np.uint16, np.int64, np.float32, np.float64]
KNOWN = np.array(["a", "b"], dtype=object)


@QUICK
@given(Y=LABELS, dtype=st.sampled_from(DTYPES), kind=st.sampled_from(KINDS))
def test_labels_of_all_kinds_become_the_same(Y, dtype, kind):
    given_labels = Y.astype(dtype) if kind == "dense" else sparse.coo_array(Y.astype(dtype)).asformat(kind)
    checked = check_label_matrix(given_labels, len(Y))
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
    with pytest.raises(ValueError, match=r"y contains NaN" if math.isnan(value) else "y must hold 0 and 1"):
        check_label_matrix(sparse.csr_array(wrong) if is_sparse else wrong, len(Y))


@QUICK
@given(Y=LABELS, value=st.integers(-128, 127).filter(lambda value: value not in (0, 1)), is_sparse=st.booleans())
def test_every_other_whole_number_is_refused_and_shown(Y, value, is_sparse):
    Y[-1, -1] = value
    with pytest.raises(ValueError, match=f"y must hold 0 and 1, got {value}[.:]"):
        check_label_matrix(sparse.csr_array(Y) if is_sparse else Y, len(Y))


def test_labels_as_objects_and_nullable_numbers():
    Y = np.array([[1, 0], [0, 1]])
    for same in (Y.astype(object), Y.tolist(), pd.DataFrame(Y).astype("Int64"), pd.DataFrame(Y).astype("boolean")):
        np.testing.assert_array_equal(check_label_matrix(same, 2), Y)
    with pytest.raises(ValueError, match="y must have at least one label"):
        check_label_matrix(Y[:, :0], 2)


def test_repeated_cells_of_sparse_labels_add_up():
    twice = sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(ValueError, match="got 2"):
        check_label_matrix(twice, 1)
    once = sparse.coo_array(([1, 0], ([0, 0], [1, 1])), shape=(1, 2))
    assert check_label_matrix(once, 1).toarray().tolist() == [[0, 1]]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_labels_that_are_not_known(is_sparse):
    Y = np.array([[1, np.nan, 0], [0, 1, np.nan]])
    given_labels = sparse.coo_array(Y) if is_sparse else Y
    checked = check_label_matrix(given_labels, 2, allow_missing=True)
    np.testing.assert_array_equal(dense(checked), Y)
    with pytest.raises(ValueError, match=r"y contains NaN.*'race'"):
        check_label_matrix(given_labels, 2)
    with pytest.raises(ValueError, match=r"got 0\.5"):
        check_label_matrix(0.5 * given_labels, 2, allow_missing=True)


def test_labels_that_are_masked_or_missing_in_a_data_frame():
    Y, hidden = np.array([[1, 0], [0, 1]]), np.array([[False, True], [False, False]])
    expected = np.where(hidden, np.nan, Y)
    frame = pd.DataFrame(Y, columns=["a", "b"]).astype("Int64").mask(hidden)
    floats = pd.DataFrame(expected, columns=["a", "b"])
    frames = (frame, floats, floats[["a", "b"]], floats.astype(object), floats.assign(b=frame["b"]))
    for hiding in (np.ma.masked_array(Y, hidden), np.ma.masked_array(Y == 1, hidden), *frames):
        np.testing.assert_array_equal(check_label_matrix(hiding, 2, allow_missing=True), expected)
        with pytest.raises(ValueError, match=r"y contains NaN|y must hold 0 and 1"):
            check_label_matrix(hiding, 2)
    np.testing.assert_array_equal(check_label_matrix(np.ma.masked_array(Y), 2), Y)


def test_names_of_first_labels():
    frame = pd.DataFrame(np.eye(2), columns=["a", "b"])

    def names(Y, given):
        found = first_labels(Y, 2, given).names
        return None if found is None else list(found)

    assert names(np.eye(2), None) is None
    assert names(frame, None) == ["a", "b"]
    assert names(frame, ["u", "v"]) == ["a", "b"]
    assert names(np.eye(2), ["u", "v"]) == ["u", "v"]
    assert names(pd.DataFrame(np.eye(2)), ["u", "v"]) == ["u", "v"]
    assert names([{"w", "u"}, set()], ["u", "v"]) == ["u", "v", "w"]
    assert names([[], []], ["u", "v"]) == ["u", "v"]
    for wrong, match in (
        (["u"], "label_names has 1 names, but y has 2"),
        (["u", "u"], "distinct"),
        ("uv", "label_names must be a list of names.*, got 'uv'"),
    ):
        with pytest.raises(ValueError, match=match):
            names(np.eye(2), wrong)
    with pytest.raises(ValueError, match="y must name at least one label"):
        names([set(), set()], None)
    with pytest.raises(ValueError, match="X and y must have the same number of rows"):
        names([{"a"}], None)


LATER = {
    "same": (pd.DataFrame([[1, 0]], columns=["a", "b"]), "ab", [[1, 0]]),
    "another order": (pd.DataFrame([[1, 0]], columns=["b", "a"]), "ab", [[0, 1]]),
    "new": (pd.DataFrame([[1, 0, 1]], columns=["c", "b", "d"]), "abcd", [[0, 0, 1, 1]]),
    "left out": (pd.DataFrame([[1]], columns=["b"]), "ab", [[0, 1]]),
    "set": ([{"d", "b", "c"}], "abcd", [[0, 1, 1, 1]]),
    "list": ([["d", "b", "c", "d"]], "abdc", [[0, 1, 1, 1]]),
    "tuple": ((("a",),), "ab", [[1, 0]]),
    "empty list": ([[]], "ab", [[0, 0]]),
    "column of sets": (pd.Series([{"b"}]), "ab", [[0, 1]]),
    "array of sets": (np.array([{"b"}], dtype=object), "ab", [[0, 1]]),
    "no names": ([[0, 1]], "ab", [[0, 1]]),
}


def schema(n_labels, names=None):
    return Schema(FeatureKinds.numbers(1), None, n_labels, names)


@pytest.mark.parametrize(("Y", "names", "expected"), LATER.values(), ids=LATER)
def test_names_of_later_labels(Y, names, expected):
    found = next_labels(Y, 1, schema(2, KNOWN))
    assert list(found.names) == list(names)
    np.testing.assert_array_equal(dense(found.matrix), expected)
    assert list(KNOWN) == ["a", "b"]


def test_later_labels_without_names():
    for Y in (np.eye(3), sparse.csr_array(np.eye(3))):
        found = next_labels(Y, 3, schema(2))
        assert found.names is None
        np.testing.assert_array_equal(dense(found.matrix), np.eye(3))
        with pytest.raises(ValueError, match="y has 3 labels, but the model has learned with 2, which have names"):
            next_labels(Y, 3, schema(2, KNOWN))
        with pytest.raises(ValueError, match="y has 3 labels, but the model has learned with 4"):
            next_labels(Y, 3, schema(4))
    with pytest.raises(ValueError, match="labels learned so far have none"):
        next_labels([{"a"}], 1, schema(2))
    # Columns that have names give them to labels that have none yet.
    with pytest.warns(UserWarning, match="its columns are taken in their order"):
        assert list(next_labels(pd.DataFrame(np.eye(3), columns=list("xyz")), 3, schema(2)).names) == list("xyz")


def test_whole_numbers_as_names_of_labels():
    first = first_labels(pd.DataFrame(np.eye(2), columns=[30, 10]), 2, None)
    assert list(first.names) == ["30", "10"]
    assert first_labels(pd.DataFrame(np.eye(2), columns=[30, 10]), 2, ["a", "b"]).names.tolist() == ["a", "b"]
    known = schema(2, first.names)
    found = next_labels(pd.DataFrame([[1, 0, 1]], columns=[10, 30, 50]), 1, known)
    assert found.names.tolist() == ["30", "10", "50"]
    np.testing.assert_array_equal(dense(found.matrix), [[0, 1, 1]])
    # Columns that are only counted have no names, as those of a matrix; unless these are known.
    np.testing.assert_array_equal(dense(next_labels(pd.DataFrame([[1, 0]]), 1, known).matrix), [[1, 0]])
    counted = schema(2, first_labels(pd.DataFrame(np.eye(2), columns=[1, 0]), 2, None).names)
    np.testing.assert_array_equal(dense(next_labels(pd.DataFrame([[1, 0]]), 1, counted).matrix), [[0, 1]])
    with pytest.raises(ValueError, match=r"y must have its columns in the order 0, 1, 2, ….*got 1, 0"):
        next_labels(pd.DataFrame([[1, 0]], columns=[1, 0]), 1, schema(2))
