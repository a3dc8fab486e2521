"""What the default makes of labels, values, rows and columns that come late or are missing; and that it is good."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy import sparse

import labelrace
from labelrace import DelayedLabels, LabelRaceClassifier
from labelrace.measures import evaluate
from labelrace.streams.synthetic import SyntheticStream


def small(**parameters):
    """Make a model with few random features."""
    return LabelRaceClassifier(**{"random_state": 0, "n_random_features": 10, **parameters})


def test_many_labels_make_no_table_of_their_own():
    """With 20,000 labels an l × l array would take 3 GB."""
    Y = sparse.random_array((40, 20_000), density=1e-4, format="csr", rng=0)
    Y.data[:] = 1
    X = np.random.default_rng(0).normal(size=(40, 5))
    model = small().partial_fit(X, Y)
    assert model.n_components_ is None
    assert model.predict(X[:2]).shape == (2, 20_000)
    model = small(max_memory="1MB").partial_fit(X, Y)
    assert model.encoder_.shape == (20_000, 16)
    assert model.predict(X[:2]).shape == (2, 20_000)


def test_rows_of_which_no_label_is_known_teach_nothing():
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(600, 8)), rng.normal(size=(8, 5))
    Y = (X @ W > 2).astype(float)
    Y[rng.random(600) < 0.8] = np.nan
    known = ~np.isnan(Y).any(axis=1)
    told, left_out = LabelRaceClassifier(random_state=0), LabelRaceClassifier(random_state=0)
    for start in range(0, 600, 150):
        here = slice(start, start + 150)
        told.partial_fit(X[here], Y[here])
        left_out.partial_fit(X[here][known[here]], Y[here][known[here]])
    np.testing.assert_array_equal(told.decision_function(X), left_out.decision_function(X))


def test_a_first_batch_of_sparse_rows_without_labels_is_known():
    X, Y = np.eye(4), np.eye(4)[:, :3]
    dense, thin = (
        LabelRaceClassifier(random_state=0).partial_fit(X, absent).partial_fit(X, Y).decision_function(X)
        for absent in (np.zeros((4, 3)), sparse.csr_array((4, 3)))
    )
    np.testing.assert_array_equal(dense, thin)


def test_a_batch_of_which_nothing_is_known_changes_nothing():
    X, Y = np.eye(4), np.eye(4)[:, :3]
    model, nothing = LabelRaceClassifier(random_state=0), np.full((4, 3), np.nan)
    for y in (nothing, sparse.csr_array(nothing)):
        with pytest.raises(ValueError, match="y contains NaN only: a first batch must have at least one known label"):
            model.partial_fit(X, y)
    assert not hasattr(model, "classes_")
    model.partial_fit(X, Y)
    before = model.decision_function(X), model._fitted.state
    for y in (nothing, sparse.csr_array(nothing)):
        model.partial_fit(X, y)
        np.testing.assert_array_equal(model.decision_function(X), before[0])
        assert model._fitted.state is before[1]


@pytest.mark.parametrize("size", [1, 100])
def test_values_of_nominal_features_may_appear_later(size, tmp_path):
    code = np.repeat(np.arange(5), 100)
    code[100:] = np.random.default_rng(0).permutation(code[100:])
    Y = np.eye(5)[code]
    model = LabelRaceClassifier(categorical_features=[True], random_state=0)
    for start in range(0, 500, size):
        model.partial_fit(code[start : start + size, None], Y[start : start + size])
    np.testing.assert_array_equal(model.predict(np.arange(5)[:, None]), np.eye(5))
    assert [part.features[0][0] for part in model.explain(np.array([3.0]), labels=[3])] == ["0=3"]
    model.save(tmp_path / "model")
    again = labelrace.load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(code[:, None]), model.decision_function(code[:, None]))


def test_the_order_of_rows_in_a_batch_hardly_matters():
    X, Y = next(SyntheticStream(n_rows=4000, n_features=20, n_labels=100, cardinality=3.0, seed=0).batches(4000))
    order = np.argsort(np.asarray(Y.sum(axis=1)).ravel(), kind="stable")
    shuffled, sorted_ = (LabelRaceClassifier(random_state=0).fit(X[rows], Y[rows]) for rows in (slice(None), order))
    assert sorted_.predict(X).sum() == pytest.approx(shuffled.predict(X).sum(), rel=0.2)


@pytest.mark.parametrize("max_memory", ["1GB", 1])
def test_a_batch_many_times_longer_than_the_half_life(max_memory):
    X, Y = next(SyntheticStream(n_rows=3000, n_features=5, n_labels=140, seed=0).batches(3000))
    model = (
        LabelRaceClassifier(half_life=1.0, max_memory=max_memory, random_state=0).partial_fit(X, Y).partial_fit(X, Y)
    )
    assert np.isfinite(model.decision_function(X[:10])).all()


@pytest.mark.parametrize("density", [None, 0.1])
def test_few_labels_that_appear_are_as_if_known_all_along(density):
    """But for rounding all is the same, also for the detector: labels that were always absent have added nothing."""
    stream = SyntheticStream(
        n_rows=3000, n_features=60, n_labels=20, density=density, new_labels=0.5, new_labels_at=0.3, seed=4
    )
    data = stream.load()
    Y = data.Y.toarray()
    late = Y[:800].sum(axis=0) == 0
    assert 5 <= late.sum() <= 15
    Y = np.hstack([Y[:, ~late], Y[:, late]])
    told, grown = LabelRaceClassifier(random_state=0), LabelRaceClassifier(random_state=0)
    for start in range(0, 3000, 200):
        batch = slice(start, start + 200)
        told.partial_fit(data.X[batch], Y[batch])
        grown.partial_fit(data.X[batch], Y[batch, : None if start >= 800 else (~late).sum()])
        np.testing.assert_allclose(
            grown._fitted.state.monitor.drift.means, told._fitted.state.monitor.drift.means, rtol=1e-4
        )
    np.testing.assert_allclose(grown.decision_function(data.X), told.decision_function(data.X), atol=1e-4)


def test_columns_that_are_new_when_predicted():
    """They are ignored until they are learned, and kept for that with rows that wait."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((300, 50), density=0.1, format="csr", rng=rng)
    Y = (rng.random((300, 5)) < 0.3).astype(float)
    model = LabelRaceClassifier(random_state=0).partial_fit(X[:200, :30], Y[:200])
    told = LabelRaceClassifier(random_state=0).partial_fit(X[:200, :30], Y[:200])
    late = DelayedLabels(model)
    np.testing.assert_array_equal(late.predict(X[200:], range(100)), told.predict(X[200:, :30]))
    assert model.n_features_in_ == 30
    late.learn(range(100), Y[200:])
    told.partial_fit(X[200:], Y[200:])
    assert model.n_features_in_ == 50
    np.testing.assert_array_equal(model.decision_function(X), told.decision_function(X))


