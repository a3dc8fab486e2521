"""Binary relevance against one classifier a label."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Ridge as SklearnRidge

import labelrace
from labelrace import BinaryRelevanceClassifier
from labelrace.learners.naive_bayes.bank import NaiveBayes

RNG = np.random.default_rng(0)
X = (RNG.random((300, 12)) < 0.3).astype(float)
Y = (X @ RNG.random((12, 8)) + 0.2 * RNG.normal(size=(300, 8)) > 2).astype(np.int8)


@pytest.mark.parametrize("bank", [NaiveBayes(), NaiveBayes(numeric="binned")])
@pytest.mark.parametrize("categorical", [None, np.ones(12, bool)])
def test_labels_do_not_know_of_each_other(bank, categorical):
    together = BinaryRelevanceClassifier(categorical_features=categorical, learner=bank)
    alone = [BinaryRelevanceClassifier(categorical_features=categorical, learner=bank) for _ in range(Y.shape[1])]
    for part in (slice(0, 100), slice(100, 220)):
        together.partial_fit(X[part], Y[part])
        for label, model in enumerate(alone):
            model.partial_fit(X[part], Y[part][:, [label]])
    expected = np.hstack([model.decision_function(X[220:]) for model in alone])
    np.testing.assert_allclose(together.decision_function(X[220:]), expected, atol=1e-10)
    np.testing.assert_array_equal(together.predict(X[220:]), expected >= 0)


def test_regressors_learn_minus_one_and_one():
    ours = BinaryRelevanceClassifier(learner="ridge").fit(X[:200], scipy.sparse.csr_array(Y[:200]))
    theirs = SklearnRidge(alpha=1).fit(X[:200], 2.0 * Y[:200] - 1)
    np.testing.assert_allclose(ours.decision_function(X[200:]), theirs.predict(X[200:]), atol=1e-9)


def test_many_batches_of_sparse_bytes_equal_dense_ones():
    dense, sparse = (labelrace.make_model("obr", categorical_features=np.ones(12, bool)) for _ in range(2))
    for _ in range(4):
        dense.partial_fit(X, Y)
        sparse.partial_fit(scipy.sparse.csr_array(X), scipy.sparse.csr_array(Y))
        # Reading between the batches must leave the sums as they are.
        np.testing.assert_allclose(
            sparse.decision_function(scipy.sparse.csr_array(X)), dense.decision_function(X), atol=1e-9
        )


def test_merging_is_learning_all_rows():
    whole = BinaryRelevanceClassifier().fit(X, Y)
    one, other = (BinaryRelevanceClassifier().fit(X[part], Y[part]) for part in (slice(0, 120), slice(120, 300)))
    np.testing.assert_allclose(one.merge(other).decision_function(X), whole.decision_function(X), atol=1e-8)
    with pytest.raises(labelrace.exceptions.MergeError, match="bins of their numeric features"):
        labelrace.make_model("obr").fit(X, Y).merge(labelrace.make_model("obr").fit(2.0 * X, Y))
    # From one start there is one set of bins.
    whole, one = (labelrace.make_model("obr").fit(X[:100], Y[:100]) for _ in range(2))
    other = one.emptied().partial_fit(X[100:], Y[100:])
    whole.partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(one.merge(other).decision_function(X), whole.decision_function(X), atol=1e-8)


# Probabilities.


def test_probabilities_are_those_of_bayes_rule():
    """Of each class, its share of rows times the shares of its rows that have such values, plus one each."""
    likely = (
        BinaryRelevanceClassifier(categorical_features=np.ones(12, bool)).fit(X[:200], Y[:200]).predict_proba(X[200:])
    )
    for label in range(Y.shape[1]):
        joint = []
        for value in (0, 1):
            own = X[:200][Y[:200, label] == value]
            share = (own.sum(axis=0) + 1) / (len(own) + 2)
            evidence = np.where(X[200:] == 1, share, 1 - share).prod(axis=1)
            joint.append((len(own) + 1) / 202 * evidence)
        np.testing.assert_allclose(likely[:, label], joint[1] / (joint[0] + joint[1]), atol=1e-12)
    assert (likely < 0.02).any()
    assert (likely > 0.9).any()


@pytest.mark.parametrize("name", ["naive_bayes", "paper"])
def test_probabilities_are_the_logistic_function_of_log_odds(name):
    model = labelrace.make_model("obr") if name == "paper" else BinaryRelevanceClassifier()
    rows = RNG.normal(size=(300, 3))
    model.fit(rows, (rows > 0.5).astype(int))
    odds = model.decision_function(rows)
    np.testing.assert_allclose(model.predict_proba(rows), 1 / (1 + np.exp(-odds)), atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(rows) >= 0.5, model.predict(rows) == 1)


def test_probabilities_of_regressors_are_half_way_from_minus_one_to_one(softly_clipped):
    ours = BinaryRelevanceClassifier(learner="ridge").fit(X[:200], Y[:200])
    values = SklearnRidge(alpha=1).fit(X[:200], 2.0 * Y[:200] - 1).predict(X[200:])
    np.testing.assert_allclose(ours.predict_proba(X[200:]), softly_clipped((values + 1) / 2), atol=1e-9)
    assert (values < -1).any()
