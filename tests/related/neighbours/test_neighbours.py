"""Nearest neighbours against versions written straight from the definitions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from helpers.batches import assert_new_labels_were_absent, small_batches

from labelrace import MLkNNClassifier, MWCClassifier
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.related.neighbours import points, search
from labelrace.related.neighbours.mwc import NOWHERE


def order_by_distance(P, x):
    """Sort rows by their distance from one, the newest first among equals."""
    squares = [((row - x) ** 2).sum() for row in P]
    return sorted(range(len(P)), key=lambda i: (squares[i], -i))


def scaled(X, first):
    low, high = first.min(axis=0), first.max(axis=0)
    return np.where(high > low, (X - low) / np.where(high > low, high - low, 1.0), 0.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("newest_first", [False, True])
def test_nearest_rows(sparse, whole, newest_first):
    rng = np.random.default_rng(1)
    P, Q = rng.normal(size=(40, 6)), rng.normal(size=(9, 6))
    if whole:
        P, Q = P.round(), Q.round()
    # Equal rows, at which products may round differently.
    P[20:] = P[:20]
    form = scipy.sparse.csr_array if sparse else np.asarray
    found = search.nearest(form(P), form(Q), 7, newest_first=newest_first)
    for i, x in enumerate(Q):
        exact = ((P - x) ** 2).sum(axis=1)
        sign = -1 if newest_first else 1
        expected = sorted(range(40), key=lambda j, exact=exact, sign=sign: (exact[j], sign * j))[:7]
        assert found[i].tolist() == sorted(expected)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e60])
@pytest.mark.parametrize("odd", ["nothing", "far", "outlier", "whole"])
@pytest.mark.parametrize("among_themselves", [False, True])
def test_nearest_rows_at_nearly_equal_distances(scale, odd, among_themselves):
    """Distances from the rows' own copies differ in the eighth digit; far from the origin few digits are left."""
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(400, 5))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    Q = rng.normal(size=(10, 5)).round(2)
    P = np.repeat(Q, 40, axis=0) + directions * (1 + 1e-7 * rng.permutation(400))[:, None]
    if odd == "far":
        P, Q = P + 1000.0, Q + 1000.0
    elif odd == "outlier":
        P[7] = 1e8
    elif odd == "whole":
        P, Q = (1000 * P).round(), (1000 * Q).round()
    P, Q = scale * P, scale * Q
    if among_themselves:
        P = Q = P[:60]
    found = search.nearest(P, Q, 7, exclude=np.arange(60) if among_themselves else None)
    for i, x in enumerate(Q):
        near = [j for j in order_by_distance(P, x) if j != i or not among_themselves]
        assert found[i].tolist() == sorted(near[:7])


def test_nearest_rows_without_itself_and_fewer_than_wanted():
    P = np.array([[0.0], [1.0], [5.0]])
    assert search.nearest(P, P, 9, exclude=np.arange(3)).tolist() == [[1, 2], [0, 2], [0, 1]]
    assert search.nearest(P, P, 1, exclude=np.arange(3)).tolist() == [[1], [0], [1]]
    assert search.nearest(P[:1], P[:1], 9, exclude=np.arange(1)).shape == (1, 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_nominal_values_differ_by_one(sparse):
    X = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 0.5], [0.0, 3.0, 0.25]])
    kinds = FeatureKinds(np.array([2, 4, 0]))
    form = scipy.sparse.csr_array if sparse else np.asarray
    P = points.to_points(points.range_scale(kinds.n_values == 0, form(X)), form(X), kinds, sparse=sparse)
    squares = search.squared_distances(P, P)
    np.testing.assert_allclose(squares, [[0, 2, 2], [2, 0, 3], [2, 3, 0]], atol=1e-12)