@pytest.mark.parametrize("density", [None, 0.1])
def test_better_than_the_paper_and_the_baselines(density):
    """`python -m benchmarks quality --bounds` has more of this: aims, drift, late and missing labels."""
    stream = SyntheticStream(n_rows=1200, n_features=60, n_labels=40, density=density, seed=2)
    f1 = {}
    for name in ("race", "race-cls-adaptive", "obr", "majority"):
        model, values = labelrace.make_model(name), []
        for number, (X, Y) in enumerate(stream.batches(300)):
            if number:
                values.append(evaluate(Y, model.predict(X), measures="example_f1")["example_f1"])
            model.partial_fit(X, Y)
        f1[name] = np.mean(values)
    assert max(f1, key=f1.get) == "race"


def test_a_sudden_drift_is_found_once_and_overcome():
    stream = SyntheticStream(n_rows=6000, n_features=30, n_labels=20, drift="sudden", seed=1)
    model, f1 = LabelRaceClassifier(random_state=0), []
    for number, (X, Y) in enumerate(stream.batches(200)):
        if number:
            f1.append(evaluate(Y, model.predict(X), measures="example_f1")["example_f1"])
        model.partial_fit(X, Y)
    before = np.mean(f1[5:14])
    assert f1[14] < 0.75 * before
    assert max(f1[15:20]) >= 0.9 * before
    assert model.n_drifts_ == 1
