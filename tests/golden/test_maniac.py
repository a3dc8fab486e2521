"""The autoencoder of labels beside one run of MEKA's, which has no seed, and the optimum of linear units."""

from __future__ import annotations

import numpy as np
import pytest

from labelrace import MANIACClassifier
from labelrace.base.sparse import dense_floats
from labelrace.measures import evaluate
from labelrace.related.compression.maniac import layer_sizes, outputs, train


@pytest.fixture
def emotions(rival):
    golden, data = rival("maniac_emotions")
    return golden, dense_floats(data.X), dense_floats(data.Y)


def test_layers_and_level_of_mekas(emotions):
    golden, X, Y = emotions
    assert [Y.shape[1], *layer_sizes(Y.shape[1], 4, 0.85)] == golden["layer_sizes"].tolist()
    model = MANIACClassifier.paper(random_state=0).fit(X[golden["train"]], Y[golden["train"]])
    ours = evaluate(Y[golden["test"]], model.predict(X[golden["test"]]), measures="paper")
    theirs = evaluate(Y[golden["test"]], golden["predicted"], measures="paper")
    for measure, value in ours.items():
        assert value == pytest.approx(theirs[measure], abs=0.06), measure


@pytest.mark.parametrize("sizes", [[3], [4, 2]])
def test_linear_units_reach_the_optimum_and_no_more(emotions, sizes):
    golden, _, Y = emotions
    Y = Y[golden["train"]]
    errors = {}
    for linear in (True, False):
        net = train(Y, sizes, linear, 20, 20, 0.005, np.random.default_rng(0))
        errors[linear] = np.square(outputs(net, Y, linear)[-1] - Y).sum()
    best = golden["linear_optimum"][sizes[-1]]
    assert best - 1e-9 <= errors[True] < 1.02 * best
    # Sigmoid units fold label sets into fewer codes.
    assert errors[False] < best
