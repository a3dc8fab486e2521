"""Chains on shared sums against chains of single classifiers, and chain inference against one link after another.

The numbers that chain inference is tried on are whole multiples of one power of two, and small ones: sums in double
precision are exact, in any order.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace import BinaryRelevanceClassifier, ClassifierChainsClassifier
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.related import chains
from labelrace.related.chains import Links


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


def test_following_chains_in_groups_does_not_show(monkeypatch):
    (X, Y), (X2, _) = batches_of(6, n_batches=2, n_labels=70)
    model = ClassifierChainsClassifier(n_chains=5, categorical_features=[2, 3], random_state=3).fit(X, Y)
    at_once = model.predict(X2), model.decision_function(X2)
    # Two chains at once, two more, and one.
    monkeypatch.setattr("labelrace.related.chains._CELLS", 2 * 70 * 70)
    np.testing.assert_array_equal(model.predict(X2), at_once[0])
    np.testing.assert_allclose(model.decision_function(X2), at_once[1], atol=1e-12)


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


# About 9e-13: single precision does not see such a difference between numbers around 1.
STEP = 2.0**-40


def one_by_one(links):
    """Log odds of each chain's links, in its order."""
    odds = np.zeros((len(links.orders), *links.features.shape))
    for order, all_absent, found in zip(links.orders, links.all_absent, odds, strict=True):
        for i, label in enumerate(order):
            heard = links.present[label, order[:i]] @ (found[:i] >= 0)
            found[i] = links.features[label] + all_absent[label] + heard
    return odds


def near_ties(seed, n_chains=3, n_labels=70, n_rows=20, targets=(0.0, STEP, -STEP), scale=1.0):
    """Chains of which the first has the given log odds, picked at random, at every link."""
    rng = np.random.default_rng(seed)

    def steps(*shape):
        return np.round(rng.uniform(-3, 3, shape) / STEP) * STEP

    half = steps(n_labels, n_labels)
    orders = np.stack([rng.permutation(n_labels) for _ in range(n_chains)])
    links = Links(np.zeros((n_labels, n_rows)), steps(n_chains, n_labels), np.triu(half) + np.triu(half, 1).T, orders)
    wanted = rng.choice(targets, (n_labels, n_rows))
    for i, label in enumerate(orders[0]):
        heard = links.present[label, orders[0, :i]] @ (wanted[:i] >= 0)
        links.features[label] = wanted[i] - links.all_absent[0, label] - heard
    np.testing.assert_array_equal(one_by_one(links)[0], wanted)
    return Links(*(scale * numbers for numbers in links[:3]), orders)


@pytest.mark.parametrize("lookups", [0, 2**11, 2**40])
@pytest.mark.parametrize("n_labels", [0, 1, 2, 32, 33, 130])
@pytest.mark.parametrize("targets", [(0.0, STEP, -STEP), (0.0, -STEP, *np.arange(-40.0, 40.0))], ids=["all", "few"])
def test_marks_are_those_of_double_precision(monkeypatch, lookups, n_labels, targets):
    """Whether doubtful links are looked up one by one, or their pieces followed at once, or now this, now that."""
    monkeypatch.setattr(chains, "_LOOKUPS", lookups)
    links = near_ties(n_labels, n_labels=n_labels, targets=targets)
    np.testing.assert_array_equal(chains.decisions(links), one_by_one(links) >= 0)
    np.testing.assert_array_equal(chains.log_odds(links), one_by_one(links))


@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(0, 9), n_chains=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_marks_of_any_near_ties(seed, n_rows, n_chains):
    rng = np.random.default_rng(seed)
    # From far below the errors of single precision to far above them.
    targets = np.append(0.0, np.round(2.0 ** rng.uniform(0, 44, 30)) * STEP * rng.choice([-1, 1], 30))
    links = near_ties(seed, n_chains, int(rng.integers(1, 100)), n_rows, targets)
    np.testing.assert_array_equal(chains.decisions(links), one_by_one(links) >= 0)


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**-145, 2.0**-110, 2.0**60])
def test_numbers_out_of_the_range_of_single_precision(scale):
    links = near_ties(1, scale=scale, targets=(0.0, STEP, -STEP, 2.0, -2.0))
    np.testing.assert_array_equal(chains.decisions(links), one_by_one(links) >= 0)


def test_features_out_of_the_range_of_single_precision():
    links = near_ties(2)
    links.features[::3] = np.where(np.arange(20) % 2, 1e300, -1e300)
    links.features[1] = -np.inf
    np.testing.assert_array_equal(chains.decisions(links), one_by_one(links) >= 0)


def test_single_precision_alone_is_wrong(monkeypatch):
    links = near_ties(3)
    monkeypatch.setattr(chains, "settle_in_double", lambda *others: None)
    assert (chains.decisions(links) != (one_by_one(links) >= 0)).any()


def test_single_precision_does_most_of_the_work(monkeypatch):
    """Ordinary log odds are rarely in doubt, and those in doubt are rarely wrong."""
    links = near_ties(4, n_labels=130, n_rows=200, targets=np.arange(-30, 30, 1 / 16) + 1 / 32)
    n_doubtful, settle_in_double = [], chains.settle_in_double

    def count(*arguments):
        n_doubtful.append(len(arguments[-1][0]))
        settle_in_double(*arguments)

    monkeypatch.setattr(chains, "settle_in_double", count)
    chains.decisions(links)
    assert sum(n_doubtful) < 0.005 * 3 * 130 * 200


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
    links = Links(features, derived.all_absent, derived.present, derived.orders)
    odds = one_by_one(links)
    # Nearer to a tie, the order of summation decides, in double precision too; and links after such a one differ.
    is_clear = np.logical_and.accumulate(np.abs(odds) > 1e-12, axis=1)
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(chains.decisions(links)[is_clear], (odds >= 0)[is_clear])
