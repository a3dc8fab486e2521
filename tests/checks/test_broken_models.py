"""The checks can fail: for each there are models, sound but for what it checks, that fail it and no other."""

from __future__ import annotations

import pickle
from unittest import SkipTest

import numpy as np
import pytest
from scipy import sparse

from labelrace import checks

BROKEN = []


def fails(name):
    """Register a model that must fail one check and no other."""

    def register(model):
        BROKEN.append(pytest.param(name, model, id=f"{name}-{model.__name__}"))
        return model

    return register


def dense(array):
    """Return floats, in memory of one's own."""
    return array.toarray().astype(float) if sparse.issparse(array) else np.array(array, dtype=float)


class Sound:
    """Least squares with a penalty, in a few lines, and no scikit-learn estimator."""

    def partial_fit(self, X, Y):
        X, Y = dense(X), dense(Y)
        self.refuse(Y)
        gram, cross, ones, rows = self.state if hasattr(self, "state") else self.nothing(X, Y)
        self.state = gram + X.T @ X, cross + X.T @ Y, ones + Y.sum(axis=0), rows + len(X)

    def refuse(self, Y):
        if not np.isin(Y, [0, 1]).all():
            raise ValueError("labels must be 0 or 1")

    def nothing(self, X, Y):
        return np.eye(X.shape[1]), np.zeros((X.shape[1], Y.shape[1])), np.zeros(Y.shape[1]), 0

    def decision_function(self, X):
        gram, cross, _, _ = self.state
        return dense(X) @ np.linalg.solve(gram, cross)

    def predict(self, X):
        return self.decision_function(X) > 0.3

    def save(self, path):
        path.write_bytes(pickle.dumps(vars(self)))

    @classmethod
    def load(cls, path):
        model = cls.__new__(cls)
        vars(model).update(pickle.loads(path.read_bytes()))
        return model


@fails("check_not_fitted")
class PredictsFromTheStart(Sound):
    """Has scores before it has learned."""

    def decision_function(self, X):
        return super().decision_function(X) if hasattr(self, "state") else np.zeros((len(X), 1))


@fails("check_not_fitted")
class StumblesUnfitted(Sound):
    """Refuses, but by an error that nobody catches."""

    def predict(self, X):
        return super().predict(X) if hasattr(self, "state") else {}["state"]


@fails("check_outputs")
class ReturnsLists(Sound):
    """Returns lists of lists."""

    def predict(self, X):
        return super().predict(X).tolist()


@fails("check_outputs")
class ReturnsWholeScores(Sound):
    """Returns scores in thousandths, as whole numbers."""

    def decision_function(self, X):
        return np.rint(1000 * super().decision_function(X)).astype(int)


@fails("check_determinism")
class TakesSeedZeroForNone(Sound):
    """Has the classic fault of ``random_state or None``."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def nothing(self, X, Y):
        gram, cross, ones, rows = super().nothing(X, Y)
        return gram, cross + np.random.default_rng(self.random_state or None).normal(size=cross.shape), ones, rows


@fails("check_purity")
class LearnsWhatItPredicted(Sound):
    """Takes its own predictions for true labels when it learns the next time."""

    def predict(self, X):
        self.guessed = dense(X), super().predict(X)
        return self.guessed[1].copy()

    def partial_fit(self, X, Y):
        super().partial_fit(X, Y)
        if hasattr(self, "guessed"):
            super().partial_fit(*self.guessed)
            del self.guessed


@fails("check_purity")
class PredictsByItsLastScores(Sound):
    """Keeps scores, and does not look whether they are those of the same rows."""

    def partial_fit(self, X, Y):
        super().partial_fit(X, Y)
        self.last = np.empty((0, 0))

    def decision_function(self, X):
        self.last = super().decision_function(X)
        return self.last.copy()

    def predict(self, X):
        is_as_long = len(self.last) == X.shape[0] > 1
        return (self.last if is_as_long else super().decision_function(X)) > 0.3


class LooksAgain(Sound):
    """Takes the mean of the last batch off its scores, and computes it when asked."""

    keeps_sparse = False

    def partial_fit(self, X, Y):
        super().partial_fit(X, Y)
        self.last = X if sparse.issparse(X) == self.keeps_sparse else X.copy()

    def decision_function(self, X):
        return super().decision_function(X) - self.last.mean()


class WritesIntoFeatures(Sound):
    """Rounds the features in place."""

    when = "learning"

    def partial_fit(self, X, Y):
        super().partial_fit(self.rounded(X) if self.when == "learning" else X, Y)

    def decision_function(self, X):
        return super().decision_function(self.rounded(X) if self.when == "predicting" else X)

    def rounded(self, X):
        X = X if isinstance(X, np.ndarray) else dense(X)
        return np.round(X, 1, out=X)


@fails("check_aliasing")
class LooksAgainAtDense(LooksAgain):
    """Keeps a dense batch."""


@fails("check_aliasing")
class WritesWhenLearning(WritesIntoFeatures):
    """Rounds what it learns."""


@fails("check_aliasing")
class WritesWhenPredicting(WritesIntoFeatures):
    """Rounds what it predicts."""

    when = "predicting"


@fails("check_aliasing")
class WritesIntoLabels(Sound):
    """Takes rows without labels for rows with all of them, and notes it in the caller's array."""

    def partial_fit(self, X, Y):
        Y = Y if isinstance(Y, np.ndarray) else dense(Y)
        Y[~Y.any(axis=1)] = 1.0
        super().partial_fit(X, Y)


