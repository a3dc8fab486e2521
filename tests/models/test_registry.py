"""Models by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import labelrace
from labelrace import RACEClassifier
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.sgd import SGD

PAPER = {
    "race-cls-fixed": ("classification", "fixed"),
    "race-cls-adaptive": ("classification", "adaptive"),
    "race-reg-fixed": ("regression", "fixed"),
    "race-reg-adaptive": ("regression", "adaptive"),
}


def test_names_are_distinct_and_the_papers_four_among_them():
    names = labelrace.model_names()
    assert len(set(names)) == len(names)
    assert set(PAPER) <= set(names)
    names.clear()
    assert labelrace.model_names()


@pytest.mark.parametrize("name", labelrace.model_names())
def test_every_name_makes_a_model_that_learns(name):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.random((30, 5)) < 0.4
    model = labelrace.make_model(name)
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert model.fit(X, Y).predict(X).shape == (30, 5)
    assert model.predict(X).dtype == np.bool_
    assert model.decision_function(X).shape == (30, 5)
    assert labelrace.make_model(name) is not labelrace.make_model(name)


@pytest.mark.parametrize(("name", "variant"), PAPER.items(), ids=PAPER)
def test_the_papers_four_have_the_papers_settings(name, variant):
    model = labelrace.make_model(name, random_state=3, n_components=2)
    assert isinstance(model, RACEClassifier)
    assert (model.method, model.encoding) == variant
    assert model.learner == (SGD.weka() if model.method == "regression" else NaiveBayes(numeric="binned"))
    assert (model.start, model.zero_score) == ("first_batch", "present")
    assert (model.random_state, model.n_components) == (3, 2)


def test_unknown_names_are_refused_with_the_known_ones():
    for wrong in ("race-cls", "", "RACE-CLS-FIXED", None):
        with pytest.raises(ValueError, match="There is no model") as caught:
            labelrace.make_model(wrong)
        assert all(name in str(caught.value) for name in labelrace.model_names())
        assert repr(wrong) in str(caught.value)


def test_unknown_parameters_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"race-cls-fixed has no parameter 'components'\. It has: .*n_components"):
        labelrace.make_model("race-cls-fixed", components=3)


@pytest.mark.parametrize("settled", ["method", "encoding"])
def test_what_a_name_has_settled_is_no_parameter(settled):
    with pytest.raises(ValueError, match=f"race-cls-fixed has no parameter '{settled}'"):
        labelrace.make_model("race-cls-fixed", **{settled: "fixed"})
