"""The measures against loops straight from their definitions: slow, plain, and independent of the package."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelrace.measures import evaluate, measure_names
from labelrace.measures.inputs import as_labels
from labelrace.measures.ranking import all_ranks, count_below, relevant_ranks

# Steps of a third of the tolerance: chains of near ties, gaps just inside and just outside of it.
NEAR_TIES = st.integers(0, 12).map(lambda step: 0.3 + step * 3.4e-7)
FEW_VALUES = st.sampled_from([-np.inf, -1.0, 0.0, 0.25, 1.0, np.inf])
ANY_SCORE = st.floats(allow_nan=False)
SHAPES = st.tuples(st.integers(1, 7), st.integers(1, 9))


def greedy_ranks(scores):
    """Rank one row of scores: sort, group greedily from the smallest, order groups by index."""
    ascending = sorted(range(len(scores)), key=lambda label: scores[label])
    arranged, group = [], []
    for label in ascending:
        if group and not _tied(scores[label], scores[group[0]]):
            arranged += sorted(group)
            group = []
        group.append(label)
    arranged += sorted(group)
    ranks = [0] * len(scores)
    for position, label in enumerate(arranged):
        ranks[label] = len(scores) - position
    return ranks


def _tied(larger, smaller):
    return larger == smaller or larger - smaller < 1e-6


def _divide(part, whole, perfect):
    if whole == 0:
        return 1.0 if perfect else 0.0
    return part / whole


def _rates(truth, predicted):
    """Rates of one list of true and predicted labels, be it an example, a label or all cells."""
    pairs = list(zip(truth, predicted, strict=True))
    tp, fp = pairs.count((1, 1)), pairs.count((0, 1))
    fn, tn = pairs.count((1, 0)), pairs.count((0, 0))
    return {
        "accuracy": _divide(tp, tp + fp + fn, True),
        "specificity": _divide(tn, tn + fp, tn + fp + fn == 0),
        "precision": _divide(tp, tp + fp, tp + fp + fn == 0),
        "recall": _divide(tp, tp + fn, tp + fp + fn == 0),
        "f1": _divide(2 * tp, 2 * tp + fp + fn, True),
    }


def _auc(truth, scores):
    relevant = [s for t, s in zip(truth, scores, strict=True) if t]
    others = [s for t, s in zip(truth, scores, strict=True) if not t]
    if not relevant or not others:
        return math.nan
    return sum((r > o) + (r == o) / 2 for r in relevant for o in others) / (len(relevant) * len(others))


def _mean_of_defined(values):
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def bipartition_measures(truth, predicted):
    """Compute all measures of predicted labels."""
    truth, predicted = np.asarray(truth, int), np.asarray(predicted, int)
    by_example = [_rates(t, p) for t, p in zip(truth.tolist(), predicted.tolist(), strict=True)]
    by_label = [_rates(t, p) for t, p in zip(truth.T.tolist(), predicted.T.tolist(), strict=True)]
    pooled = _rates(truth.ravel().tolist(), predicted.ravel().tolist())
    values = {
        "subset_accuracy": np.mean([list(t) == list(p) for t, p in zip(truth, predicted, strict=True)]),
        "hamming_loss": np.mean(truth != predicted),
        "example_accuracy": np.mean([rates["accuracy"] for rates in by_example]),
    }
    for rate in ("specificity", "precision", "recall", "f1"):
        values[f"example_{rate}"] = np.mean([rates[rate] for rates in by_example])
        values[f"macro_{rate}"] = np.mean([rates[rate] for rates in by_label])
        values[f"micro_{rate}"] = pooled[rate]
    return values


def _row_measures(truth, scores):
    ranks = greedy_ranks(scores)
    relevant = sorted(ranks[label] for label in range(len(truth)) if truth[label])
    pairs = [(r, o) for r, t in zip(scores, truth, strict=True) if t for o in _others(truth, scores)]
    values = {
        "average_precision": math.nan,
        "coverage": max(relevant, default=1) - 1,
        "one_error": float(1 not in relevant),
        "ranking_loss": sum(r <= o for r, o in pairs) / len(pairs) if pairs else 0.0,
    }
    if relevant:
        values["average_precision"] = np.mean([sum(q <= r for q in relevant) / r for r in relevant])
    for k in (1, 3, 20):
        values[f"precision_at_{k}"] = sum(r <= k for r in relevant) / k
        best = sum(1 / math.log2(r + 1) for r in range(1, len(relevant) + 1) if r <= k)
        gain = sum(1 / math.log2(r + 1) for r in relevant if r <= k)
        values[f"ndcg_at_{k}"] = gain / best if relevant else 0.0
    return values


def _others(truth, scores):
    return [score for label, score in zip(truth, scores, strict=True) if not label]


def ranking_measures(truth, scores):
    """Compute all measures of scores."""
    truth, scores = np.asarray(truth, int), np.asarray(scores, float)
    rows = [_row_measures(t, s) for t, s in zip(truth.tolist(), scores.tolist(), strict=True)]
    values = {name: _mean_of_defined([row[name] for row in rows]) for name in rows[0]}
    values["micro_auc"] = _auc(truth.ravel().tolist(), scores.ravel().tolist())
    values["macro_auc"] = _mean_of_defined(
        [_auc(t, s) for t, s in zip(truth.T.tolist(), scores.T.tolist(), strict=True)]
    )
    return values


@st.composite
def batches(draw):
    """Draw labels, predictions and scores, with a good share of empty rows, full columns and ties."""
    shape = draw(SHAPES)
    labels = hnp.arrays(np.int64, shape, elements=st.integers(0, 1), fill=st.sampled_from([0, 1]))
    scores = hnp.arrays(np.float64, shape, elements=draw(st.sampled_from([NEAR_TIES, FEW_VALUES, ANY_SCORE])))
    return draw(labels), draw(labels), draw(scores)


@given(batches())
@settings(max_examples=200)
def test_measures_follow_their_definitions(batch):
    Y_true, Y_pred, scores = batch
    expected = bipartition_measures(Y_true, Y_pred) | ranking_measures(Y_true, scores)
    assert set(measure_names("all")) < set(expected)
    got = evaluate(Y_true, Y_pred, scores, measures=expected, zero_division=1)
    assert got == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(batches())
def test_all_ranks_are_those_of_the_greedy_loop(batch):
    scores = batch[2]
    assert all_ranks(scores).tolist() == [greedy_ranks(row) for row in scores.tolist()]


@given(batches())
def test_relevant_ranks_are_the_true_labels_share_of_all_ranks(batch):
    Y_true, _, scores = batch
    ranks, starts = relevant_ranks(as_labels(Y_true, "Y_true"), scores)
    for row, (truth, values) in enumerate(zip(Y_true, scores.tolist(), strict=True)):
        expected = sorted(np.array(greedy_ranks(values))[truth == 1].tolist())
        assert ranks[starts[row] : starts[row + 1]].tolist() == expected


def test_ranks_of_a_large_batch_with_every_kind_of_row():
    rng = np.random.default_rng(0)
    kinds = [rng.random((5, 200)), rng.random((5, 200)).round(1), rng.random((5, 200)) * 1e-4, np.zeros((1, 200))]
    scores = np.vstack(kinds)
    assert all_ranks(scores).tolist() == [greedy_ranks(row) for row in scores.tolist()]


def test_a_chain_of_near_ties_breaks_where_it_leaves_its_smallest():
    # The third is tied with the second but not with the first, so it starts a group that the fourth joins.
    scores = np.array([[1.8e-6, 1.2e-6, 0.6e-6, 0.0]])
    assert all_ranks(scores).tolist() == [[2, 1, 4, 3]]


def test_equal_infinities_are_tied_beside_a_broken_chain():
    scores = [np.inf, np.inf, 1.2e-6, 0.6e-6, 0.0, -np.inf, -np.inf]
    assert all_ranks(np.array([scores])).tolist() == [[2, 1, 3, 5, 4, 7, 6]] == [greedy_ranks(scores)]


def test_a_gap_of_the_tolerance_is_no_tie():
    assert all_ranks(np.array([[1e-6, 0.0]])).tolist() == [[1, 2]]
    assert all_ranks(np.array([[0.999e-6, 0.0]])).tolist() == [[2, 1]]


@given(hnp.arrays(np.float64, SHAPES, elements=FEW_VALUES), st.data())
def test_count_below_is_a_count(rows, data):
    ordered = np.sort(rows, axis=1)
    value = data.draw(FEW_VALUES)
    which = np.arange(len(ordered))
    values = np.full(len(ordered), value)
    assert count_below(ordered, which, values).tolist() == (ordered < value).sum(axis=1).tolist()
    assert count_below(ordered, which, values, or_equal=True).tolist() == (ordered <= value).sum(axis=1).tolist()
