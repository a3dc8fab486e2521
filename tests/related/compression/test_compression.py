"""The views of the running sums: online equals offline, whatever the batches, merges and growth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from labelrace import (
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
from labelrace.base.linalg import top_eigenpairs
from labelrace.exceptions import GrowthError, MergeError

VIEWS = {
    "ridge": RidgeClassifier(),
    "plst": PLSTClassifier(n_components=3),
    "plst paper": PLSTClassifier.paper(n_components=3),
    "plst meka": PLSTClassifier.meka_form(n_components=3, penalty=1e-3),
    "cplst": CPLSTClassifier(n_components=3),
    "cplst paper": CPLSTClassifier.paper(n_components=3),
    "faie": FaIEClassifier(n_components=3),
    "faie paper": FaIEClassifier.paper(n_components=3),
    "cssp": CSSPClassifier(n_components=3, random_state=1),
    "cssp paper": CSSPClassifier.paper(n_components=3, random_state=1),
    "moplms": MOPLMSClassifier(tol=1e-11),
    "moplms paper": MOPLMSClassifier.paper(n_components=3),
    "cca": KCCAClassifier(n_components=3, n_random_features=0),
    "kcca": KCCAClassifier(n_components=3, n_random_features=9, width=4.0, random_state=1),
    "kcca paper": KCCAClassifier.paper(n_components=3, n_random_features=9, width=4.0, random_state=1),
    "cs": CompressedSensingClassifier(n_components=4, random_state=1),
    "cs lasso": CompressedSensingClassifier(n_components=4, decoder="lasso", random_state=1),
    "cs cosamp": CompressedSensingClassifier(n_components=4, decoder="cosamp", random_state=1),
    "cl": CompressedLabelingClassifier(n_components=12, random_state=1),
    "cl paper": CompressedLabelingClassifier.paper(n_components=12, random_state=1),
    "cs paper": CompressedSensingClassifier.paper(n_components=4, decoder="pinv", random_state=1),
}
FORMS = {"dense": np.asarray, "sparse": scipy.sparse.csr_array}


def fresh(name, **parameters):
    return clone(VIEWS[name]).set_params(**parameters)


def some_rows(seed, n=60):
    """Draw rows of 5 features and 8 labels with clear principal directions, so that no choice hangs on round-off."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) + rng.normal(size=5)
    causes = X @ rng.normal(size=(5, 8)) + 0.5 * rng.normal(size=(n, 8))
    limits = [np.quantile(cause, share) for cause, share in zip(causes.T, rng.uniform(0.3, 0.8, 8), strict=True)]
    return X, (causes > limits).astype(float)


@pytest.mark.parametrize("name", VIEWS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(5, 55), max_size=4),
    joins=st.lists(st.booleans(), min_size=6, max_size=6),
    widths=st.lists(st.integers(4, 8), min_size=6, max_size=6),
    form=st.sampled_from(sorted(FORMS)),
    by_rows=st.booleans(),
)
def test_online_equals_offline(name, seed, cuts, joins, widths, form, by_rows):
    """Each part is learned on, or by a model of its own that is merged; each knows the labels that have come so far."""
    X, Y = some_rows(seed)
    edges, make = sorted({0, 60, *cuts}), FORMS[form]
    parts = list(zip(map(slice, edges[:-1], edges[1:]), joins, widths, strict=False))
    for part, _, width in parts:
        Y[part, width:] = 0.0
    given = {} if "paper" in name else {"scaling": "rows" if by_rows else "columns"}
    whole = fresh(name, **given).fit(make(X), make(Y))
    model = fresh(name, **given).partial_fit(make(X[parts[0][0]]), make(Y[parts[0][0], : widths[0]]))
    for part, join, width in parts[1:]:
        if join:
            model.merge(fresh(name, **given).partial_fit(make(X[part]), make(Y[part, :width])))
        else:
            model.partial_fit(make(X[part]), make(Y[part, : max(width, len(model.classes_))]))
    expected, found = whole.decision_function(make(X)), grown(model).decision_function(make(X))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * max(1.0, np.abs(expected).max()))
    predicted = model.predict(make(X))
    predicted = predicted.toarray() if form == "sparse" else predicted
    clear = np.abs(expected) > 1e-6
    np.testing.assert_array_equal(predicted[clear], (expected > 0)[clear])


def grown(model):
    """Add the labels that a model has not met."""
    missing = 8 - len(model.classes_)
    return model.add_labels(missing) if missing else model


@pytest.mark.parametrize("name", [name for name in VIEWS if name.split()[0] not in ("ridge", "moplms", "cl")])
def test_any_number_of_codes_is_read_from_one_state(name):
    X, Y = some_rows(0)
    model = fresh(name).fit(X, Y)
    for k in (1, 5, 8, "log2"):
        other, direct = model.read(k), fresh(name, n_components=k).fit(X, Y)
        np.testing.assert_allclose(other.decision_function(X), direct.decision_function(X), atol=1e-9)
        np.testing.assert_allclose(
            other.partial_fit(X, Y).decision_function(X), direct.partial_fit(X, Y).decision_function(X), atol=1e-9
        )
    assert model.n_components == VIEWS[name].n_components
    with pytest.raises(ValueError, match="n_components must be at most the number of labels, 8, got 9"):
        model.read(9)


