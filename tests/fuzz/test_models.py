"""Sequences of calls on every model: whatever comes, what is promised holds after each of them.

A few of them run with the other tests; `make fuzz` runs as many as one likes (``LABELRACE_FUZZ``).
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers.models import MODELS
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from scipy import sparse
from sklearn.base import clone

import labelrace
from labelrace.exceptions import DivergenceWarning, LabelraceError

EXAMPLES = int(os.environ.get("LABELRACE_FUZZ", "2"))
SIZES = st.sampled_from([0.0, 5e-324, 1e-160, 1e-5, 1.0, 1.0, 1.0, 1e5, 1e150, 1e155, 1.7e308])
# Models that work in single precision, whose rounding probabilities that rise steeply show.
SINGLE = ("race", "race-hashed")
ONLINE = [name for name in MODELS if labelrace.make_model(name).is_online]


def rows(seed, n_rows, n_columns, size=1.0):
    values = np.random.default_rng(seed).normal(size=(n_rows, n_columns)).clip(-1, 1)
    return values * size


def marks(seed, n_rows, n_columns):
    return (np.random.default_rng(seed).random((n_rows, n_columns)) < 0.3).astype(float)


def read_only(matrix):
    matrix = sparse.csr_array(matrix)
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.setflags(write=False)
    return matrix


def unordered(matrix):
    """Store the entries of each row in the other order, with indices of 64 bits and a zero."""
    matrix = sparse.csr_array(matrix)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((-matrix.indices, rows))
    indices, indptr = matrix.indices[order].astype(np.int64), matrix.indptr.astype(np.int64)
    return sparse.csr_array((matrix.data[order], indices, indptr), shape=matrix.shape)


def strided(matrix):
    wider = np.full((2 * matrix.shape[0], 2 * matrix.shape[1]), 7.0)
    wider[::2, ::2] = matrix
    return wider[::2, ::2]


FORMS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "strided": strided,
    "objects": lambda matrix: matrix.astype(object),
    "lists": lambda matrix: matrix.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "read-only csr": read_only,
    "unordered csr": unordered,
}


def damaged(matrix):
    matrix = sparse.csr_array(matrix)
    matrix.indices = matrix.indices + np.int32(10**9)
    return matrix


REFUSED = {
    "marks of 2": lambda X, Y: (X, 2 * Y + 2),
    "fewer rows": lambda X, Y: (X, Y[:-1]),
    "infinite": lambda X, Y: (np.full_like(X, np.inf), Y),
    "one axis": lambda X, Y: (X, Y[:, 0]),
    "text": lambda X, Y: (X.astype(str), Y),
    "no rows": lambda X, Y: (X[:0], Y[:0]),
    "damaged X": lambda X, Y: (damaged(X + 1), Y),
    "damaged y": lambda X, Y: (X, damaged(Y + 1)),
    "too many labels": lambda X, Y: (X, sparse.csr_array((len(X), 2 * 10**9))),
    "nothing": lambda X, Y: (X, None),
}


class Calls(RuleBasedStateMachine):
    """A model and a twin that is saved, pickled and copied on its way; both learn the same."""

    name = "race"

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model, self.twin = (labelrace.make_model(self.name) for _ in range(2))
        # Little memory is as good here, and many times as quick to copy and save.
        wanted = {"random_state": 3, "max_memory": "1MB"}
        for one in (self.model, self.twin):
            one.set_params(**{name: value for name, value in wanted.items() if name in one.get_params()})
        self.n_labels, self.n_features = 3, 4

    def teardown(self):
        self.folder.cleanup()

    def both(self, call):
        """Call the same on both; either both refuse, and are as they were, or neither does."""
        errors = []
        for one in (self.model, self.twin):
            before = vars(one).get("_fitted")
            try:
                call(one)
            except (LabelraceError, ValueError) as error:
                assert vars(one).get("_fitted") is before
                errors.append((type(error), bool(str(error))))
        assert len(set(errors)) <= 1
        assert len(errors) in (0, 2)
        return not errors

    @rule(
        seed=st.integers(0, 99), n_rows=st.integers(1, 40), form=st.sampled_from(sorted(FORMS)), size=SIZES,
        labels_form=st.sampled_from(sorted(FORMS)),
    )  # fmt: skip
    def learn(self, seed, n_rows, form, size, labels_form):
        X, Y = rows(seed, n_rows, self.n_features, size), marks(seed, n_rows, self.n_labels)
        self.both(lambda one: one.partial_fit(FORMS[form](X), FORMS[labels_form](Y)))

    @rule(seed=st.integers(0, 99), more=st.integers(1, 3))
    def learn_new_labels(self, seed, more):
        X, Y = rows(seed, 9, self.n_features), marks(seed, 9, self.n_labels + more)
        if self.both(lambda one: one.partial_fit(X, Y)):
            self.n_labels += more

    @rule(seed=st.integers(0, 99), more=st.integers(1, 3))
    def learn_new_features(self, seed, more):
        X, Y = rows(seed, 9, self.n_features + more), marks(seed, 9, self.n_labels)
        if self.both(lambda one: one.partial_fit(sparse.csr_array(X), Y)):
            self.n_features += more

    @rule(seed=st.integers(0, 99), what=st.sampled_from(sorted(REFUSED)))
    def refuse(self, seed, what):
        X, Y = REFUSED[what](rows(seed, 7, self.n_features), marks(seed, 7, self.n_labels))
        assert not self.both(lambda one: one.partial_fit(X, Y))

    @rule(seed=st.integers(0, 99), n_rows=st.integers(1, 30))
    def fit_anew(self, seed, n_rows):
        X, Y = rows(seed, n_rows, self.n_features), marks(seed, n_rows, self.n_labels)
        self.both(lambda one: one.fit(X, Y))

    @precondition(lambda self: self.model.is_fitted)
    @rule(how=st.sampled_from(["save", "pickle", "copy"]))
    def go_through(self, how):
        """Let the twin go through a file, a pickle or a copy: it stays the same."""
        if how == "save":
            one, other = Path(self.folder.name, "one"), Path(self.folder.name, "other")
            before = self.twin._fitted
            self.twin.save(one)
            self.twin.save(other)
            assert self.twin._fitted is before
            assert one.read_bytes() == other.read_bytes()
            self.twin = labelrace.load(one)
            self.twin.save(other)
            assert one.read_bytes() == other.read_bytes()
            assert sorted(path.name for path in Path(self.folder.name).iterdir()) == ["one", "other"]
        else:
            self.twin = pickle.loads(pickle.dumps(self.twin)) if how == "pickle" else copy.deepcopy(self.twin)

    @precondition(lambda self: self.model.is_fitted)
    @rule(seed=st.integers(0, 99), size=SIZES, form=st.sampled_from(sorted(FORMS)))
    def predict(self, seed, size, form):
        X = rows(seed, 5, self.n_features, size)
        found = [(one.decision_function(FORMS[form](X)), one.predict_proba(FORMS[form](X))) for one in self.both_models]
        for scores, likely in found:
            assert scores.shape == likely.shape == (5, self.n_labels)
            assert not np.isnan(scores).any()
            assert ((likely >= 0) & (likely <= 1)).all()
        np.testing.assert_array_equal(found[0][0], found[1][0])
        # The sets are the same by whichever name, and a row is what it is in a batch.
        marks = self.model.predict(X)
        assert marks.shape == (5, self.n_labels)
        marks = marks.toarray() if sparse.issparse(marks) else marks
        assert self.model.predict_labels(X) == [set(np.flatnonzero(row).tolist()) for row in marks]
        for rows_asked in (X[:1], sparse.csr_array(X[:1])):
            alone, likely = self.model.decision_function(rows_asked), self.model.predict_proba(rows_asked)
            largest = max(1.0, np.abs(alone).max())
            tolerance = 1e-4 if self.name in SINGLE else 1e-6
            np.testing.assert_allclose(alone / largest, found[0][0][:1] / largest, rtol=0, atol=tolerance)
            np.testing.assert_allclose(likely, found[0][1][:1], atol=1e-3 if self.name in SINGLE else 1e-6)
        best = self.model.predict_top(X, 2)
        for row, listed in zip(found[0][1], best, strict=True):
            expected = np.sort(row)[::-1][: len(listed)]
            np.testing.assert_allclose([value for _, value in listed], expected, atol=1e-6)

    @precondition(lambda self: self.model.is_fitted)
    @rule(seed=st.integers(0, 99))
    def merge(self, seed):
        """Merge with another model of the same kind, or refuse; the other one stays as it was."""
        other = clone(self.model).fit(rows(seed, 9, self.n_features), marks(seed, 9, self.n_labels))
        before = other._fitted
        self.both(lambda one: one.merge(other))
        assert other._fitted is before

    @precondition(lambda self: self.model.is_fitted)
    @rule(count=st.integers(1, 2))
    def add_labels(self, count):
        if self.both(lambda one: one.add_labels(count)):
            self.n_labels += count

    @precondition(lambda self: self.model.is_fitted)
    @rule(column=st.integers(0, 3))
    def reset_features(self, column):
        self.both(lambda one: one.reset_features([column]))

    @property
    def both_models(self):
        return (self.model, self.twin)

    @invariant()
    def both_know_the_same(self):
        assert self.model.is_fitted == self.twin.is_fitted
        if self.model.is_fitted:
            schema = self.model._fitted.schema
            assert (schema.n_labels, schema.n_features) == (self.n_labels, self.n_features)


@pytest.mark.parametrize("name", ONLINE)
def test_sequences_of_calls(name):
    machine = type("Calls", (Calls,), {"name": name})
    most = max(2, EXAMPLES // 3) if "reg" in name else EXAMPLES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=most,
                stateful_step_count=20,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )
