"""Every model of the registry passes the suite."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import MODELS

from labelrace import RACEClassifier, checks
from labelrace.base.registry import make_model


class Reordered(np.random.Generator):
    """Draws the same numbers for labels in any order: rows are labels, but for the last, the bias."""

    def __init__(self, order):
        super().__init__(np.random.PCG64(0))
        self.order = [*order, len(order)]

    def uniform(self, low, high, size):
        return super().uniform(low, high, size)[self.order]


def reorder(model, order):
    return model.set_params(random_state=Reordered(order))


def keep(model, order):
    return model.set_params(random_state=0)


def give(**drawn):
    """Give a model what it would draw for each label, in the labels' order."""
    return lambda model, order: model.set_params(**{name: rows[order] for name, rows in drawn.items()})


def give_frequencies(model, order):
    frequencies = np.random.default_rng(0).normal(size=(6, 64))
    return model.set_params(frequencies=frequencies[order], phases=np.linspace(0, 6, 64))


DRAWN = np.random.default_rng(0).uniform(0.1, 0.9, (6, 5))
# For models that draw encoders and cannot be given any, or are given them by parameters of their own.
PERMUTES = {
    "race": reorder,
    "eaht": keep,
    "rbm": keep,
    "maniac": keep,
    "cssp": give(uniforms=DRAWN[:, 0]),
    "cs": give(encoder=DRAWN),
    "cl": give(encoder=DRAWN - 0.5),
    "cca": lambda model, order: model,
    "bmad": lambda model, order: model,
    "kcca": give_frequencies,
}


def each_check():
    for model_name in MODELS:
        permute = PERMUTES.get(model_name, checks.permute_known)
        for name, check in checks.iter_checks(make_model(model_name), permute=permute):
            yield pytest.param(check, id=f"{model_name}-{name}")


@pytest.mark.parametrize("check", list(each_check()))
def test_registry(check):
    check()


@pytest.mark.parametrize(
    "model",
    [
        RACEClassifier(),
        RACEClassifier(method="regression", encoding="adaptive"),
        RACEClassifier(method="regression", learner="ridge", n_components="log2_squared", forgetting=0.9),
    ],
    ids=["default", "adaptive regression", "ridge"],
)
def test_other_parameters(model):
    assert set(checks.check_model(model)) <= {"check_predict_labels", "check_predict_top", "check_merging"}
