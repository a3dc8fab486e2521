"""Finite features never give NaN, whatever their size: they are learned, or refused with a clear error."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import SGDClassifier

import labelrace
from labelrace import BinaryRelevanceClassifier, RACEClassifier
from labelrace.exceptions import DivergenceError
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.numeric import precision, rounded
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

SIZES = [
    0.0, 5e-324, 1e-320, 1e-308, 1e-200, 1e-160, 1e-150, 1e-100, 1e-10, 1.0, 1e10, 1e100, 1e140, 1e150, 1e153, 1e154,
    1e160, 1e200, 1e300, 1.7e308,
]  # fmt: skip
BINNED, WEKA = NaiveBayes(numeric="binned"), dataclasses.replace(SGD.weka(), first_epochs=3)
MODELS = {
    "density": lambda: RACEClassifier(random_state=0),
    "binned": lambda: RACEClassifier.paper(random_state=0),
    "sgd": lambda: RACEClassifier(method="regression", random_state=0),
    "weka": lambda: RACEClassifier(method="regression", learner=WEKA, random_state=0),
    "ridge": lambda: RACEClassifier(method="regression", learner="ridge", random_state=0),
    "ridge without penalty": lambda: RACEClassifier(method="regression", learner=Ridge(alpha=0.0), random_state=0),
    "relevance": BinaryRelevanceClassifier,
    "binned relevance": lambda: BinaryRelevanceClassifier(learner=BINNED),
    "chains": lambda: labelrace.ClassifierChainsClassifier(n_chains=2, random_state=0),
    "plst": lambda: labelrace.PLSTClassifier(n_components=2),
    "constant": lambda: labelrace.make_model("majority"),
}
ROWS = np.random.default_rng(0).normal(size=(20, 3)).clip(-1, 1)
LABELS = (np.random.default_rng(1).random((20, 5)) < 0.4).astype(float)
SIZE = st.sampled_from(SIZES)


def check_finite(model, queries):
    for rows in (queries, sparse.csr_array(queries)):
        assert np.isfinite(model.decision_function(rows)).all()
        likely = model.predict_proba(rows)
        assert ((likely >= 0) & (likely <= 1)).all()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(SIZE, SIZE, SIZE),
    shifts=st.tuples(SIZE, SIZE, SIZE),
    is_sparse=st.booleans(),
    further=st.sampled_from([0.0, 1e-5, 1.0]),
)
def test_finite_features_never_give_nan(make, sizes, shifts, is_sparse, further):
    convert = sparse.csr_array if is_sparse else np.asarray
    with np.errstate(over="ignore"):
        rows = np.nan_to_num(ROWS * sizes + np.array(shifts) * np.array([1.0, -0.5, 0.0]))
    model = make()
    with warnings.catch_warnings():
        # Steps that are too long are shortened, and said to be.
        warnings.simplefilter("ignore", labelrace.exceptions.DivergenceWarning)
        try:
            model.fit(convert(rows), LABELS)
            if model.is_online and further:
                model.partial_fit(convert(further * rows), LABELS)
        except DivergenceError as error:
            assert "Scale the features" in str(error)  # noqa: PT017
            if not model.is_fitted:
                return
    extremes = np.array(np.meshgrid(*[[0.0, 1.0, -1e150, 1.7e308]] * 3)).reshape(3, -1).T
    check_finite(model, np.vstack([rows, extremes, -extremes]))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_far_rows_of_a_usual_model(make):
    model = make().fit(ROWS, LABELS)
    check_finite(model, np.array([[value] * 3 for size in SIZES for value in (size, -size)]))


def test_far_rows_are_decided_as_near_ones_are():
    """The class of the wider distribution wins far out, at any distance."""
    rng = np.random.default_rng(0)
    Y = rng.random((400, 1)) < 0.5
    model = BinaryRelevanceClassifier().fit(rng.normal(size=(400, 1)) * np.where(Y, 5.0, 1.0), Y)
    far = np.array([[1e2], [1e100], [1e155], [-1e160], [1.7e308]])
    assert model.predict(far).all()
    assert model.predict(sparse.csr_array(far)).all()
    assert not model.predict([[0.0]]).any()


def test_estimators_of_other_libraries_that_overflow():
    model = BinaryRelevanceClassifier(learner=SGDClassifier()).fit(1e3 * ROWS, LABELS)
    with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        check_finite(model, np.array([[1.7e308, 1.7e308, -1.7e308]]))


def test_bins_of_extreme_values():
    X = np.array([[0.0, -1.7e308], [5e-324, 1.7e308]])
    widths = precision(X)
    assert (np.isfinite(widths) & (widths > 0)).all()
    for convert in (np.asarray, sparse.csr_array):
        result = rounded(convert(X), widths)
        assert np.isfinite(result.data if sparse.issparse(result) else result).all()


def test_sums_that_overflow_over_time_are_refused():
    model = BinaryRelevanceClassifier().fit(1e149 * ROWS, LABELS)
    before = model._fitted
    with pytest.raises(DivergenceError, match="Scale the features"):
        model.partial_fit(1e153 * ROWS, LABELS)
    assert model._fitted is before
