"""Checks of data at the edges: streams bring them all, sooner or later."""

from __future__ import annotations

from unittest import SkipTest

import numpy as np
import scipy.sparse

from labelrace.checks.subject import Results, Subject, demand_close, demand_well_formed, results, sample
from labelrace.typing import Array

__all__ = [
    "check_batches_of_one",
    "check_constant_labels",
    "check_one_label",
    "check_one_row",
    "check_sparse",
    "check_unseen_labels",
    "check_zero_features",
]


def check_unseen_labels(subject: Subject) -> None:
    """Demand well-formed results where a label never occurred.

    Most of many labels are absent from a first batch: their counts are 0, and so must not be divided by.
    """
    _check_with_column(subject, 0.0)


def check_constant_labels(subject: Subject) -> None:
    """Demand well-formed results where a label was always there.

    It is the other end of unseen labels: there is no row of class 0 to learn from.
    """
    _check_with_column(subject, 1.0)


def _check_with_column(subject: Subject, value: float) -> None:
    """Give one label the same value in everything that is learned, then in the last batch no more."""
    first, second, rows = sample()
    model = subject.fresh()
    for X, Y in (first, second):
        constant = Y.copy()
        constant[:, 2] = value
        subject.learn(model, X, constant)
        demand_well_formed(results(model, rows), len(rows), Y.shape[1])
    subject.learn(model, *second)
    demand_well_formed(results(model, rows), len(rows), second[1].shape[1])


def check_one_label(subject: Subject) -> None:
    """Demand well-formed results where there is only one label: a column, not a vector.

    Whoever selects labels ends up with one of them now and then, and must not need another program for it.
    """
    first, second, rows = sample()
    model = subject.fresh()
    for X, Y in (first, second):
        subject.learn(model, X, Y[:, :1])
        demand_well_formed(results(model, rows), len(rows), 1)


def check_one_row(subject: Subject) -> None:
    """Demand well-formed results after a single row was learned.

    It has no variance, spans one dimension, and every label in it is constant. A stream may begin so.
    """
    (X, Y), second, rows = sample()
    model = subject.learned((X[:1], Y[:1]))
    demand_well_formed(results(model, rows), len(rows), Y.shape[1])
    subject.learn(model, *second)
    demand_well_formed(results(model, rows), len(rows), Y.shape[1])


def check_batches_of_one(subject: Subject) -> None:
    """Demand well-formed results after learning row by row, and that rows are predicted alone as in company.

    This is how rows arrive at a service. What is learned may depend on the size of batches; what is predicted may not.
    """
    if not subject.is_online:
        raise SkipTest("it is offline: it learns all data at once")
    (X, Y), _, rows = sample()
    model = subject.fresh()
    for row in range(len(X)):
        subject.learn(model, X[row : row + 1], Y[row : row + 1])
    together = results(model, rows)
    demand_well_formed(together, len(rows), Y.shape[1])
    alone = [results(model, rows[row : row + 1]) for row in range(len(rows))]
    joined = Results(*(np.vstack(parts) for parts in zip(*alone, strict=True)))
    demand_close(joined, together, "when rows are predicted one by one")


def check_zero_features(subject: Subject) -> None:
    """Demand well-formed results where all features of all rows are 0, be it when learning or when predicting.

    A text without a known word is such a row, and a batch of them has no norm, no variance and no rank.
    """
    first, (X, Y), rows = sample()
    zeros, model = np.zeros_like(rows), subject.learned((np.zeros_like(X), Y))
    for asked in (zeros, rows):
        demand_well_formed(results(model, asked), len(asked), Y.shape[1])
    subject.learn(model, *first)
    demand_well_formed(results(model, zeros), len(zeros), Y.shape[1])


def check_sparse(subject: Subject) -> None:
    """Demand the same results, but for rounding, from sparse ``X``, sparse ``Y`` or both, as from dense ones.

    How data are stored is not part of what they say. Texts and large label sets come sparse, and would not fit dense.
    """
    first, second, rows = sample()
    expected = results(subject.learned(first, second), rows)

    def unchanged(array: Array) -> Array:
        return array

    sparse = scipy.sparse.csr_array
    for names, of_X, of_Y in (("X", sparse, unchanged), ("Y", unchanged, sparse), ("X and Y", sparse, sparse)):
        model = subject.learned(*((of_X(X), of_Y(Y)) for X, Y in (first, second)))
        demand_close(results(model, of_X(rows)), expected, f"when {names} came sparse")
