"""The default model against a naive version: dense, all rows kept with their weights, thresholds by sorting."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from labelrace.core import decoder, drift, encoder
from labelrace.learners.rls import RLS
from labelrace.models.default import LabelRace

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.lists(st.sampled_from([1, 5, 60, 130, 200]), min_size=1, max_size=4)
HALF_LIVES = st.sampled_from([(None,), (300.0,), (None, 100.0), (400.0, None, 50.0)])
BIN = 2 / 512
M = 5


class Naive:
    """The model by its definition; the bank of learners is taken as given."""

    def __init__(self, bank, A, compressed, detects_drift=False):
        self.bank, self.A, self.compressed, self.detects_drift = bank, A.astype(float), compressed, detects_drift
        self.learners = bank.init(np.zeros(M, int), A.shape[1])
        self.codes, self.labels, self.weights = np.zeros((0, A.shape[1])), np.zeros((0, len(A))), np.zeros(0)
        self.monitored = []  # of one row each: scores, labels, weight
        self.errors, self.watched, self.n_drifts = None, drift.empty(), 0

    def learn(self, X, Y):
        known = [row for row in range(len(Y)) if not np.isnan(Y[row]).all()]
        X, Y = X[known], Y[known]
        if not known:
            return
        n, n_monitored = len(X), min(len(X), max(32, 10_000 // Y.shape[1]))
        monitored = [place * n // n_monitored for place in range(n_monitored)]
        if not len(self.weights):
            known = np.where(np.isnan(Y), 0, Y).sum(axis=0) / np.maximum((~np.isnan(Y)).sum(axis=0), 1)
            filled = np.where(np.isnan(Y), known, Y)
            if self.compressed:
                self.A = gram_schmidt(filled.T @ filled / n @ self.A + 0.01 * self.A)
            self.take(X, filled)
            self.monitor(X[monitored], Y[monitored], 0.1)
            return
        filled = np.where(np.isnan(Y), self.scores(X), Y)
        self.monitor(X[monitored], Y[monitored], 1.0)
        if self.detects_drift and drift.found(self.watched):
            self.n_drifts, self.watched = self.n_drifts + 1, drift.empty()
            if len(self.bank.half_lives) == 1:
                self.weights = 0.02 * self.weights
                self.learners = self.bank.forget(self.learners, 0.02)
            else:
                worst, best = int(np.argmax(self.errors)), int(np.argmin(self.errors))
                self.learners = self.bank.replace(self.learners, worst, best, 0.02)
            self.take(X, filled)
            # Scores from before the drift are worth nothing now.
            self.monitored = []
            self.monitor(X[monitored], Y[monitored], 0.1)
        else:
            self.take(X, filled)

    def take(self, X, filled, uncompressed=False):
        # As the slowest member does.
        forever = None in self.bank.half_lives
        keep = 1.0 if forever else 0.5 ** (len(X) / max(self.bank.half_lives))
        # Labels that are their own pseudo labels count as rows with one label each.
        rows = np.vstack([np.diag(row) for row in filled]) if uncompressed else filled
        self.codes = np.vstack([self.codes, rows @ self.A])
        self.labels = np.vstack([self.labels, rows])
        self.weights = np.append(keep * self.weights, np.ones(len(rows)))
        self.learners = self.bank.update(self.learners, X, filled @ self.A)

    def monitor(self, X, Y, weight):
        before = [(scores, labels, w * 0.5 ** (len(X) / 200)) for scores, labels, w in self.monitored]
        scores = self.scores(X)
        if weight == 1.0:
            wrong = (scores - Y) ** 2
            likely = np.clip(scores, 0, 1)
            of_rows = np.where(np.isnan(wrong), likely * (1 - likely), wrong).sum(axis=1)
            self.watched = drift.add(self.watched, of_rows)
            each = [
                Y.shape[1] * np.nanmean((self.decode(self.bank.predict(one, X)) - Y) ** 2) for one in self.members()
            ]
            # Where nobody has erred yet, averaging has not begun.
            keep = 0.0 if self.errors is None or not self.errors.any() else 0.5 ** (len(X) / 500)
            self.errors = np.array(each) if keep == 0.0 else keep * self.errors + (1 - keep) * np.array(each)
        self.monitored = before + [(s, y, weight) for s, y in zip(scores, Y, strict=True)]

    def members(self):
        return self.bank.members(self.learners)

    @property
    def shares(self):
        if self.errors is None:
            return np.full(len(self.members()), 1 / len(self.members()))
        # Of members without any error, all count alike and the others for nothing.
        raw = np.array(
            [1.0 if error == min(self.errors) else (min(self.errors) / error) ** 20 for error in self.errors]
        )
        return raw / raw.sum()

    @property
    def beta(self):
        """Least squares with a penalty as further rows."""
        root = np.sqrt(self.weights)[:, None]
        ridge = 1e-3 * ((root * self.codes) ** 2).sum() / self.codes.shape[1]
        k = self.codes.shape[1]
        rows = np.vstack([root * self.codes, np.sqrt(ridge) * np.eye(k)])
        targets = np.vstack([root * self.labels, np.zeros((k, self.labels.shape[1]))])
        return np.linalg.lstsq(rows, targets, rcond=None)[0]

    def decode(self, U):
        return U @ self.beta if self.compressed else U

    def scores(self, X):
        return self.decode(
            sum(s * self.bank.predict(one, X) for s, one in zip(self.shares, self.members(), strict=True))
        )

    def assert_threshold(self, threshold):
        """As many scores are above it as labels were present, to within a bin."""
        scores, labels = (np.array([row[i] for row in self.monitored]) for i in (0, 1))
        weights = np.array([row[2] for row in self.monitored])[:, None] * ~np.isnan(labels)
        assert_above(scores, weights, threshold, weights[labels == 1].sum())

    def probabilities(self, scores):
        """Compute the share of labels present among recent scores of a bin, made to rise; between centres, a line."""
        edges = np.linspace(-0.5, 1.5, 513)
        centres = (edges[:-1] + edges[1:]) / 2
        seen, present = np.full(512, 0.05), 0.05 * np.clip(centres, 0, 1)
        for row_scores, labels, weight in self.monitored:
            for score, label in zip(row_scores, labels, strict=True):
                if not np.isnan(label):
                    place = int(np.clip((score + 0.5) / BIN, 0, 511))
                    seen[place] += weight
                    present[place] += weight * label
        rising = IsotonicRegression().fit_transform(centres, present / seen, sample_weight=seen)
        return np.interp(scores, centres, rising)

    def assert_floor(self, floor):
        """As many rows' best scores are below it as rows are known to have no labels."""
        best, weights = np.array([row[0].max() for row in self.monitored]), np.array([row[2] for row in self.monitored])
        bare = np.array([not row[1].any() for row in self.monitored])
        if not bare.any():
            assert floor == -np.inf
        else:
            assert_above(best, weights, floor, weights[~bare].sum())


