"""The compression methods against published programs and definitions, on datasets of the paper.

The reference files are looked for in the folder that LABELRACE_RIVALS names, the datasets by LABELRACE_DATA; elsewhere
these tests are skipped. Cells whose reference score is within 1e-9 of the threshold are left out.
"""

from __future__ import annotations

import numpy as np
import pytest

import labelrace
from labelrace import (
    BMaDClassifier,
    CompressedLabelingClassifier,
    CompressedSensingClassifier,
    CPLSTClassifier,
    CSSPClassifier,
    FaIEClassifier,
    KCCAClassifier,
    MOPLMSClassifier,
    PLSTClassifier,
    RidgeClassifier,
)
from labelrace.base.linalg import right_singular, top_eigenpairs
from labelrace.base.sparse import dense_floats
from labelrace.base.validation import categorical_kinds
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.related.compression import bmad, faie
from labelrace.related.compression.cl import distil
from labelrace.related.compression.cs import matching_pursuit
from labelrace.related.compression.moplms import landmark_weights

CLASSES = {"plst": PLSTClassifier, "cplst": CPLSTClassifier, "faie": FaIEClassifier, "cssp": CSSPClassifier}
SETTINGS = [("emotions", 3), ("emotions", 5), ("CAL500", 8), ("CAL500", 60), ("enron", 6), ("enron", 20)]


@pytest.fixture(scope="session")
def reference(rival):
    """Return the arrays of a reference file with the dataset's X and Y."""

    def load(name):
        golden, data = rival(name)
        return golden, dense_floats(data.X), dense_floats(data.Y)

    return load


def in_batches(model, X, Y, size=100):
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], Y[start : start + size])
    return model


def assert_scores(found, expected, atol=1e-8):
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    away = np.abs(expected) > 1e-9
    np.testing.assert_array_equal((found > 0)[away], (expected > 0)[away])


@pytest.mark.parametrize("method", CLASSES)
@pytest.mark.parametrize(("dataset", "k"), SETTINGS)
def test_the_authors_programs(reference, monkeypatch, method, dataset, k):
    golden, X, Y = reference(f"lsdr_{method}_{dataset}_k{k}")
    given = {"selected": golden["selected"]} if method == "cssp" else {}
    model = CLASSES[method].paper(n_components=k, **given)
    in_batches(model, X[golden["train"]], Y[golden["train"]])
    scores = model.decision_function(X[golden["test"]])
    assert_scores(scores, golden["scores"])
    away = np.abs(golden["scores"]) > 1e-9
    np.testing.assert_array_equal(model.predict(X[golden["test"]])[away], golden["predicted"][away])
    fitted = model._fitted
    view = fitted.algorithm.view(fitted.state)
    if method == "plst":
        values, _ = view.principal(view.coding("centred"), k + 1)
        np.testing.assert_allclose(4 * values, golden["eigenvalues"], rtol=1e-9)
        # What is lost of the labels' squares is the sum of the eigenvalues left out.
        all_values = np.linalg.eigvalsh(view.gram(view.coding("centred")))
        np.testing.assert_allclose(4 * all_values[: len(all_values) - k].sum(), golden["energy"], rtol=1e-9)
    if method == "cplst":
        products, _ = view.cross(view.coding("centred"))
        values, _ = right_singular(view.reading.factor.whiten(products), k + 1)
        np.testing.assert_allclose(4 * values, golden["eigenvalues"][: len(values)], rtol=1e-9)
        np.testing.assert_allclose(4 * values[:k].sum(), golden["energy"], rtol=1e-9)
    if method == "faie":
        values = eigenvalues_read(monkeypatch, faie, model)
        np.testing.assert_allclose(values, golden["eigenvalues"], rtol=1e-9)
        np.testing.assert_allclose(values.sum(), golden["energy"], rtol=1e-9)
    if method == "cssp":
        G, chosen = view.gram(view.coding("signs")), golden["selected"]
        lost = np.trace(G) - np.trace(G[:, chosen] @ np.linalg.pinv(G[np.ix_(chosen, chosen)]) @ G[chosen])
        np.testing.assert_allclose(lost, golden["energy"], rtol=1e-8)
        np.testing.assert_allclose(fitted.algorithm.leverage(view), golden["leverage"], atol=1e-9)


