"""Labels that come after the prediction: rows wait for them, and are learned as if they had come with them."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import labelrace
from labelrace import PLSTClassifier, RACEClassifier
from labelrace.exceptions import UnknownRowError
from labelrace.models.waiting import Waiting

FEATURES = list("vwxyz")
ONLINE = labelrace.model_names(online=True)
KINDS = {
    "dense": np.asarray,
    "sparse": sparse.csr_array,
    "frame": lambda X: pd.DataFrame(X, columns=FEATURES),
    "dicts": lambda X: [dict(zip(FEATURES, row, strict=True)) for row in X.tolist()],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ONLINE)
def test_learning_later_is_learning(data, name, kind):
    X, Y = data
    make = KINDS[kind]
    late = labelrace.make_model(name)
    late.partial_fit(make(X[:20]), Y[:20])
    prompt = copy.deepcopy(late)
    predicted = late.predict(make(X[20:40]), ids=range(20, 40))
    np.testing.assert_array_equal(predicted, prompt.predict(make(X[20:40])))
    late.predict(make(X[40:]), ids=np.arange(40, 60))
    # Neither all of them, nor in their order.
    ids = [57, 21, 33, 40, 20]
    assert late.learn(ids, Y[ids]) is late
    prompt.partial_fit(make(X[ids]), Y[ids])
    np.testing.assert_allclose(late.decision_function(make(X)), prompt.decision_function(make(X)), rtol=1e-8, atol=1e-9)
    with pytest.raises(UnknownRowError, match="no rows for the ids 57: "):
        late.learn([22, 57], Y[:2])
    late.learn([22], Y[22:23])


def test_what_was_given_is_not_kept_hold_of(data):
    X, Y = data
    for make in (np.array, sparse.csr_array):
        model = RACEClassifier(random_state=0).fit(X, Y)
        twin, given = copy.deepcopy(model), make(X)
        model.predict(given, ids=range(60))
        (given.data if sparse.issparse(given) else given)[...] = 1
        model.learn(range(60), Y)
        np.testing.assert_array_equal(model.decision_function(X), twin.partial_fit(make(X), Y).decision_function(X))


def test_rows_wait_while_labels_and_features_become_more(data):
    X, Y = data
    one, other = (RACEClassifier(random_state=0).partial_fit(sparse.csr_array(X[:20, :3]), Y[:20, :4]) for _ in "ab")
    one.predict(X[20:30, :3], ids=range(20, 30))
    one.predict(sparse.csr_array(X[30:40, :3]), ids=range(30, 40))
    for model in (one, other):
        model.partial_fit(sparse.csr_array(X[40:]), Y[40:])
    ids = [25, 35, 20]
    one.learn(ids, Y[ids])
    other.partial_fit(sparse.csr_array(np.hstack([X[ids, :3], np.zeros((3, 2))])), Y[ids])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-9)


def test_names_unknown_when_asked_are_learned_later():
    one, other = (RACEClassifier(random_state=0).partial_fit([{"a": 1}, {"b": 1}], [{"x"}, {"y"}]) for _ in "ab")
    rows = [{"a": 1, "new": 2}, {"b": 3, "newer": 1}]
    one.predict(rows[:1], ids=["first"])
    one.predict(rows[1:], ids=["second"])
    one.learn(["second", "first"], [{"z"}, {"x"}])
    other.partial_fit(rows[::-1], [{"z"}, {"x"}])
    # In the order in which they were asked about.
    assert list(one.feature_names_in_) == ["a", "b", "new", "newer"]
    np.testing.assert_allclose(one.decision_function(rows), other.decision_function(rows), rtol=1e-12)


def test_the_oldest_rows_leave(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    model.buffer_size = 10
    model.predict(X[:8], ids=range(8))
    model.predict(X[8:16], ids=range(8, 16))
    with pytest.raises(UnknownRowError, match=r"the ids 0, 1, 2, 3, 4, …: .*buffer_size"):
        model.learn(range(7), Y[:7])
    model.learn([6, 15], Y[:2])
    model.predict(X[16:60], ids=range(16, 60))
    assert len(model._waiting) == 10
    model.learn(range(50, 60), Y[50:])
    model.buffer_size = 0
    model.predict(X, ids=range(60))
    assert len(model._waiting) == 0
    assert RACEClassifier.buffer_size == 10_000


def test_an_id_that_comes_again_replaces_its_row(data):
    X, Y = data
    one, other = (RACEClassifier(random_state=0).fit(X, Y) for _ in "ab")
    one.predict(X[:3], ids=["a", "b", "a"])
    one.predict(X[5:6], ids=["b"])
    one.learn(["a", "b"], Y[:2])
    other.partial_fit(X[[2, 5]], Y[:2])
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        ("abc", "ids='abc' does not do"),
        (3, "ids=3 does not do"),
        ([1, 2], "X and ids differ in their rows: X has 3, ids has 2"),
        ([1, 2, [3]], "cannot be an id"),
        (np.eye(3), "cannot be an id"),
    ],
)
def test_what_are_no_ids(data, ids, match):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=match):
        model.predict(X[:3], ids=ids)
    assert not hasattr(model, "_waiting")


def test_a_failed_call_changes_nothing(data):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    with pytest.raises(UnknownRowError, match="1, 2: they were not predicted with ids"):
        model.learn([1, 2], Y[:2])
    model.predict(X, ids=range(60))
    before = dict(vars(model))
    for ids, labels, match in (
        ([], Y[:0], "ids is empty"),
        ([1, 1], Y[:2], "an id twice"),
        ([1, 2], Y[:1], "X and y must have the same number of rows"),
        ([1, 2], 2 * Y[:2] + 1, "y must hold 0 and 1"),
        ([1, 2], Y[:2, :3], "Y has 3 labels"),
        ([1, 99], Y[:2], "no rows for the ids 99"),
    ):
        with pytest.raises(ValueError, match=match):
            model.learn(ids, labels)
        assert all(vars(model)[name] is value for name, value in before.items())
        assert len(model._waiting) == 60
    model.buffer_size = -1
    with pytest.raises(ValueError, match="buffer_size=-1"):
        model.predict(X, ids=range(60))


def test_starting_anew_and_saving_forget_the_rows(data, tmp_path):
    X, Y = data
    model = RACEClassifier(random_state=0).fit(X, Y)
    model.predict(X, ids=range(60))
    model.save(tmp_path / "model")
    with pytest.raises(UnknownRowError):
        labelrace.load(tmp_path / "model").learn([1], Y[:1])
    with pytest.raises(ValueError, match="y must hold"):
        model.fit(X, 2 * Y)
    assert len(model._waiting) == 60
    with pytest.raises(UnknownRowError):
        model.fit(X, Y).learn([1], Y[:1])


def test_offline_models_do_not_learn_later(data):
    model = PLSTClassifier().fit(*data)
    model.predict(data[0], ids=range(60))
    with pytest.raises(NotImplementedError, match="offline"):
        model.learn([1], data[1][:1])


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 12), min_size=1, max_size=8)), max_size=25),
    size=st.integers(0, 9),
)
def test_the_buffer_is_the_newest_rows(steps, size):
    """Against a plain dict, row by row."""
    waiting, plain, value = Waiting(), {}, 0.0
    for keeps, ids in steps:
        if keeps:
            rows = value + np.arange(len(ids), dtype=float)[:, None]
            value += len(ids)
            waiting.keep(ids, rows, size)
            plain |= dict(zip(ids, rows[:, 0], strict=True))
            # As old as its batch, and in it as old as its first place there.
            for identity in dict.fromkeys(ids):
                plain[identity] = plain.pop(identity)
            plain = dict(list(plain.items())[max(0, len(plain) - size) :])
        else:
            waiting.drop(ids)
            plain = {identity: row for identity, row in plain.items() if identity not in ids}
        assert len(waiting) == len(plain)
        if plain:
            found = waiting.find(list(plain), n_features=2, names=None)
            np.testing.assert_array_equal(found[:, 0], list(plain.values()))
        # Batches that nobody waits in are gone, and others are at least half full.
        held = sum(len(batch.ids) for batch in waiting._batches.values())
        assert held <= 2 * len(plain)


@pytest.mark.parametrize("name", labelrace.model_names())
def test_as_many_labels_as_are_asked_for(data, name):
    X, Y = data
    model = labelrace.make_model(name).fit(X, Y)
    scores = model.decision_function(X)
    for count in (1, 3, np.int64(5), 6, 100):
        best = model.predict(X, top=count)
        assert best.dtype == np.int8
        assert (best.sum(axis=1) == min(count, 6)).all()
        # None that is left out has a higher score than one that is not.
        left_out = np.where(best == 1, -np.inf, scores).max(axis=1)
        assert (np.where(best == 1, scores, np.inf).min(axis=1) >= left_out).all()
    for wrong in (0, -1, 1.0, True, "2"):
        with pytest.raises(ValueError, match=r"top=.* does not do"):
            model.predict(X, top=wrong)
