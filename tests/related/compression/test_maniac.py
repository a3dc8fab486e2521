"""Codes of labels by an autoencoder."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from labelrace import MANIACClassifier
from labelrace.related.compression.maniac import _gradients, _start, outputs, train


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

    for index, gradient in enumerate(_gradients(net, Y, linear)):
        values = net[index // 2][index % 2]
        index = tuple(size // 2 for size in values.shape)
        kept, sides = values[index], []
        for step in (1e-5, -1e-5):
            values[index] = kept + step
            sides.append(loss())
        values[index] = kept
        assert gradient[index] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-9)


def test_directions_in_which_first_rows_do_not_vary_are_left_out():
    """Eight rows have seven directions; a net of twelve units must not hang on rounding errors in the other five."""
    rng = np.random.default_rng(1)
    Y, others = (rng.random((8, 16)) < 0.4).astype(float), (rng.random((30, 16)) < 0.4).astype(float)
    decoded = []
    for error in (0.0, 1e-14):
        net = train(Y + error * rng.normal(size=Y.shape), [12, 9], False, 5, 4, 0.01, np.random.default_rng(0))
        assert max(np.abs(layer.weights).max() for layer in net) < 100
        decoded.append(outputs(net, others, False)[-1])
    np.testing.assert_allclose(*decoded, atol=1e-6)


def naive_outputs(layers, values):
    """Compute the last layer's sigmoid units, one by one."""
    for weights, bias in layers:
        totals = [
            bias[unit] + sum(value * weights[i, unit] for i, value in enumerate(values)) for unit in range(len(bias))
        ]
        values = [1 / (1 + np.exp(-total)) for total in totals]
    return values


@pytest.mark.parametrize("n_first", [1, 25])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_odd_rows_by_definition(odd_rows, n_first, form):
    """Ridge on the codes of all rows; the net decodes the labels of the first batch, least squares the others."""
    X, Y = odd_rows(0, 50)
    model = MANIACClassifier.paper(epochs=3, random_state=0)
    for start, stop in pairwise([0, n_first, n_first + 1, 40]):
        model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
    state, occurs = model._fitted.state, Y[:n_first].any(axis=0)
    sizes = [int(occurs.sum())]
    for _ in range(4):
        sizes.append(max(1, int(min(0.85 * sizes[-1], sizes[-1] - 1))))
    if occurs.any():
        assert [len(layer.bias) for layer in state.layers] == sizes[1:]
        assert [len(layer.weights) for layer in state.back] == sizes[:0:-1]
    codes = np.array([naive_outputs(state.layers, row) for row in Y[:40]])
    with_one, rows = (np.column_stack([np.ones(len(part)), part]) for part in (X[:40], X[40:]))
    found = rows @ np.linalg.solve(with_one.T @ with_one + 0.1 * np.eye(with_one.shape[1]), with_one.T @ codes)
    scores = (model.decision_function(form(X[40:])) + 1) / 2
    by_net = np.array([naive_outputs(state.back, np.clip(row, 0, 1)) for row in found])
    np.testing.assert_allclose(scores[:, occurs], by_net[:, occurs], atol=1e-9)
    decoder = np.linalg.lstsq(np.column_stack([np.ones(40), codes]), Y[:40], rcond=1e-6)[0]
    by_squares = np.column_stack([np.ones(10), found]) @ decoder
    np.testing.assert_allclose(scores[:, ~occurs], by_squares[:, ~occurs], atol=1e-3)
    predicted = scipy.sparse.csr_array(model.predict(form(X[40:]))).toarray()
    clear = np.abs(scores - 0.5) > 1e-9
    np.testing.assert_array_equal(predicted[clear], (scores >= 0.5)[clear])


@pytest.mark.parametrize("k", [1, 3])
def test_linear_units_reach_the_optimum_of_odd_rows(odd_rows, k):
    """Which is the sum of the smaller eigenvalues of the labels' covariance."""
    Y = odd_rows(1)[1]
    net = train(Y, [k], True, 20, 20, 0.002, np.random.default_rng(0))
    centred = Y - Y.mean(axis=0)
    best = np.sort(np.linalg.eigvalsh(centred.T @ centred))[::-1][k:].sum()
    error = np.square(outputs(net, Y, True)[-1] - Y).sum()
    assert best - 1e-9 <= error < 1.03 * best + 0.01


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