def eigenvalues_read(monkeypatch, module, model):
    """Return the eigenvalues that a model finds when it is read."""
    found = []

    def recorded(matrix, k):
        found.append(top_eigenpairs(matrix, k))
        return found[-1]

    monkeypatch.setattr(module, "top_eigenpairs", recorded)
    model._fitted.algorithm.derive(model._fitted.state)
    return found[-1][0]


@pytest.mark.parametrize(("dataset", "k"), [("emotions", 3), ("emotions", 5), ("CAL500", 8)])
def test_the_wrong_form_of_meka(reference, dataset, k):
    golden, X, Y = reference(f"meka_plst_{dataset}_k{k}")
    train, test = golden["train"], golden["test"]
    wrong = PLSTClassifier.meka_form(n_components=k).fit(X[train], Y[train])
    assert_scores(wrong.decision_function(X[test]), golden["scores_numpy"])
    np.testing.assert_array_equal(wrong.predict(X[test]), golden["predicted"])
    right = PLSTClassifier(n_components=k, penalty=1e-8, scaling="columns").fit(X[train], Y[train])
    assert_scores(right.decision_function(X[test]), golden["scores_right"])


ONLINE = [("emotions", "lam0.1"), ("emotions", "lam10"), ("CAL500", "lam0.1"), ("CAL500", "lam10"), ("enron", "lam10")]