@pytest.mark.parametrize("name", ["plst", "cplst", "faie", "cssp"])
def test_all_codes_are_ridge(name):
    """As many codes as labels lose nothing."""
    X, Y = some_rows(1)
    # Implicit codes are labels alone where predictability has no weight.
    given = {"alpha": 0.0} if name == "faie" else {}
    expected = RidgeClassifier().fit(X, Y).decision_function(X)
    np.testing.assert_allclose(fresh(name, n_components=8, **given).fit(X, Y).decision_function(X), expected, atol=1e-8)


@pytest.mark.parametrize("n_features", [1, 3])
def test_all_canonical_directions_are_ridge(n_features):
    """There are as many directions as labels, though no more than one for each feature correlate with anything."""
    X, Y = some_rows(1)
    X = X[:, :n_features]
    expected = RidgeClassifier().fit(X, Y).decision_function(X)
    found = KCCAClassifier(n_components=8, n_random_features=0).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", VIEWS)
def test_forgetting_weighs_rows(name):
    """A batch of rows twice, the first time half forgotten, is the batch one and a half times."""
    X, Y = some_rows(2)
    forgets = fresh(name, forgetting=0.5).partial_fit(X, Y).partial_fit(X, Y)
    sums = forgets._fitted.state.sums
    once = fresh(name).partial_fit(X, Y)._fitted.state.sums
    np.testing.assert_allclose(sums.rows, 90)
    np.testing.assert_allclose(sums.xx, 1.5 * once.xx)
    np.testing.assert_allclose(sums.xy.dense, 1.5 * once.xy.dense)
    np.testing.assert_allclose(sums.yy.dense, 1.5 * once.yy.dense)
    with pytest.raises(MergeError, match="depends on the order of the batches"):
        forgets.merge(forgets)


def test_the_first_batch_decides_how_features_are_scaled():
    X, Y = some_rows(3)
    dense, words = RidgeClassifier().fit(X, Y), RidgeClassifier().fit(X * (X > 1.5), Y)
    assert (dense._fitted.state.by_rows, words._fitted.state.by_rows) == (0, 1)
    np.testing.assert_array_equal(
        words.decision_function(X), RidgeClassifier(scaling="rows").fit(X * (X > 1.5), Y).decision_function(X)
    )
    # Units of dense columns do not matter, nor do lengths of sparse rows.
    np.testing.assert_allclose(
        RidgeClassifier().fit(X * 7 - 3, Y).decision_function(X * 7 - 3), dense.decision_function(X), atol=1e-9
    )
    with pytest.raises(MergeError, match="one took its features for sparse, the other for dense; give scaling="):
        dense.merge(words)


def test_models_that_began_with_other_numbers_of_codes_are_not_merged():
    X, Y = some_rows(4)
    one, other = PLSTClassifier().fit(X, Y), PLSTClassifier().fit(X, Y[:, :3]).add_labels(5)
    with pytest.raises(MergeError, match="different numbers of labels, and so of codes; give n_components"):
        one.merge(other)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RidgeClassifier(penalty=-1), "penalty must be a number of at least 0, got -1"),
        (RidgeClassifier(scaling="unit"), "scaling must be one of 'auto', 'rows', 'columns', 'none', got 'unit'"),
        (PLSTClassifier(forgetting=0), "forgetting must be a number above 0"),
        (PLSTClassifier(meka=1), "meka must be True or False"),
        (PLSTClassifier(n_components=9), "n_components must be at most the number of labels, 8, got 9"),
        (CPLSTClassifier(penalise_intercept=True), "penalise_intercept=True must go with a number for penalty"),
        (FaIEClassifier(alpha=-0.1), "alpha must be a number of at least 0"),
        (FaIEClassifier(coding="T"), "coding must be one of"),
        (CSSPClassifier(uniforms=[0.5] * 3), "uniforms must have a number for each of the 8 labels, got 3"),
        (CSSPClassifier(uniforms=[0.0] * 8), "uniforms must be numbers between 0 and 1"),
        (CSSPClassifier(selected=[1, 8]), "selected must be columns of the 8 labels, got 8"),
        (CSSPClassifier(selected=[1, 1]), "selected must be distinct columns"),
        (MOPLMSClassifier(n_components="log2"), "n_components must be a whole number of at least 1, got 'log2'"),
        (MOPLMSClassifier(lambda1=2), "lambda1 must be a number of at least 0 and at most 1"),
        (KCCAClassifier(n_random_features=-1), "n_random_features must be a whole number of at least 0"),
        (KCCAClassifier(width=0), "width must be a number above 0"),
        (KCCAClassifier(frequencies=np.ones((8, 3)), phases=np.ones(3)), r"must be of shapes \(labels, 64\)"),
        (KCCAClassifier(frequencies=np.ones((7, 64)), phases=np.ones(64)), "a row for each of the 8 labels, got 7"),
        (CompressedLabelingClassifier(n_components=0), "n_components must be a whole number of at least 1, got 0"),
        (CompressedLabelingClassifier(encoder=[1.0]), "encoder must be a matrix of finite numbers"),
        (CompressedSensingClassifier(decoder="lp"), "decoder must be one of 'omp', 'cosamp', 'lasso', 'pinv'"),
        (CompressedSensingClassifier(encoder="normal"), "encoder must be one of"),
        (CompressedSensingClassifier(encoder=np.ones((7, 3))), "a row for each of the 8 labels, got 7"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*some_rows(5))


