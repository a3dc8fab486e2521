"""SGD against the loop: one row, one step."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.exceptions import DivergenceError, DivergenceWarning
from labelrace.learners.sgd import SGD, _JavaRandom, java_shuffle

SEEDS = st.integers(0, 2**32 - 1)
# Java's order of ten rows, shuffled with seed 1: printed by a Java program.
JAVA_ORDER_OF_TEN = [6, 9, 7, 8, 4, 2, 0, 3, 1, 5]


class Loop:
    """One linear model that learns row by row."""

    def __init__(self, m, rate, penalty=0.0, penalty_per_row=False, normalised=False, first_epochs=1, order=None):
        self.w, self.b = np.zeros(m), 0.0
        self.rate, self.penalty, self.per_row = rate, penalty, penalty_per_row
        self.normalised, self.epochs, self.order, self.n0 = normalised, first_epochs, order, None

    def step(self, x, y):
        rate = self.rate / (1 + sum(x * x)) if self.normalised else self.rate
        z = y - (sum(self.w * x) + self.b)
        self.w = self.w * (1 - self.rate * self.penalty / (self.n0 if self.per_row else 1))
        self.w = self.w + rate * z * x
        self.b += rate * z

    def learn(self, X, y):
        if self.n0 is None:
            self.n0 = len(X)
            order = range(len(X)) if self.order is None else self.order
            for _ in range(self.epochs):
                for i in order:
                    self.step(X[i], y[i])
        else:
            for i in range(len(X)):
                self.step(X[i], y[i])

    def predict(self, X):
        return np.array([sum(self.w * x) + self.b for x in X])


def looped(batches, queries, **settings):
    """Let one loop a pseudo label learn (X, H) batches."""
    values = []
    for c in range(batches[0][1].shape[1]):
        loop = Loop(queries.shape[1], **settings)
        for X, H in batches:
            loop.learn(X, H[:, c])
        values.append(loop.predict(queries))
    return np.column_stack(values)


def banked(bank, n_values, batches, queries, make=np.array):
    state = bank.init(np.asarray(n_values), batches[0][1].shape[1])
    for X, H in batches:
        state = bank.update(state, make(X), H)
    return bank.predict(bank.derive(state), make(queries))


def some_batches(rng, sizes, m=4, k=3):
    """Make features, a third of them zero, and targets that depend on them."""
    W = rng.normal(size=(m, k))
    for n in sizes:
        X = rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.67)
        yield X, X @ W + rng.normal(size=(n, k))


@settings(max_examples=40, deadline=None)
@given(
    SEEDS,
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from([1e-4, 0.05, 0.1]),
    st.sampled_from([0.0, 1e-4, 0.5]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 5),
    st.booleans(),
)
def test_loop(seed, sizes, rate, penalty, penalty_per_row, normalised, first_epochs, sparse):
    batches = list(some_batches(np.random.default_rng(seed), sizes))
    settings = {"rate": rate, "penalty": penalty, "penalty_per_row": penalty_per_row}
    settings |= {"normalised": normalised, "first_epochs": first_epochs}
    queries = np.vstack([X for X, _ in batches])
    make = scipy.sparse.csr_array if sparse else np.array
    got = banked(SGD(**settings), [0] * 4, batches, queries, make)
    np.testing.assert_allclose(got, looped(batches, queries, **settings), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("normalised", [False, True])
def test_block_borders(n, normalised):
    batches = list(some_batches(np.random.default_rng(n), [n, n]))
    settings = {"rate": 0.05, "penalty": 0.3, "normalised": normalised, "first_epochs": 2}
    got = banked(SGD(**settings), [0] * 4, batches, batches[0][0])
    np.testing.assert_allclose(got, looped(batches, batches[0][0], **settings), rtol=1e-9, atol=1e-10)


def test_batches_do_not_matter_after_the_first_row():
    [(X, H)] = some_batches(np.random.default_rng(0), [150])
    bank = SGD(rate=0.05, penalty=0.1)
    whole = banked(bank, [0] * 4, [(X, H)], X)
    pieces = [(X[i : i + 7], H[i : i + 7]) for i in range(0, 150, 7)]
    np.testing.assert_allclose(banked(bank, [0] * 4, pieces, X), whole, atol=1e-12)


def test_first_batch_is_shuffled_once_as_java_does():
    batches = list(some_batches(np.random.default_rng(1), [10, 10]))
    settings = {"rate": 0.1, "penalty": 0.2, "penalty_per_row": True, "first_epochs": 4}
    got = banked(SGD(shuffle_seed=1, **settings), [0] * 4, batches, batches[0][0])
    expected = looped(batches, batches[0][0], order=JAVA_ORDER_OF_TEN, **settings)
    np.testing.assert_allclose(got, expected, atol=1e-11)
    assert np.abs(got - looped(batches, batches[0][0], **settings)).max() > 1e-3


def test_paper_s_settings():
    batches = list(some_batches(np.random.default_rng(2), [10, 6]))
    got = banked(SGD.weka(), [0] * 4, batches, batches[1][0])
    settings = {"rate": 1e-4, "penalty": 1e-4, "penalty_per_row": True, "first_epochs": 500}
    expected = looped(batches, batches[1][0], order=JAVA_ORDER_OF_TEN, **settings)
    np.testing.assert_allclose(got, expected, atol=1e-10)


def larger_mean_is_one(X, h, is_binary):
    """Return which features to turn round: those whose value 0 has the larger mean target."""
    turned = np.zeros(X.shape[1], bool)
    for j in np.flatnonzero(is_binary):
        means = [np.mean(h[X[:, j] == value]) if (X[:, j] == value).any() else np.mean(h) for value in (0, 1)]
        turned[j] = means[0] > means[1]
    return turned


def assert_turned_round(seed, sizes, make=np.array, **settings):
    """Compare with loops that learn, for each pseudo label, from features that are really turned."""
    rng = np.random.default_rng(seed)
    n_values, is_binary = [2, 0, 2, 2, 0, 2], np.array([0, 0, 1, 1, 1, 1], bool)
    batches, designs = [], []
    for n in sizes:
        X = np.where(np.array(n_values) > 0, rng.random((n, 6)) < 0.4, rng.normal(size=(n, 6)))
        X[0], X[1] = [0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0]
        batches.append((X, rng.normal(size=(n, 3)) + X[:, [0]] - X[:, [2]]))
        designs.append(X[:, [1, 4, 0, 2, 3, 5]])
    expected = []
    for c in range(3):
        turned = larger_mean_is_one(designs[0], batches[0][1][:, c], is_binary)
        own = [(np.where(turned, 1 - X, X), H[:, [c]]) for X, (_, H) in zip(designs, batches, strict=True)]
        expected.append(looped(own, own[1][0], **settings))
    got = banked(SGD(nominal_coding="cumulative", **settings), n_values, batches, batches[1][0], make)
    np.testing.assert_allclose(got, np.hstack(expected), rtol=1e-8, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([(10, 5), (70, 66)]), st.booleans(), st.sampled_from([1, 3]))
def test_binary_features_turned_round(seed, sizes, sparse, first_epochs):
    make = scipy.sparse.csr_array if sparse else np.array
    assert_turned_round(seed, sizes, make, rate=0.03, penalty=0.2, penalty_per_row=True, first_epochs=first_epochs)


def test_normalised_steps_on_features_turned_round():
    """The rate is divided by the squared length of the row that is learned, which is the turned one."""
    assert_turned_round(0, (10, 5), rate=0.5, penalty=0.0, normalised=True)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_binary_feature_with_one_value_is_not_turned(constant):
    """A value that does not occur has the mean of all rows: a tie, and the feature stays."""
    rng = np.random.default_rng(3)
    X, H = np.full((20, 1), constant), rng.integers(-8, 9, size=(20, 4)) / 8
    settings = {"rate": 0.1, "penalty": 0.0}
    queries = np.array([[0.0], [1.0]])
    got = banked(SGD(nominal_coding="cumulative", **settings), [2], [(X, H)], queries)
    np.testing.assert_allclose(got, looped([(X, H)], queries, **settings), atol=1e-12)


def filled_as_weka_does(X, first, n_values):
    """Replace what is missing by the mean, or the most frequent value, of the first batch, column by column."""
    X = X.copy()
    for j, n in enumerate(n_values):
        known = [x for x in first[:, j] if not np.isnan(x)]
        value = max(range(n), key=known.count) if n else np.mean(known)
        X[np.isnan(X[:, j]), j] = value
    return X


def coded_as_weka_does(X, first, h, n_values):
    """Code each nominal feature by the ranks of its values, one cell at a time; numeric columns come first."""
    coded = [X[:, j] for j, n in enumerate(n_values) if not n]
    for j, n in enumerate(n_values):
        if n:
            means = [np.mean(h[first[:, j] == v]) if (first[:, j] == v).any() else np.mean(h) for v in range(n)]
            by_mean = sorted(range(n), key=means.__getitem__)
            coded += [np.array([float(by_mean.index(int(x)) > index) for x in X[:, j]]) for index in range(n - 1)]
    return np.column_stack(coded)


def assert_weka_s_coding(seed, sizes, n_values, missing=0.0, make=np.array, **settings):
    rng = np.random.default_rng(seed)
    batches = []
    for n in sizes:
        X = np.column_stack([rng.integers(0, v, n) if v else rng.normal(size=n) for v in n_values]).astype(float)
        X[rng.random(X.shape) < missing] = np.nan
        X[0] = 0
        batches.append((X, rng.normal(size=(n, 3)) + np.nan_to_num(X) @ rng.normal(size=(len(n_values), 3))))
    first, expected = batches[0][0], []
    whole = [filled_as_weka_does(X, first, n_values) for X, _ in batches]
    for c in range(3):
        h = batches[0][1][:, c]
        own = [coded_as_weka_does(X, whole[0], h, n_values) for X in whole]
        steps = [(X, H[:, [c]]) for X, (_, H) in zip(own, batches, strict=True)]
        expected.append(looped(steps, own[-1], **settings))
    bank = SGD(nominal_coding="cumulative", fill_missing=missing > 0, **settings)
    got = banked(bank, n_values, batches, batches[-1][0], make)
    np.testing.assert_allclose(got, np.hstack(expected), rtol=1e-8, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    SEEDS,
    st.lists(st.sampled_from([0, 2, 3, 4, 6]), min_size=1, max_size=5),
    st.sampled_from([(10, 5), (70, 66, 3)]),
    st.sampled_from([0.0, 0.2]),
    st.booleans(),
    st.sampled_from([1, 3]),
)
def test_nominal_features_ranked_by_their_mean_target(seed, n_values, sizes, missing, sparse, first_epochs):
    """Of six values and ten rows some do not occur in the first batch; with five columns there are several groups."""
    make = scipy.sparse.csr_array if sparse else np.array
    settings = {"rate": 0.01, "penalty": 0.2, "penalty_per_row": True, "first_epochs": first_epochs}
    assert_weka_s_coding(seed, sizes, n_values, missing, make, **settings)


def test_normalised_steps_on_ranked_values():
    assert_weka_s_coding(0, (20, 10), [4, 0, 3, 2, 3], rate=0.5, penalty=0.0, normalised=True)


@pytest.mark.parametrize("value", [0.0, 1.0, 3.0])
def test_values_with_equal_means_keep_their_order(value):
    """All values that do not occur tie with the one that does, whatever digits its mean has lost."""
    rng = np.random.default_rng(3)
    X, H = np.full((23, 1), value), rng.normal(size=(23, 5)) / 3
    settings = {"rate": 0.1, "penalty": 0.0}
    queries = np.arange(4.0)[:, None]
    coded = [(table > np.arange(3)).astype(float) for table in (X, queries)]
    got = banked(SGD(nominal_coding="cumulative", **settings), [4], [(X, H)], queries)
    np.testing.assert_allclose(got, looped([(coded[0], H)], coded[1], **settings), atol=1e-12)


def test_missing_values_are_allowed_where_they_are_filled():
    assert not SGD().skips_missing
    assert SGD(fill_missing=True).skips_missing
    assert SGD.weka().skips_missing


def test_nominal_features_are_indicators():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(0, 3, 30), rng.normal(size=30)])
    H = rng.normal(size=(30, 2))
    coded = np.column_stack([X[:, 1], X[:, 0] == 1, X[:, 0] == 2]).astype(float)
    settings = {"rate": 0.1, "penalty": 0.1}
    got = banked(SGD(**settings), [3, 0], [(X, H)], X)
    np.testing.assert_allclose(got, looped([(coded, H)], coded, **settings), atol=1e-12)


@pytest.mark.parametrize("sizes", [[200], [64, 1], [30, 30], [5] * 40])
def test_unscaled_features_are_an_error(sizes):
    rng = np.random.default_rng(5)
    batches = [(1000 * X, H) for X, H in some_batches(rng, sizes)]
    with pytest.raises(DivergenceError, match="Scale the features"):
        banked(SGD(rate=0.1), [0] * 4, batches, batches[0][0])


@pytest.mark.parametrize("n", [20, 50, 64])
def test_unscaled_features_are_an_error_at_once(n):
    """A single block whose last step leaves weights of 1e90 and more has diverged, too."""
    [(X, H)] = some_batches(np.random.default_rng(6), [n])
    bank = SGD(rate=0.1)
    with pytest.raises(DivergenceError):
        bank.update(bank.init(np.zeros(4, int), 3), 1000 * X, H)


def test_many_epochs_on_unscaled_features_are_an_error():
    [(X, H)] = some_batches(np.random.default_rng(7), [50])
    with pytest.raises(DivergenceError):
        banked(replace(SGD.weka(), on_divergence="error"), [0] * 4, [(1000 * X, H)], X)


def test_shortened_steps_are_those_of_the_shorter_rate():
    """The batch that diverges is learned again from where it began; later batches keep the shorter steps."""
    batches = [(30 * X, H) for X, H in some_batches(np.random.default_rng(7), [80, 40])]
    settings = {"penalty": 0.1, "first_epochs": 3}
    with pytest.warns(DivergenceWarning, match="goes on with 1e-03"):
        got = banked(SGD(rate=0.01, on_divergence="shorten", **settings), [0] * 4, batches, batches[0][0])
    expected = banked(SGD(rate=1e-3, **settings), [0] * 4, batches, batches[0][0])
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_no_step_is_short_enough_for_infinity():
    with pytest.warns(DivergenceWarning), pytest.raises(DivergenceError):
        banked(SGD(on_divergence="shorten"), [0], [(np.full((3, 1), 1e200), np.ones((3, 1)))], np.zeros((1, 1)))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_normalised_steps_are_stable_on_any_scale(scale):
    [(X, H)] = some_batches(np.random.default_rng(9), [500])
    got = banked(SGD(rate=1.5, normalised=True, penalty=0.0), [0] * 4, [(scale * X, H)], scale * X)
    assert np.abs(got).max() < 100


# Printed by a Java program: fill ``a`` with 0 … n - 1, then ``for (int j = n - 1; j > 0; j--)`` swap ``a[j]`` with
# ``a[random.nextInt(j + 1)]``, with a ``java.util.Random(seed)``.
PRINTED = {
    (1, 1): "0",
    (2, 1): "0 1",
    (10, 1): "6 9 7 8 4 2 0 3 1 5",
    (12, 0): "4 10 3 8 1 7 11 5 2 9 6 0",
    (16, -7): "2 7 13 14 5 10 8 0 11 1 9 6 3 15 12 4",
    (17, 42): "16 6 5 4 13 2 14 12 7 8 11 1 15 10 3 0 9",
    (33, 123456789012345): "7 6 26 12 31 27 15 11 24 10 28 1 30 14 29 3 19 9 2 8 23 32 18 20 4 5 13 0 17 22 21 16 25",
    (50, 1): "47 23 14 25 15 22 27 17 24 19 36 33 43 3 45 20 48 12 8 5 2 40 16 38 32 44 31 49 13 26 21 29 42 "
    "28 39 18 1 11 41 9 37 10 34 6 4 0 30 7 46 35",
}


@pytest.mark.parametrize(("n", "seed"), PRINTED)
def test_order_is_java_s(n, seed):
    assert " ".join(map(str, java_shuffle(n, seed))) == PRINTED[n, seed]


@pytest.mark.parametrize(("seed", "printed"), [(1, 31356160321), (99, 31150821533)])
def test_long_order_is_java_s(seed, printed):
    """The program printed the sum of ``i * a[i]`` over 5000 rows."""
    order = java_shuffle(5000, seed)
    assert sorted(order.tolist()) == list(range(5000))
    assert int((np.arange(5000) * order).sum()) == printed


def test_numbers_that_java_draws_again():
    """Below ``2³⁰ + 1`` about every other draw falls into the incomplete last range and is repeated."""
    random = _JavaRandom(3)
    printed = [152454210, 144139128, 488197459, 757666882, 142793614, 64032981]
    printed += [883832806, 290368137, 327992911, 88791913, 297019259, 1029052793]
    assert [random.below((1 << 30) + 1) for _ in printed] == printed
