"""Hoeffding trees: what they learn does not depend on how batches are cut, on what came late, or on the disk."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import EaHTClassifier, ISOUPTreeClassifier, MLHTClassifier
from labelrace.related.trees import mlht
from labelrace.related.trees.pruned_sets import PrunedSetLeaves

EAGER = {"grace_period": 40, "delta": 0.2, "tau": 0.4}
MODELS = {
    "mlht": MLHTClassifier(**EAGER),
    "mlht-moa": MLHTClassifier.moa(**EAGER),
    "mlht-intended": MLHTClassifier.moa(**{**EAGER, "entropy": "intended"}),
    "mlht-pruned-sets": MLHTClassifier.moa(leaf="pruned_sets", **EAGER),
    "isoup": ISOUPTreeClassifier(**EAGER),
    "isoup-linear": ISOUPTreeClassifier(leaf="linear", **EAGER),
    "isoup-moa": ISOUPTreeClassifier.moa(**EAGER),
    "eaht": EaHTClassifier(n_trees=3, random_state=0, **EAGER),
    "eaht-moa": EaHTClassifier.moa(n_trees=3, random_state=0, **EAGER),
}


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Let leaves take label sets for classes after few rows."""
    monkeypatch.setattr(mlht, "PrunedSetLeaves", partial(PrunedSetLeaves, warm_up=60, max_classes=5))


def make(name):
    return type(MODELS[name])(**MODELS[name].get_params())


@pytest.fixture
def stream():
    """Return 600 rows in which labels follow from two thresholds, and a nominal feature."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(600, 4)).round(3)
    X[:, 3] = rng.integers(0, 3, 600)
    Y = np.column_stack([X[:, 0] > 0.5, (X[:, 0] > 0.5) & (X[:, 1] > 0.4), X[:, 3] == 2, X[:, 0] < 0.2])
    flips = rng.random(Y.shape) < 0.03
    return X, (Y ^ flips).astype(int)


def n_splits(model):
    return int((model._fitted.state.nodes.kind > 0).sum())


@pytest.mark.parametrize("name", MODELS)
def test_trees_split_and_beat_the_most_frequent_labels(stream, name):
    X, Y = stream
    model = make(name).partial_fit(X[:400], Y[:400])
    assert n_splits(model) >= 2
    majority = np.broadcast_to(2 * Y[:400].mean(axis=0) > 1, (200, 4))
    assert (model.predict(X[400:]) != Y[400:]).mean() < 0.7 * (majority != Y[400:]).mean()


@pytest.mark.parametrize("name", ["mlht-moa", "mlht-intended", "mlht-pruned-sets", "isoup", "isoup-moa"])
@pytest.mark.parametrize("batch", [1, 37, 600])
def test_how_batches_are_cut_does_not_matter(stream, name, batch):
    X, Y = stream
    whole, cut = make(name).fit(X, Y), make(name)
    for start in range(0, len(X), batch):
        cut.partial_fit(X[start : start + batch], Y[start : start + batch])
    assert n_splits(whole) == n_splits(cut) >= 2
    np.testing.assert_allclose(cut.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "isoup-moa"])
def test_a_new_label_is_one_that_was_always_absent(stream, name):
    X, Y = stream
    Y = Y.copy()
    Y[:300, 3] = 0
    late, early = make(name), make(name)
    for start in range(0, 600, 100):
        rows = slice(start, start + 100)
        late.partial_fit(X[rows], Y[rows] if start >= 300 else Y[rows, :3])
        early.partial_fit(X[rows], Y[rows])
    assert n_splits(late) == n_splits(early) >= 1
    np.testing.assert_allclose(late.decision_function(X), early.decision_function(X), rtol=1e-9, atol=1e-12)


def test_as_in_moa_isoup_takes_nothing_new(stream):
    X, Y = scipy.sparse.csr_array(stream[0]), stream[1]
    model = make("isoup-moa").partial_fit(X[:100, :3], Y[:100, :3])
    with pytest.raises(ValueError, match=r"cannot take new labels: .*constant makes splits arbitrary"):
        model.partial_fit(X[100:, :3], Y[100:])
    with pytest.raises(ValueError, match=r"cannot take new ones: .*constant can be the best one"):
        model.partial_fit(X[100:], Y[100:, :3])


@pytest.mark.parametrize("name", [name for name in MODELS if name != "isoup-moa"])
def test_a_new_feature_is_one_that_was_always_zero(stream, name):
    X, Y = stream
    X = X.copy()
    X[:300, 1] = 0.0
    order = [0, 2, 3, 1]
    wide = scipy.sparse.csr_array(X[:, order])
    late, early = make(name), make(name)
    for start in range(0, 600, 100):
        rows = slice(start, start + 100)
        late.partial_fit(wide[rows] if start >= 300 else wide[rows, :3], Y[rows])
        early.partial_fit(wide[rows], Y[rows])
    assert n_splits(late) == n_splits(early) >= 1
    np.testing.assert_allclose(late.decision_function(wide), early.decision_function(wide), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_trees_are_saved_with_their_splits(stream, name, tmp_path):
    X, Y = stream
    model = make(name).partial_fit(X[:400], Y[:400])
    model.save(tmp_path / "tree.safetensors")
    loaded = labelrace.load(tmp_path / "tree.safetensors")
    assert n_splits(loaded) == n_splits(model) >= 1
    for each in (model, loaded):
        each.partial_fit(X[400:], Y[400:])
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("name", ["mlht", "mlht-moa", "eaht"])
def test_nominal_features_are_split_by_their_values(stream, name):
    X, Y = stream
    model = make(name).set_params(categorical_features=[3])
    # A value that comes later, and one that was never seen.
    first = X[:, 3] < 2
    only = Y[:, [2, 0]]
    model.partial_fit(X[first], only[first])
    for start in range(0, 600, 200):
        model.partial_fit(X[start : start + 200], only[start : start + 200])
    shape = model._fitted.state.nodes
    assert ((shape.kind > 1) & (shape.feature == 3)).any()
    # As in MOA, leaves go on from their parent's most frequent set, which the value that came later is not in.
    assert (model.predict(X)[:, 0] == only[:, 0]).mean() > (0.6 if name == "mlht-moa" else 0.9)
    unseen = X[:5].copy()
    unseen[:, 3] = 9.0
    assert np.isfinite(model.decision_function(unseen)).all()


def test_a_constant_label_has_no_merit(stream):
    """In MOA's form it makes every split arbitrary; otherwise splits are those without it."""
    X, Y = stream
    constant = np.column_stack([Y, np.ones(len(Y), dtype=int)])
    with_it, without = make("isoup").fit(X, constant), make("isoup").fit(X, Y)
    for one, other in zip(with_it._fitted.state.nodes, without._fitted.state.nodes, strict=True):
        np.testing.assert_array_equal(one, other)
    assert with_it.predict(X)[:, 4].all()


