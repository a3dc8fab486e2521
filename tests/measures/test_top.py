"""Measures of the best labels are those of the scores, without an array of rows times labels."""

import numpy as np
import pytest

from labelrace.measures import evaluate

MEASURES = ["precision_at_1", "precision_at_3", "ndcg_at_5"]


def test_equal_to_those_of_the_scores():
    rng = np.random.default_rng(0)
    for n_labels in (3, 8, 40):
        scores = rng.permuted(np.tile(np.arange(n_labels), (50, 1)), axis=1)
        Y = rng.random((50, n_labels)) < 0.2
        Y[0] = False
        top = np.argsort(-scores, axis=1)[:, :5]
        assert evaluate(Y, top=top, measures=MEASURES) == evaluate(Y, scores=scores, measures=MEASURES)


def test_places_without_a_label_are_misses():
    values = evaluate([[1, 0, 1]], top=[[2, -1, -1]], measures=["precision_at_1", "precision_at_3"])
    assert values == {"precision_at_1": 1.0, "precision_at_3": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ([[0]], "each of 2 rows"),
        ([[0], [3]], "columns of labels"),
        ([[0.5], [1.0]], "columns of labels"),
        ([[0, 0], [0, 1]], "once in a row"),
        ([[0], [1]], "at least 3 columns"),
    ],
)
def test_refused(top, message):
    with pytest.raises(ValueError, match=message):
        evaluate([[1, 0, 1], [0, 1, 0]], top=top, measures="precision_at_3")


def test_other_measures_still_need_scores():
    with pytest.raises(ValueError, match="scores must be given to compute coverage"):
        evaluate([[1, 0]], top=[[0, 1]], measures="coverage")
