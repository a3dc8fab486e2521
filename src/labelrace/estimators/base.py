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
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelrace import persistence, validation
from labelrace.algorithm import Algorithm
from labelrace.exceptions import MergeError
from labelrace.learned import Learned
from labelrace.learners import columns
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["OnlineClassifier"]


class OnlineClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers that learn batch by batch.

    A subclass is its parameters, and tells how its algorithm starts.
    """

    is_online = True
    """Whether the classifier learns by `partial_fit`."""

    label_names: Any
    categorical_features: Any = None
    classes_: IntArray
    label_names_: Array | None
    n_features_in_: int
    _n_values: IntArray
    _began_with: dict[str, Any]
    _learned: Learned

    @abstractmethod
    def _algorithm(self) -> Algorithm[Any]:
        """Check the parameters and make the algorithm of them."""

    @abstractmethod
    def _init(self, algorithm: Any, n_values: IntArray, n_labels: int) -> Any:
        """Make the algorithm's state before the first batch.

        ``n_values`` has one entry a feature: the number of values of a nominal one, 0 for a numeric one.
        """

    def _init_like(self, algorithm: Any, n_labels: int, tensors: dict[str, Array]) -> Any:
        """Make an empty state with the shapes of saved arrays, which are given by their paths."""
        return self._init(algorithm, self._n_values, n_labels)

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
            self._learn(X, Y)
        return self

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
            self._learn(X, Y)
        return self

    def _learn(self, X: Any, Y: Any) -> None:
        """Check a batch and learn it."""
        first = not self.__sklearn_is_fitted__()
        checked = self._check_features(X, reset=first)
        labels = validation.check_labels(Y, checked.shape[0], None if first else len(self.classes_))
        names = None if first else self.label_names_
        self.label_names_ = validation.check_label_names(Y, self.label_names, names, labels.shape[1])
        if first:
            self.classes_ = np.arange(labels.shape[1])
            self._n_values = self._kinds_of_features(checked)
            algorithm, self._began_with = self._algorithm(), self.get_params(deep=False)
            self._learned = Learned(algorithm, self._init(algorithm, self._n_values, labels.shape[1]))
        self._refuse_changed_parameters()
        for _ in range(self._times_shown()):
            self._learned = self._learned.updated(checked, labels)

    def _kinds_of_features(self, X: AnyMatrix) -> IntArray:
        """Find how many values each nominal feature has, at least those of the first batch; 0 for a numeric one."""
        n_values = validation.categorical_values(self.categorical_features, X.shape[1], self._feature_names)
        validation.check_codes(X, n_values)
        return columns.widest_values(n_values, X)

    def _times_shown(self) -> int:
        """How often each batch is learned in a row."""
        return 1

    def predict(self, X: Any) -> npt.NDArray[np.int8]:
        """Predict label sets.

        Returns
        -------
        (n, l) array of 0 and 1, of one byte each
        """
        check_is_fitted(self)
        checked = self._check_features(X, reset=False)
        return self._learned.algorithm.predict(self._learned.derived, checked).view(np.int8)

    def decision_function(self, X: Any) -> FloatArray:
        """Compute a score for every label; higher is more likely.

        Returns
        -------
        (n, l) array
        """
        check_is_fitted(self)
        checked = self._check_features(X, reset=False)
        return self._learned.algorithm.scores(self._learned.derived, checked)

    def predict_proba(self, X: Any) -> FloatArray:
        """Map the scores into [0, 1].

        Scores estimate -1 for an absent and 1 for a present label by least squares; this is ``(score + 1) / 2``, cut
        off at 0 and 1. It ranks labels and grows with their probability, but it is not calibrated.

        Returns
        -------
        (n, l) array
        """
        return np.clip((self.decision_function(X) + 1) / 2, 0, 1)

    def merge(self, other: OnlineClassifier) -> Self:
        """Take in what another model has learned from other rows.

        Exact: the result is the model that learned all rows. Start both models from one `random_state`, so that what
        they draw is the same.

        Parameters
        ----------
        other : classifier of the same class
            Is not changed.

        Returns
        -------
        self

        Raises
        ------
        MergeError
            Where merging would not be exact, with the reason.
        """
        check_is_fitted(self)
        if type(other) is not type(self):
            raise MergeError(f"other must be a {type(self).__name__}, got {type(other).__name__}.")
        check_is_fitted(other)
        reason = self._why_unmergeable(other)
        if reason:
            raise MergeError(f"The models cannot be merged exactly: {reason}.")
        merged = self._learned.algorithm.merge(self._learned.state, other._learned.state)
        self._learned = self._learned.with_state(merged)
        self._n_values = np.maximum(self._n_values, other._n_values)
        return self

    def _why_unmergeable(self, other: OnlineClassifier) -> str | None:
        if self._learned.algorithm != other._learned.algorithm:
            return "their parameters differ"
        if self.n_features_in_ != other.n_features_in_ or not _same(self._feature_names, other._feature_names):
            return "their features differ"
        if ((self._n_values > 0) != (other._n_values > 0)).any():
            return "a feature is nominal in one of them and numeric in the other"
        if len(self.classes_) != len(other.classes_) or not _same(self.label_names_, other.label_names_):
            return "their labels differ"
        return self._learned.algorithm.why_unmergeable(self._learned.state, other._learned.state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which `labelrace.load` reads; the file is complete or not there.

        Parameters
        ----------
        path : path
            The file. It is in the safetensors format, with a header that tells class, parameters and names.
        """
        check_is_fitted(self)
        self._refuse_changed_parameters()
        persistence.save(self, path)

    def _fitted(self) -> Learned:
        """Return what was learned, or complain that nothing was."""
        check_is_fitted(self)
        return self._learned

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
        checked = validation.check_features(self, X, reset=reset, allow_missing=self._allows_missing())
        if not reset:
            validation.check_codes(checked, self._n_values)
        return checked

    def _refuse_changed_parameters(self) -> None:
        # Comparing references is quick, and where none has changed it is enough.
        untouched = all(self.__dict__[name] is value for name, value in self._began_with.items())
        if not untouched and self._algorithm() != self._learned.algorithm:
            raise ValueError(
                "The parameters are not those that learning began with: set them back, or start anew with fit."
            )

    def _allows_missing(self) -> bool:
        """Tell whether NaN in X is a missing value rather than an error."""
        try:
            algorithm = self._learned.algorithm if self.__sklearn_is_fitted__() else self._algorithm()
        except ValueError:
            # A wrong parameter is reported where learning starts, not where somebody asks for the tags.
            return False
        return algorithm.skips_missing

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


def _same(one: Any, other: Any) -> bool:
    """Compare names, which may be None."""
    return list(one if one is not None else []) == list(other if other is not None else [])
