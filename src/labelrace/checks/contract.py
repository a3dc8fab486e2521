"""Checks of what a model promises its user, whatever the data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from labelrace.checks.subject import (
    Batch,
    Results,
    Subject,
    demand,
    demand_close,
    demand_equal,
    demand_well_formed,
    results,
    sample,
)
from labelrace.models import persistence
from labelrace.typing import Array

__all__ = [
    "check_aliasing",
    "check_determinism",
    "check_not_fitted",
    "check_outputs",
    "check_purity",
    "check_refused_batches",
    "check_returned_arrays",
    "check_save_and_load",
    "check_sparse_aliasing",
]


def check_not_fitted(subject: Subject) -> None:
    """Demand that a model that has learned nothing refuses to predict.

    It knows not even how many labels there are: whatever it returned would be wrong. scikit-learn's
    ``NotFittedError`` is the error to raise; any ``ValueError`` or ``AttributeError``, which it is both, will do.
    """
    for method in ("predict", "decision_function"):
        model = subject.fresh()
        try:
            getattr(model, method)(sample().rows)
        except (ValueError, AttributeError):
            continue
        raise AssertionError(f"{method} returned something before anything was learned, instead of a NotFittedError")


def check_outputs(subject: Subject) -> None:
    """Demand arrays of shape (rows, labels): 0 and 1 from `predict`, finite floats from `decision_function`.

    Measures, rankings and everything else downstream compute with them unseen. Scores need not be higher for the
    labels that are predicted: a model may decide by other means than it ranks by.
    """
    first, second, rows = sample()
    model = subject.fresh()
    for X, Y in (first, second):
        subject.learn(model, X, Y)
        for asked in (rows, rows[:1]):
            demand_well_formed(results(model, asked), len(asked), Y.shape[1])
            _demand_type("predict", model.predict(asked), "biuf")
            _demand_type("decision_function", model.decision_function(asked), "f")


def _demand_type(method: str, array: Any, kinds: str) -> None:
    demand(isinstance(array, np.ndarray), f"{method} returned a {type(array).__name__}, not an array")
    demand(array.dtype.kind in kinds, f"{method} returned an array of type {array.dtype}")


def check_purity(subject: Subject) -> None:
    """Demand that asking changes nothing: not the next answer, whatever is asked in between, and not what is learned.

    A service answers between batches as often as it is asked; a prequential test asks before it learns. Neither may
    make another model of it.
    """
    first, second, rows = sample()
    asked, unasked = subject.learned(first), subject.learned(first)
    before = results(asked, rows)
    # Each method right after the other one was asked about other rows: nothing may be left over from them.
    asked.decision_function(rows[::-1])
    predicted = np.array(asked.predict(rows))
    asked.predict(rows[::-1])
    again = Results(predicted, np.array(asked.decision_function(rows)))
    demand_equal(again, before, "when asked again, after other rows and in another order")
    for model in (asked, unasked):
        subject.learn(model, *second)
    demand_equal(results(asked, rows), results(unasked, rows), "when learning on after it predicted")


def check_determinism(subject: Subject) -> None:
    """Demand the same results from the same data and the same ``random_state``; 0 is a seed, too.

    Experiments are repeated, and faults found, only so. A model without a ``random_state`` must not draw anything.
    """
    first, second, rows = sample()
    for seed in (0, 1):
        one, other = (results(subject.learned(first, second, seed=seed), rows) for _ in range(2))
        demand_equal(one, other, f"when learning twice, with random_state={seed} if it has one")


def check_aliasing(subject: Subject) -> None:
    """Demand that arrays given stay the caller's: the model neither writes into them nor looks at them again.

    Streams reuse their buffers. A model that keeps a reference instead of a copy changes when the next batch is read.
    """
    _check_aliasing(subject, np.array)


def check_sparse_aliasing(subject: Subject) -> None:
    """Demand the same of sparse arrays.

    They are wrapped and converted on the way in, often without a copy. That a model takes them at all is another
    check's demand.
    """
    sparse, (X, Y) = scipy.sparse.csr_array, sample().first
    try:
        subject.learned((sparse(X[:2]), sparse(Y[:2])))
    except (TypeError, ValueError) as refusal:
        raise SkipTest(f"it takes no sparse arrays: {refusal}") from refusal
    _check_aliasing(subject, sparse)


def _check_aliasing(subject: Subject, form: Callable[[Array], Any]) -> None:
    """Change the batches after they were learned, and compare with a model whose batches stayed."""
    first, second, rows = sample()
    model, twin = subject.fresh(), subject.fresh()
    for X, Y in (first, second):
        given = form(X), form(Y)
        subject.learn(model, *given)
        for array, original, name in zip(given, (X, Y), "XY", strict=True):
            demand(_is_same(array, original), f"learning changed the caller's {name}")
            _scribble(array)
        subject.learn(twin, form(X), form(Y))
    asked = form(rows)
    found = results(model, asked)
    demand(_is_same(asked, rows), "predicting changed the caller's X")
    demand_equal(found, results(twin, form(rows)), "when the caller changes X and Y after they were learned")


def _is_same(array: Any, original: Array) -> bool:
    return np.array_equal(array.toarray() if scipy.sparse.issparse(array) else array, original)


def _scribble(array: Any) -> None:
    """Change every value in place; labels stay labels, so that a model that looks again does not stumble."""
    values = array.data if scipy.sparse.issparse(array) else array
    values[...] = 1 - values


def check_returned_arrays(subject: Subject) -> None:
    """Demand that arrays returned are the caller's: the model does not write into them later, nor read from them.

    Scores are collected over batches, thresholds applied in place; a model that returned memory of its own would change
    the former, and be changed by the latter.
    """
    first, _, rows = sample()
    model, twin = subject.learned(first), subject.learned(first)
    for array in (model.predict(rows), model.decision_function(rows)):
        # What cannot be written into does no harm.
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = array == 0
    results(twin, rows)
    demand_equal(results(model, rows), results(twin, rows), "when the caller changes what was returned")
    returned = Results(*map(np.asarray, (model.predict(rows), model.decision_function(rows))))
    before = Results(*map(np.array, returned))
    results(model, rows[::-1])
    demand_equal(returned, before, "in what was returned, before and after other rows are asked about")


def check_refused_batches(subject: Subject) -> None:
    """Demand a ``ValueError`` for a batch that cannot be learned, and the model as it was before.

    Streams hold bad batches. One that is refused halfway, or learned as nonsense, spoils a model that took months; one
    that is refused as a whole can be repaired or left out.
    """
    if not subject.is_online:
        raise SkipTest("it is offline: fit starts anew, and there is nothing to be spoiled")
    first, second, rows = sample()
    model, twin = subject.fresh(), subject.fresh()
    _demand_refusal(subject, model, "labels of 2, as its first batch,", (first[0][:, 1:], 2 * first[1]))
    for batch in (first, second):
        for each in (model, twin):
            subject.learn(each, *batch)
        for what, wrong in _wrong_batches(*second, takes_nan=getattr(model, "supports_missing_labels", False)):
            _demand_refusal(subject, model, what, wrong)
            demand_equal(results(model, rows), results(twin, rows), f"after it refused {what}")


def _wrong_batches(X: Array, Y: Array, *, takes_nan: bool) -> Iterator[tuple[str, Batch]]:
    """Spoil a batch; wrong labels come last in it, when a model that learns row by row has learned the others.

    NaN is wrong unless the model takes it for a label that is not known.
    """
    for wrong in (2.0, -1.0, 0.5) if takes_nan else (2.0, -1.0, 0.5, np.nan):
        labels = Y.copy()
        labels[-1, -1] = wrong
        yield f"a label of {wrong:g}", (X, labels)
    yield "one feature too many", (np.column_stack([X, X[:, 0]]), Y)
    yield "one feature too few", (X[:, 1:], Y)
    yield "one row of Y too few", (X, Y[:-1])


def _demand_refusal(subject: Subject, model: Any, what: str, batch: Batch) -> None:
    try:
        subject.learn(model, *batch)
    except ValueError:
        return
    raise AssertionError(f"it learned {what} instead of raising a ValueError")


def check_save_and_load(subject: Subject) -> None:
    """Demand of a model with ``save`` that what is loaded is the same, and learns on the same; to the last bit.

    It is read by the ``load`` of its class, if there is one, or else by `labelrace.load`. A model may refuse to be
    saved, by a ``ValueError``, but must not leave a file then.
    """
    if not hasattr(subject.model, "save"):
        raise SkipTest("it has no save")
    first, second, rows = sample()
    model, unsaved = subject.learned(first), subject.learned(first)
    with tempfile.TemporaryDirectory() as folder:
        loaded = _save_and_load(model, Path(folder, "model"))
    demand_equal(results(loaded, rows), results(model, rows), "when it was loaded")
    demand_close(results(model, rows), results(unsaved, rows), "when it was saved")
    for each in (model, loaded, unsaved):
        subject.learn(each, *second)
    demand_equal(results(loaded, rows), results(model, rows), "when it was loaded and learned on")
    demand_close(results(model, rows), results(unsaved, rows), "when it was saved and learned on")


def _save_and_load(model: Any, path: Path) -> Any:
    try:
        model.save(path)
    except ValueError as refusal:
        demand(not path.exists(), f"it refused to be saved ({refusal}), but left a file")
        raise SkipTest(f"it refuses to be saved: {refusal}") from refusal
    return type(model).load(path) if hasattr(type(model), "load") else persistence.load(path)
