"""Rules against brute force: all thresholds, all label sets, all truths."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from labelrace.base import growth
from labelrace.base.growth import Moves
from labelrace.decisions import histogram, rules

SEEDS = st.integers(0, 2**32 - 1)


def some_scores(seed, n=60, n_labels=6, share=0.25):
    """Draw labels, and scores that know something of them, some labels' more than others'."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, n_labels)) < share).astype(float)
    return labels * rng.uniform(0.1, 0.6, n_labels) + rng.normal(0.2, 0.2, size=(n, n_labels)) + rng.normal(
        0, 0.1, n_labels
    ), labels


def made(aim, *batches, n_labels=6):
    counts, by_label = histogram.init(), histogram.init_labels(n_labels)
    for scores, labels in batches:
        counts, by_label = (
            histogram.update(counts, scores, labels),
            histogram.update_labels(by_label, scores, labels),
        )
    return rules.make_rule(aim, counts, by_label)


@pytest.mark.parametrize("share", [0.05, 0.25, 0.8])
def test_cardinality_is_kept(share):
    scores, labels = some_scores(0, 500, share=share)
    rule = made("cardinality", (scores, labels))
    above = scores > rule.threshold
    assert 0.9 * labels.sum() - 15 <= above.sum() <= 1.08 * labels.sum() + 15
    chosen = rules.choose(rule, scores)
    for row, marked, best in zip(chosen, above, scores.argmax(axis=1), strict=True):
        if marked.any():
            np.testing.assert_array_equal(row, marked)
        else:
            expected = np.zeros(6, bool)
            expected[best] = row.any()
            np.testing.assert_array_equal(row, expected)


def test_rows_with_nothing_above_get_their_best_label():
    """Unless rows without labels are that common: then those with the worst best labels stay empty."""
    scores, labels = some_scores(1, 400, share=0.1)
    bare = int((~labels.any(axis=1)).sum())
    chosen = rules.choose(made("cardinality", (scores, labels)), scores)
    empty = ~chosen.any(axis=1)
    assert 0 < empty.sum() <= bare + 10
    assert scores[empty].max() <= made("cardinality", (scores, labels)).floor
    labels[~labels.any(axis=1), 0] = 1.0
    assert rules.choose(made("cardinality", (scores, labels)), scores).any(axis=1).all()


def test_only_cardinality_fills_rows():
    scores, labels = some_scores(2, 400, share=0.1)
    low = np.full((3, 6), -0.4)
    for aim in ("hamming_loss", "subset_accuracy", "micro_f1", "macro_f1"):
        assert not rules.choose(made(aim, (scores, labels)), low).any()


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from([0.05, 0.3, 0.7]))
def test_hamming_loss_by_all_thresholds(seed, share):
    """No threshold is better on what was counted, but for the little that is assumed of every bin."""
    scores, labels = some_scores(seed, 100, share=share)
    edges = np.concatenate([histogram.EDGES, [-9.0, 9.0]])
    losses = [((scores >= edge) != labels).sum() for edge in edges]
    for aim in ("hamming_loss", "subset_accuracy"):
        chosen = rules.choose(made(aim, (scores, labels)), scores)
        assert (chosen != labels).sum() <= min(losses) + 512 * 0.05
        rule = made(aim, (scores, labels))
        likely = rule.probabilities
        assert (likely[rule.threshold > histogram.CENTRES] < 0.5).all()
        assert (likely[rule.threshold < histogram.CENTRES] >= 0.5).all()
        assert rule.threshold == rule.thresholds


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from([0.02, 0.3, 0.7]))
def test_micro_f_by_all_thresholds(seed, share):
    scores, labels = some_scores(seed, 60, share=share)
    labels[0, 0] = 1.0
    best = 0.0
    for edge in histogram.EDGES:
        marked = scores >= edge
        best = max(best, 2 * (marked * labels).sum() / (marked.sum() + labels.sum()))
    rule = made("micro_f1", (scores, labels))
    got = f1_score(labels, rules.choose(rule, scores), average="micro")
    assert got == pytest.approx(best, abs=1e-12)
    assert rule.threshold == rule.thresholds


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([0.05, 0.3]))
def test_macro_f_by_all_thresholds_of_each_label(seed, share):
    """Each label has its own scores, and those of 20 average rows beside them."""
    scores, labels = some_scores(seed, 80, share=share)
    labels[0] = 1.0
    rule = made("macro_f1", (scores, labels))
    assert rule.threshold == pytest.approx(made("cardinality", (scores, labels)).threshold)
    weight = np.concatenate([np.ones(80), np.full(480, 20 / 80 / 6)])
    for j in range(6):
        both, truth = np.append(scores[:, j], scores.ravel()), np.append(labels[:, j], labels.ravel())
        measures = {}
        for edge in histogram.EDGES[:-1:8]:
            # What lies outside of the bins counts as the outermost.
            marked = both >= edge if edge > -0.5 else both > -9
            measures[edge] = 2 * weight @ (marked * truth) / (weight @ marked + weight @ truth)
        own = min(measures, key=lambda threshold: abs(threshold - (2.0 * rule.thresholds[j] - rule.threshold)))
        assert measures[own] == pytest.approx(max(measures.values()), abs=1e-12)
    assert len(set(rule.thresholds)) > 1
    expected = np.column_stack([scores[:, j] > rule.thresholds[j] for j in range(6)])
    for row in np.flatnonzero(~expected.any(axis=1)):
        expected[row, scores[row].argmax()] = scores[row].max() > rule.floor
    np.testing.assert_array_equal(rules.choose(rule, scores), expected)


def test_label_never_present_goes_with_the_others():
    """Alone, it would have no best threshold."""
    scores, labels = some_scores(3, 200)
    labels[:, 2] = 0.0
    rule = made("macro_f1", (scores, labels))
    assert rules.choose(rule, scores)[:, 2].mean() < 0.5


def test_label_counts_are_remembered_for_2000_rows():
    first, second = some_scores(4, 50, 3), some_scores(5, 100, 3)
    first[1][0, 0] = np.nan
    counts = histogram.update_labels(histogram.update_labels(histogram.init_labels(3), *first), *second)
    for j in range(3):
        for kept, which in ((counts.seen, lambda y: ~np.isnan(y)), (counts.present, lambda y: y == 1)):
            expected = np.zeros(64)
            for (scores, labels), weight in ((first, 0.5 ** (100 / 2000)), (second, 1.0)):
                values = np.clip(scores[which(labels[:, j]), j], -0.5, 1.499)
                expected += weight * np.histogram(values, bins=64, range=(-0.5, 1.5))[0]
            np.testing.assert_allclose(kept[j], expected, atol=1e-12)


def test_new_labels_have_no_counts():
    counts = histogram.update_labels(histogram.init_labels(2), *some_scores(6, 30, 2))
    grown = growth.take(counts, Moves({"o": growth.longer(2, 5)}))
    for old, new in zip(counts, grown, strict=True):
        np.testing.assert_array_equal(new[:2], old)
        np.testing.assert_array_equal(new[2:], np.zeros((3, 64)))


def expected_measures(aim, p):
    """Go through all truths: their probability times what the first 0, 1, 2, … labels are worth then."""
    truths = np.array(list(product([0, 1], repeat=len(p))))
    chances = np.prod(np.where(truths, p, 1 - p), axis=1)
    expected = []
    for size in range(len(p) + 1):
        hits, both = truths[:, :size].sum(axis=1), truths.sum(axis=1) + size
        worth = 2 * hits / np.maximum(both, 1) if aim == "example_f1" else hits / np.maximum(both - hits, 1)
        expected.append(chances @ np.where(both == 0, 1.0, worth))
    return np.array(expected)


@pytest.mark.parametrize(("aim", "mean_loss", "most"), [("example_f1", 2e-3, 0.05), ("example_accuracy", 5e-3, 0.1)])
@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("n_labels", [1, 3, 7])
def test_rows_by_all_truths(aim, mean_loss, most, power, n_labels):
    """Expected hits over expected size are not quite the expected measure, but little is lost by that."""
    rule = rules.make_rule(aim, histogram.init(), histogram.init_labels(0))
    scores = -np.sort(-(np.random.default_rng(0).random((150, n_labels)) ** power), axis=1)
    chosen = rules.choose(rule, scores)
    losses = []
    for p, row in zip(rules.probabilities(rule, scores), chosen, strict=True):
        # The labels with the best scores are chosen.
        assert (np.diff(row.astype(int)) <= 0).all()
        measures = expected_measures(aim, p)
        losses.append(measures.max() - measures[row.sum()])
    assert np.mean(losses) < mean_loss
    assert max(losses) < most
    assert len(set(chosen.sum(axis=1))) > 1


ROWS = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.sampled_from(["example_f1", "example_accuracy"]))
def test_rows_by_definition(scores, aim):
    """The best ratio of expectations among all numbers of labels, or none where that is likelier."""
    rule = rules.make_rule(aim, histogram.init(), histogram.init_labels(0))
    p = np.sort(np.round(rules.probabilities(rule, np.array([scores]))[0], 12))[::-1]
    worth = {0: np.prod(1 - p)}
    for size in range(1, len(p) + 1):
        hits, both = p[:size].sum(), size + p.sum()
        if aim == "example_f1":
            worth[size] = 2 * hits / (size + p.sum() / max(1 - worth[0], 1e-9))
        else:
            worth[size] = hits / (both - hits)
    got = int(rules.choose(rule, np.array([scores])).sum())
    assert worth[got] == pytest.approx(max(worth.values()), abs=1e-9)


