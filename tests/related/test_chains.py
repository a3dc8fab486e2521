"""Chains on shared sums against chains of single classifiers, and chain inference against one link after another."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace import BinaryRelevanceClassifier, ClassifierChainsClassifier
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.related.chains import chain_log_odds


def batches_of(seed, n_batches=3, rows=40, n_labels=7):
    """Mixed features: two numeric, one binary, one of three values; correlated labels."""
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        topics = rng.random((rows, 3)) < 0.4
        numeric = topics[:, :2] + rng.normal(size=(rows, 2))
        nominal = np.column_stack([topics[:, 2] ^ (rng.random(rows) < 0.2), rng.integers(0, 3, rows)])
        Y = (topics @ rng.random((3, n_labels)) + 0.3 * rng.normal(size=(rows, n_labels))) > 0.7
        yield np.hstack([numeric, nominal]), Y.astype(float)


N_VALUES = np.array([0, 0, 2, 3])


class NaiveChain:
    """One classifier a link, on the features and, as further binary features, the labels before it."""

    def __init__(self, order, bank):
        self.order, self.bank = order, bank
        self.states = [bank.init(np.append(N_VALUES, np.full(i, 2)), 1) for i in range(len(order))]

    def learn(self, X, Y):
        for i, label in enumerate(self.order):
            augmented = np.hstack([X, Y[:, self.order[:i]]])
            self.states[i] = self.bank.update(self.states[i], augmented, Y[:, [label]])

    def log_odds(self, X):
        odds = np.empty((len(X), len(self.order)))
        for i, label in enumerate(self.order):
            predicted = (odds[:, self.order[:i]] >= 0).astype(float)
            augmented = np.hstack([X, predicted])
            odds[:, [label]] = self.bank.predict(self.bank.derive(self.states[i]), augmented)
        return odds


@pytest.mark.parametrize("bank", [NaiveBayes(), NaiveBayes(numeric="binned")])
@pytest.mark.parametrize("n_chains", [1, 5])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_equals_naive_chains(bank, n_chains, seed):
    model = ClassifierChainsClassifier(n_chains=n_chains, categorical_features=[2, 3], random_state=seed, learner=bank)
    *learned, (X, _) = batches_of(seed)
    for number, batch in enumerate(learned):
        model.partial_fit(*batch)
        if number == 0:
            naive = [NaiveChain(order, bank) for order in model._fitted.state.orders]
        for chain in naive:
            chain.learn(*batch)
    odds = np.stack([chain.log_odds(X) for chain in naive])
    np.testing.assert_array_equal(model.predict(X), (odds >= 0).mean(axis=0) >= 0.5)
    np.testing.assert_allclose(model.decision_function(X), np.mean(np.tanh(odds / 2), axis=0), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), np.mean(1 / (1 + np.exp(-odds)), axis=0), atol=1e-9)


@pytest.mark.parametrize("n_labels", [1, 32, 33, 65, 130])
def test_blocks_of_links_do_not_show(n_labels):
    (X, Y), (X2, _) = batches_of(1, n_batches=2, n_labels=n_labels)
    model = ClassifierChainsClassifier(n_chains=1, categorical_features=[2, 3], random_state=3).fit(X, Y)
    naive = NaiveChain(model._fitted.state.orders[0], NaiveBayes())
    naive.learn(X, Y)
    np.testing.assert_array_equal(model.predict(X2), naive.log_odds(X2) >= 0)


def test_first_link_is_binary_relevance():
    (X, Y), (X2, _) = batches_of(5, n_batches=2)
    order = [list(range(Y.shape[1]))]
    chain = (
        ClassifierChainsClassifier(n_chains=1, categorical_features=[2, 3], orders=order)
        .fit(X, Y)
        .decision_function(X2)
    )
    alone = BinaryRelevanceClassifier(categorical_features=[2, 3]).fit(X, Y).decision_function(X2)
    np.testing.assert_allclose(chain[:, 0], np.tanh(alone[:, 0] / 2), atol=1e-12)
    assert np.abs(chain[:, -1] - np.tanh(alone[:, -1] / 2)).max() > 0.01


def test_sparse_labels_and_features_equal_dense_ones():
    rng = np.random.default_rng(0)
    dense, sparse = (
        ClassifierChainsClassifier(n_chains=3, categorical_features=np.ones(30, bool), random_state=1) for _ in range(2)
    )
    for _ in range(3):
        X, Y = (rng.random((200, 30)) < 0.2).astype(float), (rng.random((200, 9)) < 0.8).astype(np.int8)
        dense.partial_fit(X, Y)
        sparse.partial_fit(scipy.sparse.csr_array(X), scipy.sparse.csr_array(Y))
    np.testing.assert_allclose(
        sparse.decision_function(scipy.sparse.csr_array(X)), dense.decision_function(X), atol=1e-9
    )


def test_chains_are_different():
    (X, Y), _ = batches_of(2, n_batches=2)
    orders = (
        ClassifierChainsClassifier(n_chains=5, categorical_features=[2, 3], random_state=0)
        .fit(X, Y)
        ._fitted.state.orders
    )
    assert len({tuple(order) for order in orders}) == 5


def test_merging_is_learning_all_rows():
    *learned, (X, _) = batches_of(4)
    whole = ClassifierChainsClassifier(n_chains=3, categorical_features=[2, 3], random_state=0)
    parts = [
        ClassifierChainsClassifier(n_chains=3, categorical_features=[2, 3], random_state=0).fit(*batch)
        for batch in learned
    ]
    for batch in learned:
        whole.partial_fit(*batch)
    merged = parts[0].merge(parts[1])
    np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learner": "ridge"}, "learner must be a NaiveBayes, whose sums chains share, got 'ridge'"),
        ({"n_chains": 0}, "n_chains must be a whole number of at least 1, got 0"),
        ({"orders": [[0, 1, 1]]}, "orders must be 1 permutations of the 3 labels"),
        ({"orders": [[0, 1]]}, "orders must be 1 permutations"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ClassifierChainsClassifier(**parameters).fit(np.zeros((4, 1)), np.eye(4)[:, :3])


def test_too_many_labels():
    with pytest.raises(ValueError, match=r"y has 32000 labels, too many .*l × l table, which would be 8 GB"):
        ClassifierChainsClassifier().fit(np.zeros((2, 1)), scipy.sparse.csr_array((2, 32000)))


# Small whole multiples of one power of two have sums that are exact, in any order.
STEP = 2.0**-40


def one_by_one(order, features, all_absent, present):
    """Log odds of a chain's links, in its order."""
    odds = np.zeros(features.shape)
    for i, label in enumerate(order):
        odds[i] = features[label] + all_absent[label] + present[label, order[:i]] @ (odds[:i] >= 0)
    return odds


