"""Labels that appear later: the model is the one that knew them, always absent, from the start."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from labelrace import RACEClassifier

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(4, 3)), RNG.normal(size=3)
ROWS = RNG.normal(size=(2, 3))


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("forgetting", [1.0, 0.7])
def test_growing_is_exact(data, bank, convert, forgetting):
    X, Y = data
    Y = Y.copy()
    Y[:30, 4:] = 0
    grown = RACEClassifier(projection=(A, B), forgetting=forgetting, **bank)
    grown.partial_fit(X[:15], convert(Y[:15, :4])).partial_fit(X[15:30], convert(Y[15:30, :4]))
    assert grown.add_labels(2, rows=ROWS) is grown
    # Adding a row a to the hyperplanes adds it to the bias too: pseudo labels of rows without the label stay.
    knew = RACEClassifier(projection=(np.vstack([A, ROWS]), B + ROWS.sum(axis=0)), forgetting=forgetting, **bank)
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


def test_adaptive_models_grow_too(data):
    X, Y = data
    model = RACEClassifier(encoding="adaptive", random_state=0).partial_fit(X, Y[:, :5]).partial_fit(X, Y[:, :5])
    model.add_labels(1).partial_fit(X, Y).partial_fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.decoder_.shape == (3, 6)


def test_names(data):
    X, Y = data
    first, later = pd.DataFrame(Y[:, :4], columns=list("abcd")), pd.DataFrame(Y, columns=list("abcdef"))
    model = RACEClassifier(random_state=0).partial_fit(X, first).add_labels(["e", "f"])
    assert list(model.label_names_) == list("abcdef")
    model.partial_fit(X, later[list("abcdfe")])
    unnamed = RACEClassifier(random_state=0).partial_fit(X, Y[:, :4]).add_labels(np.int64(2))
    assert unnamed.label_names_ is None
    np.testing.assert_array_equal(unnamed.partial_fit(X, Y).predict(X), model.predict(X))


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
        (False, 1, np.zeros(3), "rows must be 1 finite rows of 3 numbers"),
        (False, 1, [[0, np.nan, 0]], "rows must be 1 finite rows"),
        (True, ["g"], [[0, np.inf, 0]], "rows must be 1 finite rows"),
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
    rows = ROWS.copy()
    model = RACEClassifier(random_state=0).fit(*data).add_labels(2, rows=rows)
    rows[:] = 7
    np.testing.assert_array_equal(model.encoder_[6:], ROWS)
