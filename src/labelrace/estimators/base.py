"""What all online multi-label classifiers have in common.

A classifier holds what it has `Learned`: an algorithm of the core, its state, and what predicting needs, derived from
the state when it is first asked for. `partial_fit` replaces that as a whole, after everything that can fail has been
done, so that a failed call leaves the model as it was.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelrace import persistence, validation
from labelrace.typing import AnyMatrix, Array, BoolArray, FloatArray, IntArray

__all__ = ["Learned", "OnlineClassifier"]


class Learned:
    """An algorithm of the core and its state; immutable but for what is derived once."""

    def __init__(self, algorithm: Any, state: Any) -> None:
        self.algorithm = algorithm
        self.state = state

    @cached_property
    def derived(self) -> Any:
        """What predicting needs."""
        return self.algorithm.derive(self.state)

    def with_state(self, state: Any) -> Learned:
        """Return the same algorithm with another state."""
        return Learned(self.algorithm, state)

    def updated(self, X: AnyMatrix, Y: AnyMatrix) -> Learned:
        """Learn a checked batch; what has been derived already is passed on for algorithms that can use it."""
        at_hand = self.__dict__.get("derived")
        return self.with_state(self.algorithm.update(self.state, X, Y, at_hand))


class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers that learn batch by batch.

    A subclass tells how to start (`_start`) and, where its hard predictions are not the sign of its scores, how to
    predict (`_predict_hard`).
    """

    label_names: Any
    classes_: IntArray
    label_names_: Array | None
    n_features_in_: int
    _learned: Learned

    @abstractmethod
    def _start(self, X: AnyMatrix, Y: AnyMatrix) -> Learned:
        """Check the parameters and return the algorithm with its state before the first batch."""

    @abstractmethod
    def _restart(self, tensors: dict[str, Array]) -> Learned:
        """Return the algorithm and an empty state, with the shapes of the saved arrays, given by their paths."""

    def fit(self, X: Any, Y: Any) -> Self:
        """Forget everything and learn from one batch.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, m)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, l)
            Labels, 0 or 1.

        Returns
        -------
        self
        """
        with self._unchanged_on_error():
            for name in [name for name in vars(self) if name.endswith("_") or name == "_learned"]:
                delattr(self, name)
            return self.partial_fit(X, Y)

    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> Self:
        """Learn from a further batch.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, m)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, l)
            Labels, 0 or 1.
        classes : None
            Not used: a label is 0 or 1. Here because scikit-learn's tools pass it.

        Returns
        -------
        self
        """
        with self._unchanged_on_error():
            first = not self.__sklearn_is_fitted__()
            checked = self._check_features(X, reset=first)
            labels = validation.check_labels(Y, checked.shape[0], None if first else len(self.classes_))
            names = None if first else self.label_names_
            self.label_names_ = validation.check_label_names(Y, self.label_names, names, labels.shape[1])
            if first:
                self.classes_ = np.arange(labels.shape[1])
            learned = self._start(checked, labels) if first else self._learned
            self._learned = learned.updated(checked, labels)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.int8]:
        """Predict label sets.

        Returns
        -------
        (n, l) array of 0 and 1, of one byte each
        """
        check_is_fitted(self)
        return self._predict_hard(self._learned, self._check_features(X, reset=False)).view(np.int8)

    def _predict_hard(self, learned: Learned, X: AnyMatrix) -> BoolArray:
        """Tell which labels are predicted."""
        return learned.algorithm.soft_scores(learned.derived, X) > 0

    def decision_function(self, X: Any) -> FloatArray:
        """Compute a score for every label; higher is more likely.

        Returns
        -------
        (n, l) array
        """
        check_is_fitted(self)
        checked = self._check_features(X, reset=False)
        return self._learned.algorithm.soft_scores(self._learned.derived, checked)

    def predict_proba(self, X: Any) -> FloatArray:
        """Map the scores into [0, 1].

        Scores estimate -1 for an absent and 1 for a present label by least squares; this is ``(score + 1) / 2``, cut
        off at 0 and 1. It ranks labels and grows with their probability, but it is not calibrated.

        Returns
        -------
        (n, l) array
        """
        return np.clip((self.decision_function(X) + 1) / 2, 0, 1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which `labelrace.load` reads; the file is complete or not there.

        Parameters
        ----------
        path : path
            The file. It is in the safetensors format, with a header that tells class, parameters and names.
        """
        check_is_fitted(self)
        persistence.save(self, path)

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        # States are immutable: remembering the references is remembering everything.
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_features(self, X: Any, *, reset: bool) -> AnyMatrix:
        return validation.check_features(self, X, reset=reset, allow_missing=self._allows_missing())

    def _allows_missing(self) -> bool:
        """Tell whether NaN in X is a missing value rather than an error."""
        return False

    @property
    def _feature_names(self) -> Array | None:
        return getattr(self, "feature_names_in_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_missing()
        return tags