def test_chosen_labels_follow_leverage():
    """Labels that always go together are not both needed, and one that never occurs is not chosen."""
    X, Y = some_rows(6, n=200)
    Y[:, 3] = 0.0
    counts = np.zeros(8)
    for seed in range(60):
        counts[CSSPClassifier(n_components=2, random_state=seed).fit(X, Y).selected_] += 1
    view = PLSTClassifier(n_components=2).fit(X, Y)._fitted
    view = view.algorithm.view(view.state)
    _, V = top_eigenpairs(view.gram(view.coding("centred")), 2)
    assert counts[3] == 0
    assert np.corrcoef(counts, (V**2).sum(axis=1))[0, 1] > 0.7


def test_canonical_correlations_are_those_of_orthonormal_bases():
    """Without penalties, the codes' correlations are the singular values of QxᵀQy."""
    X, Y = some_rows(7, n=150)
    k = 4
    model = KCCAClassifier(n_components=k, n_random_features=0, penalty=0.0, label_penalty=0.0, scaling="none")
    fitted = model.fit(X, Y)._fitted
    code = fitted.derived.code
    predicted = X @ code.linear.weights
    expected = np.linalg.svd(
        np.linalg.qr(X - X.mean(axis=0))[0].T @ np.linalg.qr(Y - Y.mean(axis=0))[0], compute_uv=False
    )
    # A code has unit length, so the length of its prediction is its correlation with the features.
    found = np.linalg.norm(predicted - predicted.mean(axis=0), axis=0)
    np.testing.assert_allclose(found, expected[:k], rtol=1e-8)


def test_random_features_of_labels_tell_the_widths_of_first_batches():
    X, Y = some_rows(8)
    one, other = (KCCAClassifier(random_state=0).fit(X[part], Y[part]) for part in (slice(30), slice(30, 60)))
    with pytest.raises(MergeError, match="width of their random features"):
        one.merge(other)
    assert one._fitted.state.width == pytest.approx(2 * Y[:30].sum() / 30)


def test_landmarks_are_at_most_as_many_as_asked_for():
    X, Y = some_rows(9)
    sizes = [len(MOPLMSClassifier(n_components=k).fit(X, Y).selected_) for k in range(1, 9)]
    assert all(size <= k for k, size in enumerate(sizes, 1))
    assert sizes[-1] == 8
    assert sizes == sorted(sizes)
    assert MOPLMSClassifier(lambda1=1.0).fit(X, Y).selected_.size == 0


@pytest.mark.parametrize("encoder", ["signs", "gaussian", "hadamard"])
def test_encoders_have_rows_of_length_one(encoder):
    X, Y = some_rows(10)
    drawn = CompressedSensingClassifier(encoder=encoder, n_components=5, random_state=3).fit(X, Y)._fitted.derived
    np.testing.assert_allclose(np.linalg.norm(drawn.code.encoder, axis=1), 1.0)
    assert len(np.unique(drawn.code.encoder.round(9), axis=0)) > 4


def test_bits_are_chosen_before_learning():
    with pytest.raises(ValueError, match="CompressedLabelingClassifier must be chosen before learning begins"):
        fresh("cl").fit(*some_rows(0)).read(5)


def test_what_is_given_for_labels_allows_no_new_ones():
    X, Y = some_rows(11)
    for model, name in (
        (CSSPClassifier(uniforms=np.linspace(0.1, 0.9, 8)), "uniforms="),
        (CompressedSensingClassifier(encoder=np.eye(8)[:, :4]), "encoder="),
        (KCCAClassifier(n_random_features=2, frequencies=np.ones((8, 2)), phases=np.zeros(2)), "frequencies="),
    ):
        with pytest.raises(GrowthError, match=f"cannot take new labels: {name}"):
            model.fit(X, Y).add_labels(1)


def test_too_many_labels_for_all_their_products():
    Y = scipy.sparse.csr_array((np.ones(3), ([0, 1, 2], [0, 1, 10_000])), (3, 10_001))
    for model in (FaIEClassifier(), MOPLMSClassifier(), KCCAClassifier()):
        with pytest.raises(ValueError, match=r"10001 labels, too many for .*kept for up to 10000 labels; use 'cplst'"):
            model.fit(np.eye(3), Y)
    for model in (PLSTClassifier(n_components=2), CSSPClassifier(n_components=2), CPLSTClassifier(n_components=2)):
        assert model.fit(np.eye(3), Y).predict(np.eye(3)).shape == (3, 10_001)
