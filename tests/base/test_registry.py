"""Models by name."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import SGDClassifier

import labelrace
from labelrace import RACEClassifier
from labelrace.base import registry
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.registry import describe_model, is_online
from labelrace.base.registry_entries import MODELS
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.ridge import Ridge
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
    assert model.iterations == 1
    assert labelrace.make_model("race-cls-adaptive-iter3").iterations == 3


def test_unknown_names_are_refused_with_the_known_ones():
    for wrong in ("race-cls", "", "RACE-CLS-FIXED", None):
        with pytest.raises(ValueError, match="There is no model") as caught:
            labelrace.make_model(wrong)
        assert all(name in str(caught.value) for name in labelrace.model_names())
        assert repr(wrong) in str(caught.value)


def test_unknown_parameters_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"race-cls-fixed has no parameter 'components'\. It has: .*n_components"):
        labelrace.make_model("race-cls-fixed", components=3)


@pytest.mark.parametrize("name", labelrace.model_names())
def test_every_name_takes_a_random_state(name):
    assert labelrace.make_model(name, random_state=7).get_params().get("random_state", 7) == 7


@pytest.mark.parametrize("preset", ["method", "encoding"])
def test_a_preset_is_no_parameter(preset):
    with pytest.raises(ValueError, match=f"race-cls-fixed has no parameter '{preset}'"):
        labelrace.make_model("race-cls-fixed", **{preset: "fixed"})


# Models of one's own.


@pytest.fixture
def registered(monkeypatch):
    """Take back what a test registers."""
    monkeypatch.setattr(registry, "_REGISTERED", {})


@pytest.fixture
def entry_points(monkeypatch):
    """Offer models as installed packages do."""
    points = {
        point.name: point
        for point in (
            EntryPoint("mine", "sklearn.dummy:DummyClassifier", registry.ENTRY_POINTS),
            EntryPoint("lasting", "sklearn.naive_bayes:BernoulliNB", registry.ENTRY_POINTS),
            EntryPoint("obr", "sklearn.dummy:DummyClassifier", registry.ENTRY_POINTS),
        )
    }
    monkeypatch.setattr(registry, "_entry_points", lambda: points)


class Mine(RACEClassifier):
    """A model of one's own.

    With more to say about it.
    """


def test_a_registered_class_is_a_model_like_any_other(registered):
    own = labelrace.model_names()
    labelrace.register_model("mine", Mine)
    assert labelrace.model_names() == [*own, "mine"]
    assert "mine" in labelrace.model_names(online=True)
    assert "mine" not in labelrace.model_names(online=False)
    model = labelrace.make_model("mine", n_components=3)
    assert type(model) is Mine
    assert model.n_components == 3
    assert describe_model("mine") == "A model of one's own."
    with pytest.raises(ValueError, match=r"mine has no parameter 'components'\. It has: .*n_components"):
        labelrace.make_model("mine", components=3)
    with pytest.raises(ValueError, match=r"Known models: .*, plst, .*mine"):
        labelrace.make_model("nine")


def test_a_registered_function_and_what_is_said_about_it(registered):
    def ridge(alpha=1.0):
        """Not what is shown."""
        return labelrace.BinaryRelevanceClassifier(learner=Ridge(alpha=alpha))

    labelrace.register_model("obr-ridge", ridge, about="binary relevance by ridge regression", online=False)
    assert describe_model("obr-ridge") == "binary relevance by ridge regression"
    assert not is_online("obr-ridge")
    assert labelrace.make_model("obr-ridge", alpha=0.5).learner == Ridge(alpha=0.5)
    with pytest.raises(ValueError, match=r"obr-ridge has no parameter 'beta'\. It has: alpha"):
        labelrace.make_model("obr-ridge", beta=1)
    with pytest.raises(ValueError, match=r"name must be free, got 'obr-ridge', which <function .* has"):
        labelrace.register_model("obr-ridge", lambda **any_parameters: any_parameters)
    # A function that is defined again, as in a notebook, may be registered again.
    labelrace.register_model("obr-ridge", ridge)
    assert describe_model("obr-ridge") == ""
    assert is_online("obr-ridge")
    assert labelrace.model_names().count("obr-ridge") == 1


def test_a_function_may_take_any_parameters(registered):
    labelrace.register_model("any", lambda **any_parameters: any_parameters)
    assert labelrace.make_model("any", beta=1, gamma=2) == {"beta": 1, "gamma": 2}


@pytest.mark.parametrize(
    ("factory", "online"),
    [(DummyClassifier, False), (SGDClassifier, True), (labelrace.OfflineRACEClassifier, False), (RACEClassifier, True)],
)
def test_whether_a_model_is_online_is_found_out(registered, factory, online):
    labelrace.register_model("mine", factory)
    assert is_online("mine") == online
    assert ("mine" in labelrace.model_names(online=online)) is ("mine" not in labelrace.model_names(online=not online))
    labelrace.register_model("mine", factory, online=not online)
    assert is_online("mine") != online


@pytest.mark.parametrize(
    ("name", "factory", "match"),
    [
        ("", Mine, "name must be text without a colon, got ''"),
        ("my:model", Mine, "name must be text without a colon, got 'my:model'"),
        (None, Mine, "name must be text without a colon, got None"),
        ("race", Mine, "name must not be one of labelrace's own, got 'race': choose another one"),
        ("plst", Mine, "name must not be one of labelrace's own"),
        ("mine", Mine(), "What is registered as 'mine' must be a class or a function, got Mine"),
        ("Tagger", Mine, "name must not be one of labelrace's own, got 'Tagger'"),
        ("mine", int, "must be a classifier, got int without predict, partial_fit"),
        ("mine", OnlineClassifier, "got OnlineClassifier without _algorithm: define it"),
        ("mine", "sklearn.dummy:DummyClassifier", "must be a class or a function"),
    ],
)
def test_what_cannot_be_registered(registered, name, factory, match):
    before = labelrace.model_names()
    with pytest.raises(ValueError, match=match):
        labelrace.register_model(name, factory)
    assert labelrace.model_names() == before


def test_a_class_given_by_its_module():
    model = labelrace.make_model("sklearn.linear_model:SGDClassifier", alpha=0.5)
    assert type(model) is SGDClassifier
    assert model.alpha == 0.5
    assert type(labelrace.make_model("labelrace.race.classifier:RACEClassifier.paper")) is RACEClassifier
    assert is_online("sklearn.linear_model:SGDClassifier")
    assert not is_online("sklearn.dummy:DummyClassifier")
    assert describe_model("labelrace:PLSTClassifier").startswith("Principal label space transformation")
    assert "sklearn.linear_model:SGDClassifier" not in labelrace.model_names()
    with pytest.raises(ValueError, match=r"sklearn.dummy:DummyClassifier has no parameter 'depth'\. It has: strategy"):
        labelrace.make_model("sklearn.dummy:DummyClassifier", depth=3)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("no.such.module:Class", r"'no.such.module:Class' cannot be imported \(No module named 'no'\): give it as mod"),
        ("sklearn.dummy:Class", "'sklearn.dummy:Class' cannot be imported .*'Class'"),
        ("sklearn.dummy:", "cannot be imported"),
        (":DummyClassifier", "cannot be imported"),
        ("math:pi", "The model 'math:pi' must be a class or a function, got 3.14"),
    ],
)
def test_classes_that_cannot_be_found(name, match):
    with pytest.raises(ValueError, match=match):
        labelrace.make_model(name)


def test_models_of_installed_packages(registered, entry_points):
    own = list(MODELS)
    assert labelrace.model_names() == [*own, "mine", "lasting"]
    assert type(labelrace.make_model("mine", strategy="uniform")) is DummyClassifier
    assert labelrace.model_names(online=False) == ["race-offline", "mine"]
    assert labelrace.model_names(online=True)[-1] == "lasting"
    assert describe_model("lasting").startswith("Naive Bayes classifier for multivariate Bernoulli")
    # labelrace's own names stay its own, and what is registered here comes before what is installed.
    assert type(labelrace.make_model("obr")) is labelrace.BinaryRelevanceClassifier
    labelrace.register_model("mine", Mine)
    assert type(labelrace.make_model("mine")) is Mine
    assert labelrace.model_names() == [*own, "mine", "lasting"]