def assert_above(scores, weights, threshold, wanted):
    scores = np.clip(scores, -0.5, 1.5)
    assert weights[scores > threshold + BIN].sum() <= wanted + 1e-9
    assert weights[scores >= threshold - BIN].sum() >= wanted - 1e-9


def gram_schmidt(V):
    Q = np.zeros_like(V)
    for j in range(V.shape[1]):
        v = V[:, j] - Q[:, :j] @ (Q[:, :j].T @ V[:, j])
        v -= Q[:, :j] @ (Q[:, :j].T @ v)
        Q[:, j] = v / np.linalg.norm(v)
    return Q


def some_batches(seed, sizes, n_labels, turned=False, unknown=0.0):
    """Make rows whose labels depend on them; in turned ones features mean other labels."""
    rng = np.random.default_rng(seed)
    W = np.random.default_rng(seed).normal(size=(M, n_labels))[:, :: -1 if turned else 1]
    for size in sizes:
        X = rng.normal(size=(size, M)) + 3
        Y = ((X - 3) @ W + 0.5 * rng.normal(size=(size, n_labels)) > 2.5).astype(float)
        yield X, np.where(rng.random(Y.shape) < unknown, np.nan, Y)


def a_bank(half_lives=(300.0,), alpha=0.5):
    return RLS(alpha=alpha, half_lives=half_lives, n_random_features=3, seed=1)


