"""Failures and interrupts at every line of learning leave the default model as it was."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import labelrace
from labelrace import LabelRaceClassifier

HERE = str(Path(labelrace.__file__).parent)


class Interrupted(BaseException):
    """What is thrown in."""


def rows(seed, n, *, sparse):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 40))
    if sparse:
        X *= rng.random(X.shape) < 0.1
    Y = (X @ np.random.default_rng(0).normal(size=(40, 5)) > 0.5).astype(float)
    return (scipy.sparse.csr_array(X) if sparse else X), Y


def model_of(sparse):
    return LabelRaceClassifier(n_random_features=3, random_state=0).partial_fit(*rows(1, 520, sparse=sparse))


def throw_at(index, error):
    """Make a trace function that throws at a line event within the package."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line":
            count += 1
            if count == index:
                raise error
        return trace

    return trace


@pytest.mark.parametrize("error", [Interrupted, ValueError])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_that_is_interrupted_changes_nothing(sparse, error):
    """Wherever it is thrown out, the model predicts as before and goes on like one that was never interrupted."""
    X, Y = rows(2, 40, sparse=sparse)
    queries, _ = rows(3, 30, sparse=sparse)
    model = model_of(sparse)
    before = model.decision_function(queries)
    expected = model_of(sparse).partial_fit(X, Y).decision_function(queries)
    index = thrown = 0
    step = 1 if error is Interrupted else 3
    while True:
        index += step
        own = sys.gettrace()
        sys.settrace(throw_at(index, error))
        try:
            model.partial_fit(X, Y)
        except error:
            thrown += 1
        else:
            break
        finally:
            sys.settrace(own)
        if not np.array_equal(model.decision_function(queries), before):
            # The last line of all: nothing but the way back was left.
            np.testing.assert_array_equal(model.decision_function(queries), expected)
            model = model_of(sparse)
    assert thrown > 100 // step
    np.testing.assert_array_equal(model.decision_function(queries), expected)
    # A lock that was left behind lets its own thread in, but no other.
    other = threading.Thread(target=model.partial_fit, args=(X, Y), daemon=True)
    other.start()
    other.join(timeout=60)
    assert not other.is_alive()


def test_threads_that_predict_see_whole_models():
    """While one thread learns, what others predict is what one of the models before or after a batch predicts."""
    batches = [rows(seed, 60, sparse=True) for seed in range(10, 40)]
    queries, _ = rows(3, 30, sparse=True)
    model, twin = model_of(True), model_of(True)
    allowed = [twin.decision_function(queries)]
    for X, Y in batches:
        allowed.append(twin.partial_fit(X, Y).decision_function(queries))
    seen, stop = [], threading.Event()

    def predict():
        while not stop.is_set():
            seen.append(model.decision_function(queries))

    threads = [threading.Thread(target=predict) for _ in range(2)]
    for thread in threads:
        thread.start()
    for X, Y in batches:
        model.partial_fit(X, Y)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(seen) > 5
    for scores in seen:
        assert min(np.abs(scores - each).max() for each in allowed) < 1e-6