def test_an_ensemble_restarts_the_trees_whose_errors_grow():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(3000, 3))
    Y = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0.5])
    model = EaHTClassifier(n_trees=4, random_state=0, grace_period=100, tau=0.1)
    for start in range(0, 1500, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
    before = model._fitted.state
    assert (before.batches == before.batches.max()).all()
    for start in range(1500, 2000, 100):
        model.partial_fit(X[start : start + 100], ~Y[start : start + 100])
    after = model._fitted.state
    assert (after.batches < before.batches).all()
    for start in range(2000, 3000, 100):
        model.partial_fit(X[start : start + 100], ~Y[start : start + 100])
    assert (model.predict(X) == ~Y).mean() > 0.9


def test_trees_of_an_ensemble_differ_and_can_be_repeated(stream):
    X, Y = stream
    scores = [EaHTClassifier(n_trees=3, random_state=seed).fit(X, Y).decision_function(X) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            MLHTClassifier(leaf="mean"),
            "leaf must be one of 'naive_bayes', 'majority', 'pruned_sets', got 'mean'",
        ),
        (MLHTClassifier(entropy="gini"), "entropy must be one of"),
        (MLHTClassifier(grace_period=0), "grace_period must be a number above 0"),
        (MLHTClassifier(delta=2), "delta must be a number above 0 and at most 1"),
        (EaHTClassifier(n_trees=0), "n_trees must be a whole number of at least 1"),
        (EaHTClassifier(tau=-1), "tau must be a number of at least 0"),
        (ISOUPTreeClassifier(grace_period=1.5), "grace_period must be a whole number"),
        (ISOUPTreeClassifier(constant_labels="nan"), "constant_labels must be one of"),
    ],
)
def test_wrong_parameters(stream, model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*stream)


@pytest.mark.parametrize("name", MODELS)
def test_trees_cannot_be_merged(stream, name):
    with pytest.raises(ValueError, match="splits of its own"):
        make(name).fit(*stream).merge(make(name).fit(*stream))
