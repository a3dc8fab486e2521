"""Following chains in single precision against one link after another in double precision.

All numbers are whole multiples of one power of two, and small ones: sums in double precision are exact, in any order.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace import ClassifierChainsClassifier
from labelrace.models import chains
from labelrace.models.chains import Links

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