def naive_mlknn(window_X, window_Y, x, k):
    """Compute ML-kNN's probabilities row by row."""
    n, n_labels = window_Y.shape
    present, absent = np.zeros((n_labels, k + 1)), np.zeros((n_labels, k + 1))
    for i in range(n):
        near = [j for j in order_by_distance(window_X, window_X[i]) if j != i][:k]
        for label, count in enumerate(window_Y[near].sum(axis=0).astype(int)):
            (present if window_Y[i, label] else absent)[label, count] += 1
    near = order_by_distance(window_X, x)[:k]
    result = []
    for label, count in enumerate(window_Y[near].sum(axis=0).astype(int)):
        share = (1 + window_Y[:, label].sum()) / (2 + n)
        one = share * (1 + present[label, count]) / (k + 1 + present[label].sum())
        zero = (1 - share) * (1 + absent[label, count]) / (k + 1 + absent[label].sum())
        result.append(one / (one + zero))
    return result


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_mlknn_on_a_window(whole, sparse):
    batches = small_batches(whole=whole)
    form = scipy.sparse.csr_array if sparse else np.asarray
    model = MLkNNClassifier(n_neighbors=3, window=40)
    for X, Y in batches[:2]:
        model.partial_fit(form(X), form(Y))
    X = scaled(np.vstack([X for X, _ in batches]), batches[0][0])
    Y = np.vstack([Y for _, Y in batches])
    expected = [naive_mlknn(X[20:60], Y[20:60], x, 3) for x in X[60:]]
    np.testing.assert_allclose(model.predict_proba(form(batches[2][0])), expected, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("n_first", [1, 20])
def test_mlknn_of_odd_rows(odd_rows, form, n_first):
    """With a first batch of one row no feature counts, so that all rows are equally near."""
    X, Y = odd_rows(3)
    points = scaled(X, X[:n_first])
    model = MLkNNClassifier(n_neighbors=4, window=30)
    for start, stop in pairwise([0, n_first, n_first + 1, 28, 45, 60]):
        if start:
            seen = slice(max(0, start - 30), start)
            stop_at = min(start + 3, stop)
            expected = [naive_mlknn(points[seen], Y[seen], x, 4) for x in points[start:stop_at]]
            np.testing.assert_allclose(model.predict_proba(form(X[start:stop_at])), expected, rtol=1e-12)
        model.partial_fit(form(X[start:stop]), form(Y[start:stop]))


def test_mlknn_is_that_of_its_window_whatever_came_before():
    """Dense rows and then sparse ones, nominal values that come late, and batches longer than the window."""
    rng, window = np.random.default_rng(8), 50
    X = np.column_stack([rng.integers(0, 2, 300), rng.normal(size=(300, 2)).round(1)]).astype(float)
    X[150:, 0] = rng.integers(0, 5, 150)
    Y = (rng.random((300, 4)) < 0.4).astype(float)
    for ties in ("newest", "oldest"):
        settings = {"n_neighbors": 3, "window": window, "scale": "none", "ties": ties, "categorical_features": [0]}
        model, stop = MLkNNClassifier(**settings), 0
        for step in (20, 35, 10, 10, 80, 15, 10, 20, 10):
            rows = slice(stop, stop + step)
            stop += step
            model.partial_fit(scipy.sparse.csr_array(X[rows]) if stop > 190 else X[rows], Y[rows])
            near = slice(max(0, stop - window), stop)
            fresh = MLkNNClassifier(**settings).fit(X[near], Y[near])
            np.testing.assert_array_equal(model.predict_proba(X[240:]), fresh.predict_proba(X[240:]))


def test_prequential_tables_do_not_see_their_own_batch():
    (first_X, first_Y), (X, Y), _ = small_batches()
    model = MLkNNClassifier(n_neighbors=3, tables="prequential").partial_fit(first_X, first_Y)
    before = model._fitted.state.present.sum(axis=1) + model._fitted.state.absent.sum(axis=1)
    model.partial_fit(X, Y)
    state = model._fitted.state
    np.testing.assert_array_equal(before, 30.0)
    np.testing.assert_array_equal(state.present.sum(axis=1), first_Y.sum(axis=0) + Y.sum(axis=0))
    near = order_by_distance(scaled(first_X, first_X), scaled(X[:1], first_X)[0])[:3]
    one = MLkNNClassifier(n_neighbors=3, tables="prequential").partial_fit(first_X, first_Y)
    tables = one._fitted.state
    one.partial_fit(X[:1], Y[:1])
    for label, count in enumerate(first_Y[near].sum(axis=0).astype(int)):
        name = "present" if Y[0, label] else "absent"
        change = getattr(one._fitted.state, name)[label] - getattr(tables, name)[label]
        assert change.tolist() == np.eye(4)[count].tolist()


@pytest.mark.parametrize(
    "model",
    [
        MLkNNClassifier(n_neighbors=3, window=50),
        MLkNNClassifier(n_neighbors=3, window=50, tables="prequential"),
        MWCClassifier(n_neighbors=3, window=10),
    ],
    ids=repr,
)
def test_a_new_label_is_one_that_was_always_absent(model):
    assert_new_labels_were_absent(model)


def test_multiple_windows_by_definition():
    batches = small_batches(5, n=200, batch=40, whole=True)
    model, k, n_present, n_absent = MWCClassifier(n_neighbors=5, window=6, ratio=0.5), 5, 6, 12
    seen_X, seen_Y, thresholds = np.zeros((0, 4)), np.zeros((0, 5)), np.full(5, 0.5)
    for X, Y in batches:
        points = scaled(X, batches[0][0])
        if len(seen_X):
            shares = np.zeros(Y.shape)
            for label in range(5):
                rows = [
                    *np.flatnonzero(seen_Y[:, label] == 1)[-n_present:],
                    *np.flatnonzero(seen_Y[:, label] == 0)[-n_absent:],
                ]
                rows = sorted(rows)
                for i, x in enumerate(points):
                    near = [rows[index] for index in order_by_distance(seen_X[rows], x)[:k]]
                    shares[i, label] = seen_Y[near, label].mean()
            np.testing.assert_allclose(model.decision_function(X), shares, rtol=0, atol=1e-15)
            np.testing.assert_array_equal(model.predict(X), shares >= thresholds)
            for label in range(5):
                candidates = [NOWHERE, *sorted(set(shares[:, label]), reverse=True)]
                off = [abs((shares[:, label] >= each).sum() - Y[:, label].sum()) for each in candidates]
                thresholds[label] = candidates[int(np.argmin(off))]
        model.partial_fit(X, Y)
        np.testing.assert_array_equal(model._fitted.state.thresholds, thresholds)
        seen_X, seen_Y = np.vstack([seen_X, points]), np.vstack([seen_Y, Y])
    assert len(model._fitted.derived.labels) < len(seen_X)


def test_fixed_thresholds_stay():
    model = MWCClassifier(thresholds="fixed")
    for X, Y in small_batches():
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(model._fitted.state.thresholds, 0.5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MLkNNClassifier(n_neighbors=0), "n_neighbors must be a whole number of at least 1, got 0"),
        (MLkNNClassifier(window=0.5), "window must be a whole number"),
        (MLkNNClassifier(tables="both"), "tables must be one of 'window', 'prequential', got 'both'"),
        (MLkNNClassifier(ties="first"), "ties must be one of"),
        (MWCClassifier(ratio=0), "ratio must be a number above 0, got 0"),
        (MWCClassifier(thresholds=0.5), "thresholds must be one of"),
    ],
)
def test_wrong_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*small_batches()[0])


@pytest.mark.parametrize("model", [MLkNNClassifier(), MWCClassifier()], ids=repr)
def test_models_of_the_newest_rows_cannot_be_merged(model):
    X, Y = small_batches()[0]
    other = type(model)().fit(X, Y)
    with pytest.raises(ValueError, match="either's could be newer"):
        model.fit(X, Y).merge(other)
