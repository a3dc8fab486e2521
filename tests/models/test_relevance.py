"""Binary relevance against one classifier a label."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import BernoulliNB

import labelrace
from labelrace import BinaryRelevanceClassifier
from labelrace.learners.naive_bayes import NaiveBayes

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


def test_binary_features_as_in_scikit_learn():
    ours = (
        BinaryRelevanceClassifier(categorical_features=np.ones(12, bool))
        .fit(X[:200], Y[:200])
        .decision_function(X[200:])
    )
    for label in range(Y.shape[1]):
        # The prior is ours: (n_c + 1) / (n + 2).
        positive = (Y[:200, label].sum() + 1) / 202
        theirs = BernoulliNB(alpha=1, class_prior=[1 - positive, positive]).fit(X[:200], Y[:200, label])
        zero, one = theirs.predict_log_proba(X[200:]).T
        np.testing.assert_allclose(ours[:, label], one - zero, atol=1e-9)


def test_regressors_learn_minus_one_and_one():
    ours = BinaryRelevanceClassifier(learner="ridge").fit(X[:200], scipy.sparse.csr_array(Y[:200]))
    theirs = SklearnRidge(alpha=1).fit(X[:200], 2.0 * Y[:200] - 1)
    np.testing.assert_allclose(ours.decision_function(X[200:]), theirs.predict(X[200:]), atol=1e-9)


def test_any_estimator():
    model = BinaryRelevanceClassifier(learner=SGDClassifier(loss="log_loss", random_state=0))
    for _ in range(5):
        model.partial_fit(X[:200], Y[:200])
    assert (model.predict(X[200:]) == Y[200:]).mean() > 0.8


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
        labelrace.make_model("obr").fit(X, Y).merge(labelrace.make_model("obr").fit(X, Y))
