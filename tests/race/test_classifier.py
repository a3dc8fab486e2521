"""What a RACE classifier does with its parameters, what it returns, and labels that are added to it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from helpers.memory import peak_of
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelrace import RACEClassifier
from labelrace.base.categorical_mask import CategoricalMask
from labelrace.learners.naive_bayes.bank import NaiveBayes
from labelrace.learners.sgd import SGD
from labelrace.race import decoder


@pytest.mark.parametrize(
    ("n_labels", "n_components", "expected"),
    [
        (1, "log2", 1),
        (5, "log2", 3),
        (1025, "log2", 11),
        (3, "log2_squared", 3),  # 4, but there are only three labels
        (257, "log2_squared", 81),
        (6, 6, 6),
        (6, np.int64(4), 4),
    ],
)
def test_number_of_components(n_labels, n_components, expected):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.random((20, n_labels)) < 0.5
    model = RACEClassifier(n_components=n_components, random_state=0).fit(X, Y)
    assert model.n_components_ == expected
    assert model.encoder_.shape == (n_labels, expected)
    assert model.encoder_bias_.shape == (expected,)
    assert model.decoder_.shape == (expected, n_labels)
    with_bias = np.vstack([model.encoder_, model.encoder_bias_])
    np.testing.assert_allclose(with_bias.T @ with_bias, np.eye(expected), atol=1e-12)
    assert model.predict(X).shape == (20, n_labels)


def test_a_given_projection_is_the_encoder(data):
    A, b = np.linspace(-1, 1, 18).reshape(6, 3), np.array([0.1, 0.2, 0.3])
    for projection in [(A, b), [A.tolist(), b.tolist()], (sparse.csr_array(A).toarray(), tuple(b))]:
        model = RACEClassifier(projection=projection).fit(*data)
        np.testing.assert_array_equal(model.encoder_, A)
        np.testing.assert_array_equal(model.encoder_bias_, b)
        assert model.n_components_ == 3


def test_adaptive_encoding_takes_over_the_decoder(data):
    X, Y = data
    model = RACEClassifier(encoding="adaptive", random_state=0).partial_fit(X, Y)
    decoder, bias = model.decoder_, model.encoder_bias_
    model.partial_fit(X, Y)
    np.testing.assert_array_equal(model.encoder_, decoder.T)
    np.testing.assert_array_equal(model.encoder_bias_, bias)


def test_random_state(data):
    def encoder(random_state):
        return RACEClassifier(random_state=random_state).fit(*data).encoder_

    np.testing.assert_array_equal(encoder(3), encoder(3))
    np.testing.assert_array_equal(encoder(np.random.default_rng(3)), encoder(3))
    np.testing.assert_array_equal(encoder(np.random.RandomState(3)), encoder(np.random.RandomState(3)))
    np.testing.assert_array_equal(encoder(np.random.SeedSequence(3)), encoder(3))
    assert not np.array_equal(encoder(3), encoder(4))
    assert not np.array_equal(encoder(None), encoder(None))
    generator = np.random.default_rng(3)
    assert not np.array_equal(encoder(generator), encoder(generator))


def test_the_global_random_state_is_neither_used_nor_changed(data):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    RACEClassifier().fit(*data).add_labels(1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_parameters_can_be_read_set_and_cloned(data):
    model = RACEClassifier(
        n_components=3, learner=SGDClassifier(alpha=0.1), categorical_features=CategoricalMask([3, 0])
    )
    assert model.get_params()["learner__alpha"] == 0.1
    model.set_params(learner__alpha=0.2, ridge=0.5)
    assert (model.learner.alpha, model.ridge) == (0.2, 0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'components'"):
        model.set_params(components=3)
    twin = clone(model)
    assert twin.learner is not model.learner
    assert twin.categorical_features.n_values.tolist() == [3, 0]
    fitted = RACEClassifier(projection=(np.ones((6, 1)), [0.0]), learner=NaiveBayes(smoothing=2.0)).fit(*data)
    unfitted = clone(fitted)
    assert not hasattr(unfitted, "classes_")
    assert unfitted.learner == NaiveBayes(smoothing=2.0)
    np.testing.assert_array_equal(unfitted.fit(*data).encoder_, fitted.encoder_)


def test_fit_forgets_and_partial_fit_does_not(data, bank):
    X, Y = data
    fresh = RACEClassifier(random_state=0, **bank).fit(X[:30], Y[:30])
    again = RACEClassifier(random_state=0, label_names=list("ab"), **bank)
    again.fit(np.abs(X[:, :2]), Y[:, :2]).set_params(label_names=None).fit(X[:30], Y[:30])
    np.testing.assert_array_equal(again.decision_function(X), fresh.decision_function(X))
    assert again.n_features_in_ == 5
    assert again.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    assert again.label_names_ is None
    assert again.partial_fit(X[30:], Y[30:]) is again
    assert not np.array_equal(again.decision_function(X), fresh.decision_function(X))


def test_probabilities_rise_with_scores(data, bank):
    X, Y = data
    model = RACEClassifier(random_state=0, **bank).partial_fit(X, Y, classes=[0, 1])
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    order = np.argsort(scores, axis=None)
    assert (np.diff(probabilities.ravel()[order]) >= 0).all()
    np.testing.assert_array_equal(probabilities > 0.5, scores > 0)
    assert (model.predict(X) == Y).mean() > 0.6


def test_regression_predicts_the_sign_of_its_scores(data):
    X, Y = data
    model = RACEClassifier(method="regression", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)


@pytest.mark.parametrize("method", ["classification", "regression"])
def test_pseudo_labels_that_say_nothing_mark_every_label_in_the_paper_only(data, method):
    X, Y = data
    # With these hyperplanes every pseudo label of every row is 0.
    projection = (np.zeros((6, 2)), np.full(2, -1.0 if method == "classification" else 0.0))
    default = RACEClassifier(method=method, projection=projection).fit(X, Y)
    paper = RACEClassifier.paper(method=method, projection=projection).fit(X, Y)
    assert not default.decision_function(X).any()
    assert not default.predict(X).any()
    assert paper.predict(X).all()
    assert default.set_params(zero_score="present").fit(X, Y).predict(X).all()
    assert not paper.set_params(zero_score="absent").fit(X, Y).predict(X).any()


def test_what_paper_stands_for():
    assert (
        RACEClassifier.paper().get_params()
        == RACEClassifier(learner=NaiveBayes(numeric="binned"), start="first_batch", zero_score="present").get_params()
    )
    regression = RACEClassifier.paper("regression", "adaptive", random_state=3, ridge=0.1)
    assert (regression.method, regression.encoding, regression.learner) == ("regression", "adaptive", SGD.weka())
    assert (regression.start, regression.zero_score) == ("first_batch", "present")
    assert (regression.random_state, regression.ridge) == (3, 0.1)
    assert RACEClassifier.paper(start="full").start == "full"


def test_ridge_and_forgetting_reach_the_decoder(data):
    X, Y = data
    plain, forgetful = RACEClassifier(random_state=0), RACEClassifier(random_state=0, forgetting=0.1)
    for model in (plain, forgetful):
        model.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    assert not np.allclose(plain.decoder_, forgetful.decoder_)
    ridged = RACEClassifier(random_state=0, ridge=1e6).fit(X, Y)
    assert np.abs(ridged.decoder_).max() < 1e-2 * np.abs(plain.decoder_).max()


def test_iterations_show_each_batch_again(data, bank):
    X, Y = data
    thrice = RACEClassifier(random_state=0, iterations=3, **bank).partial_fit(X, Y)
    once = RACEClassifier(random_state=0, **bank).partial_fit(X, Y).partial_fit(X, Y).partial_fit(X, Y)
    np.testing.assert_array_equal(thrice.decision_function(X), once.decision_function(X))


def test_new_values_of_nominal_features_are_taken_in(data, bank):
    X, Y = data
    later = X.copy()
    later[:5, 0] = 9
    model = RACEClassifier(categorical_features=[0], random_state=0, **bank).partial_fit(X, Y)
    assert np.isfinite(model.decision_function(later)).all()
    model.partial_fit(later, Y)
    assert np.isfinite(model.decision_function(later)).all()


def test_copies_go_their_own_ways(data, bank):
    X, Y = data
    model = RACEClassifier(random_state=0, **bank).partial_fit(X, Y)
    scores = model.decision_function(X)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.decision_function(X), scores)
        twin.partial_fit(X, 1 - Y)
        np.testing.assert_array_equal(model.decision_function(X), scores)


def test_it_works_within_scikit_learn(data):
    X, Y = data
    pipeline = make_pipeline(StandardScaler(), RACEClassifier(method="regression", learner="ridge", random_state=0))
    assert pipeline.fit(X, Y).predict(X).shape == Y.shape
    assert np.isfinite(cross_val_score(pipeline, X, Y, cv=3)).all()
    assert cross_val_score(pipeline, X, Y, cv=3, scoring="f1_micro").mean() > 0.5
    assert "RACEClassifier" in pipeline._repr_html_()


RNG = np.random.default_rng(5)
HYPERPLANES, BIAS = RNG.normal(size=(4, 3)), RNG.normal(size=3)
NEW_ROWS = RNG.normal(size=(2, 3))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("forgetting", [1.0, 0.7])
def test_growing_is_exact(data, bank, convert, forgetting):
    X, Y = data
    Y = Y.copy()
    Y[:30, 4:] = 0
    grown = RACEClassifier(projection=(HYPERPLANES, BIAS), forgetting=forgetting, **bank)
    grown.partial_fit(X[:15], convert(Y[:15, :4])).partial_fit(X[15:30], convert(Y[15:30, :4]))
    assert grown.add_labels(2, rows=NEW_ROWS) is grown
    # Adding a row a to the hyperplanes adds it to the bias too: pseudo labels of rows without the label stay.
    knew = RACEClassifier(
        projection=(np.vstack([HYPERPLANES, NEW_ROWS]), BIAS + NEW_ROWS.sum(axis=0)), forgetting=forgetting, **bank
    )
    knew.partial_fit(X[:15], convert(Y[:15])).partial_fit(X[15:30], convert(Y[15:30]))
    for _ in range(2):
        np.testing.assert_allclose(grown.encoder_, knew.encoder_)
        np.testing.assert_allclose(grown.encoder_bias_, knew.encoder_bias_)
        np.testing.assert_allclose(grown.decoder_, knew.decoder_, atol=1e-9)
        np.testing.assert_allclose(grown.decision_function(X), knew.decision_function(X), atol=1e-9)
        assert grown.predict(X).shape == (60, 6)
        assert grown.classes_.tolist() == [0, 1, 2, 3, 4, 5]
        for model in (grown, knew):
            model.partial_fit(X[30:], convert(Y[30:]))


def test_old_labels_are_predicted_as_before(data, bank):
    X, Y = data
    model = RACEClassifier(random_state=0, **bank).fit(X, Y)
    before = model.decision_function(X)
    model.add_labels(3)
    np.testing.assert_allclose(model.decision_function(X)[:, :6], before, rtol=1e-9, atol=1e-12)


def test_rows_are_drawn_alike_for_like_models(data):
    X, Y = data
    one, other = (RACEClassifier(random_state=0).fit(X, Y).add_labels(2) for _ in range(2))
    np.testing.assert_array_equal(one.encoder_, other.encoder_)
    # Whatever they have learned.
    third = RACEClassifier(random_state=0, encoding="adaptive").fit(X[::-1], Y)
    np.testing.assert_array_equal(third.add_labels(2).encoder_, other.encoder_)
    assert not np.array_equal(one.encoder_[6], one.encoder_[7])
    one.add_labels(2)
    assert not np.isin(one.encoder_[8:], one.encoder_[:8]).any()
    assert one.encoder_.shape == (10, 3)


def test_names(data):
    X, Y = data
    first, later = pd.DataFrame(Y[:, :4], columns=list("abcd")), pd.DataFrame(Y, columns=list("abcdef"))
    model = RACEClassifier(random_state=0).partial_fit(X, first).add_labels(["e", "f"])
    assert list(model.label_names_) == list("abcdef")
    model.partial_fit(X, later[list("abcdfe")])
    same = RACEClassifier(random_state=0).partial_fit(X, first).add_labels(["e", "f"])
    np.testing.assert_array_equal(same.partial_fit(X, later).predict(X), model.predict(X))
    unnamed = RACEClassifier(random_state=0).partial_fit(X, Y[:, :4]).add_labels(np.int64(2))
    assert unnamed.label_names_ is None
    assert unnamed.predict(X).shape == (len(X), 6)


@pytest.mark.parametrize(
    ("named", "new", "rows", "match"),
    [
        (False, 0, None, "new must be at least one label, got 0"),
        (False, -2, None, "new must be at least one label, got -2"),
        (True, [], None, r"new must be at least one label, got \[\]"),
        (False, 2.0, None, "new must be a whole number or a list of names, got 2.0"),
        (False, None, None, "new must be a whole number or a list of names, got None"),
        (False, True, None, "new must be at least one label, got True"),
        (True, "gh", None, "new must be a whole number or a list of names, got 'gh'"),
        (False, ["g"], None, "new must be a number, as the labels have no names"),
        (True, 2, None, "new must be names, as the model's labels have names, got 2"),
        (True, ["g", "g"], None, "new must be names that are distinct and that the model does not know yet"),
        (True, ["g", "a"], None, "new must be names that are distinct and that the model does not know yet"),
        (False, 2, np.zeros((1, 3)), r"rows must be 2 finite rows of 3 numbers, got \(1, 3\)"),
        (False, 2, np.zeros((2, 2)), "rows must be 2 finite rows of 3 numbers"),
        (False, 1, np.zeros(3), "rows must be a matrix of finite numbers"),
        (False, 1, [[0, np.nan, 0]], "rows must be a matrix of finite numbers"),
        (True, ["g"], [[0, np.inf, 0]], "rows must be a matrix of finite numbers"),
    ],
)
def test_what_cannot_be_added(data, named, new, rows, match):
    X, Y = data
    model = RACEClassifier(random_state=0, label_names=list("abcdef") if named else None).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=match):
        model.add_labels(new, rows=rows)
    assert list(vars(model)) == list(before)
    assert all(vars(model)[name] is value for name, value in before.items())


def test_given_rows_are_not_kept_hold_of(data):
    rows = NEW_ROWS.copy()
    model = RACEClassifier(random_state=0).fit(*data).add_labels(2, rows=rows)
    rows[:] = 7
    np.testing.assert_array_equal(model.encoder_[6:], NEW_ROWS)


N_ROWS, N_LABELS, N_COMPONENTS, PER_ROW = 2000, 100_000, 17, 5


def sparse_labels(rng, n):
    labels = rng.integers(0, N_LABELS, size=(n, PER_ROW)).ravel()
    rows = np.repeat(np.arange(n), PER_ROW)
    Y = scipy.sparse.csr_array((np.ones(n * PER_ROW), (rows, labels)), shape=(n, N_LABELS))
    Y.data[:] = 1.0
    return Y


@pytest.mark.parametrize("method", ["classification", "regression"])
@pytest.mark.parametrize("encoding", ["fixed", "adaptive"])
def test_learning_allocates_no_array_of_rows_by_labels(method, encoding):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(N_ROWS, 10)), sparse_labels(rng, N_ROWS)
    model = RACEClassifier(method=method, encoding=encoding, random_state=0)

    def learn():
        model.partial_fit(X, Y)
        model.partial_fit(X, Y)

    # One byte a cell would be 200 MB. The hyperplanes, with what drawing them needs, are 14 MB a few times over.
    assert peak_of(learn) < N_ROWS * N_LABELS / 2
    assert model.decoder_.shape == (N_COMPONENTS, N_LABELS)


def test_small_batch_allocates_no_array_of_all_labels():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(40, 10)), sparse_labels(rng, 40)
    model = RACEClassifier(random_state=0).partial_fit(X, Y)

    def learn():
        # Few rows, as what waits of each to be added up takes a kilobyte or two.
        for i in range(10):
            model.partial_fit(X[i : i + 1], Y[i : i + 1])

    assert peak_of(learn) < N_LABELS


def test_the_decoder_is_solved_only_when_somebody_decodes(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.random((90, 4)), (rng.random((90, 12)) < 0.3).astype(int)
    batches = [slice(start, start + 30) for start in (0, 30, 60)]
    solved = []
    solve = decoder.solve

    def counted(*arguments):
        solved.append(1)
        return solve(*arguments)

    monkeypatch.setattr(decoder, "solve", counted)
    late, early = RACEClassifier(random_state=0), RACEClassifier(random_state=0)
    for rows in batches:
        late.partial_fit(X[rows], Y[rows])
    assert not solved
    scores = late.decision_function(X)
    late.predict(X)
    assert len(solved) == 1
    for rows in batches:
        early.partial_fit(X[rows], Y[rows]).predict(X)
    assert len(solved) == 4
    np.testing.assert_array_equal(scores, early.decision_function(X))
