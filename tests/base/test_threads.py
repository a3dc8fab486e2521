"""Threads: any number may predict while one learns, learners wait for one another, and no row is lost."""

from __future__ import annotations

import copy
import itertools
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.models import ONLINE_MODELS
from scipy import sparse
from sklearn.base import clone

import labelrace
from labelrace import RACEClassifier

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 6)), (RNG.random((60, 5)) < 0.3).astype(float)
ONLINE = [name for name in ONLINE_MODELS if "reg" not in name]
# They keep windows of rows, or draw how often each row counts.
WITHOUT_COUNTS = ("mbr-chunks", "mwc", "eaht")


@pytest.fixture(autouse=True)
def short_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def while_running(work, watched, times=30):
    """Call `watched` so often in each of two threads, while a third one works; all raise what they find."""
    with ThreadPoolExecutor(3) as pool:
        watching = [pool.submit(lambda: [watched() for _ in range(times)]) for _ in range(2)]
        working = pool.submit(work_until, watching, work)
        for one in (*watching, working):
            one.result()


def work_until(watching, work):
    while not all(one.done() for one in watching):
        work()


@pytest.mark.parametrize("name", ONLINE)
def test_predicting_while_one_learns(name):
    model = labelrace.make_model(name).fit(X, Y)

    def predict():
        assert model.predict(X[:2]).shape == (2, 5)
        assert np.isfinite(model.predict_proba(X[:2])).all()
        assert 0 <= model.score(X[:5], Y[:5]) <= 1

    while_running(lambda: model.partial_fit(X, Y), predict)


@pytest.mark.parametrize("name", ONLINE)
def test_predicting_while_batches_are_refused(name):
    model = labelrace.make_model(name).fit(X, Y)
    expected = model.decision_function(X[:2])

    def refused():
        with pytest.raises(ValueError, match="y must hold 0 and 1"):
            model.partial_fit(X, 2 * Y)

    def predict():
        np.testing.assert_array_equal(model.decision_function(X[:2]), expected)

    while_running(refused, predict, 100)


def test_predicting_while_labels_and_features_appear():
    """The batches are as wide as the model is at the moment; a score is of one moment, too."""
    model = RACEClassifier(random_state=0).fit(sparse.csr_array(X), Y)
    widths, wide = iter(range(6, 10**6)), sparse.csr_array(np.tile(X, 7))

    def learn():
        width = min(next(widths), 40)
        model.partial_fit(wide[:, : width + 2], np.tile(Y, 9)[:, :width])

    def predict():
        assert model.predict(wide).shape[1] >= 5
        assert model.score(wide, np.tile(Y, 9)) >= 0

    while_running(learn, predict)


@pytest.mark.parametrize("name", [name for name in ONLINE if name not in WITHOUT_COUNTS])
def test_no_row_of_several_learners_is_lost(name):
    model, alone = (labelrace.make_model(name).fit(X, Y) for _ in range(2))
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(model.partial_fit, X[:7], Y[:7]) for _ in range(40)]
    assert all(one.result() is model for one in done)
    for _ in range(40):
        alone.partial_fit(X[:7], Y[:7])
    assert n_rows(model) == n_rows(alone) > n_rows(labelrace.make_model(name).fit(X, Y))


def n_rows(model):
    """Find how many rows a state has counted, wherever it does so."""

    def counts(part):
        for name, value in part._asdict().items() if hasattr(part, "_asdict") else ():
            if name in ("rows", "n_rows", "n") and np.size(value):
                yield float(np.max(value))
            yield from counts(value)

    return max(counts(model._fitted.state), default=None)


def test_fit_takes_the_place_at_once():
    """Who predicts during a fit sees the old model or the new one, both whole."""
    model = RACEClassifier(random_state=0).fit(X, Y)
    turns = itertools.count()

    def fit():
        turn = next(turns)
        model.fit(X[:, : 6 - turn % 2], Y[:, : 5 - turn % 2])

    def predict():
        fitted = model._fitted
        assert (fitted.schema.n_features, fitted.schema.n_labels) in ((6, 5), (5, 4))
        assert fitted.derived.beta.shape[1] == fitted.schema.n_labels

    while_running(fit, predict, 100)


def test_merging_while_both_learn():
    one, other = (RACEClassifier(random_state=0).fit(X, Y) for _ in range(2))
    with ThreadPoolExecutor(3) as pool:
        work = [pool.submit(one.partial_fit, X[:5], Y[:5]) for _ in range(20)]
        work += [pool.submit(one.merge, other) for _ in range(5)]
    assert all(job.result() is one for job in work)
    assert n_rows(one) == 60 + 20 * 5 + 5 * 60


def test_waiting_rows_and_several_threads():
    delayed = labelrace.DelayedLabels(labelrace.make_model("obr").fit(X, Y), max_rows=10_000)

    def turn(number):
        ids = [(number, index) for index in range(5)]
        delayed.predict(X[:5], ids)
        assert set(ids) <= set(delayed.pending_ids)
        delayed.learn(ids[:3], Y[:3])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(turn, range(30)))
    assert n_rows(delayed.model) == 60 + 30 * 3
    assert set(delayed.pending_ids) == {(number, index) for number in range(30) for index in (3, 4)}


def test_copies_have_locks_of_their_own():
    before = threading.active_count()
    model = RACEClassifier(random_state=0).fit(X, Y)
    delayed = labelrace.DelayedLabels(model)
    for made in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model)):
        assert made._writers is not model._writers
        assert made.partial_fit(X, Y).is_fitted
    for made in (copy.deepcopy(delayed), pickle.loads(pickle.dumps(delayed))):
        assert made._writers is not delayed._writers
    assert threading.active_count() == before
