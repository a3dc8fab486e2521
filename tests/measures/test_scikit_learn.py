"""The measures against scikit-learn's, where the two define the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from labelrace.measures import evaluate


@pytest.fixture(params=range(4))
def batch(request):
    """Return labels and scores without ties; every example and every label has both a one and a zero."""
    rng = np.random.default_rng(request.param)
    n, n_labels = 40, 15
    Y_true = rng.random((n, n_labels)) < 0.3
    Y_true[np.arange(n), np.arange(n) % n_labels] = True
    Y_true[np.arange(n), (np.arange(n) + 1) % n_labels] = False
    Y_pred = Y_true ^ (rng.random((n, n_labels)) < 0.2)
    return Y_true.astype(int), Y_pred.astype(int), rng.permutation(n * n_labels).reshape(n, n_labels) / 10


def test_bipartition_measures(batch):
    Y_true, Y_pred, _ = batch
    average = {"example": "samples", "micro": "micro", "macro": "macro"}
    expected = {
        "subset_accuracy": metrics.accuracy_score(Y_true, Y_pred),
        "hamming_loss": metrics.hamming_loss(Y_true, Y_pred),
        "example_accuracy": metrics.jaccard_score(Y_true, Y_pred, average="samples", zero_division=0),
    }
    for prefix, name in average.items():
        options = {"average": name, "zero_division": 0}
        expected[f"{prefix}_precision"] = metrics.precision_score(Y_true, Y_pred, **options)
        expected[f"{prefix}_recall"] = metrics.recall_score(Y_true, Y_pred, **options)
        expected[f"{prefix}_f1"] = metrics.f1_score(Y_true, Y_pred, **options)
        # Specificity is the recall of what is absent.
        expected[f"{prefix}_specificity"] = metrics.recall_score(1 - Y_true, 1 - Y_pred, **options)
    assert evaluate(Y_true, Y_pred, measures=expected) == pytest.approx(expected)


def test_absent_labels_count_as_scikit_learn_has_them(batch):
    Y_true, Y_pred, scores = batch
    Y_true[:, 0], Y_pred[:, 0] = 0, 0  # neither there nor predicted
    Y_true[:, 1], Y_pred[:, 2] = 0, 0  # one of both
    rates = {"precision": metrics.precision_score, "recall": metrics.recall_score, "f1": metrics.f1_score}
    expected = {f"macro_{name}": rate(Y_true, Y_pred, average="macro", zero_division=0) for name, rate in rates.items()}
    assert evaluate(Y_true, Y_pred, measures=expected) == pytest.approx(expected)
    # One label more that counts as 1 is a fifteenth.
    whole = evaluate(Y_true, Y_pred, scores)
    assert {name: whole[name] - 1 / 15 for name in expected} == pytest.approx(expected)
    assert evaluate(Y_true, Y_pred, measures="paper")["macro_f1"] == whole["macro_f1"]


def test_all_without_scores_are_those_of_labels(batch):
    Y_true, Y_pred, scores = batch
    whole, labels, ranks = evaluate(Y_true, Y_pred, scores), evaluate(Y_true, Y_pred), evaluate(Y_true, scores=scores)
    assert whole == {name: {**labels, **ranks}[name] for name in whole}
    assert set(ranks) == {"average_precision", "coverage", "micro_auc", "macro_auc"}
    assert not labels.keys() & ranks.keys()
    with pytest.raises(ValueError, match="scores must be given to compute coverage, micro_auc, got None"):
        evaluate(Y_true, Y_pred, measures=["micro_f1", "coverage", "micro_auc"])
    with pytest.raises(ValueError, match="Y_pred must be given"):
        evaluate(Y_true, measures="paper")
    with pytest.raises(ValueError, match="zero_division must be a number from 0 to 1, got 'warn'"):
        evaluate(Y_true, Y_pred, zero_division="warn")


def test_ranking_measures(batch):
    Y_true, _, scores = batch
    expected = {
        "average_precision": metrics.label_ranking_average_precision_score(Y_true, scores),
        # scikit-learn counts the labels passed, the original the steps between them.
        "coverage": metrics.coverage_error(Y_true, scores) - 1,
        "ndcg_at_1": metrics.ndcg_score(Y_true, scores, k=1),
        "ndcg_at_5": metrics.ndcg_score(Y_true, scores, k=5),
        "ndcg_at_50": metrics.ndcg_score(Y_true, scores, k=50),
        "one_error": 1 - np.mean(Y_true[np.arange(len(Y_true)), scores.argmax(axis=1)]),
    }
    assert evaluate(Y_true, scores=scores, measures=expected) == pytest.approx(expected)


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_measures_where_ties_have_no_order(batch, decimals):
    Y_true, _, scores = batch
    scores = (scores / 20).round(decimals)
    Y_true[0], Y_true[1] = 0, 1
    expected = {
        "micro_auc": metrics.roc_auc_score(Y_true, scores, average="micro"),
        "macro_auc": metrics.roc_auc_score(Y_true, scores, average="macro"),
        "ranking_loss": metrics.label_ranking_loss(Y_true, scores),
    }
    assert evaluate(Y_true, scores=scores, measures=expected) == pytest.approx(expected)
