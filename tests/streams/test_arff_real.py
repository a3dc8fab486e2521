"""The real files, against liac-arff and the reference results."""

import arff as liac
import numpy as np
import pytest
from scipy.sparse import issparse

from labelrace.base.sparse import dense
from labelrace.streams import arff, load_dataset

SHAPES = {
    "cal500": (502, 68, 174, False),
    "emotions": (593, 72, 6, False),
    "enron": (1702, 1001, 53, True),
    "delicious": (16105, 500, 983, True),
}
GOLDEN = {
    "cal500": "CAL500_w50_cls-fixed_seed1",
    "emotions": "emotions_w100_cls-fixed_seed1",
    "enron": "enron_w100_cls-fixed_seed1",
}


def load_with_liac(path, kind):
    with path.open() as file:
        return liac.load(file, return_type=kind)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(real_data, name):
    data = load_dataset(real_data(name))
    rows, features, labels, sparse = SHAPES[name]
    assert data.X.shape == (rows, features)
    assert data.Y.shape == (rows, labels)
    assert issparse(data.X) == sparse
    assert data.categorical.sum() == (features if sparse else 0)


@pytest.mark.parametrize("name", GOLDEN)
def test_labels_equal_the_reference(real_data, golden, name):
    np.testing.assert_array_equal(load_dataset(real_data(name)).Y.toarray(), golden(GOLDEN[name])["Y"])


@pytest.mark.parametrize("name", ["cal500", "emotions"])
def test_dense_as_liac_arff(real_data, name):
    data = load_dataset(real_data(name))
    reference = load_with_liac(real_data(name), liac.DENSE)
    names = [attribute for attribute, _ in reference["attributes"]]
    features = [names.index(feature) for feature in data.feature_names]
    labels = [names.index(label) for label in data.label_names]
    assert labels == sorted(labels)
    table = np.array(reference["data"], dtype=float)
    np.testing.assert_array_equal(data.X, table[:, features])
    np.testing.assert_array_equal(data.Y.toarray(), table[:, labels])


@pytest.mark.parametrize("name", ["enron", "delicious"])
def test_sparse_as_liac_arff(real_data, name):
    data = load_dataset(real_data(name))
    reference = load_with_liac(real_data(name), liac.LOD)
    names = [attribute for attribute, _ in reference["attributes"]]
    labels = [names.index(label) for label in data.label_names]
    assert labels == sorted(labels)
    table = np.zeros((len(data), len(names)), dtype=np.int8)
    for row, entries in zip(table, reference["data"], strict=True):
        for column, value in entries.items():
            row[column] = value == "1"
    features = np.setdiff1d(np.arange(len(names)), labels)
    assert [names[column] for column in features] == list(data.feature_names)
    np.testing.assert_array_equal(dense(data.X), table[:, features])
    np.testing.assert_array_equal(dense(data.Y), table[:, labels])


def test_delicious_label_names(real_data):
    data = load_dataset(real_data("delicious"))
    assert len(data.label_names) == 983
    assert "TAG_m\\'usica" in data.label_names


@pytest.mark.parametrize("name", ["enron", "cal500"])
def test_bulk_and_line_parsers_agree(real_data, monkeypatch, name):
    fast = load_dataset(real_data(name))
    monkeypatch.setattr(arff, "parse_dense", lambda *_: None)
    monkeypatch.setattr(arff, "parse_sparse", lambda *_: None)
    slow = load_dataset(real_data(name))
    np.testing.assert_array_equal(dense(fast.X), dense(slow.X))
    np.testing.assert_array_equal(fast.Y.toarray(), slow.Y.toarray())