def start(kind, bank, aim="cardinality", detects_drift=False):
    """Make the model before it has learned, and the naive one: 6 labels as they are, or 30 in 5 pseudo labels."""
    if kind == "uncompressed":
        planes = encoder.identity(6)
    else:
        planes = encoder.draw(30 if kind == "compressed" else 2000, 5, np.random.default_rng(2))
    model = LabelRace(bank, aim, detects_drift, max_uncompressed=10, n_components=5)
    return (
        model,
        model.start_from(planes, np.zeros(M, int)),
        Naive(bank, planes.A, kind != "uncompressed", detects_drift),
    )


N_LABELS = {"uncompressed": 6, "compressed": 30, "many": 2000}
KINDS = pytest.mark.parametrize("kind", ["uncompressed", "compressed"])


def learned(model, state, batches, make=np.asarray):
    for X, Y in batches:
        state = model.update(state, X, make(Y))
    return state


def raw(model, state, X):
    derived = model.derive(state)
    return model.scores(derived, X) + derived.rule.threshold


def assert_same(model, state, naive, X):
    derived = model.derive(state)
    scores = naive.scores(X)
    np.testing.assert_allclose(raw(model, state, X), scores, atol=1e-7)
    np.testing.assert_allclose(state.encoder.A, naive.A, atol=1e-9)
    assert state.n_drifts == naive.n_drifts
    if naive.compressed:
        np.testing.assert_allclose(derived.beta, naive.beta, atol=1e-7)
    else:
        assert derived.beta is None
    if len(naive.members()) > 1 and naive.errors is not None:
        np.testing.assert_allclose(state.errors, naive.errors, atol=1e-9)
    assert_chosen(model, derived, naive, X, scores)


def assert_chosen(model, derived, naive, X, scores):
    """Scores above the threshold, and the best of a row where it would be left empty, if it is above the floor."""
    threshold, floor = derived.rule.threshold, derived.rule.floor
    naive.assert_threshold(threshold)
    naive.assert_floor(floor)
    for row, predicted in zip(scores, model.predict(derived, X), strict=True):
        best = np.sort(row)
        # Neither at a threshold nor with two best labels, but for round-off.
        if np.abs(np.append(row - threshold, row - floor)).min() > 1e-6 and best[-1] - best[-2] > 1e-6:
            expected = row > threshold
            if not expected.any():
                expected[row.argmax()] = row.max() > floor
            np.testing.assert_array_equal(predicted, expected)


@settings(max_examples=25, deadline=None)
@given(SEEDS, SIZES, HALF_LIVES, st.sampled_from(["uncompressed", "compressed"]), st.booleans())
def test_equals_the_naive_version(seed, sizes, half_lives, kind, sparse):
    model, state, naive = start(kind, a_bank(half_lives))
    make = scipy.sparse.csr_array if sparse else np.asarray
    [(queries, _)] = some_batches(seed + 1, [50], N_LABELS[kind])
    for X, Y in some_batches(seed, sizes, N_LABELS[kind]):
        state = model.update(state, X, make(Y))
        naive.learn(X, Y)
        assert_same(model, state, naive, queries)


@settings(max_examples=25, deadline=None)
@given(SEEDS, SIZES, HALF_LIVES, st.sampled_from(["uncompressed", "compressed"]), st.booleans())
def test_labels_not_known(seed, sizes, half_lives, kind, sparse):
    model, state, naive = start(kind, a_bank(half_lives))
    make = scipy.sparse.csr_array if sparse else np.asarray
    [(queries, _)] = some_batches(seed + 1, [50], N_LABELS[kind])
    for X, Y in some_batches(seed, sizes, N_LABELS[kind], unknown=0.3):
        Y[0, 0] = 1.0
        state = model.update(state, X, make(Y))
        naive.learn(X, Y)
        np.testing.assert_allclose(raw(model, state, queries), naive.scores(queries), atol=1e-7)
        np.testing.assert_allclose(state.decoder.rows * state.decoder.scale, naive.weights.sum())
        naive.assert_threshold(model.derive(state).rule.threshold)