@pytest.mark.parametrize(("dataset", "penalty"), ONLINE)
@pytest.mark.parametrize("method", [*CLASSES, "full"])
def test_test_then_train(reference, method, dataset, penalty):
    """Scores before every batch; the files of CAL500 and enron are in single precision."""
    name = f"online_lsdr_{dataset}" + ("_lam10" if dataset == "enron" else "")
    golden, X, Y = reference(name)
    size, k = int(golden["batch"]), int(golden["k"])
    given = {"uniforms": golden["u"]} if method == "cssp" else {}
    settled = {"penalty": float(penalty.removeprefix("lam")), **given}
    model = RidgeClassifier.paper(**settled) if method == "full" else CLASSES[method].paper(n_components=k, **settled)
    model.partial_fit(X[:size], Y[:size])
    expected = golden[f"{method}_{penalty}_scores"]
    for start in range(size, len(X), size):
        batch = slice(start, start + size)
        # Where labels have fewer independent columns than k, the reference's leverages are those of arbitrary vectors.
        is_determined = method != "cssp" or np.linalg.matrix_rank(2 * Y[:start] - 1) >= k
        if is_determined:
            wanted = expected[start - size : start].astype(float)
            assert_scores(model.decision_function(X[batch]), wanted, 1e-8 if expected.dtype == np.float64 else 1e-6)
            if method == "cssp":
                chosen = golden[f"cssp_selected_{penalty}"][start // size - 1]
                np.testing.assert_array_equal(np.sort(model.selected_), np.sort(chosen))
        model.partial_fit(X[batch], Y[batch])


def test_conditional_directions_are_reduced_rank_regression():
    """Without a penalty, what is left of the labels is what the eigenvalues leave: on any data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 7))
    Y = (X @ rng.normal(size=(7, 11)) + rng.normal(size=(90, 11)) > 0.5).astype(float)
    centred = Y - Y.mean(axis=0)
    U, _, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    values = np.linalg.svd(U.T @ centred, compute_uv=False) ** 2
    for k in (1, 3, 7):
        model = CPLSTClassifier(n_components=k, penalty=0.0, scaling="none").fit(X, Y)
        residual = Y - (model.decision_function(X) + 1) / 2
        np.testing.assert_allclose((residual**2).sum(), (centred**2).sum() - values[:k].sum(), rtol=1e-9)


@pytest.mark.parametrize(("dataset", "k"), [("emotions", 4), ("CAL500", 87), ("enron", 25)])
@pytest.mark.parametrize("decoder", ["omp", "cosamp", "lasso", "pinv"])
def test_sparse_recovery(reference, decoder, dataset, k):
    golden, X, Y = reference(f"cs_{dataset}_k{k}")
    train, test, encoder = golden["train"], golden["test"], golden["encoder"]
    model = in_batches(CompressedSensingClassifier.paper(encoder=encoder, decoder=decoder), X[train], Y[train])
    assert model._fitted.derived.code.sparsity == golden["sparsity"]
    assert_scores(model.decision_function(X[test]), 2 * golden[f"{decoder}_scores"] - 1)


@pytest.mark.parametrize(("dataset", "k", "share"), [("emotions", 4, 0.47), ("CAL500", 87, 0.45), ("enron", 25, 0.993)])
def test_matching_pursuit_given_the_codes(reference, dataset, k, share):
    golden, _, Y = reference(f"cs_{dataset}_k{k}")
    encoder, s, truth = golden["encoder"], int(golden["sparsity"]), Y[golden["test"]]
    found = matching_pursuit(golden["codes_test_predicted"], encoder, s)
    np.testing.assert_allclose(found, golden["omp_numpy"], rtol=0, atol=1e-10)
    noiseless = matching_pursuit(truth @ encoder, encoder, s)
    np.testing.assert_allclose(noiseless, golden["noiseless_omp"], rtol=0, atol=1e-10)
    few = truth.sum(axis=1) <= s
    assert ((noiseless[few] > 0.5) == truth[few]).all(axis=1).mean() >= share


@pytest.mark.parametrize("dataset", ["emotions", "CAL500", "enron"])
def test_landmarks(reference, dataset):
    golden, X, Y = reference(f"moplms_{dataset}")
    train, test = golden["train"], golden["test"]
    gram = Y[train].T @ Y[train]
    largest = np.linalg.norm(gram, axis=1).max()
    np.testing.assert_allclose(largest, golden["l1_max"], rtol=1e-12)
    W = landmark_weights(gram, float(golden["l1"]), 0.0, 1e-12)
    np.testing.assert_allclose(W, golden["W"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(W, golden["W_sklearn"], rtol=0, atol=1e-8)
    assert_stationary(W, gram, float(golden["l1"]))
    both = landmark_weights(gram, float(golden["l1_b"]), float(golden["l2_b"]), 1e-12)
    np.testing.assert_allclose(both, golden["W_b"], rtol=0, atol=1e-9)
    given = {"lambda1": float(golden["l1"]) / largest, "tol": 1e-12}
    model = in_batches(MOPLMSClassifier.paper(**given), X[train], Y[train])
    np.testing.assert_array_equal(model.selected_, golden["landmarks"])
    assert_scores(model.decision_function(X[test]), 2 * golden["scores"] - 1)
    refitted = MOPLMSClassifier.paper(refit=True, **given).fit(X[train], Y[train])
    assert_scores(refitted.decision_function(X[test]), 2 * golden["scores_refitted"] - 1)


def assert_stationary(W, gram, penalty):
    """Require the conditions of Karush, Kuhn and Tucker."""
    gradient, lengths = gram @ W - gram, np.linalg.norm(W, axis=1)
    on = lengths > 0
    residual = gradient[on] + penalty * W[on] / lengths[on, None]
    np.testing.assert_allclose(residual, 0, atol=1e-7 * penalty)
    assert (np.linalg.norm(gradient[~on], axis=1) <= penalty * (1 + 1e-9)).all()


@pytest.mark.parametrize(("dataset", "k"), [("emotions", 3), ("CAL500", 20), ("enron", 20)])
def test_canonical_correlations(reference, dataset, k):
    golden, X, Y = reference(f"kcca_{dataset}_k{k}")
    train, test = golden["train"], golden["test"]
    linear = KCCAClassifier.paper(n_components=k, n_random_features=0)
    given = {"frequencies": golden["frequencies"], "phases": golden["phases"]}
    for model, name in ((linear, "linear"), (KCCAClassifier.paper(n_components=k, **given), "both")):
        in_batches(model, X[train], Y[train])
        assert_scores(model.decision_function(X[test]), 2 * golden[f"{name}_scores"] - 1)


BOOLEAN = [("emotions", 3), ("emotions", 5), ("CAL500", 20), ("enron", 20)]


@pytest.mark.parametrize(("dataset", "k"), BOOLEAN)
def test_a_greedy_boolean_basis(reference, dataset, k):
    golden, X, Y = reference(f"bmad_greedy_{dataset}_k{k}")
    train = golden["train"]
    sets, counts = golden["label_sets"].astype(float), golden["label_set_counts"].astype(float)
    options = bmad.candidates(Y[train].T @ Y[train], float(golden["threshold"]))
    chosen = bmad.greedy_basis(sets, counts, options, k)
    np.testing.assert_array_equal(chosen, golden["chosen"])
    np.testing.assert_array_equal(options[chosen], golden["basis"])
    codes = bmad.encode(sets, options[chosen], by_density=False)
    np.testing.assert_array_equal(codes, golden["codes"])
    assert counts @ (bmad.product(codes, options[chosen]) != sets).sum(axis=1) == golden["error"]
    model = in_batches(BMaDClassifier(n_components=k, warm_up=2000), X[train], Y[train])
    np.testing.assert_array_equal(model.basis_, golden["basis"])
    # The local search, from any start, is about as good as three runs of MEKA's, which have no seed.
    meka, _, _ = reference(f"meka_bmad_{dataset}_k{k}")
    errors = []
    for seed in range(3):
        basis = options[bmad.local_basis(sets, counts, options, k, np.random.default_rng(seed))]
        codes = bmad.encode(sets, basis, by_density=True)
        errors.append(counts @ (bmad.product(codes, basis) != sets).sum(axis=1))
    assert min(errors) <= 1.03 * meka["error"].max()


@pytest.mark.parametrize(("dataset", "k"), BOOLEAN)
def test_mekas_codes_and_predictions_given_its_basis(reference, dataset, k):
    golden, X, Y = reference(f"meka_bmad_{dataset}_k{k}")
    train, test = golden["train"], golden["test"]
    np.testing.assert_array_equal(bmad.candidates(Y[train].T @ Y[train], 0.5), golden["candidates"])
    categorical = labelrace.load_dataset(dataset.lower()).categorical
    n_values = categorical_kinds(categorical, X.shape[1], None).widened(X).n_values
    bank = NaiveBayes(numeric="binned")
    for run, basis in enumerate(golden["basis"].astype(float)):
        codes = bmad.encode(Y[train], basis, by_density=True)
        np.testing.assert_array_equal(codes, golden["codes"][run])
        assert (bmad.product(codes, basis) != Y[train]).sum() == golden["error"][run]
        state = bank.update(bank.init(n_values, k), X[train], codes)
        predicted = (bank.predict(bank.derive(state), X[test]) >= 0).astype(float)
        np.testing.assert_array_equal(bmad.product(predicted, basis), golden["predicted"][run])


@pytest.mark.parametrize(("dataset", "k"), [("emotions", 6), ("CAL500", 87), ("enron", 53)])
def test_compressed_labeling(reference, dataset, k):
    golden, X, Y = reference(f"cl_{dataset}_k{k}")
    train, test = golden["train"], golden["test"]
    sets, counts = np.unique(Y[train], axis=0, return_counts=True)
    np.testing.assert_array_equal(distil(sets, counts.astype(float)), golden["distilled"])
    model = in_batches(CompressedLabelingClassifier.paper(encoder=golden["encoder"]), X[train], Y[train])
    algorithm, derived = model._fitted.algorithm, model._fitted.derived
    np.testing.assert_array_equal(algorithm.codes(derived, X[test]) >= 0, golden["codes_test_predicted"])
    np.testing.assert_allclose(algorithm.evidence(derived, X[test]), golden["llr"], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X[test]), golden["predicted"])
    code, one, other = derived.code, golden["p_contained"], golden["p_not"]
    np.testing.assert_allclose(code.agree, np.log(one / other), rtol=0, atol=1e-10)
    np.testing.assert_allclose(code.differ, np.log((1 - one) / (1 - other)), rtol=0, atol=1e-10)
    agreeing = (np.where(Y[test] @ golden["encoder"] >= 0, 1, -1) @ code.bits.T + k) / 2
    accepted = agreeing * code.agree + (k - agreeing) * code.differ > 0
    np.testing.assert_array_equal(accepted @ code.distilled > 0, golden["predicted_from_true_codes"])
    with_prior = CompressedLabelingClassifier.paper(encoder=golden["encoder"], prior=True).fit(X[train], Y[train])
    np.testing.assert_array_equal(with_prior.predict(X[test]), golden["predicted_with_prior"])
    odds = np.log(golden["prior"] / (1 - golden["prior"]))
    np.testing.assert_allclose(with_prior._fitted.derived.code.prior, odds, rtol=0, atol=1e-10)
