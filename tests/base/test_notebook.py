"""Classifiers in a notebook: what they have learned, names as text, nothing that runs; in a terminal as ever."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import MODELS, ONLINE_MODELS
from helpers.shown import Shown
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelrace

HOSTILE = "</td><script>alert(1)</script><img src=http://x.invalid onerror=alert(2)>\"'&amp; {{ 7 * 7 }}"
X = np.random.default_rng(0).random((60, 4))
Y = (X[:, :3] > 0.5).astype(int)


def shown(model):
    html = model._repr_mimebundle_()["text/html"]
    assert model._repr_html_() == html
    found = Shown(html)
    found.check_harmless()
    return found


@pytest.mark.parametrize("name", MODELS)
def test_what_every_model_shows(name, tmp_path):
    model = labelrace.make_model(name)
    assert "Not fitted yet." in shown(model).texts
    model.fit(X, Y).save(tmp_path / "model")
    found = shown(model)
    facts = found.facts()
    assert "Not fitted yet." not in found.texts
    assert (facts["features"], facts["labels"]) == ("4", "3")
    assert facts["bytes"] == f"{(tmp_path / 'model').stat().st_size:,}"
    assert {key: facts[key] for key in model.get_params(deep=False)} == {
        key: text if len(text) <= 100 else f"{text[:99]}…"
        for key, text in ((key, repr(value)) for key, value in model.get_params(deep=False).items())
    }


def test_alarms_and_drifts_are_those_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6))
    model = labelrace.LabelRaceClassifier(random_state=0)
    for start in range(0, 6000, 100):
        rows = X[start : start + 100]
        model.partial_fit(rows, rows[:, :4] > 0 if start < 2500 else rows[:, :4] < 0)
    facts = shown(model).facts()
    assert model.n_alarms_ > 0
    assert (facts["alarms"], facts["drifts"]) == (str(model.n_alarms_), str(model.n_drifts_))
    assert "alarms" not in shown(labelrace.BinaryRelevanceClassifier().fit(X, X > 0)).facts()


@pytest.mark.parametrize("name", [name for name in ONLINE_MODELS if name in ("race", "majority", "oecc")])
def test_names_are_text(name):
    rows = [{HOSTILE: value, "b\x1b[2J\u202e": 1.0} for value in X[:, 0]]
    sets = [{HOSTILE} if value > 0.5 else {"other"} for value in X[:, 0]]
    found = shown(labelrace.make_model(name, label_names=None).fit(rows, sets))
    assert any(HOSTILE in text for text in found.texts)
    assert not any(char in text for text in found.texts for char in "\x1b\u202e")


def test_parameters_are_text():
    found = shown(labelrace.BinaryRelevanceClassifier(label_names=[HOSTILE]))
    assert found.facts()["label_names"] == repr([HOSTILE])
    found = shown(labelrace.BinaryRelevanceClassifier(label_names=[HOSTILE, HOSTILE]))
    assert found.facts()["label_names"] == f"{[HOSTILE, HOSTILE]!r}"[:99] + "…"


def test_many_names_are_not_all_listed():
    names = [f"label {number}" for number in range(1000)]
    found = shown(labelrace.BinaryRelevanceClassifier(label_names=names).fit(np.eye(1000, 5), np.eye(1000)))
    assert "Labels (30 of 1,000)" in found.texts
    listed = next(text for text in found.texts if text.startswith("label 0, "))
    assert listed.split(", ") == names[:30]


def test_what_cannot_be_saved_can_be_shown():
    class Own(labelrace.BinaryRelevanceClassifier):
        pass

    facts = shown(Own().fit(X, Y)).facts()
    assert facts["labels"] == "3"
    assert "bytes" not in facts
    changed = labelrace.RACEClassifier(random_state=0).fit(X, Y).set_params(n_components=-5)
    assert "bytes" not in shown(changed).facts()


def test_text_is_as_it_was():
    model = labelrace.RACEClassifier(n_components=8)
    assert repr(model) == model._repr_mimebundle_()["text/plain"] == "RACEClassifier(n_components=8)"
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_pipelines_are_shown_by_scikit_learn():
    html = make_pipeline(StandardScaler(), labelrace.RACEClassifier(random_state=0)).fit(X, Y)._repr_html_()
    assert "RACEClassifier" in html
    assert "StandardScaler" in html
