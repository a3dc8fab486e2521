"""Other libraries' online multi-label classifiers, where they are installed, behind one shape: partial_fit, predict."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB

from labelrace.typing import AnyMatrix


class Rival(NamedTuple):
    """A name, a maker that is told the number of labels, whether it takes each row by itself, and the same by us."""

    name: str
    make: Callable[[int], Any]
    by_row: bool
    like: str


def rivals() -> tuple[list[Rival], list[str]]:
    """Return those that can be measured here, and the packages of those that cannot."""
    found = [Rival("scikit-learn, binary relevance", _SklearnRelevance, by_row=False, like="obr")]
    optional = {
        "river": Rival("River, classifier chain", _RiverChain, by_row=True, like="occ"),
        "vowpalwabbit": Rival("Vowpal Wabbit, one against all", _VowpalWabbit, by_row=True, like="obr"),
    }
    absent = [package for package in optional if importlib.util.find_spec(package) is None]
    return [*found, *(rival for package, rival in optional.items() if package not in absent)], absent


class _SklearnRelevance:
    """MultiOutputClassifier: one Bernoulli naive Bayes for each label."""

    def __init__(self, n_labels: int) -> None:
        self._classes = [np.arange(2)] * n_labels
        self._model = MultiOutputClassifier(BernoulliNB())

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        self._model.partial_fit(X, Y.toarray(), classes=self._classes)

    def predict(self, X: AnyMatrix) -> Any:
        return self._model.predict(X)


class _RiverChain:
    """ClassifierChain of Bernoulli naive Bayes, which learns row by row from dicts."""

    def __init__(self, n_labels: int) -> None:
        from river.multioutput import ClassifierChain
        from river.naive_bayes import BernoulliNB as RiverBernoulliNB

        self._labels = range(n_labels)
        self._model = ClassifierChain(RiverBernoulliNB(), order=list(self._labels))

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        for row, present in zip(_rows(X), _rows(Y), strict=True):
            self._model.learn_one(dict.fromkeys(row, 1), {label: label in present for label in self._labels})

    def predict(self, X: AnyMatrix) -> list[Any]:
        return [self._model.predict_one(dict.fromkeys(row, 1)) for row in _rows(X)]


class _VowpalWabbit:
    """multilabel_oaa, on hashed features."""

    def __init__(self, n_labels: int) -> None:
        workspace = importlib.import_module("vowpalwabbit").Workspace
        self._model = workspace(f"--multilabel_oaa {n_labels} --quiet")

    def partial_fit(self, X: AnyMatrix, Y: AnyMatrix) -> None:
        for row, present in zip(_rows(X), _rows(Y), strict=True):
            self._model.learn(f"{','.join(map(str, sorted(present)))} | {' '.join(map(str, row))}")

    def predict(self, X: AnyMatrix) -> list[Any]:
        return [self._model.predict(f" | {' '.join(map(str, row))}") for row in _rows(X)]


def _rows(matrix: AnyMatrix) -> Iterator[set[int]]:
    """Yield the columns of each row's non-zeros."""
    sparse = scipy.sparse.csr_array(matrix)
    for start, end in zip(sparse.indptr[:-1], sparse.indptr[1:], strict=True):
        yield set(sparse.indices[start:end].tolist())