@fails("check_sparse_aliasing")
class LooksAgainAtSparse(LooksAgain):
    """Keeps a sparse batch."""

    keeps_sparse = True


@fails("check_returned_arrays")
class ReturnsItsMemory(Sound):
    """Keeps its last scores, for those who ask again, and hands them out."""

    def partial_fit(self, X, Y):
        super().partial_fit(X, Y)
        self.memory = {}

    def decision_function(self, X):
        if hasattr(self, "state"):
            key = dense(X).tobytes()
            self.memory = self.memory if key in self.memory else {key: super().decision_function(X)}
            return self.memory[key]
        return super().decision_function(X)


@fails("check_returned_arrays")
class ReusesABuffer(Sound):
    """Writes all scores of as many rows into one array."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        if getattr(self, "buffer", np.empty(0)).shape != scores.shape:
            self.buffer = np.empty_like(scores)
        self.buffer[...] = scores
        return self.buffer


@fails("check_refused_batches")
class LearnsAnyLabel(Sound):
    """Takes whatever number for a label."""

    def refuse(self, Y):
        pass


@fails("check_refused_batches")
class LearnsRowByRow(Sound):
    """Finds a wrong label when it has learned the rows before it."""

    def partial_fit(self, X, Y):
        if X.shape[0] != Y.shape[0]:
            raise ValueError("rows differ")
        for row in range(X.shape[0]):
            super().partial_fit(X[row : row + 1], Y[row : row + 1])


@fails("check_refused_batches")
class RemembersARefusedBatch(Sound):
    """Takes the number of features from a batch before it looks at its labels."""

    def partial_fit(self, X, Y):
        self.n_features = getattr(self, "n_features", X.shape[1])
        if X.shape[1] != self.n_features:
            raise ValueError("features differ")
        super().partial_fit(X, Y)


@fails("check_refused_batches")
class TruncatesFeatures(Sound):
    """Leaves out features that it does not know."""

    def partial_fit(self, X, Y):
        is_later = hasattr(self, "state") and isinstance(X, np.ndarray)
        super().partial_fit(X[:, : len(self.state[0])] if is_later else X, Y)


@fails("check_refused_batches")
class RefusesByAnotherError(Sound):
    """Refuses by an error that nobody catches."""

    def refuse(self, Y):
        try:
            super().refuse(Y)
        except ValueError as error:
            raise KeyError("labels") from error


@fails("check_save_and_load")
class LoadsTwiceThePast(Sound):
    """Predicts the same when loaded, but learns on with too much trust in what it learned before."""

    @classmethod
    def load(cls, path):
        model = super().load(path)
        model.state = tuple(2 * part for part in model.state)
        return model


@fails("check_save_and_load")
class LoadsLessPrecise(Sound):
    """Keeps half of the digits."""

    @classmethod
    def load(cls, path):
        model = super().load(path)
        model.state = (*(np.float32(part).astype(float) for part in model.state[:3]), model.state[3])
        return model


@fails("check_save_and_load")
class ChangesWhenSaved(Sound):
    """Is another model, the one saved too, after saving."""

    def save(self, path):
        self.state = (self.state[0], 0.5 * self.state[1], *self.state[2:])
        super().save(path)


@fails("check_save_and_load")
class LeavesAFile(Sound):
    """Refuses to be saved when it is halfway through."""

    def save(self, path):
        path.write_bytes(b"half")
        raise ValueError("cannot be saved")


class Merging(Sound):
    """Sound, and sums that can be added."""

    def emptied(self):
        copied = type(self)()
        gram, cross, ones, _ = self.state
        copied.state = np.zeros_like(gram), np.zeros_like(cross), np.zeros_like(ones), 0
        return copied

    def merge(self, other):
        self.state = tuple(one + two for one, two in zip(self.state, other.state, strict=True))


@fails("check_merging")
class KeepsThePenalty(Merging):
    """Counts the penalty again with every part."""

    def emptied(self):
        copied = super().emptied()
        copied.state = (np.eye(len(self.state[0])), *copied.state[1:])
        return copied


@fails("check_merging")
class EmptiesItself(Merging):
    """Is changed by what its emptied copy learns."""

    def emptied(self):
        self.state = super().emptied().state
        return self


@fails("check_unseen_labels")
class DividesByPositives(Sound):
    """Divides by how often labels occurred; not after a single row, which is another check's affair."""

    def decision_function(self, X):
        ones, rows = self.state[2:]
        return super().decision_function(X) / (ones / rows if rows > 1 else 1.0)