@pytest.mark.parametrize("aim", ["example_f1", "example_accuracy"])
def test_certain_rows(aim):
    rule = rules.make_rule(aim, histogram.init(), histogram.init_labels(0))
    scores = np.array([[1.5, -0.5, 1.5], [-0.5, -0.5, -0.5], [1.5, 1.5, 1.5]])
    np.testing.assert_array_equal(rules.choose(rule, scores), [[1, 0, 1], [0, 0, 0], [1, 1, 1]])


@pytest.mark.parametrize("aim", ["example_f1", "example_accuracy"])
def test_no_row_is_left_alone_where_none_was_without_labels(aim):
    """Labels that exclude each other are never all absent, however little there is to say for each."""
    rng = np.random.default_rng(0)
    scores = rng.random((400, 6)) * 0.3
    labels = np.eye(6)[rng.integers(6, size=400)]
    assert rules.choose(made(aim, (scores, labels)), scores).any(axis=1).all()
    labels[::3] = 0.0
    assert not rules.choose(made(aim, (scores, labels)), scores).any(axis=1).all()


def test_probabilities_run_between_the_centres_of_bins():
    scores, labels = some_scores(7, 200)
    rule = made("cardinality", (scores, labels))
    steps = rule.probabilities
    np.testing.assert_allclose(rules.probabilities(rule, histogram.CENTRES), steps)
    between = (histogram.CENTRES[:-1] + histogram.CENTRES[1:]) / 2
    np.testing.assert_allclose(rules.probabilities(rule, between), (steps[:-1] + steps[1:]) / 2)
    assert rules.probabilities(rule, np.array([-7.0, 7.0])).tolist() == [steps[0], steps[-1]]


@pytest.mark.parametrize("aim", rules.AIMS)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_labels_that_never_vary(aim, value):
    """Nothing present, or everything: no rule breaks, and those that count predict what they saw."""
    scores, labels = some_scores(8, 300)
    labels[:] = value
    chosen = rules.choose(made(aim, (scores, labels)), scores)
    if value or aim not in ("micro_f1", "macro_f1"):
        assert (chosen == value).mean() > 0.95


@pytest.mark.parametrize("aim", rules.AIMS)
def test_nothing_given_is_changed(assert_pure, aim):
    scores, labels = some_scores(9, 50)
    labels[0, 0] = np.nan
    counts = histogram.update(histogram.init(), scores, labels)
    by_label = histogram.update_labels(histogram.init_labels(6), scores, labels)
    assert_pure(histogram.update_labels, by_label, scores, labels)
    rule = assert_pure(rules.make_rule, aim, counts, by_label)
    assert_pure(rules.choose, rule, scores)
    assert_pure(rules.probabilities, rule, scores)


@pytest.mark.parametrize("aim", ["example_f1", "example_accuracy"])
@pytest.mark.parametrize("certainty", [0.3, 30.0])
def test_only_the_best_labels_are_put_in_order(aim, certainty, monkeypatch):
    rng = np.random.default_rng(0)
    # With little certainty many labels pay, more than those in order at first.
    scores = rng.beta(certainty, 10 * certainty, size=(200, 300)).round(2)
    labels = (rng.random(scores.shape) < scores).astype(float)
    rule = rules.make_rule(aim, histogram.update(histogram.init(), scores, labels), histogram.init_labels(300))
    monkeypatch.setattr(rules, "_FEWEST_SORTED", 1)
    some = rules.choose(rule, scores)
    monkeypatch.setattr(rules, "_FEWEST_SORTED", 300)
    assert (some == rules.choose(rule, scores)).all()


@pytest.mark.parametrize("aim", [aim for aim in rules.AIMS if not aim.startswith("example")])
def test_where_labels_are_told_apart_with_ease_thresholds_are_in_the_middle(aim):
    """Scores that change after they were counted, as those of a model that learns do, do not change label sets."""
    rng = np.random.default_rng(0)
    labels = (rng.random((300, 6)) < 0.3).astype(float)
    labels[:90] = 0.0
    scores = np.where(labels > 0, 0.9, 0.05) + 0.02 * rng.random(labels.shape)
    rule = made(aim, (scores, labels))
    for change in (-0.2, 0.0, 0.2):
        np.testing.assert_array_equal(rules.choose(rule, scores + change), labels)
