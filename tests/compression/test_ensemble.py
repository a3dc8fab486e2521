"""The default model against a naive version: dense, uncentred, one decoder solved for each penalty."""

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace.compression import decoder, encoder
from labelrace.compression.ensemble import GRID, Ensemble, directions, grid_errors, solution
from labelrace.evaluation import ModelSpec, averages, prequential
from labelrace.learners.naive_bayes import NaiveBayes
from labelrace.learners.ridge import Ridge
from labelrace.streams.synthetic import SyntheticStream


def batches(seed=0, sizes=(40, 30, 50), n_labels=40):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, n_labels))
    for size in sizes:
        X = rng.normal(size=(size, 6)) + 3
        yield X, (X @ W + rng.normal(size=(size, n_labels)) > 4 + X.mean()).astype(float)


def naive_decoder(codes, targets, weights, penalty):
    """Ridge on standardised codes with an unpenalised constant; the penalty is in rows."""
    w = np.asarray(weights) / np.sum(weights)
    mean, target_mean = w @ codes, w @ targets
    # A code that is cut off in all rows says nothing.
    spread = np.where(np.ptp(codes, axis=0) > 0, np.sqrt(w @ (codes - mean) ** 2), np.inf)
    Z = (codes - mean) / spread
    correlation = Z.T @ (w[:, None] * Z)
    beta = np.linalg.solve(
        correlation + penalty / np.sum(weights) * np.eye(len(spread)), Z.T @ (w[:, None] * (targets - target_mean))
    )
    return lambda new: (new - mean) / spread @ beta + target_mean


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ridge", [Ridge(alpha=30.0), None])
def test_equals_the_naive_version(sparse, ridge):
    """Codes of a batch come from learners that have not seen it; the first batch's count for a tenth."""
    make = scipy.sparse.csr_array if sparse else np.asarray
    nb, n_values = NaiveBayes(), np.zeros(6, int)
    planes = encoder.draw(40, 10 if ridge else 6, np.random.default_rng(1))
    ensemble = Ensemble(nb, ridge)
    state = ensemble.init(planes, 6, n_values)
    learner, regressor = nb.init(n_values, 6), (ridge.init(n_values, 4) if ridge else None)
    codes, targets, weights = [], [], []
    errors, threshold = np.zeros(len(GRID)), None

    def predict_codes(X):
        parts = [np.clip(nb.predict(nb.derive(learner), X) / 6, -0.1, 0.1)]
        return np.hstack(parts + ([ridge.predict(ridge.derive(regressor), X)] if ridge else []))

    def decode(penalty):
        return naive_decoder(np.vstack(codes), np.vstack(targets), np.concatenate(weights), penalty)

    for number, (X, Y) in enumerate(batches()):
        if number:
            derived = ensemble.derive(state)
            Q, penalty = predict_codes(X), GRID[np.argmin(errors)] if errors.any() else GRID[len(GRID) // 2]
            scores = decode(penalty)(Q)
            np.testing.assert_allclose(ensemble.scores(derived, X), scores - threshold, atol=1e-8)
            np.testing.assert_array_equal(ensemble.predict(derived, X), scores > threshold)
            errors += [((decode(p)(Q) - (2 * Y - 1)) ** 2).sum() - ((2 * Y - 1) ** 2).sum() for p in GRID]
        H = (2 * Y - 1) @ planes.A + planes.bias
        learner = nb.update(learner, X, (H[:, :6] >= 0).astype(float))
        regressor = ridge.update(regressor, X, H[:, 6:]) if ridge else None
        codes.append(Q if number else predict_codes(X))
        targets.append(2 * Y - 1)
        weights.append(np.full(len(X), 1.0 if number else 0.1))
        if number == 0:
            scores = decode(GRID[len(GRID) // 2])(codes[0])
        cut = np.sort(scores, axis=None)[-int(Y.sum())]
        share = max(1 / (number + 0.1), 0.2)
        threshold = cut if number == 0 else (1 - share) * threshold + share * cut
        state = ensemble.update(state, X, make(Y))


def test_grid_errors_are_those_of_the_solutions():
    rng = np.random.default_rng(0)
    Q = np.hstack([np.ones((80, 1)), rng.normal(size=(80, 5)) * [1, 10, 1e-3, 1, 0]])
    Y = (rng.random((80, 7)) < 0.3).astype(float)
    along = directions(decoder.update(decoder.init(7, 6), Q[:50], Y[:50]))
    T = 2 * Y[50:] - 1
    expected = np.array([((Q[50:] @ solution(along, p) - T) ** 2).sum() for p in GRID])
    got = grid_errors(along, Q[50:], Y[50:])
    np.testing.assert_allclose(got - got[0], expected - expected[0], atol=1e-8)


def test_threshold_keeps_the_number_of_labels():
    stream = SyntheticStream(n_rows=4000, n_features=20, n_labels=50, cardinality=4, seed=1)
    model = labelrace.make_model("race", random_state=0)
    predicted, true = 0, 0
    for number, (X, Y) in enumerate(stream.batches(250)):
        if number > 3:
            predicted, true = predicted + model.predict(X).sum(), true + Y.sum()
        model.partial_fit(X, Y)
    assert predicted == pytest.approx(true, rel=0.05)


@pytest.mark.parametrize("density", [None, 0.1])
def test_better_than_the_paper(density):
    stream = SyntheticStream(n_rows=3000, n_features=60, n_labels=40, density=density, seed=2)
    f1 = {
        name: averages(prequential(ModelSpec(name).make(0), stream, 300))["example_f1"]
        for name in ("race", "race-cls-fixed", "race-cls-adaptive", "obr", "majority")
    }
    assert max(f1, key=f1.get) == "race"


def test_few_labels_are_not_compressed():
    [(X, Y)] = batches(sizes=(60,), n_labels=6)
    one, other = (labelrace.make_model("race", random_state=seed).fit(X, Y) for seed in (0, 1))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.encoder_, np.hstack([np.eye(6), np.eye(6)]))


def test_many_features_leave_ridge_out():
    X = scipy.sparse.random_array((50, 2000), density=0.01, format="csr", rng=0)
    Y = np.random.default_rng(0).random((50, 40)) < 0.2
    model = labelrace.make_model("race", random_state=0).fit(X, Y)
    assert model._learned.state.regressors is None
    assert labelrace.make_model("race", use_ridge=True).fit(X, Y)._learned.state.regressors is not None


def test_missing_values_need_naive_bayes_alone():
    [(X, Y)] = batches(sizes=(60,))
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        labelrace.make_model("race").fit(X, Y)
    assert np.isfinite(labelrace.make_model("race", use_ridge=False).fit(X, Y).decision_function(X)).all()


def test_wrong_parameters():
    [(X, Y)] = batches(sizes=(20,))
    with pytest.raises(ValueError, match="n_encoders=0 does not do"):
        labelrace.make_model("race", n_encoders=0).fit(X, Y)
    with pytest.raises(ValueError, match="use_ridge='yes' is not known"):
        labelrace.make_model("race", use_ridge="yes").fit(X, Y)


def test_a_batch_without_labels():
    [(X, Y), (X2, _), _] = batches()
    model = labelrace.make_model("race", random_state=0).partial_fit(X, Y).partial_fit(X2, np.zeros((30, 40)))
    assert np.isfinite(model.decision_function(X)).all()


def test_many_labels_make_no_table_of_their_own():
    """With 50,000 labels an l × l array would take 20 GB."""
    Y = scipy.sparse.random_array((40, 50_000), density=1e-4, format="csr", rng=0)
    Y.data[:] = 1
    model = labelrace.make_model("race", random_state=0).partial_fit(np.random.default_rng(0).normal(size=(40, 5)), Y)
    assert model.encoder_.shape == (50_000, 3 * 16 + 100)
