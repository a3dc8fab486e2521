"""The page on adding a method, followed: its code is a file, registered, and passes every check."""

from __future__ import annotations

import doctest
import importlib.util
import sys
import warnings

import numpy as np
import pytest
from documents import ROOT, read_blocks
from sklearn.utils.estimator_checks import check_estimator

import labelrace
from labelrace.base import registry
from labelrace.checks import check_model

# tests/checks/test_scikit_learn.py gives the reasons.
NOT_FOR_LABELS = (
    "check_estimators_dtypes",
    "check_classifier_data_not_an_array",
    "check_fit2d_1feature",
    "check_classifiers_classes",
    "check_decision_proba_consistency",
    "check_classifiers_train",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_sample_weights_pandas_series",
    "check_sample_weights_not_an_array",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_classifiers_one_label_sample_weights",
)
WITHOUT_WEIGHTS = (
    "check_sample_weights_list",
    "check_all_zero_sample_weights_error",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


@pytest.fixture(scope="module")
def method(tmp_path_factory):
    """Write the method's file, import it and give it a name in the registry."""
    (block,) = read_blocks(ROOT / "CONTRIBUTING.md", "python")
    path = tmp_path_factory.mktemp("models") / "centroids_of_the_page.py"
    path.write_text(block.code)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    labelrace.register_model("centroids", module.CentroidsClassifier)
    yield module
    del registry._REGISTERED["centroids"], sys.modules[path.stem]


def test_its_example_runs(method):
    assert doctest.testmod(method).failed == 0
    assert doctest.testmod(method).attempted > 0


def test_it_passes_the_checks_of_every_model(method):
    assert not check_model(method.CentroidsClassifier())


def test_it_passes_those_of_scikit_learn_that_others_pass(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            method.CentroidsClassifier(),
            on_fail=None,
            expected_failed_checks=dict.fromkeys(NOT_FOR_LABELS + WITHOUT_WEIGHTS, "not for labels, or of weights"),
        )
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


def test_it_is_a_model_like_the_others(method):
    assert "centroids" in labelrace.model_names(online=True)
    assert registry.describe_model("centroids") == "Nearest centroids, online."
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    Y = X[:, :3] + 0.3 * rng.normal(size=(200, 3)) > 0.5
    model = labelrace.make_model("centroids", prior=2.0).partial_fit(X[:150], Y[:150])
    assert (model.predict(X[150:]) == Y[150:]).mean() > 0.7


def test_what_it_learned_in_parts_is_merged_by_name(method):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(60, 4)), rng.random((60, 3)) < 0.4
    names, order = np.array(["a", "b", "c"]), [2, 0, 1]
    one = method.CentroidsClassifier(label_names=names).partial_fit(X[:30], Y[:30])
    other = method.CentroidsClassifier(label_names=names[order]).partial_fit(X[30:], Y[30:][:, order])
    whole = method.CentroidsClassifier(label_names=names).partial_fit(X, Y)
    found = one.merge(other)
    assert list(found.label_names_) == list(names)
    np.testing.assert_allclose(found.decision_function(X), whole.decision_function(X), rtol=1e-12)