@fails("check_constant_labels")
class DividesByNegatives(Sound):
    """Divides by how often labels did not occur; not after a single row, either."""

    def decision_function(self, X):
        ones, rows = self.state[2:]
        return super().decision_function(X) / (1.0 - ones / rows if rows > 1 else 1.0)


@fails("check_one_label")
class SqueezesOneLabel(Sound):
    """Returns a vector for one label, as single-label classifiers do."""

    def predict(self, X):
        predicted = super().predict(X)
        return predicted.ravel() if predicted.shape[1] == 1 else predicted


@fails("check_one_row")
class NeedsAVariance(Sound):
    """Divides by the number of rows less one."""

    def decision_function(self, X):
        return super().decision_function(X) * (np.inf if self.state[3] == 1 else 1.0)


@fails("check_batches_of_one")
class RefusesBatchesOfOne(Sound):
    """Learns a single row first, but none later."""

    def partial_fit(self, X, Y):
        if hasattr(self, "state") and X.shape[0] == 1:
            raise ValueError("too few rows")
        super().partial_fit(X, Y)


@fails("check_batches_of_one")
class ComparesWithCompany(Sound):
    """Scores rows relative to those asked with them."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        return scores - scores.mean()


@fails("check_zero_features")
class DividesByTheNormLearned(Sound):
    """Divides what it learns by its norm."""

    def partial_fit(self, X, Y):
        super().partial_fit(dense(X) / np.linalg.norm(dense(X)), Y)


@fails("check_zero_features")
class DividesByTheNormAsked(Sound):
    """Has no score where there is no feature."""

    def decision_function(self, X):
        return super().decision_function(X) if dense(X).any() else np.full((len(X), self.state[1].shape[1]), np.nan)


@fails("check_sparse")
class RefusesSparse(Sound):
    """Takes dense arrays only."""

    def partial_fit(self, X, Y):
        if sparse.issparse(X) or sparse.issparse(Y):
            raise TypeError("sparse arrays are not supported")
        super().partial_fit(X, Y)


@fails("check_sparse")
class CentresDenseOnly(Sound):
    """Centres dense features and not sparse ones."""

    def partial_fit(self, X, Y):
        super().partial_fit(X if sparse.issparse(X) else X - 0.1, Y)


@fails("check_permuted_labels")
class PrefersTheFirstLabel(Sound):
    """Breaks ties, and more than ties, by the labels' order."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        scores[:, 0] += 1.0
        return scores


class Growing(Sound):
    """Takes new labels, new features of sparse rows and sets of names, and tells labels by name."""

    def partial_fit(self, X, Y):
        before = dict(vars(self))
        try:
            Y = self.binary(Y) if isinstance(Y, list) else Y
            if hasattr(self, "state"):
                self.state = self.grown(X, Y)
            super().partial_fit(X, Y)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    def binary(self, sets):
        new = [name for row in sets for name in sorted(row)]
        self.label_names_ = list(dict.fromkeys([*getattr(self, "label_names_", []), *new]))
        return np.array([[float(name in row) for name in self.label_names_] for row in sets])

    def grown(self, X, Y):
        gram, cross, ones, rows = self.state
        new_features, new_labels = X.shape[1] - len(gram) if sparse.issparse(X) else 0, Y.shape[1] - len(ones)
        if min(new_features, new_labels) < 0:
            raise ValueError("fewer than before")
        wider = np.eye(len(gram) + new_features)
        wider[: len(gram), : len(gram)] = gram
        return wider, np.pad(cross, ((0, new_features), (0, new_labels))), np.pad(ones, (0, new_labels)), rows

    def names(self):
        return getattr(self, "label_names_", range(self.state[1].shape[1]))

    def predict_proba(self, X):
        return np.clip(self.decision_function(X), 0, 1)

    def predict_labels(self, X):
        return [{name for name, present in zip(self.names(), row, strict=True) if present} for row in self.predict(X)]

    def predict_top(self, X, k):
        names = list(self.names())
        return [[(names[label], row[label]) for label in np.argsort(-row)[:k]] for row in self.predict_proba(X)]


