"""Codes of labels by an autoencoder."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from labelrace import MANIACClassifier
from labelrace.models.maniac import _gradients, _start, outputs


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    return X, (X @ rng.normal(size=(8, 6)) > 0.5).astype(int)


@pytest.mark.parametrize("linear", [False, True])
def test_gradients_are_differences(rows, linear):
    Y = rows[1].astype(float)
    net = _start(Y, 4, linear)
    net[1:1] = _start(outputs(net[:1], Y, linear)[-1], 2, linear)

    def loss():
        return 0.5 * np.square(outputs(net, Y, linear)[-1] - Y).sum() / len(Y)

    for place, gradient in enumerate(_gradients(net, Y, linear)):
        values = net[place // 2][place % 2]
        index = tuple(size // 2 for size in values.shape)
        kept, sides = values[index], []
        for step in (1e-5, -1e-5):
            values[index] = kept + step
            sides.append(loss())
        values[index] = kept
        assert gradient[index] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-9)


def test_batches_after_the_first_equal_all_of_them_at_once(rows):
    X, Y = rows
    one = MANIACClassifier(epochs=3, random_state=0).partial_fit(X[:60], Y[:60])
    net = one._fitted.state.layers
    two = MANIACClassifier(epochs=3, random_state=0).partial_fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    one.partial_fit(X[60:90], Y[60:90]).partial_fit(X[90:], scipy.sparse.csr_array(Y[90:]))
    assert one._fitted.state.layers[0] is net[0]
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-9)


def test_a_late_label_is_decoded_by_least_squares(rows):
    X, Y = rows
    Y = np.column_stack([Y, np.where(np.arange(120) < 60, 0, Y[:, 0])])
    late = MANIACClassifier(epochs=3, random_state=0).partial_fit(X[:60], Y[:60, :6]).partial_fit(X[60:], Y[60:])
    early = MANIACClassifier(epochs=3, random_state=0).partial_fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    np.testing.assert_allclose(late.decision_function(X), early.decision_function(X), atol=1e-9)
    scores = early.decision_function(X)
    assert np.corrcoef(scores[:, 6], scores[:, 0])[0, 1] > 0.5


@pytest.mark.parametrize(("name", "value"), [("stages", 0), ("shrink", 0.0), ("units", "step"), ("decoder", "omp")])
def test_parameters_are_checked(rows, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        MANIACClassifier(**{name: value}).fit(*rows)
