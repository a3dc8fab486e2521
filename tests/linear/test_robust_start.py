"""What comes first does not blind `race` for good: wild rows, rows of zeros, late sensors; nor do sure rows."""

from __future__ import annotations

import numpy as np
import pytest

import labelrace
from labelrace import LabelRaceClassifier
from labelrace.measures import evaluate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 12))
Y = (X @ np.random.default_rng(5).normal(size=(12, 6)) + 0.3 * RNG.normal(size=(4000, 6)) > 1).astype(float)
LATE = np.arange(12) >= 6


def micro_f1(rows, size):
    model = labelrace.make_model("race", random_state=0)
    for start in range(0, 3000, size):
        model.partial_fit(rows[start : start + size], Y[start : start + size])
    predicted, true = model.predict(rows[3000:]), Y[3000:]
    return 2 * (predicted * true).sum() / (predicted.sum() + true.sum())


def spoilt(how):
    rows = X + 50
    match how:
        case "one wild row":
            rows[150] = 1e6
        case "wild rows":
            rows[RNG.choice(200, 12, replace=False)] = RNG.choice([1e6, -1e90], size=(12, 1))
        case "200 rows of zeros":
            rows[:200] = 0
        case "1000 rows of zeros":
            rows[:1000] = 0
        case "late sensors":
            rows[:1500, LATE] = 0
        case "a late and wild sensor":
            rows[:1500, LATE] = 0
            rows[900, 7:] = 1e6
        case "another unit":
            rows[:900] *= 1e4
    return rows


@pytest.fixture(scope="module")
def clean():
    return {size: micro_f1(X + 50, size) for size in (20, 250)}


@pytest.mark.parametrize("size", [20, 250])
@pytest.mark.parametrize(
    "how",
    [
        "one wild row",
        "wild rows",
        "200 rows of zeros",
        "1000 rows of zeros",
        "late sensors",
        "a late and wild sensor",
        "another unit",
    ],
)
def test_what_comes_first_does_not_blind(clean, how, size):
    assert micro_f1(spoilt(how), size) > clean[size] - 0.04


@pytest.mark.parametrize("aim", ["example_f1", "example_accuracy"])
def test_the_surest_empty_rows_have_no_label(aim):
    """However sure: what is divided by what is left of nothing is no label."""
    model = labelrace.make_model("race", random_state=0, optimise=aim, n_random_features=0)
    for start in range(0, 2000, 200):
        model.partial_fit(X[start : start + 200, :3], X[start : start + 200, :1] > 0)
    assert not model.predict([[-size, 0.0, 0.0] for size in (1.0, 3.0, 9.0, 1e9)]).any()
    assert model.predict([[3.0, 0.0, 0.0]]).all()


@pytest.mark.parametrize("offset", [1e6, 1e10, 1e12])
def test_a_large_offset_is_no_constant_column(offset):
    """Ten digits before the point leave six behind it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    Y = (X @ rng.normal(size=(8, 4)) > 1.5).astype(int)
    f1 = []
    for rows in (X, X + np.where(np.arange(8) < 3, offset, 0.0)):
        model = LabelRaceClassifier(random_state=0)
        for start in range(0, 1000, 100):
            model.partial_fit(rows[start : start + 100], Y[start : start + 100])
        f1.append(evaluate(Y[1000:], model.predict(rows[1000:]), measures="micro_f1")["micro_f1"])
    assert f1[1] > f1[0] - 0.01 > 0.8