@pytest.mark.parametrize("sizes", [(150, 60, 40), (20, 20, 200)])
def test_of_many_labels_some_rows_are_monitored(sizes):
    """2000 labels: 13 rows have 25,000 scores, and 32 is the least; they come from all over the batch."""
    model, state, naive = start("many", a_bank((None, 100.0)))
    for X, Y in some_batches(3, sizes, 2000):
        # Rows that are not monitored have all labels.
        Y[[row for row in range(len(Y)) if row not in [i * len(Y) // 32 for i in range(32)]]] = 1.0
        state = model.update(state, X, scipy.sparse.csr_array(Y))
        naive.learn(X, Y)
    assert_same(model, state, naive, X[:40])


@pytest.mark.parametrize("half_lives", [(1000.0,), (None, 500.0, 100.0)])
@KINDS
def test_drift_makes_it_forget(kind, half_lives):
    """Of several members, the worst becomes a copy of the best and the decoder keeps its sums."""
    model, state, naive = start(kind, a_bank(half_lives), detects_drift=True)
    [(queries, _)] = some_batches(5, [50], N_LABELS[kind], turned=True)
    for turned in (False, True):
        for X, Y in some_batches(4, [150] * 8, N_LABELS[kind], turned=turned):
            state = model.update(state, X, Y)
            naive.learn(X, Y)
        assert state.n_drifts == turned
    assert_same(model, state, naive, queries)
    deaf, unaware, _ = start(kind, a_bank(half_lives))
    for turned in (False, True):
        unaware = learned(deaf, unaware, some_batches(4, [150] * 8, N_LABELS[kind], turned=turned))
    assert unaware.n_drifts == 0


def test_after_a_drift_detector_and_counts_start_anew():
    model, state, _ = start("uncompressed", a_bank(), detects_drift=True)
    state = learned(model, state, some_batches(4, [150] * 8, 6))
    assert len(state.drift.means) == 7
    for X, Y in some_batches(4, [150] * 8, 6, turned=True):
        before, state = state, model.update(state, X, Y)
        if state.n_drifts:
            break
    assert len(state.drift.means) == 0
    # Scores from before say nothing of those to come; those of the batch, just learned, count for a tenth.
    assert state.histogram.rows == pytest.approx(15)
    assert state.histogram.seen.sum() == pytest.approx(15 * 6)
    assert state.histogram.present.sum() == pytest.approx(0.1 * Y.sum())
    # All but 2 % are gone, the batch comes on top.
    assert state.learners.rows[0] == pytest.approx(0.02 * before.learners.rows[0] * 0.5**0.5 + 150)


@KINDS
def test_members_with_smaller_errors_count_for_more(kind):
    model, state, naive = start(kind, a_bank((None, 30.0)))
    for X, Y in some_batches(6, [150, 100, 100], N_LABELS[kind]):
        state = model.update(state, X, Y)
        naive.learn(X, Y)
    good, bad = sorted(state.errors)
    best = model.bank.members(state.learners)[int(np.argmin(state.errors))].weights
    worst = model.bank.members(state.learners)[int(np.argmax(state.errors))].weights
    share = 1 / (1 + (good / bad) ** 20)
    assert 0.5 < share < 1
    np.testing.assert_allclose(model.derive(state).learners.weights, share * best + (1 - share) * worst, atol=1e-9)


def test_members_without_errors():
    """Labels that are always absent are predicted without error by all, or by those that have learned it."""
    model, state, _ = start("uncompressed", a_bank((None, 30.0)))
    state = learned(model, state, ((X, 0 * Y) for X, Y in some_batches(6, [150, 100], 6)))
    np.testing.assert_array_equal(state.errors, 0.0)
    half = state._replace(errors=np.array([0.0, 0.1]))
    np.testing.assert_array_equal(model.derive(half).learners.weights, model.bank.members(state.learners)[0].weights)
    assert np.isfinite(raw(model, state, np.ones((2, M)))).all()


@KINDS
def test_penalty_is_the_learners_own_choice(kind):
    """Nothing of the above depends on a penalty that is given."""
    model, state, naive = start(kind, a_bank(alpha=None))
    for X, Y in some_batches(7, [20, 150, 100], N_LABELS[kind]):
        state = model.update(state, X, Y)
        naive.learn(X, Y)
    assert_same(model, state, naive, X)


@KINDS
@pytest.mark.parametrize("aim", ["cardinality", "macro_f1"])
def test_nothing_is_written_into(kind, aim):
    model, state, _ = start(kind, a_bank((None, 100.0)), aim, detects_drift=True)
    rng = np.random.default_rng(0)
    for turned in (False, True):
        for X, Y in some_batches(8, [40, 150, 100, 100, 100], N_LABELS[kind], turned=turned, unknown=0.1):
            given, copied = (X.copy(), Y.copy()), arrays(state)
            new = model.update(state, X, Y)
            model.grow_labels(state, len(state.encoder.A) + 9, rng)
            np.testing.assert_equal((X, Y), given)
            np.testing.assert_equal(arrays(state), copied)
            state = new


def arrays(state):
    """Copy all arrays of a state."""
    return [arrays(part) if isinstance(part, tuple) else np.array(part) for part in state if part is not None]


@KINDS
def test_what_was_derived_may_be_given(kind):
    model, state, _ = start(kind, a_bank((None, 100.0)))
    first, second = some_batches(9, [150, 60], N_LABELS[kind], unknown=0.1)
    state = model.update(state, *first)
    one, other = model.update(state, *second), model.update(state, *second, model.derive(state))
    np.testing.assert_equal(arrays(one), arrays(other))


# Labels that are not known.


def test_a_label_that_nobody_knows_is_not_learned():
    model, state, _ = start("uncompressed", a_bank())
    first, (X, Y) = some_batches(10, [150, 60], 6)
    state = model.update(state, *first)
    Y[:, 2] = np.nan
    after = model.update(state, X, Y)
    np.testing.assert_allclose(after.learners.weights[..., 2], state.learners.weights[..., 2], atol=1e-12)
    np.testing.assert_allclose(after.learners.intercepts[..., 2], state.learners.intercepts[..., 2], atol=1e-12)
    others = np.arange(6) != 2
    assert (after.learners.weights[..., others] != state.learners.weights[..., others]).any(axis=(0, 1)).all()
    # Others are learned as ever.
    known = model.update(state, X, np.nan_to_num(Y))
    np.testing.assert_allclose(after.learners.weights[..., others], known.learners.weights[..., others], atol=1e-12)


@KINDS
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("half_lives", [(300.0,), (None, 100.0)])
def test_rows_nothing_is_known_of(kind, number, half_lives):
    """They count neither as rows without labels nor as errors, and NaN goes no further."""
    model, state, _ = start(kind, a_bank(half_lives))
    batches = list(some_batches(11, [150, 60], N_LABELS[kind]))
    batches[number][1][:5] = np.nan
    state = learned(model, state, batches)
    for part in flat(arrays(state)):
        assert np.isfinite(part).all()
    if number == 1:
        rows = 0.5 ** (55 / 200) * 0.1 * 150
        assert state.histogram.rows == pytest.approx(rows + 55)
        assert state.histogram.seen.sum() == pytest.approx((rows + 55) * N_LABELS[kind])
        assert state.drift.sizes.tolist() == [55]


@KINDS
def test_a_batch_nothing_is_known_of(kind):
    model, state, _ = start(kind, a_bank((None, 100.0)), detects_drift=True)
    batches = list(some_batches(12, [150, 60], N_LABELS[kind]))
    state = learned(model, state, batches)
    X, Y = batches[1]
    with np.errstate(all="raise"):
        after = model.update(state, X, np.full_like(Y, np.nan))
    for part in flat(arrays(after)):
        assert np.isfinite(part).all()
    np.testing.assert_equal(arrays(after.drift), arrays(state.drift))
    np.testing.assert_allclose(after.errors, state.errors)


def flat(parts):
    for part in parts:
        yield from flat(part) if isinstance(part, list) else [part]


@KINDS
def test_a_first_batch_nothing_is_known_of(kind):
    model, state, _ = start(kind, a_bank())
    first, second = some_batches(13, [150, 60], N_LABELS[kind])
    state = model.update(state, first[0], np.full_like(first[1], np.nan))
    np.testing.assert_array_equal(raw(model, state, first[0]), 0.0)
    assert np.isfinite(raw(model, model.update(state, *second), first[0])).all()


@KINDS
@pytest.mark.parametrize("half_lives", [(300.0,), (None, 100.0)])
def test_stored_nan_is_nan(kind, half_lives):
    batches = list(some_batches(14, [150, 60, 60], N_LABELS[kind], unknown=0.2))
    states = []
    for make in (np.asarray, scipy.sparse.csr_array):
        model, state, _ = start(kind, a_bank(half_lives), "macro_f1")
        state = learned(model, state, batches, make)
        states.append(state._replace(decoder=decoder.fold(state.decoder)))
    for one, other in zip(flat(arrays(states[0])), flat(arrays(states[1])), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


# Labels that come later.


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([20, 127, 150]), HALF_LIVES, st.booleans())
def test_a_label_of_its_own_is_added_exactly(seed, size, half_lives, sparse):
    """Weights, scores and predictions are those of a model that knew all labels from the start."""
    make = scipy.sparse.csr_array if sparse else np.asarray
    batches = list(some_batches(seed, [size, 100, 150], 6))
    model, told, _ = start("uncompressed", a_bank(half_lives, alpha=None))
    grown = model.start_from(encoder.identity(2), np.zeros(M, int))
    rng = np.random.default_rng(0)
    for number, (X, Y) in enumerate(batches):
        width = 2 * (number + 1)
        Y[:, width:] = 0.0
        # Labels are frequent enough for a threshold above 0, where labels that never were are.
        Y[::2, :2] = 1.0
        told = model.update(told, X, make(Y))
        if number:
            grown = model.grow_labels(grown, width, rng)
        grown = model.update(grown, X, make(Y[:, :width]))
        np.testing.assert_allclose(grown.learners.weights, told.learners.weights[..., :width], atol=1e-9)
        np.testing.assert_allclose(told.learners.weights[..., width:], 0.0, atol=1e-12)
        np.testing.assert_allclose(raw(model, grown, X), raw(model, told, X)[:, :width], atol=1e-9)
        threshold = model.derive(told).rule.threshold
        assume(threshold > BIN)
        assert model.derive(grown).rule.threshold == pytest.approx(threshold, abs=1e-6)
        np.testing.assert_allclose(grown.decoder.gram, told.decoder.gram[:width, :width])
    assert model.predict(model.derive(grown), X).shape == (150, 6)
    np.testing.assert_array_equal(model.predict(model.derive(grown), X), model.predict(model.derive(told), X))


@pytest.mark.parametrize("sizes", [(150, 60), (30, 30)])
def test_compressed_labels_are_not_changed_by_new_ones(sizes):
    model, state, _ = start("compressed", a_bank())
    state = learned(model, state, some_batches(15, sizes, 30), scipy.sparse.csr_array)
    [(X, Y)] = some_batches(16, [60], 30)
    grown = model.grow_labels(state, 37, np.random.default_rng(0))
    assert grown.encoder.A.shape == (37, 5)
    scores = raw(model, grown, X)
    np.testing.assert_allclose(scores[:, :30], raw(model, state, X), atol=1e-9)
    np.testing.assert_array_equal(scores[:, 30:], 0.0)
    # Rows without new labels have the same codes, and teach the same.
    one = model.update(state, X, Y)
    other = model.update(grown, X, np.hstack([Y, np.zeros((60, 7))]))
    np.testing.assert_allclose(other.learners.weights, one.learners.weights, atol=1e-9)
    np.testing.assert_allclose(raw(model, other, X)[:, :30], raw(model, one, X), atol=1e-9)
    np.testing.assert_allclose(raw(model, other, X)[:, 30:], 0.0, atol=1e-9)


def test_new_compressed_labels_are_learned():
    """The model is the naive one with the same rows of the encoder, which knew the labels from the start."""
    model, state, _ = start("compressed", a_bank())
    first, second, third = some_batches(17, [150, 100, 100], 30)
    without = first[1].copy()
    without[:, 25:] = 0.0
    state = model.start_from(encoder.draw(25, 5, np.random.default_rng(2)), np.zeros(M, int))
    state = model.grow_labels(model.update(state, first[0], without[:, :25]), 30, np.random.default_rng(3))
    naive = Naive(model.bank, state.encoder.A, False)
    naive.take(first[0], without)
    naive.compressed = True
    for X, Y in (second, third):
        state = model.update(state, X, Y)
        naive.take(X, Y)
    np.testing.assert_allclose(raw(model, state, first[0]), naive.scores(first[0]), atol=1e-8)
    assert np.abs(raw(model, state, first[0])[:, 25:]).max() > 0.1


@pytest.mark.parametrize("aim", ["cardinality", "macro_f1"])
@pytest.mark.parametrize("steps", [(24,), (10, 24), (7, 24)])
def test_from_few_labels_to_many(aim, steps):
    """Up to 10 labels are their own pseudo labels; more share those 10."""
    bank = a_bank((None, 200.0))
    model = LabelRace(bank, aim, True, max_uncompressed=10, n_components=5)
    state = model.start_from(encoder.identity(6), np.zeros(M, int))
    (X, Y), *others = some_batches(18, [150, 200, 200, 200], 24)
    state = model.update(state, X, Y[:, :6])
    before = raw(model, state, X)
    for n_labels in steps:
        state = model.grow_labels(state, n_labels, np.random.default_rng([0, n_labels]))
    assert state.encoder.A.shape == (24, 10)
    np.testing.assert_array_equal(state.encoder.A[:10], np.eye(10))
    assert (state.encoder.A[10:] != 0).all()
    # A penalty of a thousandth of the mean square changes little.
    np.testing.assert_allclose(raw(model, state, X)[:, :6], before, atol=0.02)
    np.testing.assert_allclose(raw(model, state, X)[:, 6:], 0.0, atol=1e-9)
    naive = Naive(bank, state.encoder.A, False)
    naive.take(X, np.hstack([Y[:, :6], np.zeros((150, 18))]), uncompressed=True)
    naive.compressed = True
    for X, Y in others:
        state = model.update(state, X, Y)
        naive.take(X, Y)
    np.testing.assert_allclose(model.derive(state).beta, naive.beta, atol=1e-8)
    assert model.predict(model.derive(state), X).shape == (200, 24)
    wrong = np.square(raw(model, state, X) - Y).mean(axis=0)
    assert wrong.mean() < 0.8 * Y.var(axis=0).mean()


@KINDS
def test_errors_watched_where_labels_are_not_known(kind):
    """What is not known adds the error that its score lets expect."""
    model, state, _ = start(kind, a_bank((None,)))
    [(X, Y)] = some_batches(5, [150], N_LABELS[kind])
    state = model.update(state, X, Y)
    hidden = np.random.default_rng(0).random(Y.shape) < 0.5
    hidden[:, 0] = False
    scores = raw(model, state, X)
    likely = np.clip(scores, 0, 1)
    expected = np.where(hidden, likely * (1 - likely), np.square(scores - Y)).sum(axis=1).mean()
    got = model.update(state, X, np.where(hidden, np.nan, Y)).drift.means[-1]
    assert got == pytest.approx(expected, rel=1e-5)
    assert got != pytest.approx(np.square(scores - Y).sum(axis=1).mean(), rel=1e-3)


@KINDS
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_probabilities_by_definition(kind, missing):
    model, state, naive = start(kind, a_bank((None, 100.0)))
    [(queries, _)] = some_batches(20, [100], N_LABELS[kind])
    for X, Y in some_batches(19, [150, 60, 100], N_LABELS[kind], unknown=missing):
        state = model.update(state, X, Y)
        naive.learn(X, Y)
    likely = model.probabilities(model.derive(state), queries)
    expected = naive.probabilities(naive.scores(queries))
    # A score that rounding brings to the next bin counts there.
    np.testing.assert_allclose(likely, expected, atol=0.02)
    assert np.abs(likely - expected).mean() < 1e-4
    assert np.ptp(likely) > 0.5
