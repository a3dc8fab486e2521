"""Synthetic streams: the same rows each time, labels as frequent as asked for, drift where it should be."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse, vstack

from labelrace.base.sparse import dense
from labelrace.streams import Dataset
from labelrace.streams.synthetic import SyntheticStream, like

DRIFTS = ["none", "sudden", "gradual", "incremental", "recurring"]
PAPER = {
    "CAL500": (502, 68, 174, 26.044, None),
    "delicious": (16105, 500, 983, 19.020, 0.0366),
    "enron": (1702, 1001, 53, 3.378, 0.084),
    "mediamill": (43907, 120, 101, 4.376, None),
    "NUS-WIDE": (269648, 500, 81, 1.869, 0.05),
    "rcv1v2": (6000, 47236, 101, 2.880, 0.0016),
}
small_streams = st.builds(
    SyntheticStream,
    n_rows=st.integers(1, 300),
    n_features=st.integers(1, 40),
    n_labels=st.integers(4, 3000),  # with 3000 labels, a chunk has less than 200 rows
    cardinality=st.floats(0.1, 1.5),
    density=st.sampled_from([None, 0.05, 0.5]),
    n_factors=st.integers(2, 5),
    noise=st.sampled_from([0.0, 0.1, 0.9]),
    drift=st.sampled_from(DRIFTS),
    new_labels=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 2**40),
)


def least_squares(X, Y):
    """Return a linear classifier that gives each label as often as the rows it learned from have it."""
    beta, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), Y, rcond=None)

    def scores(X):
        return np.column_stack([X, np.ones(len(X))]) @ beta

    threshold = [np.quantile(column, 1 - share) for column, share in zip(scores(X).T, Y.mean(axis=0), strict=True)]
    return lambda X: scores(X) > threshold


def example_f(Y, predicted):
    sizes = Y.sum(axis=1) + predicted.sum(axis=1)
    return np.mean(2 * (Y * predicted).sum(axis=1)[sizes > 0] / sizes[sizes > 0])


def parts(stream, *borders):
    """Cut a stream at some shares of its rows."""
    data = stream.load()
    X, Y = dense(data.X), data.Y.toarray()
    rows = [round(border * len(X)) for border in borders]
    return [(X[a:b], Y[a:b]) for a, b in pairwise(rows)]


@settings(max_examples=40, deadline=None)
@given(stream=small_streams, size=st.integers(1, 400))
def test_the_same_rows_whatever_the_batch_size(stream, size):
    data = stream.load()
    batches = list(stream.batches(size))
    assert [X.shape[0] for X, _ in batches[:-1]] == [size] * (len(batches) - 1)
    assert 0 < batches[-1][0].shape[0] <= size
    np.testing.assert_array_equal(np.vstack([dense(X) for X, _ in batches]), dense(data.X))
    np.testing.assert_array_equal(vstack([Y for _, Y in batches]).toarray(), data.Y.toarray())


@settings(max_examples=15, deadline=None)
@given(stream=small_streams)
def test_one_seed_one_stream(stream):
    again = pickle.loads(pickle.dumps(stream)).load()
    np.testing.assert_array_equal(dense(stream.load().X), dense(again.X))
    np.testing.assert_array_equal(stream.load().Y.toarray(), again.Y.toarray())


def test_another_seed_another_stream():
    one, two = (SyntheticStream(n_rows=200, seed=seed).load() for seed in (0, 1))
    assert min((one.Y != two.Y).sum(), (one.X != two.X).sum()) > 200


def test_drift_changes_the_labels_alone():
    still, drifting = (SyntheticStream(n_rows=2000, drift=drift).load() for drift in ("none", "sudden"))
    np.testing.assert_array_equal(still.X, drifting.X)
    np.testing.assert_array_equal(still.Y[:1000].toarray(), drifting.Y[:1000].toarray())
    assert (still.Y[1000:] != drifting.Y[1000:]).sum() > 1000


def test_form():
    stream = SyntheticStream(n_rows=50, density=0.1, name="toy")
    data = stream.load()
    assert isinstance(data, Dataset)
    assert data.name == stream.name == "synthetic toy"
    assert repr(stream) == (
        "SyntheticStream('synthetic toy': 50 rows, 50 binary features (10% dense), 40 labels, cardinality 3, no drift)"
    )
    assert (len(stream), len(data.feature_names), len(data.label_names)) == (50, 50, 40)
    assert data.X.format == data.Y.format == "csr"
    assert (data.X.dtype, data.Y.dtype) == (np.float64, np.int8)
    assert set(data.X.data) == set(data.Y.data) == {1}
    assert stream.categorical.n_values.tolist() == [2] * 50
    assert not SyntheticStream().categorical.any()
    assert SyntheticStream(n_rows=3).load().X.dtype == np.float64


@settings(max_examples=12, deadline=None)
@given(
    cardinality=st.floats(1.0, 6.0),
    zipf=st.floats(0, 1.5),
    drift=st.sampled_from(DRIFTS),
    new_labels=st.sampled_from([0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_cardinality(cardinality, zipf, drift, new_labels, seed):
    stream = SyntheticStream(
        n_rows=12_000, cardinality=cardinality, zipf=zipf, drift=drift, new_labels=new_labels, seed=seed
    )
    Y = stream.load().Y
    assert Y.sum() / len(stream) == pytest.approx(cardinality, rel=0.05)
    if not new_labels:
        halves = Y[:6000].sum() / 6000, Y[6000:].sum() / 6000
        assert halves[0] == pytest.approx(halves[1], rel=0.1)


def test_few_labels_are_frequent():
    shares = np.sort(SyntheticStream(n_rows=20_000, cardinality=2, zipf=1).load().Y.mean(axis=0))[::-1]
    expected = 2 / (1 / np.arange(1, 41)).sum() / np.arange(1, 41)
    np.testing.assert_allclose(shares, expected, rtol=0.25)
    even = SyntheticStream(n_rows=20_000, cardinality=2, zipf=0).load().Y.mean(axis=0)
    np.testing.assert_allclose(even, 0.05, rtol=0.25)
    capped = SyntheticStream(n_rows=20_000, cardinality=4, zipf=2, most_frequent=0.5).load().Y.mean(axis=0)
    assert capped.max() < 0.52


@pytest.mark.parametrize("density", [0.002, 0.05, 0.5])
def test_density(density):
    data = SyntheticStream(n_rows=3000, n_features=400, density=density).load()
    assert data.X.nnz / (3000 * 400) == pytest.approx(density, rel=0.05)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000))
def test_labels_correlate(seed):
    Y = SyntheticStream(n_rows=4000, n_labels=20, cardinality=4, seed=seed).load().Y.toarray()
    shuffled = np.random.default_rng(seed).permuted(Y, axis=0)
    upper = np.triu_indices(20, 1)
    real, independent = (np.abs(np.corrcoef(labels.T)[upper]).mean() for labels in (Y, shuffled))
    assert real > 5 * independent


def test_default_can_be_learned_but_not_perfectly():
    (X, Y), (X_test, Y_test) = parts(SyntheticStream(), 0, 0.6, 1)
    assert 0.5 < example_f(Y_test, least_squares(X, Y)(X_test)) < 0.8


def test_sparse_can_be_learned():
    (X, Y), (X_test, Y_test) = parts(like("enron", n_rows=6000, n_features=300), 0, 0.6, 1)
    most_frequent = np.tile(np.isin(np.arange(53), np.argsort(-Y.mean(axis=0))[:3]), (len(Y_test), 1))
    assert example_f(Y_test, least_squares(X, Y)(X_test)) > example_f(Y_test, most_frequent) + 0.02


def test_sudden_drift():
    first, old, after, later = parts(SyntheticStream(n_rows=6000, drift="sudden", drift_at=0.4), 0, 0.2, 0.4, 0.6, 1)
    model = least_squares(*first)
    assert example_f(old[1], model(old[0])) > 2 * example_f(after[1], model(after[0]))
    # The new concept is as easy as the old one.
    assert example_f(later[1], least_squares(*after)(later[0])) > 0.6


def test_several_drifts_are_to_new_concepts():
    cut = parts(SyntheticStream(n_rows=9000, drift="sudden", drift_at=(1 / 3, 2 / 3)), 0, 1 / 3, 2 / 3, 1)
    models = [least_squares(*part) for part in cut]
    assert all(example_f(cut[k][1], models[j](cut[k][0])) < 0.5 for j, k in ((0, 1), (0, 2), (1, 2)))


def test_recurring_drift():
    cut = parts(SyntheticStream(n_rows=8000, drift="recurring"), 0, 0.25, 0.5, 0.75, 1)
    first, second = least_squares(*cut[0]), least_squares(*cut[1])
    quality = [[example_f(Y, model(X)) for X, Y in cut] for model in (first, second)]
    assert min(quality[0][2], quality[1][3]) > 0.6
    assert max(quality[0][1], quality[0][3], quality[1][2]) < 0.45


@pytest.mark.parametrize("drift", ["gradual", "incremental"])
def test_gentle_drift(drift):
    stream = SyntheticStream(n_rows=20_000, drift=drift, drift_width=0.6)
    before, early, middle, late, after = parts(stream, 0, 0.2, 0.4, 0.6, 0.8, 1)
    old, new = least_squares(*before), least_squares(*after)
    fall = [example_f(Y, old(X)) for X, Y in (early, middle, late)]
    rise = [example_f(Y, new(X)) for X, Y in (early, middle, late)]
    assert fall == sorted(fall, reverse=True)
    assert rise == sorted(rise)
    assert max(fall[0] - fall[2], rise[2] - rise[0]) > 0.2


def test_rows_of_a_gradual_drift_are_old_or_new_those_of_an_incremental_one_between():
    parameters = {"n_rows": 5000, "drift_width": 0.5}
    old = SyntheticStream(**parameters).load().Y.toarray()
    new = SyntheticStream(drift="sudden", drift_at=1e-6, **parameters).load().Y.toarray()
    neither, as_before = {}, {}
    for drift in ("gradual", "incremental"):
        Y = SyntheticStream(drift=drift, **parameters).load().Y.toarray()[2000:3000]
        is_old, is_new = (np.all(other[2000:3000] == Y, axis=1) for other in (old, new))
        neither[drift], as_before[drift] = np.mean(~is_old & ~is_new), np.mean(is_old)
    assert neither["gradual"] == 0
    assert as_before["gradual"] == pytest.approx(0.5, abs=0.07)
    assert neither["incremental"] > 0.5


@settings(max_examples=20, deadline=None)
@given(share=st.floats(0.05, 1), at=st.floats(0.0, 0.9), seed=st.integers(0, 100))
def test_new_labels_never_occur_before_their_time(share, at, seed):
    stream = SyntheticStream(
        n_rows=1500, n_labels=20, cardinality=1, zipf=0, new_labels=share, new_labels_at=at, seed=seed
    )
    Y = stream.load().Y.toarray()
    start = np.count_nonzero(np.arange(1500) / 1500 < at)
    absent = ~Y[:start].any(axis=0)
    if start > 600:
        assert absent.sum() == round(share * 20)
    if start < 900:
        assert Y[start:].any(axis=0).all()


@pytest.mark.parametrize("name", PAPER)
def test_like(name):
    stream = like(name.lower().replace("-", ""), n_rows=1500, seed=3)
    n_rows, n_features, n_labels, cardinality, density = PAPER[name]
    assert like(name).n_rows == n_rows
    assert stream.name == f"synthetic like {name}"
    assert (stream.n_rows, stream.seed) == (1500, 3)
    data = stream.load()
    assert data.X.shape == (1500, n_features)
    assert data.Y.shape == (1500, n_labels)
    assert data.Y.sum() / 1500 == pytest.approx(cardinality, rel=0.08)
    assert issparse(data.X) == (density is not None) == data.categorical.all()
    if density is not None:
        assert data.X.nnz / (1500 * n_features) == pytest.approx(density, rel=0.05)


def test_like_with_changes():
    assert like("enron", n_labels=7, cardinality=2, drift="sudden").drift == "sudden"
    with pytest.raises(ValueError, match=r"no shape 'nonsense'\. Known shapes: CAL500, delicious, enron, .*rcv1v2"):
        like("nonsense")
    with pytest.raises(TypeError, match="nonsense"):
        like("enron", nonsense=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("n_rows", "n_features", "n_labels", "n_factors") for value in (0, -1, 2.5, True)),
        *(("seed", value) for value in (-1, None, 0.5)),
        *((name, np.nan) for name in ("cardinality", "density", "noise", "zipf", "new_labels", "drift_width")),
        *(("cardinality", value) for value in (0, -1, 36.0, 1000)),
        *(("density", value) for value in (0, 0.51, -1)),
        *(("noise", value) for value in (1, -0.1)),
        *(("zipf", value) for value in (-1, 11)),
        *(("most_frequent", value) for value in (0, 1, 0.05)),
        *(("drift", value) for value in ("nonsense", "", None)),
        *(("drift_width", value) for value in (0, 1.1)),
        *(("drift_at", value) for value in (0, 1, -0.5, (0.5, 0.4), (0.5, 0.5), (0.5, 0.6), [0.2, 1.2])),
        *(("new_labels", value) for value in (-0.1, 1.1)),
        *(("new_labels_at", value) for value in (-0.1, 1)),
    ],
)
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=name):
        SyntheticStream(**{"drift": "gradual", name: value})


def test_cardinality_out_of_reach():
    with pytest.raises(ValueError, match=r"cardinality must be below 9, got 10: there are 40 labels.*40 of them only"):
        SyntheticStream(cardinality=10, new_labels=1, new_labels_at=0.75)


def test_rows_are_made_as_they_are_asked_for():
    X, Y = next(SyntheticStream(n_rows=10**12).batches(10))
    assert (X.shape, Y.shape) == ((10, 50), (10, 40))
    with pytest.raises(ValueError, match="size must be a whole number of at least 1, got 0"):
        SyntheticStream().batches(0)
