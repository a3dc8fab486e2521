"""The default model against a naive version; its learners and the form of compressed labels have tests of their own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.schema import Schema
from labelrace.decisions import histogram, monitoring, rules
from labelrace.linear.classifier import LabelRace
from labelrace.linear.rls import RLS

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.lists(st.sampled_from([1, 5, 60, 130, 200, 600]), min_size=1, max_size=4)
M = 5
N_LABELS = {"uncompressed": 6, "compressed": 30}
KINDS = pytest.mark.parametrize("kind", ["uncompressed", "compressed"])


class Naive:
    """The model by its definition."""

    def __init__(self, model, n_labels):
        self.bank, self.n_labels = model.bank, n_labels

    def begin(self, X, Y):
        self.monitor, self.waiting, self.label_rows = monitoring.init_counts(self.n_labels), [], (Y == 1).sum(axis=0)
        filled = np.where(np.isnan(Y), np.nanmean(np.vstack([Y, np.zeros_like(Y[:1]) * np.nan]), axis=0), Y)
        self.learners, ridge = self.bank.fit_first_rows(self.bank.init(np.zeros(M, int), self.n_labels), X, Y)
        scores = ridge.leave_one_out_scores(np.nan_to_num(filled))
        self.monitor = monitoring.update_counts(self.monitor, scores, Y, self.label_rows)

    def go_on(self, X, Y):
        scores = self.scores(X)
        self.waiting += [(scores[row], Y[row]) for row in self.monitored(Y)]
        if len(self.waiting) >= 32:
            waiting = (np.array(part) for part in zip(*self.waiting, strict=True))
            self.monitor = monitoring.update_counts(self.monitor, *waiting, self.label_rows)
            self.waiting = []
        self.learners = self.bank.learn(self.learners, X, Y)
        self.label_rows = 0.5 ** (len(Y) / 8000) * self.label_rows + (Y == 1).sum(axis=0)

    def monitored(self, Y):
        n = min(len(Y), max(32, 10_000 // Y.shape[1]))
        return [i * len(Y) // n for i in range(n)]

    def scores(self, X):
        return self.bank.predict(self.bank.derive(self.learners), X)


def some_batches(seed, sizes, n_labels, turned=False, unknown=0.0):
    """Make rows whose labels depend on them; in turned ones features mean other labels."""
    rng = np.random.default_rng(seed)
    W = np.random.default_rng(seed).normal(size=(M, n_labels))[:, :: -1 if turned else 1]
    for size in sizes:
        X = rng.normal(size=(size, M)) + 3
        Y = ((X - 3) @ W + 0.5 * rng.normal(size=(size, n_labels)) > 2.5).astype(float)
        yield X, np.where(rng.random(Y.shape) < unknown, np.nan, Y)


def start(kind, aim="cardinality", detects_drift=False, half_life=300.0, n_labels=None):
    """Make the model before it has learned: 6 labels as they are, or 30 in 5 pseudo labels."""
    bank = RLS(alpha=0.5, half_life=half_life, n_random_features=3, seed=1, binary=True)
    model = LabelRace(bank, aim, detects_drift, max_memory=1e9 if kind == "uncompressed" else 1.0, n_components=5)
    model = model if kind == "uncompressed" else model.successor
    return model, model.init(schema_of(n_labels or N_LABELS[kind]), np.random.default_rng(0))


def schema_of(n_labels):
    return Schema(FeatureKinds.numbers(M), None, n_labels, None)


def grow(model, state, n_labels, n_wanted):
    return model.grow(state, schema_of(n_labels), schema_of(n_wanted), np.random.default_rng(0))


def learned(model, state, batches, make=np.asarray):
    for X, Y in batches:
        state = model.update(state, X, make(Y))
    return state


def raw(model, state, X):
    """Compute the scores of labels that are not compressed before they are adjusted."""
    return model.bank.predict(model.derive(state).learners, X)


def arrays(state):
    """Copy all arrays of a state."""
    parts = [part.n_values if isinstance(part, FeatureKinds) else part for part in state if part is not None]
    return [arrays(part) if isinstance(part, tuple) else np.array(part) for part in parts]


def flat(parts):
    for part in parts:
        yield from flat(part) if isinstance(part, list) else [part]


@settings(max_examples=25, deadline=None)
@given(
    SEEDS,
    SIZES,
    st.sampled_from([None, 300.0]),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
)
def test_equals_the_naive_version(seed, sizes, half_life, sparse, unknown):
    """A first batch of 300 rows is learned exactly and not kept: what comes after goes on from it."""
    model, state = start("uncompressed", half_life=half_life)
    make = scipy.sparse.csr_array if sparse else np.asarray
    [(queries, _)] = some_batches(seed + 1, [50], 6)
    naive = Naive(model, 6)
    for number, (X, Y) in enumerate(some_batches(seed, [300, *sizes], 6, unknown=unknown)):
        Y[:, 0] = np.nan_to_num(Y[:, 0])
        state = model.update(state, X, make(Y))
        naive.go_on(X, Y) if number else naive.begin(X, Y)
        np.testing.assert_allclose(raw(model, state, queries), naive.scores(queries), atol=1e-7)
    np.testing.assert_allclose(state.monitor.counts.offsets, naive.monitor.offsets, atol=1e-9)
    share = monitoring.best_share(naive.monitor)
    rule = rules.make_rule("cardinality", naive.monitor.histograms.of(share), None)
    derived = model.derive(state)
    assert derived.rule.threshold == pytest.approx(rule.threshold, abs=1e-6)
    z = rules.adjusted(naive.scores(queries), monitoring.SHARES[share] * naive.monitor.offsets)
    np.testing.assert_allclose(model.decisions(derived, queries), z - rule.threshold, atol=1e-6)
    safe = (np.abs(z - rule.threshold).min(axis=1) > 1e-5) & (np.abs(z - rule.floor).min(axis=1) > 1e-5)
    np.testing.assert_array_equal(model.predict(derived, queries)[safe], rules.choose(rule, z)[safe])
    # Ranked by the scores over a power of the labels' frequencies; the power's histogram is behind the shares'.
    best = int(np.argmax(naive.monitor.ndcg))
    rule = rules.make_rule("cardinality", naive.monitor.histograms.of(3 if best else 0), None)
    z = rules.adjusted(naive.scores(queries) * monitoring.ranking_factors(naive.label_rows, monitoring.POWERS[best]))
    np.testing.assert_allclose(model.scores(derived, queries), z - rule.threshold, atol=1e-6)
    np.testing.assert_allclose(model.probabilities(derived, queries), rules.probabilities(rule, z), atol=1e-4)


def test_few_rows_are_learned_again_until_there_are_enough():
    """Rows one by one end where all at once do: 512 of them are the last exact start."""
    model, one = start("uncompressed")
    _, whole = start("uncompressed")
    [(X, Y)] = some_batches(3, [512], 6)
    for i in range(0, 512, 4):
        one = model.update(one, X[i : i + 4], Y[i : i + 4])
    whole = model.update(whole, X, Y)
    np.testing.assert_allclose(one.monitor.counts.offsets, whole.monitor.counts.offsets, atol=1e-9)
    np.testing.assert_allclose(one.monitor.counts.histograms.of(0).seen, whole.monitor.counts.histograms.of(0).seen)
    np.testing.assert_allclose(raw(model, one, X), raw(model, whole, X), atol=1e-9)


def test_first_scores_are_those_of_rows_left_out():
    """Their errors are as large as those on rows not seen, not as small as on rows learned."""
    model, state = start("uncompressed")
    (X, Y), (others, truth) = some_batches(4, [120, 2000], 6)
    state = model.update(state, X, Y)
    bins = histogram.CENTRES
    seen, present = state.monitor.counts.histograms.of(0).seen, state.monitor.counts.histograms.of(0).present
    counted = (seen * bins**2 - 2 * present * bins + present).sum() / seen.sum()
    lowered = [rules.adjusted(raw(model, state, x)) for x in (X, others)]
    fitted, fresh = (np.square(z - y).mean() for z, y in zip(lowered, (Y, truth), strict=True))
    assert counted == pytest.approx(fresh, rel=0.15)
    assert counted > 1.15 * fitted


@pytest.mark.parametrize("sizes", [(600, 160, 140), (600, 300)])
def test_of_many_labels_some_rows_are_monitored(sizes):
    """2000 labels: 20 rows have 40,000 scores, and 128 is the least; they come from all over the batch."""
    model, state = start("uncompressed", n_labels=2000)
    for number, (X, Y) in enumerate(some_batches(3, sizes, 2000)):
        # Rows that are not monitored have other labels, but no more of them.
        n = 512 if number == 0 else 128
        if number:
            others = [row for row in range(len(Y)) if row not in [i * len(Y) // n for i in range(n)]]
            Y[others] = Y[others][:, ::-1]
        before = state.monitor.counts
        state = model.update(state, X, scipy.sparse.csr_array(Y))
        if number:
            monitored = Y[[i * len(Y) // n for i in range(n)]]
            expected = 0.5 ** (n / 1000) * before.present + monitored.sum(axis=0)
            np.testing.assert_allclose(state.monitor.counts.present, expected)


def test_drift_makes_a_second_model_forget():
    model, state = start("uncompressed", detects_drift=True, half_life=1000.0)
    deaf, unaware = start("uncompressed", half_life=1000.0)
    errors = []
    for turned in (False, True):
        for X, Y in some_batches(4, [300] * 12, 6, turned=turned):
            if turned and state.n_alarms:
                pairs = ((model, state), (deaf, unaware))
                errors.append([np.square(np.clip(raw(m, s, X), 0, 1) - Y).mean() for m, s in pairs])
            before, state = state, model.update(state, X, Y)
            unaware = deaf.update(unaware, X, Y)
            if state.n_alarms > before.n_alarms:
                # All but 2 % are gone, the batch comes on top; the detectors start over.
                kept = 0.02 * before.learners.intercept_extra_precision[0] * 0.5**0.3
                precisions = [each.learners.intercept_extra_precision[0] for each in (state, *state.fork)]
                assert min(precisions) < kept + 300 < max(precisions)
                assert all(len(each.monitor.drift.means) == 0 for each in (state, *state.fork))
        assert state.n_alarms == state.n_drifts == turned
        assert unaware.n_alarms == 0
    assert not state.fork
    assert len(errors) > 3
    aware, deaf = np.mean(errors, axis=0)
    assert aware < 0.95 * deaf


@KINDS
@pytest.mark.parametrize("aim", ["cardinality", "macro_f1"])
def test_nothing_is_written_into(kind, aim):
    model, state = start(kind, aim, detects_drift=True)
    for turned in (False, True):
        for X, Y in some_batches(8, [40, 150, 100, 400, 100], N_LABELS[kind], turned=turned, unknown=0.1):
            given, copied = (X.copy(), Y.copy()), arrays(state)
            new = model.update(state, X, Y)
            grow(model, state, N_LABELS[kind], N_LABELS[kind] + 9)
            np.testing.assert_equal((X, Y), given)
            np.testing.assert_equal(arrays(state), copied)
            state = new


@KINDS
def test_what_was_derived_may_be_given(kind):
    model, state = start(kind)
    first, second = some_batches(9, [600, 60], N_LABELS[kind], unknown=0.1)
    state = model.update(state, *first)
    one, other = model.update(state, *second), model.update(state, *second, model.derive(state))
    np.testing.assert_equal(arrays(one), arrays(other))


# Labels that are not known.


def test_a_label_that_nobody_knows_is_not_learned():
    model, state = start("uncompressed")
    first, (X, Y) = some_batches(10, [600, 60], 6)
    state = model.update(state, *first)
    Y[:, 2] = np.nan
    after = model.update(state, X, Y)
    np.testing.assert_array_equal(after.learners.weights[:, 2], state.learners.weights[:, 2])
    assert after.learners.intercepts[2] == state.learners.intercepts[2]
    others = np.arange(6) != 2
    assert (after.learners.weights[:, others] != state.learners.weights[:, others]).any(axis=0).all()
    # Others are learned as ever.
    known = model.update(state, X, np.nan_to_num(Y))
    np.testing.assert_allclose(after.learners.weights[:, others], known.learners.weights[:, others], atol=1e-12)


@pytest.mark.parametrize("number", [0, 1])
def test_rows_nothing_is_known_of(number):
    """They count neither as rows without labels nor as errors, and NaN goes no further."""
    model, state = start("uncompressed")
    batches = list(some_batches(11, [300, 60], 6))
    batches[number][1][:5] = np.nan
    state = learned(model, state, batches)
    finite = state.learners._replace(first_seen=0.0, recent_since=0.0)
    for part in flat(arrays(state._replace(learners=finite))):
        assert np.isfinite(part).all()
    if number == 1:
        rows = 0.5 ** (55 / 200) * 300
        assert state.monitor.counts.histograms.of(0).rows == pytest.approx(rows + 55)
        assert state.monitor.drift.sizes.tolist() == [55]


@KINDS
def test_a_batch_nothing_is_known_of(kind):
    model, state = start(kind, detects_drift=True)
    batches = list(some_batches(12, [600, 60], N_LABELS[kind]))
    state = learned(model, state, batches)
    X, Y = batches[1]
    assert model.update(state, X, np.full_like(Y, np.nan)) is state


def test_stored_nan_is_nan():
    batches = list(some_batches(14, [150, 60, 600], 6, unknown=0.2))
    states = []
    for make in (np.asarray, scipy.sparse.csr_array):
        model, state = start("uncompressed", "macro_f1")
        state = learned(model, state, batches, make)
        states.append(state)
    for one, other in zip(flat(arrays(states[0])), flat(arrays(states[1])), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_errors_monitored_where_labels_are_not_known():
    """What is not known adds the error that its score lets expect; scores are clipped."""
    model, state = start("uncompressed", half_life=None)
    [(X, Y)] = some_batches(5, [300], 6)
    state = model.update(state, X, Y)
    hidden = np.random.default_rng(0).random(Y.shape) < 0.5
    hidden[:, 0] = False
    likely = np.clip(raw(model, state, X), 0, 1)
    expected = np.where(hidden, likely * (1 - likely), np.square(likely - Y)).sum(axis=1).mean()
    got = model.update(state, X, np.where(hidden, np.nan, Y)).monitor.drift.means[-1]
    assert got == pytest.approx(expected, rel=1e-5)


# Labels that come later.


@KINDS
@pytest.mark.parametrize("sizes", [(600, 60), (30, 30)])
def test_the_arrival_of_labels_changes_no_other_score(kind, sizes):
    model, state = start(kind)
    n_labels = N_LABELS[kind]
    state = learned(model, state, some_batches(15, sizes, n_labels), scipy.sparse.csr_array)
    [(X, _)] = some_batches(16, [60], n_labels)
    grown = grow(model, state, n_labels, n_labels + 7)
    before, after = (model.scores(model.derive(one), X) for one in (state, grown))
    np.testing.assert_allclose(after[:, :n_labels], before, atol=1e-9)
    if kind == "uncompressed":
        np.testing.assert_allclose(raw(model, grown, X)[:, n_labels:], 0.0, atol=1e-9)


def test_labels_that_are_learned_change_no_other_score():
    """Uncompressed, the scores before they are adjusted are those of a model that never met the new labels."""
    model, state = start("uncompressed", n_labels=4)
    batches = list(some_batches(17, [600, 200, 200, 200], 6))
    state = learned(model, state, [(X, Y[:, :4]) for X, Y in batches[:2]])
    grown = grow(model, state, 4, 6)
    for X, Y in batches[2:]:
        state, grown = model.update(state, X, Y[:, :4]), model.update(grown, X, Y)
    X = batches[0][0]
    np.testing.assert_allclose(raw(model, grown, X)[:, :4], raw(model, state, X), atol=1e-12)
    assert np.abs(raw(model, grown, X)[:, 4:]).max() > 0.2
    assert grown.learners.is_recent_label.tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize("grows", ["columns", "labels"])
def test_labels_that_outgrow_the_memory_are_compressed(grows):
    """What was learned is kept, as far as codes and table hold it; new labels that are too many never get weights."""
    bank = RLS(alpha=0.5, half_life=300.0, n_random_features=3, seed=1, binary=True)
    model = LabelRace(bank, "cardinality", False, max_memory=4.0 * 8 * 11, n_components=10)
    state = model.init(schema_of(11), np.random.default_rng(0))
    batches = list(some_batches(18, [600, 300, 300], 15))
    state = learned(model, state, [(X, Y[:, :11]) for X, Y in batches[:2]])
    assert model.successor_state(state, schema_of(11)) is None
    assert len(state.recent_rows.indptr) == 88 + 300 + 1
    X, Y = batches[2]
    before = raw(model, state, X)
    if grows == "columns":
        model = LabelRace(bank, "cardinality", False, max_memory=1.0, n_components=10)
        X, Y = X, Y[:, :11]
        state = model.update(state, X[:1], Y[:1])
    state = model.successor_state(state, schema_of(Y.shape[1]))
    model = model.successor
    assert len(state.decoder.total) == 10
    if grows == "labels":
        state = grow(model, state, 11, 15)
    scores = model.scores(model.derive(state), X)
    assert np.corrcoef(before.ravel(), scores[:, :11].ravel())[0, 1] > 0.9
    state = model.update(model.update(state, X, Y), X, Y)
    errors = np.square(model.probabilities(model.derive(state), X) - Y).mean()
    assert errors < 0.8 * Y.var(axis=0).mean()


def test_few_new_labels_beyond_the_memory_are_learned_and_then_compressed():
    """The batch that brings them is learned with a model for each label, which learns more of it."""
    bank = RLS(alpha=0.5, half_life=300.0, n_random_features=3, seed=1, binary=True)
    model = LabelRace(bank, "cardinality", False, max_memory=4.0 * 8 * 11, n_components=10)
    state = model.init(schema_of(11), np.random.default_rng(0))
    batches = list(some_batches(18, [600, 300, 300], 12))
    state = learned(model, state, [(X, Y[:, :11]) for X, Y in batches[:2]])
    assert model.successor_state(state, schema_of(12)) is None
    grown = grow(model, state, 11, 12)
    X, Y = batches[2]
    ample = LabelRace(bank, "cardinality", False, max_memory=1e9, n_components=10)
    before = raw(ample, ample.update(grown, X, Y), X)
    compressed = model.successor_state(model.update(grown, X, Y), schema_of(12))
    scores = model.successor.scores(model.successor.derive(compressed), X)
    assert np.corrcoef(before.ravel(), scores.ravel())[0, 1] > 0.9
