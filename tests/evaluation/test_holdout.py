"""A test set held out."""

import numpy as np
import pytest

import labelrace
from labelrace.evaluation import averages, holdout
from labelrace.measures import evaluate


def test_holdout_equals_a_loop_written_by_hand(data):
    rows = np.random.default_rng(7).permutation(60)
    test, train = np.sort(rows[:20]), np.sort(rows[20:])
    model = labelrace.make_model("race-cls-adaptive", random_state=1)
    expected = []
    for start in range(0, 40, 15):
        batch = train[start : start + 15]
        for _ in range(3):
            model.partial_fit(data.X[batch], data.Y[batch])
        expected.append(evaluate(data.Y[test], model.predict(data.X[test]), measures="paper"))

    again = labelrace.make_model("race-cls-adaptive", random_state=1)
    points = list(holdout(again, data, batch_size=15, iterations=3, seed=7))
    assert [point.measures for point in points] == expected
    assert [(point.batch, point.start, point.end) for point in points] == [(0, 0, 15), (1, 15, 30), (2, 30, 40)]
    # Each test is on the whole test set, so the one after the short batch counts.
    mean = np.mean([values["micro_f1"] for values in expected])
    assert averages(points)["micro_f1"] == pytest.approx(mean, abs=1e-12)


def test_holdout_loads_streams(data):
    def values(source):
        model = labelrace.make_model("race-cls-fixed", random_state=1)
        return [point.measures for point in holdout(model, source, batch_size=20, seed=3)]

    dense = [(X, Y.toarray()) for X, Y in data.batches(7)]
    assert values(data) == values(data.batches(7)) == values(dense)


def test_the_seed_draws_the_test_set(data):
    def tests(seed):
        seen = []
        model = labelrace.make_model("race-cls-fixed", random_state=1)
        list(holdout(model, data, batch_size=50, seed=seed, observer=lambda Y, _: seen.append(Y.toarray())))
        return seen[0]

    np.testing.assert_array_equal(tests(1), tests(1))
    assert not np.array_equal(tests(1), tests(2))


def test_offline_models_are_held_out_and_learn_all_at_once(data):
    class Offline:
        is_online = False
        fits = 0

        def fit(self, X, Y):
            self.fits += 1
            self.shape = Y.shape

        def predict(self, X):
            return np.zeros((X.shape[0], self.shape[1]), dtype=int)

    model = Offline()
    (point,) = holdout(model, data, batch_size=10, iterations=3, seed=0)
    assert model.fits == 1
    assert (point.start, point.end) == (0, 40)


def test_hidden_labels_are_the_same_in_all_iterations(remembers, batches):
    (point,) = holdout(remembers, batches([60, 40]), iterations=2, missing=0.5, seed=0)
    first, second = remembers.lessons
    np.testing.assert_array_equal(first, second)
    assert point.rows == 67
    assert first.mean() < 0.4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"iterations": 0}, "iterations must be"),
        ({"test_share": 0.0}, "leaves no rows"),
        ({"test_share": 1.0}, "leaves no rows"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"missing": -0.1}, "missing must be"),
    ],
)
def test_mistakes_of_holdout_show_at_the_call(data, remembers, wrong, message):
    with pytest.raises(ValueError, match=message):
        holdout(remembers, data, **wrong)


def test_holdout_needs_rows(remembers):
    with pytest.raises(ValueError, match="no rows"):
        holdout(remembers, [])
