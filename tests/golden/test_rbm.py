"""A restricted Boltzmann machine against MEKA's, from the same start."""

from __future__ import annotations

import numpy as np

from labelrace.related.rbm import hidden, train


def test_a_machine(rival):
    golden, _ = rival("rbm_emotions")
    X, rate = golden["X"], float(golden["rate"])
    found = train(golden["W_start"], X, rate, int(golden["minibatch"]), int(golden["epochs"]))
    np.testing.assert_allclose(found, golden["W"], rtol=0, atol=1e-13)
    np.testing.assert_allclose(hidden(found, X), golden["hidden_probabilities"], rtol=0, atol=1e-13)