@fails("check_new_labels")
class StartsAnewForNewLabels(Growing):
    """Forgets what it knew of the others."""

    def grown(self, X, Y):
        gram, cross, ones, rows = super().grown(X, Y)
        return gram, cross * (Y.shape[1] == len(self.state[2])), ones, rows


@fails("check_new_labels")
class LearnsTheOthersFirst(Sound):
    """Refuses new labels when it has learned the ones that it knows."""

    def partial_fit(self, X, Y):
        known = self.state[1].shape[1] if hasattr(self, "state") else Y.shape[1]
        super().partial_fit(X, Y[:, :known])
        if Y.shape[1] > known:
            raise ValueError("new labels")


@fails("check_new_features")
class DividesByFeatures(Growing):
    """Takes a mean over features, also over those that it has never seen."""

    def decision_function(self, X):
        return 5 * super().decision_function(X) / X.shape[1]


@fails("check_label_sets")
class SortsNames(Growing):
    """Has labels in the order of the alphabet, whatever was first."""

    def binary(self, sets):
        self.label_names_ = sorted({name for row in sets for name in row})
        return super().binary(sets)


@fails("check_label_sets")
class IgnoresNewNames(Growing):
    """Knows the names of its first batch, and no others."""

    def binary(self, sets):
        known = getattr(self, "label_names_", {name for row in sets for name in row})
        return super().binary([row & set(known) for row in sets])


@fails("check_predict_labels")
class TellsNumbers(Growing):
    """Tells labels by their numbers, whatever they were called."""

    def predict_labels(self, X):
        return [set(np.flatnonzero(row).tolist()) for row in self.predict(X)]


@fails("check_predict_labels")
class TellsAtLeastOne(Growing):
    """Names the best label of a row that has none."""

    def predict_labels(self, X):
        best = [{row[0][0]} for row in self.predict_top(X, 1)]
        return [found or first for found, first in zip(super().predict_labels(X), best, strict=True)]


@fails("check_predict_labels")
class TellsLists(Growing):
    """Returns lists, in which labels might stand twice."""

    def predict_labels(self, X):
        return [sorted(row) for row in super().predict_labels(X)]


@fails("check_predict_top")
class TellsTheWorstFirst(Growing):
    """Sorts in ascending order."""

    def predict_top(self, X, k):
        return [row[::-1] for row in super().predict_top(X, k)]


@fails("check_predict_top")
class TellsTheFirst(Growing):
    """Sorts the first labels, and leaves out the others."""

    def predict_top(self, X, k):
        known = set(list(self.names())[:k])
        return [[pair for pair in row if pair[0] in known] for row in super().predict_top(X, len(self.names()))]


@fails("check_predict_top")
class TellsScores(Growing):
    """Returns scores where probabilities are asked for."""

    def predict_top(self, X, k):
        return [[(name, 3 * value) for name, value in row] for row in super().predict_top(X, k)]


@fails("check_predict_top")
class FillsUp(Growing):
    """Repeats the last label where there are fewer than asked for."""

    def predict_top(self, X, k):
        return [(row + row[-1:] * k)[:k] for row in super().predict_top(X, k)]


def failures(model):
    """List the checks that a model fails, with their messages."""
    found = {}
    for name, check in checks.iter_checks(model):
        try:
            check()
        except SkipTest:
            continue
        except AssertionError as failure:
            found[name] = str(failure)
    return found


@pytest.mark.parametrize(("name", "model"), BROKEN)
def test_a_broken_model_fails_the_check_for_it_and_no_other(name, model):
    found = failures(model())
    assert list(found) == [name], found
    assert found[name].startswith(f"{name}: <")
    assert model.__name__ in found[name]


def test_the_sound_models_pass_all():
    not_for_all = {"check_new_labels", "check_new_features", "check_label_sets"}
    skipped = {*not_for_all, "check_predict_labels", "check_predict_top"}
    assert set(checks.check_model(Merging())) == skipped
    assert set(checks.check_model(Sound())) == {*skipped, "check_merging"}
    assert set(checks.check_model(Growing())) == {"check_merging"}


def test_predictions_may_be_sparse_where_the_labels_were():
    class AnswersInKind(Growing):
        """Returns sparse predictions where the labels learned were sparse."""

        def partial_fit(self, X, Y):
            super().partial_fit(X, Y)
            self.kind = sparse.csr_array if sparse.issparse(Y) else np.asarray

        def predict(self, X):
            return self.kind(super().predict(X))

    assert set(checks.check_model(AnswersInKind())) == {"check_merging"}


def test_every_check_can_fail():
    assert {check.__name__ for check in checks.CHECKS} == {param.values[0] for param in BROKEN}
