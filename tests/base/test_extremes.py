"""Finite features never give NaN, whatever their size: they are learned, or refused with a clear error."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial

import numpy as np
import pytest
from helpers import models
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import SGDClassifier

import labelrace
from labelrace import BinaryRelevanceClassifier, RACEClassifier
from labelrace.exceptions import DivergenceError
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.naive_bayes.numeric import precision, rounded
from labelrace.learners.ridge import Ridge
from labelrace.learners.sgd import SGD

SIZES = [0.0, 5e-324, 1e-308, 1e-200, 1e-160, 1e-100, 1e-30, 1.0, 1e30, 1e75, 5e99, 1e101, 1e154, 1.7e308]
BINNED, WEKA = NaiveBayes(numeric="binned"), dataclasses.replace(SGD.weka(), first_epochs=3)
MODELS = {
    "density": lambda: RACEClassifier(random_state=0),
    "sgd": lambda: RACEClassifier(method="regression", random_state=0),
    "weka": lambda: RACEClassifier(method="regression", learner=WEKA, random_state=0),
    "ridge bank": lambda: RACEClassifier(method="regression", learner="ridge", random_state=0),
    "ridge without penalty": lambda: RACEClassifier(method="regression", learner=Ridge(alpha=0.0), random_state=0),
    "binned relevance": lambda: BinaryRelevanceClassifier(learner=BINNED),
} | {name: partial(labelrace.make_model, name) for name in models.MODELS}
ROWS = np.random.default_rng(0).normal(size=(20, 3)).clip(-1, 1)
LABELS = (np.random.default_rng(1).random((20, 5)) < 0.4).astype(float)
SIZE = st.sampled_from(SIZES)


def check_finite(model, queries):
    for rows in (queries, sparse.csr_array(queries)):
        assert np.isfinite(model.decision_function(rows)).all()
        likely = model.predict_proba(rows)
        assert ((likely >= 0) & (likely <= 1)).all()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@settings(max_examples=10, deadline=None)
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


def test_numbers_beyond_1e100_are_refused_and_for_predicting_cut():
    model = BinaryRelevanceClassifier().fit(1e100 * ROWS, LABELS)
    before = model._fitted
    for rows in (1.1e100 * ROWS, sparse.csr_array(1e300 * ROWS)):
        with pytest.raises(DivergenceError, match=r"up to 1e\+100, got larger.*Scale the features"):
            model.partial_fit(rows, LABELS)
        with pytest.raises(DivergenceError):
            BinaryRelevanceClassifier().fit(rows, LABELS)
    assert model._fitted is before
    signs = np.sign(ROWS)
    expected = model.decision_function(1e100 * signs)
    for rows in (1.7e308 * signs, sparse.csr_array(1e200 * signs)):
        np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-9)
