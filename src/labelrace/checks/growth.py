"""Checks of labels over time: labels and features that come later, labels by name, labels that come late."""

from __future__ import annotations

import copy
from typing import Any
from unittest import SkipTest

import numpy as np
import scipy.sparse

from labelrace.checks.subject import (
    Subject,
    demand,
    demand_close,
    demand_equal,
    demand_well_formed,
    results,
    sample,
)
from labelrace.typing import Array

__all__ = ["check_label_sets", "check_late_labels", "check_new_features", "check_new_labels"]


def check_new_labels(subject: Subject) -> None:
    """Demand of a model that takes a wider ``Y`` that the labels known so far are predicted as if it had not come.

    Labels multiply as a stream goes on. A row without the new labels says nothing about them: what is learned from it
    about the others must be what it was before. A model may refuse, by a ``ValueError``, and is then as it was.
    """
    first, (X, Y), rows = sample()
    grown, ungrown = subject.learned((first[0], first[1][:, :4])), subject.learned((first[0], first[1][:, :4]))
    without = np.column_stack([Y[:, :4], np.zeros((len(Y), 2))])
    _learn_or_skip(subject, grown, X, without, "new labels")
    subject.learn(ungrown, X, Y[:, :4])
    found, before = results(grown, rows), results(ungrown, rows)
    demand_well_formed(found, len(rows), 6)
    # How many labels are predicted may depend on how many there are, but not how they rank.
    order, expected = (np.argsort(each.scores[:, :4], axis=1, kind="stable") for each in (found, before))
    demand(np.array_equal(order, expected), "when there were new labels, the labels known before rank differently")
    subject.learn(grown, X, Y)
    demand_well_formed(results(grown, rows), len(rows), 6)


def check_new_features(subject: Subject) -> None:
    """Demand of a model that takes a wider sparse ``X`` that features which are 0 so far change nothing.

    Texts bring new words. A word that no row has is no news, and when it comes it is to be learned. A model may refuse,
    by a ``ValueError``, and is then as it was.
    """
    sparse, (first, (X, Y), rows) = scipy.sparse.csr_array, sample()
    try:
        model, twin = (subject.learned((sparse(first[0]), first[1])) for _ in range(2))
    except (TypeError, ValueError) as refusal:
        raise SkipTest(f"it takes no sparse arrays: {refusal}") from refusal
    empty = np.zeros((len(X), 2))
    _learn_or_skip(subject, model, sparse(np.hstack([X, empty])), Y, "new features")
    subject.learn(twin, sparse(X), Y)
    wide = sparse(np.hstack([rows, np.zeros((len(rows), 2))]))
    demand_close(results(model, wide), results(twin, sparse(rows)), "when it met two features that are always 0")
    subject.learn(model, sparse(np.hstack([X, X[:, :2] + 1])), Y)
    demand_well_formed(results(model, wide), len(rows), Y.shape[1])


def check_label_sets(subject: Subject) -> None:
    """Demand of a model that takes sets of label names that they mean what the matrix of 0 and 1 means.

    It is how labels come in most streams. New names are new labels, in the order in which they come, by the alphabet
    within a set; ``label_names_``, if there is one, tells them. A model that is not made for sets is left alone.
    """
    names, ((X, Y), _, rows) = list("fabedc"), sample()
    sets = [{name for name, present in zip(names, row, strict=True) if present} for row in Y]
    by_sets = subject.fresh()
    try:
        subject.learn(by_sets, X, sets)
    except (AttributeError, TypeError, ValueError) as refusal:
        raise SkipTest(f"it takes no sets of names: {refusal}") from refusal
    order = list(dict.fromkeys(name for row in sets for name in sorted(row)))
    told = list(getattr(by_sets, "label_names_", order))
    demand(told == order, f"the names of the labels are {told} instead of {order}")
    by_matrix = subject.learned((X, Y[:, [names.index(name) for name in order]]))
    demand_close(results(by_sets, rows), results(by_matrix, rows), "when labels came as sets of names")
    if subject.is_online and _takes_new_labels(subject):
        subject.learn(by_sets, X[:2], [{"new"}, set()])
        demand_well_formed(results(by_sets, rows), len(rows), 7)


def check_late_labels(subject: Subject) -> None:
    """Demand of a model with ``learn(ids, Y)`` that rows learned by their ids are learned as if given again.

    A label is often known long after the prediction that it belongs to. ``predict(X, ids=…)`` keeps the rows; it must
    predict what it would without, and hold no memory of the caller's.
    """
    if not subject.is_online or not hasattr(subject.model, "learn"):
        raise SkipTest("it has no learn(ids, Y)" if subject.is_online else "it is offline")
    first, (X, Y), rows = sample()
    late, prompt = subject.learned(first), subject.learned(first)
    given, ids = X.copy(), [f"row {row}" for row in range(len(X))]
    predicted = np.array(late.predict(given, ids=ids))
    demand(np.array_equal(predicted, prompt.predict(X)), "with ids, other labels are predicted")
    given[...] = 1.0
    late.learn(ids[::-1], Y[::-1])
    subject.learn(prompt, X[::-1], Y[::-1])
    demand_close(results(late, rows), results(prompt, rows), "when rows were learned by their ids")
    try:
        late.learn(ids[:1], Y[:1])
    except (ValueError, LookupError):
        demand_close(results(late, rows), results(prompt, rows), "after it refused an id that is learned")
        return
    raise AssertionError("it learned an id twice instead of raising a ValueError")


def _learn_or_skip(subject: Subject, model: Any, X: Any, Y: Array, what: str) -> None:
    """Teach a wider batch; where it is refused, see that nothing has changed and skip the rest."""
    if not subject.is_online:
        raise SkipTest("it is offline: fit starts anew, with any labels and features")
    rows, before = sample().rows, copy.deepcopy(model)
    try:
        subject.learn(model, X, Y)
    except (TypeError, ValueError) as refusal:
        demand_equal(results(model, rows), results(before, rows), f"after it refused {what}")
        raise SkipTest(f"it takes no {what}: {refusal}") from refusal


def _takes_new_labels(subject: Subject) -> bool:
    X, Y = sample().first
    model = subject.learned((X, Y[:, :4]))
    try:
        subject.learn(model, X, Y)
    except (TypeError, ValueError):
        return False
    return True
