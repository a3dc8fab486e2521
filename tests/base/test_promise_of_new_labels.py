"""What is promised when labels appear, for every online model: docs/in-depth/reliability.md says the same in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers.models import MODELS

import labelrace
from labelrace.exceptions import DivergenceWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 8))
Y = (X @ RNG.normal(size=(8, 10)) > 1.5).astype(float)
Y[:400, 3:] = 0

EXACT = {
    "obr", "ridge", "moplms", "mbr", "mbr-chunks", "mlknn", "mlknn-prequential", "mwc", "mlht", "mlht-moa", "eaht",
    "isoup", "isoup-linear", "maniac", "rbm", "adagrad-squared", "majority", "negative",
}  # fmt: skip
# Exact in the number of codes that a model has, which by default the first labels settle.
EXACT_IN_CODES = {"plst", "plst-meka", "cplst", "faie", "cssp", "cca", "kcca", "cs", "cl", "bmad"}
# Exact in what a model draws, encoder or chains, and in the number of pseudo labels.
EXACT_IN_DRAWS = {"race-cls-fixed", "race-reg-fixed", "occ", "oecc"}
# The same, by `test_growth.test_race_is_the_model_that_knew`.
ADAPTIVE = {"race-cls-adaptive", "race-reg-adaptive", "race-cls-adaptive-iter3"}
# A label begins as one of which nothing is known, not as one that was absent.
FROM_NOTHING = {"arow", "adagrad-logistic"}


def learned(model, grows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        for start in range(0, 700, 100):
            n_labels = 3 if grows and start < 400 else 10
            model.partial_fit(X[start : start + 100], Y[start : start + 100, :n_labels])
    return model


def gap(one, two):
    return np.abs(one.decision_function(X) - two.decision_function(X)).max()


def test_every_online_model_has_a_promise():
    online = {name for name in labelrace.model_names() if labelrace.make_model(name).is_online}
    assert online == EXACT | EXACT_IN_CODES | EXACT_IN_DRAWS | ADAPTIVE | FROM_NOTHING | {"race", "race-hashed"}


@pytest.mark.parametrize("name", sorted((EXACT | EXACT_IN_CODES) & {*MODELS}))
def test_labels_that_appear_make_the_model_that_knew_them(name):
    settings = {"n_components": 3} if name in EXACT_IN_CODES else {}
    one, two = (labelrace.make_model(name, **settings) for _ in range(2))
    for model in (one, two):
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
    assert gap(learned(one, grows=True), learned(two, grows=False)) <= 1e-12


@pytest.mark.parametrize("name", sorted(EXACT_IN_DRAWS & {*MODELS}))
def test_labels_that_appear_make_the_model_that_drew_the_same(name):
    one = learned(labelrace.make_model(name, random_state=0), grows=True)
    if name.startswith("race"):
        two = labelrace.make_model(name, projection=(one.encoder_, one.encoder_bias_))
    else:
        two = labelrace.make_model(name, orders=one._fitted.state.orders)
    assert gap(one, learned(two, grows=False)) <= 1e-9


@pytest.mark.parametrize("name", sorted(FROM_NOTHING & {*MODELS}))
def test_labels_that_begin_from_nothing(name):
    one, two = (learned(labelrace.make_model(name), grows) for grows in (True, False))
    f1 = [2 * (m.predict(X) * Y).sum() / (m.predict(X).sum() + Y.sum()) for m in (one, two)]
    assert 0.01 < gap(one, two) < 2.0
    assert abs(f1[0] - f1[1]) < 0.1, f1


@pytest.mark.parametrize("aim", ["cardinality", "macro_f1"])
def test_the_default_model_is_exact_up_to_single_precision(aim):
    one, two = (labelrace.make_model("race", random_state=0, optimise=aim) for _ in range(2))
    assert gap(learned(one, grows=True), learned(two, grows=False)) <= 1e-5


@pytest.mark.parametrize("max_memory", [100, 3000])
def test_the_default_model_where_it_compresses_is_another_one(max_memory):
    """The residual table chooses candidates among the labels that there are: not the same, but about as good."""
    one, two = (labelrace.make_model("race", random_state=0, max_memory=max_memory, n_components=4) for _ in range(2))
    for model, grows in ((one, True), (two, False)):
        learned(model, grows)
    assert one.n_components_ == two.n_components_ == 4
    f1 = [2 * (m.predict(X) * Y).sum() / (m.predict(X).sum() + Y.sum()) for m in (one, two)]
    assert abs(f1[0] - f1[1]) < 0.15