@pytest.mark.parametrize("n_labels", [0, 1, 2, 32, 33, 130])
@pytest.mark.parametrize(
    "targets", [(0.0, STEP, -STEP), (0.0, -STEP, *np.arange(-40.0, 40.0))], ids=["ties", "few ties"]
)
@pytest.mark.parametrize("n_rows", [1, 20])
def test_log_odds_at_ties(n_labels, targets, n_rows):
    """Features that bring every link to a log odds of zero, to next to zero, or to a number picked at random."""
    rng = np.random.default_rng(n_labels)

    def steps(*shape):
        return np.round(rng.uniform(-3, 3, shape) / STEP) * STEP

    order, all_absent, half = rng.permutation(n_labels), steps(n_labels), steps(n_labels, n_labels)
    present = np.triu(half) + np.triu(half, 1).T
    wanted = rng.choice(targets, (n_labels, n_rows))
    features = np.zeros((n_labels, n_rows))
    for i, label in enumerate(order):
        features[label] = wanted[i] - all_absent[label] - present[label, order[:i]] @ (wanted[:i] >= 0)
    np.testing.assert_array_equal(one_by_one(order, features, all_absent, present), wanted)
    np.testing.assert_array_equal(chain_log_odds(order, features, all_absent, present), wanted)


def test_infinite_evidence_of_features():
    rng = np.random.default_rng(2)
    order, features, all_absent, present = rng.permutation(70), rng.normal(size=(70, 20)), np.zeros(70), np.eye(70)
    features[::3] = np.where(np.arange(20) % 2, 1e300, -1e300)
    features[1] = -np.inf
    expected = one_by_one(order, features, all_absent, present)
    np.testing.assert_array_equal(chain_log_odds(order, features, all_absent, present), expected)


@pytest.mark.parametrize("seed", range(5))
def test_labels_that_repeat_or_exclude_each_other(seed):
    """Few rows and labels that are copies or opposites of others: equal counts, hence the same odds again and again."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (12, 3)).astype(float)
    own = rng.random((12, 10)) < 0.5
    Y = np.hstack([own, own, ~own, ~own, np.zeros((12, 5), dtype=bool)]).astype(float)
    model = ClassifierChainsClassifier(n_chains=3, categorical_features=[0, 1, 2], random_state=seed).fit(X, Y)
    derived = model._fitted.derived
    features = model._fitted.algorithm.bank.predict(derived.learners, X).T
    for order, all_absent in zip(derived.orders, derived.all_absent, strict=True):
        odds = one_by_one(order, features, all_absent, derived.present)
        # Nearer to a tie, the order of summation decides; and links after such a one differ.
        is_clear = np.logical_and.accumulate(np.abs(odds) > 1e-12, axis=0)
        assert is_clear.mean() > 0.4
        decided = chain_log_odds(order, features, all_absent, derived.present) >= 0
        np.testing.assert_array_equal(decided[is_clear], (odds >= 0)[is_clear])
