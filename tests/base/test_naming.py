"""Rows that name what they hold."""

from __future__ import annotations

from collections import OrderedDict, UserDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.naming import NamedRows, aligned, as_array, feature_dicts, label_sets
from labelrace.base.schema import Schema

NAMES = st.text("abcdeé ", min_size=1, max_size=2)
QUICK = settings(max_examples=60, deadline=None)


@QUICK
@given(st.lists(st.dictionaries(NAMES, st.floats(-9, 9) | st.integers(-9, 9) | st.booleans()), min_size=1))
def test_dicts_as_in_scikit_learn(rows):
    found, theirs = feature_dicts(rows), DictVectorizer(sort=False)
    expected = theirs.fit_transform(rows) if any(rows) else sparse.csr_array((len(rows), 0))
    assert found.names == (list(theirs.get_feature_names_out()) if any(rows) else [])
    np.testing.assert_array_equal(found.matrix.toarray(), expected.toarray())
    assert found.matrix.has_canonical_format
    assert found.matrix.dtype == np.float64


@QUICK
@given(st.lists(st.sets(NAMES), min_size=1))
def test_sets_as_in_scikit_learn(rows):
    found, theirs = label_sets(rows), MultiLabelBinarizer()
    expected = theirs.fit_transform(rows)
    order = [found.names.index(name) for name in theirs.classes_]
    np.testing.assert_array_equal(found.matrix.toarray()[:, order], expected)
    # In the order in which they appear, and within a set by the alphabet.
    assert found.names == list(dict.fromkeys(name for row in rows for name in sorted(row)))


def test_what_is_not_rows_of_names():
    for other in (np.eye(2), [[1, 2]], [], (), None, "ab", {"a": 1}, 3, sparse.eye_array(2)):
        assert feature_dicts(other) is None
        assert label_sets(other) is None
    for other in (["a", "b"], [[0, 1], [1, 0]], [[]], np.array(["a"]), np.array([["a"]]), [("a",), 3]):
        assert label_sets(other) is None
    assert label_sets([[], ()], named=True).matrix.shape == (2, 0)


def test_all_kinds_of_dicts_and_numbers():
    rows = (OrderedDict(a=np.float32(0.5)), UserDict(b=np.int8(3)), {"a": np.bool_(True), "c": 0})
    assert feature_dicts(rows).matrix.toarray().tolist() == [[0.5, 0, 0], [0, 3, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([{"a": "red"}], "X holds 'red' as 'a': features are numbers"),
        ([{"a": 1}, {"b": None}], "X holds None as 'b'"),
        ([{"a": [1]}], r"X holds \[1\] as 'a'"),
        ([{"a": 1j}], "X holds 1j as 'a'"),
        ([{"a": 1}, [1]], "X has a list as row 1, but dicts as others"),
        ([{1: 1}], "X has 1 as the name of a feature: names are text"),
        ([{"a": 10**400}], "too large to be a float"),
    ],
)
def test_dicts_that_cannot_be_used(rows, match):
    with pytest.raises(ValueError, match=match):
        feature_dicts(rows)


@pytest.mark.parametrize("rows", [[{1, 2}], [["a", 1]], [{"a"}, (None,)], [["a", ["b"]]]])
def test_labels_have_names_of_text(rows):
    with pytest.raises(ValueError, match="as the name of a label: names are text"):
        label_sets(rows)


@QUICK
@given(
    names=st.lists(NAMES, unique=True, max_size=6),
    known=st.lists(NAMES, unique=True, max_size=6),
    grow=st.booleans(),
    is_sparse=st.booleans(),
    is_indexed=st.booleans(),
)
def test_aligning(names, known, grow, is_sparse, is_indexed):
    dense = np.arange(1.0, 1 + 2 * len(names)).reshape(2, -1)
    matrix = sparse.csr_array(dense) if is_sparse else dense.copy()
    index = {name: column for column, name in enumerate(known)} if is_indexed else None
    found, found_names = aligned(NamedRows(matrix, names), as_array(known), index, grow=grow)
    found_names = list(found_names)
    assert found_names[: len(known)] == known
    assert found_names[len(known) :] == ([name for name in names if name not in known] if grow else [])
    array = found.toarray() if is_sparse else found
    assert array.shape == (2, len(found_names))
    for index, name in enumerate(found_names):
        expected = dense[:, names.index(name)] if name in names else np.zeros(2)
        np.testing.assert_array_equal(array[:, index], expected)
    if is_sparse:
        assert found.has_canonical_format
        np.testing.assert_array_equal(matrix.toarray(), dense)


def test_a_schema_numbers_its_names_once():
    schema = Schema(FeatureKinds.numbers(2), as_array(["a", "b"]), 1, as_array(["x"]))
    assert schema.feature_index == {"a": 0, "b": 1}
    assert schema.feature_index is schema.feature_index
    assert schema.label_index == {"x": 0}
    wider = schema.replace(label_names=as_array(["x", "y"]), n_labels=2)
    assert wider.label_index == {"x": 0, "y": 1}
