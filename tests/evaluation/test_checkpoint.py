"""One batch of an evaluation: its record and memory; counts, averages and curves over all tests."""

import math

import numpy as np
import pytest

from labelrace.evaluation import Checkpoint, as_reliability, averages, cumulative, prequential, windowed
from labelrace.evaluation.checkpoint import BatchTest, CalibrationCounts, LabelCounts, Stopwatch
from labelrace.measures import reliability


@pytest.mark.parametrize("tested", [True, False])
def test_checkpoints_survive_their_record(tested):
    seconds = {"predict": 0.1, "learn": 0.2, "measure": 0.3}
    point = Checkpoint(3, 10, 15, {"a": 0.1 + 0.2, "b": 1.0}, seconds, 12345, whole=False, tested=tested)
    record = point.to_record()
    assert record.pop("kind") == "batch"
    assert Checkpoint(**record) == point


def test_nan_becomes_null():
    point = Checkpoint(1, 0, 10, {"a": math.nan}, {})
    assert point.to_record()["measures"]["a"] is None


def test_traced_memory_is_of_each_batch(batches):
    class Greedy:
        def partial_fit(self, X, Y):
            self.labels = Y.shape[1]
            np.empty(int(X[0, 0]) * 1_000_000, dtype=np.int8)

        def predict(self, X):
            return np.zeros((len(X), self.labels), dtype=np.int8)

    given = [(np.full((2, 1), size), np.zeros((2, 3))) for size in (0, 8, 2, 0)]
    peaks = [point.memory / 1e6 for point in prequential(Greedy(), given, memory=True)]
    assert peaks[0] == pytest.approx(8, abs=1)
    assert peaks[1] == pytest.approx(2, abs=1)
    assert peaks[2] < 1


def test_resident_memory_by_default(remembers, batches):
    (point,) = prequential(remembers, batches([3, 3]))
    assert point.memory is None or point.memory > 1e6


def test_only_what_is_measured_is_timed(remembers):
    X, Y = np.zeros((3, 2)), np.eye(3, 4, dtype=int)
    remembers.partial_fit(X, Y)
    seen, watch = [], Stopwatch()
    values = BatchTest("micro_f1", lambda *labels: seen.append(labels))(remembers, X, Y, watch)
    assert list(values) == ["micro_f1"]
    assert seen[0][0] is Y
    assert watch.seconds["predict"] > 0 == watch.seconds["learn"]


def test_counts_add_up_over_batches():
    rng = np.random.default_rng(0)
    Y, P = rng.integers(0, 2, (30, 5)), rng.random((30, 5))
    Y[:, 4] = 0
    Z = (P > 0.5).astype(int)
    Z[:, 4] = 0
    labels, calibration = LabelCounts(), CalibrationCounts()
    assert labels.to_record() == {"kind": "labels", "frequency": [], "f1": []}
    for rows in (slice(0, 7), slice(7, 30)):
        labels(Y[rows], Z[rows])
        calibration(Y[rows], P[rows])
    record = labels.to_record()
    np.testing.assert_allclose(record["frequency"], Y.mean(axis=0))
    expected = 2 * (Y * Z).sum(axis=0)[:4] / (Y.sum(axis=0) + Z.sum(axis=0))[:4]
    np.testing.assert_allclose(record["f1"][:4], expected)
    assert record["f1"][4] is None
    read = as_reliability(calibration.to_record())
    assert read.error == pytest.approx(reliability(Y, P).error, abs=1e-12)


def points(values, sizes=None, whole=None):
    sizes = sizes or [10] * len(values)
    whole = whole or [True] * len(values)
    ends = np.cumsum(sizes).tolist()
    return [
        Checkpoint(number, end - size, end, {"a": value, "b": 1.0}, {}, whole=full)
        for number, (value, end, size, full) in enumerate(zip(values, ends, sizes, whole, strict=True), start=1)
    ]


def test_averages_leave_out_partial_batches():
    assert averages(points([0.2, 0.4, 9.0], whole=[True, True, False])) == pytest.approx({"a": 0.3, "b": 1.0})


def test_a_partial_batch_is_better_than_none():
    assert averages(points([0.7], whole=[False])) == {"a": 0.7, "b": 1.0}


def test_nan_does_not_count():
    assert averages(points([math.nan, 0.4])) == {"a": 0.4, "b": 1.0}
    assert math.isnan(averages(points([math.nan]))["a"])
    np.testing.assert_allclose(windowed(points([math.nan, 0.4, 0.2]), 2)["a"], [math.nan, 0.4, 0.3])
    np.testing.assert_allclose(cumulative(points([0.4, math.nan, 0.2]))["a"], [0.4, 0.4, 0.3])


def test_against_numpy():
    rng = np.random.default_rng(0)
    values, sizes = rng.random(30), rng.integers(1, 20, 30)
    given = points(values.tolist(), sizes.tolist())
    expected = [values[max(0, last - 6) : last + 1].mean() for last in range(30)]
    np.testing.assert_allclose(windowed(given, 7)["a"], expected)
    np.testing.assert_allclose(cumulative(given)["a"], np.cumsum(values * sizes) / np.cumsum(sizes))
    assert averages(given)["a"] == pytest.approx(values.mean())


def test_untested_batches_do_not_count():
    untested = Checkpoint(0, 0, 10, {}, {}, tested=False)
    given = [untested, *points([0.5])]
    assert averages(given) == {"a": 0.5, "b": 1.0}
    assert len(windowed(given)["a"]) == len(cumulative(given)["a"]) == 1


def test_nothing_gives_nothing():
    assert averages([]) == windowed([]) == cumulative([]) == {}


def test_window_must_hold_a_batch():
    with pytest.raises(ValueError, match="window"):
        windowed([], 0)
