"""An interrupt at any line leaves a model whole, and rows learned or waiting, never both."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from helpers import interrupts
from scipy import sparse

import labelrace
from labelrace import RACEClassifier

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)), (RNG.random((40, 5)) < 0.3).astype(float)
# All of them would take many minutes; test_default_interrupted.py has the default.
MODELS = ("race-cls-adaptive", "oecc", "majority")


def fitted(name="race-cls-fixed", **parameters):
    return labelrace.make_model(name, **parameters).fit(X, Y)


def usable_by_another_thread(model):
    """Let another thread learn a batch: it would wait for ever for a lock that an interrupt left behind."""
    thread = threading.Thread(target=model.partial_fit, args=(X, Y), daemon=True)
    thread.start()
    thread.join(60)
    return not thread.is_alive()


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", MODELS)
def test_partial_fit(name, convert):
    model = fitted(name)
    start, before, late = model._fitted, model.decision_function(X), np.hstack([Y, 1 - Y[:, :1]])
    expected = model.partial_fit(convert(X), convert(late)).decision_function(X)

    def check(model):
        found = model.decision_function(X)
        # All was learned, or nothing.
        np.testing.assert_allclose(found, before if found.shape == before.shape else expected, atol=1e-6)

    def again():
        model._fitted = start
        return model

    assert interrupts.each_line(again, lambda model: model.partial_fit(convert(X), convert(late)), check) > 50
    assert usable_by_another_thread(again())


def test_a_refused_batch():
    model = fitted()
    before = dict(vars(model))

    def refused(model):
        with pytest.raises(ValueError, match="y must hold 0 and 1"):
            model.partial_fit(X, 2 * Y)

    def check(model):
        assert model._fitted is before["_fitted"]
        assert vars(model).keys() == before.keys()

    assert interrupts.each_line(lambda: model, refused, check) > 20


def test_merge_and_add_labels():
    one, other = (RACEClassifier(random_state=0).fit(X[half], Y[half]) for half in (slice(20), slice(20, 40)))
    before, rows = one._fitted, {20.0, 40.0}

    def again():
        one._fitted = before
        return one

    def check(model):
        assert model._fitted.state.decoder.rows in rows
        assert model.decision_function(X).shape[1] == model._fitted.schema.n_labels
        assert other._fitted.state.decoder.rows == 20

    assert interrupts.each_line(again, lambda model: model.merge(other), check) > 20
    assert interrupts.each_line(again, lambda model: model.add_labels(2), check) > 10


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of a file that was not closed
def test_save(tmp_path):
    model, other, path = fitted(), fitted("obr"), tmp_path / "model"
    other.save(path)
    before, fitted_before = path.read_bytes(), model._fitted
    model.save(tmp_path / "new")
    after = (tmp_path / "new").read_bytes()
    (tmp_path / "new").unlink()

    def again():
        path.write_bytes(before)
        return model

    def check(model):
        assert model._fitted is fitted_before
        assert path.read_bytes() in (before, after)

    assert interrupts.each_line(again, lambda model: model.save(path), check) > 50
    # What an interrupt while tidying up left is gone after the next file.
    model.save(path)
    assert list(tmp_path.iterdir()) == [path]


def waiting(name="race-cls-fixed"):
    delayed = labelrace.DelayedLabels(fitted(name), max_rows=20)
    delayed.predict(X[:8], list(range(8)))
    return delayed


def kept_rows(delayed, ids):
    """Return pending rows, in the order of their ids."""
    parts, order = delayed._rows.find(ids)
    return np.concatenate([part.matrix for part in parts])[order]


@pytest.mark.parametrize("name", ["race-cls-fixed", "obr"])
def test_learn(name):
    def n_learned(delayed):
        state = delayed.model._fitted.state
        return int(state.learners.rows[-1]) - 40

    def check(delayed):
        left = set(range(8)) - set(delayed.pending_ids)
        assert (n_learned(delayed), left) in ((0, set()), (5, {1, 2, 3, 4, 6}))
        # What waits is still what it was.
        rows = kept_rows(delayed, delayed.pending_ids)
        np.testing.assert_array_equal(rows, X[delayed.pending_ids])

    ids = [4, 1, 3, 2, 6]
    assert interrupts.each_line(lambda: waiting(name), lambda delayed: delayed.learn(ids, Y[ids]), check) > 50


def test_predicting_with_ids():
    """Replaced, new and cut down rows: whatever is pending is one of those that came under its id, and complete."""

    def call(delayed):
        delayed.predict(X[20:36], [*range(2), *range(20, 34)])

    def check(delayed):
        ids = delayed.pending_ids
        assert len(set(ids)) == len(ids) <= 36
        # The oldest leave when the new ones are there.
        assert set(range(2, 8)) <= set(ids) or {*range(2), *range(20, 34)} <= set(ids)
        found = kept_rows(delayed, ids)
        for row, identity in zip(found, ids, strict=True):
            old, new = X[identity] if identity < 8 else None, X[20 + (identity if identity < 2 else identity - 18)]
            assert any(np.array_equal(row, one) for one in (old, new) if one is not None)
        delayed.learn(ids, Y[: len(ids)])
        assert delayed.pending_ids == []
        assert not len(delayed._rows)

    assert interrupts.each_line(waiting, call, check) > 50


class Foreign:
    """A model of another library, which is interrupted in the middle of learning."""

    def __init__(self, error):
        self.error, self.learned = error, 0

    def predict(self, X):
        return np.zeros((len(X), 1))

    def partial_fit(self, X, y):
        self.learned += len(X)
        raise self.error


def test_a_model_of_another_library_that_is_interrupted_may_have_learned():
    delayed = labelrace.DelayedLabels(Foreign(KeyboardInterrupt))
    delayed.predict(X[:3], ["a", "b", "c"])
    with pytest.raises(KeyboardInterrupt):
        delayed.learn(["a", "b"], Y[:2])
    assert delayed.pending_ids == ["c"]
    delayed.model.error = ValueError
    with pytest.raises(ValueError):
        delayed.learn(["c"], Y[:1])
    assert delayed.pending_ids == ["c"]
