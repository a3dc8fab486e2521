"""Constant predictions against counting by hand."""

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import ConstantClassifier


def test_majority_counts_all_rows_and_takes_the_number_from_the_last_batch():
    X = np.zeros((3, 2))
    first = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]])
    last = np.array([[0, 0, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
    model = ConstantClassifier().partial_fit(X, first)
    assert model.predict(X).tolist() == [[1, 0, 0, 0]] * 3  # cardinality 5/3, rounded down
    model.partial_fit(X, scipy.sparse.csr_array(last))
    # Counts 4, 3, 3, 1 and a cardinality of 6/3: of the two with 3, the first.
    assert model.predict(X[:1]).tolist() == [[1, 1, 0, 0]]
    np.testing.assert_allclose(model.decision_function(X[:1]), [[4 / 6, 3 / 6, 3 / 6, 1 / 6]])


def test_negative():
    model = labelrace.make_model("negative").fit(np.zeros((2, 1)), np.ones((2, 3)))
    assert not model.predict(np.zeros((5, 1))).any()
    assert not model.decision_function(np.zeros((5, 1))).any()


def test_features_do_not_matter_but_must_fit():
    model = ConstantClassifier().fit([[np.nan, 1.0]], [[1, 0]])
    assert model.predict([[3.0, np.nan]]).tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="2 features"):
        model.predict([[1.0]])


def test_unknown_strategy():
    with pytest.raises(ValueError, match="strategy must be one of 'majority', 'negative', got 'none'"):
        ConstantClassifier(strategy="none").fit([[0.0]], [[1]])


def test_merging():
    # The other one's rows are the later ones: the number of labels is theirs.
    some, none = (ConstantClassifier().fit([[0.0]], [[present]]) for present in (1, 0))
    assert none.merge(some).predict([[0.0]]) == [[1]]
    assert some.merge(none).predict([[0.0]]) == [[1]]
    one, other = (ConstantClassifier(strategy="negative").fit([[0.0]], [[1]]) for _ in range(2))
    assert one.merge(other)._fitted.state.rows == 2


@pytest.mark.parametrize(("strategy", "expected"), [("majority", [0.75, 0.0, 0.5]), ("negative", [0.75, 0.0, 0.5])])
def test_probabilities_are_shares_of_rows(strategy, expected):
    Y = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 1]])
    model = (
        ConstantClassifier(strategy=strategy).partial_fit(np.zeros((2, 1)), Y[:2]).partial_fit(np.zeros((2, 1)), Y[2:])
    )
    np.testing.assert_array_equal(model.predict_proba(np.zeros((5, 1))), np.tile(expected, (5, 1)))
