"""Checks of what a model promises whatever the data: results, memory, refused batches, files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from labelrace.base import state_file as persistence
from labelrace.checks.model_under_test import (
    Batch,
    ModelUnderTest,
    Results,
    dense,
    require,
    require_close,
    require_equal,
    require_well_formed,
    results,
    sample,
)
from labelrace.typing import Array


def check_not_fitted(under_test: ModelUnderTest) -> None:
    """Check that a model that has learned nothing refuses to predict.

    It does not even know how many labels there are: whatever it returned would be wrong. scikit-learn's
    ``NotFittedError`` is the error to raise; any other ``ValueError`` or ``AttributeError`` is accepted, too.
    """
    for method in ("predict", "decision_function"):
        model = under_test.fresh()
        try:
            getattr(model, method)(sample().rows)
        except (ValueError, AttributeError):
            continue
        raise AssertionError(f"{method} returned something before anything was learned, instead of a NotFittedError")


def check_outputs(under_test: ModelUnderTest) -> None:
    """Check for arrays of shape (rows, labels): 0 and 1 from `predict`, finite floats from `decision_function`.

    Measures, rankings and everything else rely on it. Scores need not be higher for the labels that are predicted: a
    model may decide by other means than it ranks by.
    """
    first, second, rows = sample()
    model = under_test.fresh()
    for X, Y in (first, second):
        under_test.learn(model, X, Y)
        for queries in (rows, rows[:1]):
            require_well_formed(results(model, queries), len(queries), Y.shape[1])
            for method, kinds in (("predict", "biuf"), ("decision_function", "f")):
                array = getattr(model, method)(queries)
                require(isinstance(array, np.ndarray), f"{method} returned a {type(array).__name__}, not an array")
                require(array.dtype.kind in kinds, f"{method} returned an array of type {array.dtype}")


def check_purity(under_test: ModelUnderTest) -> None:
    """Check that predicting changes nothing: neither later predictions nor what is learned afterwards.

    A service predicts between batches any number of times; a prequential test predicts before it learns. Neither
    may change the model.
    """
    first, second, rows = sample()
    model, twin = under_test.fitted(first), under_test.fitted(first)
    before = results(model, rows)
    # Each method right after the other one had other rows: nothing may be left over from them.
    model.decision_function(rows[::-1])
    predicted = np.array(dense(model.predict(rows)))
    model.predict(rows[::-1])
    again = Results(predicted, np.array(model.decision_function(rows)))
    require_equal(again, before, "when it predicts the same rows again, after other rows")
    for each in (model, twin):
        under_test.learn(each, *second)
    require_equal(results(model, rows), results(twin, rows), "when it learns another batch after it predicted")


def check_determinism(under_test: ModelUnderTest) -> None:
    """Check for the same results from the same data and the same ``random_state``; 0 is a seed, too.

    Without it, experiments cannot be repeated. A model without a ``random_state`` must not draw random numbers.
    """
    first, second, rows = sample()
    for seed in (0, 1):
        one, other = (results(under_test.fitted(first, second, seed=seed), rows) for _ in range(2))
        require_equal(one, other, f"when learning twice, with random_state={seed} if it has one")


def check_aliasing(under_test: ModelUnderTest) -> None:
    """Check that arrays that are passed stay the caller's: the model neither writes into them nor reads them later.

    Streams reuse their buffers. A model that keeps a reference instead of a copy changes when the next batch is read.
    """
    _check_aliasing(under_test, np.array)


def check_sparse_aliasing(under_test: ModelUnderTest) -> None:
    """Check the same with sparse arrays.

    They are often converted without a copy. That a model takes them at all is another check.
    """
    sparse, (X, Y) = scipy.sparse.csr_array, sample().first
    try:
        under_test.fitted((sparse(X[:2]), sparse(Y[:2])))
    except (TypeError, ValueError) as refusal:
        raise SkipTest(f"it takes no sparse arrays: {refusal}") from refusal
    _check_aliasing(under_test, sparse)


def _check_aliasing(under_test: ModelUnderTest, form: Callable[[Array], Any]) -> None:
    """Change the batches after they were learned, and compare with a model whose batches stayed."""
    first, second, rows = sample()
    model, twin = under_test.fresh(), under_test.fresh()
    for X, Y in (first, second):
        given = form(X), form(Y)
        under_test.learn(model, *given)
        for array, original, name in zip(given, (X, Y), "XY", strict=True):
            require(np.array_equal(dense(array), original), f"learning changed the caller's {name}")
            # Labels stay 0 or 1, so that a model that reads them again raises no error.
            values = array.data if scipy.sparse.issparse(array) else array
            values[...] = 1 - values
        under_test.learn(twin, form(X), form(Y))
    queries = form(rows)
    actual = results(model, queries)
    require(np.array_equal(dense(queries), rows), "predicting changed the caller's X")
    require_equal(actual, results(twin, form(rows)), "when the caller changes X and Y after they were learned")


def check_returned_arrays(under_test: ModelUnderTest) -> None:
    """Check that returned arrays are the caller's: the model neither writes into them later nor reads from them.

    Callers collect scores over batches and apply thresholds in place; a model that returned an array of its own would
    change the former, and be changed by the latter.
    """
    first, _, rows = sample()
    model, twin = under_test.fitted(first), under_test.fitted(first)
    for array in (model.predict(rows), model.decision_function(rows)):
        # An array that cannot be written into is safe.
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = array == 0
    results(twin, rows)
    require_equal(results(model, rows), results(twin, rows), "when the caller changes what was returned")
    returned = Results(*map(np.asarray, (model.predict(rows), model.decision_function(rows))))
    before = Results(*map(np.array, returned))
    results(model, rows[::-1])
    require_equal(returned, before, "in what was returned, before and after other rows are predicted")


def check_refused_batches(under_test: ModelUnderTest) -> None:
    """Check for a ``ValueError`` for a batch that cannot be learned, after which the model is as it was before.

    Streams have bad batches. One that is refused halfway, or learned as it is, spoils all that was learned before; one
    that is refused as a whole can be repaired or left out.
    """
    if not under_test.is_online:
        raise SkipTest("it is offline: each fit starts from the beginning")
    first, second, rows = sample()
    model, twin = under_test.fresh(), under_test.fresh()
    _require_refusal(under_test, model, "labels of 2, as its first batch,", (first[0][:, 1:], 2 * first[1]))
    for batch in (first, second):
        for each in (model, twin):
            under_test.learn(each, *batch)
        for what, wrong in _wrong_batches(*second, takes_nan=getattr(model, "supports_missing_labels", False)):
            _require_refusal(under_test, model, what, wrong)
            require_equal(results(model, rows), results(twin, rows), f"after it refused {what}")


def _wrong_batches(X: Array, Y: Array, *, takes_nan: bool) -> Iterator[tuple[str, Batch]]:
    """Make wrong batches; a wrong label is the last one, when a model that learns row by row has learned the others.

    NaN is wrong unless the model takes it for a missing label.
    """
    for wrong in (2.0, -1.0, 0.5) if takes_nan else (2.0, -1.0, 0.5, np.nan):
        labels = Y.copy()
        labels[-1, -1] = wrong
        yield f"a label of {wrong:g}", (X, labels)
    yield "one feature too many", (np.column_stack([X, X[:, 0]]), Y)
    yield "one feature too few", (X[:, 1:], Y)
    yield "one row of Y too few", (X, Y[:-1])


def _require_refusal(under_test: ModelUnderTest, model: Any, what: str, batch: Batch) -> None:
    try:
        under_test.learn(model, *batch)
    except ValueError:
        return
    raise AssertionError(f"it learned {what} instead of raising a ValueError")


def check_save_and_load(under_test: ModelUnderTest) -> None:
    """Check of a model with ``save`` that what is loaded predicts and learns the same, to the last bit.

    It is loaded by the ``load`` of its class, if there is one, or else by `labelrace.load`. A model may refuse to be
    saved, by a ``ValueError``, but must not leave a file then.
    """
    if not hasattr(under_test.model, "save"):
        raise SkipTest("it has no save")
    first, second, rows = sample()
    model, unsaved = under_test.fitted(first), under_test.fitted(first)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        try:
            model.save(path)
        except ValueError as refusal:
            require(not path.exists(), f"it refused to be saved ({refusal}), but left a file")
            raise SkipTest(f"it refuses to be saved: {refusal}") from refusal
        loaded = getattr(type(model), "load", persistence.load)(path)
    require_equal(results(loaded, rows), results(model, rows), "when it was loaded")
    require_close(results(model, rows), results(unsaved, rows), "when it was saved")
    for each in (model, loaded, unsaved):
        under_test.learn(each, *second)
    require_equal(results(loaded, rows), results(model, rows), "when it was loaded and learned another batch")
    require_close(results(model, rows), results(unsaved, rows), "when it was saved and learned another batch")


def check_merging(under_test: ModelUnderTest) -> None:
    """Check of a model with ``merge`` and ``emptied`` that an emptied copy, merged with the model, is the model again.

    Emptied copies learn parts of the data on different machines. What they learn must leave the model as it is.
    A model may refuse to be emptied, by a ``ValueError``.
    """
    if not (hasattr(under_test.model, "merge") and hasattr(under_test.model, "emptied")):
        raise SkipTest("it has no merge, or no emptied")
    if not under_test.is_online:
        raise SkipTest("it is offline: it learns all data at once")
    first, second, rows = sample()
    model = under_test.fitted(first)
    before = results(model, rows)
    try:
        part, empty = model.emptied(), model.emptied()
    except ValueError as refusal:
        raise SkipTest(f"it refuses to be emptied: {refusal}") from refusal
    under_test.learn(part, *second)
    require_equal(results(model, rows), before, "when an emptied copy of it learns")
    empty.merge(model)
    require_close(results(empty, rows), before, "when it is merged into an emptied copy of itself")
