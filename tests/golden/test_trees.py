"""Trees against MOA: every prediction and every split."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.prequential import predict_then_learn

import labelrace
from labelrace import EaHTClassifier, ISOUPTreeClassifier, MLHTClassifier
from labelrace.base.sparse import dense
from labelrace.measures import evaluate
from labelrace.related.trees.isoup import ISOUPTree
from labelrace.related.trees.mlht import HoeffdingTree

EAGER = {"grace_period": 100, "delta": 0.05, "tau": 0.2}
MLHT = {
    # MOA's default; no leaf has the 1000 rows here after which label sets are classes.
    "mlht_moa": {"leaf": "pruned_sets"},
    "mlht_majority": {},
    "mlht_majority_eager": EAGER,
    "mlht_majority_eager_entropy": {**EAGER, "entropy": "intended"},
}
ISOUP = {"isoup_mean": {}, "isoup_mean_eager": EAGER}


@pytest.fixture
def splits(monkeypatch):
    """Record the splits that trees make: feature, threshold, gain and weight."""
    made = []

    def record(kind, weight):
        choose = kind._choose_split

        def chosen(self, leaf, *others):
            split = choose(self, leaf, *others)
            if split is not None:
                made.append((split.feature, split.threshold, split.merit, weight(self, leaf)))
            return split

        monkeypatch.setattr(kind, "_choose_split", chosen)

    record(HoeffdingTree, lambda algorithm, leaf: algorithm._weight(leaf))
    record(ISOUPTree, lambda algorithm, leaf: float(leaf.rows))
    return made


def assert_same_splits(made, golden, name):
    """Compare splits; leaves are learned one after the other, so that their order within a batch is another."""
    if f"{name}_splits" in golden:
        made = np.array(sorted(made)).reshape(-1, 4)
        np.testing.assert_allclose(made, sorted(map(tuple, golden[f"{name}_splits"])) or made, rtol=0, atol=1e-9)
        assert len(made) == len(golden[f"{name}_splits"])


@pytest.mark.parametrize("form", MLHT)
@pytest.mark.parametrize("name", ["emotions", "CAL500", "enron"])
def test_hoeffding_trees_of_label_sets(rival, splits, name, form):
    golden, data = rival(f"trees_{name}")
    if f"{form}_predicted" not in golden:
        pytest.skip(f"there is no run of {form} on {name}")
    model = MLHTClassifier.moa(**MLHT[form], categorical_features=data.categorical)
    predicted, _, _ = predict_then_learn(model, data, int(golden["batch"]))
    np.testing.assert_array_equal(predicted, golden[f"{form}_predicted"])
    assert_same_splits(splits, golden, form)


@pytest.mark.parametrize("form", ISOUP)
@pytest.mark.parametrize("name", ["emotions", "CAL500"])
def test_isoup_trees_with_means(rival, splits, name, form):
    golden, data = rival(f"trees_{name}")
    if f"{form}_predicted" not in golden:
        pytest.skip(f"there is no run of {form} on {name}")
    predicted, scores, _ = predict_then_learn(ISOUPTreeClassifier.moa(**ISOUP[form]), data, int(golden["batch"]))
    np.testing.assert_array_equal(predicted, golden[f"{form}_predicted"])
    expected = golden[f"{form}_scores"]
    np.testing.assert_allclose((scores + 1.0) / 2.0, expected, rtol=0, atol=1e-12 if expected.dtype == float else 1e-6)
    assert_same_splits(splits, golden, form)


def test_ensembles_are_about_as_good(rival):
    """MOA's run was drawn otherwise, and had pruned label sets in the leaves: only its level can be compared."""
    golden, data = rival("trees_emotions")
    batch = int(golden["batch"])
    predicted, _, _ = predict_then_learn(EaHTClassifier.moa(random_state=0), data, batch)
    found = evaluate(dense(data.Y)[batch:], predicted, None, measures=["example_accuracy"])["example_accuracy"]
    assert abs(found - golden["eaht_moa_average"][0]) < 0.05


@pytest.mark.parametrize("name", ["emotions", "enron"])
def test_the_forms_of_the_library_are_better(rival, name):
    """Row-count entropy, naive Bayes in leaves, and no arbitrary splits."""
    golden, data = rival(f"trees_{name}")
    batch = int(golden["batch"])
    for model, moa in (("mlht", "mlht_majority"), ("isoup", "isoup_mean")):
        if f"{moa}_predicted" in golden:
            predicted, _, _ = predict_then_learn(labelrace.make_model(model), data, batch)
            ours, theirs = (
                evaluate(dense(data.Y)[batch:], sets, None, measures=["hamming_loss"])["hamming_loss"]
                for sets in (predicted, golden[f"{moa}_predicted"])
            )
            assert ours <= theirs
