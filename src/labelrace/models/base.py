"""What all online multi-label classifiers have in common.

A classifier holds what it has `Learned`: an algorithm of the core, its state, and what predicting needs, derived from
the state when it is first asked for. `partial_fit` replaces that as a whole, after everything that can fail has been
done, so that a failed call leaves the model as it was.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelrace import parameters
from labelrace.core.algorithm import Algorithm
from labelrace.learners import columns
from labelrace.models import features, growth, merging, persistence, validation, waiting
from labelrace.models.labels import first_labels
from labelrace.models.later import LearnsLater, unchanged_on_error
from labelrace.models.learned import Learned
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = ["OnlineClassifier"]


class OnlineClassifier(LearnsLater, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the classifiers that learn batch by batch.

    A subclass is its parameters, and tells how its algorithm starts.
    """

    is_online = True
    """Whether the classifier learns by `partial_fit`."""

    label_names: Any
    categorical_features: Any = None
    _n_values: IntArray
    _began_with: dict[str, Any]

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
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. A dict is ``{name: number}``; what it does not name is 0.
        Y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, 0 or 1; or for each row the set of its labels' names.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            for name in [name for name in vars(self) if name.endswith("_") or name in ("_learned", "_waiting")]:
                delattr(self, name)
            self._learn(X, Y)
        return self

    def partial_fit(self, X: Any, Y: Any, classes: Any = None) -> Self:
        """Learn from a further batch.

        It may bring labels that were not there before: further columns behind the others, or new names in a data frame
        or in sets. The model is then the one that knew them, always absent, from the start. Further columns of a sparse
        ``X``, or new names in dicts, are new features likewise. Names of labels, and of features in dicts, may come in
        any order.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. A dict is ``{name: number}``; what it does not name is 0.
        Y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, 0 or 1; or for each row the set of its labels' names. Labels whose names are known and not there are
            absent. If `supports_missing_labels`, NaN is a label that is not known.
        classes : None
            Not used: a label is 0 or 1. Here because scikit-learn's tools pass it.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            self._learn(X, Y)
        return self

    def _learn(self, X: Any, Y: Any) -> None:
        """Check a batch and learn it."""
        if self.__sklearn_is_fitted__():
            rows = features.later_features(self, X)
            labels = growth.later_labels(self, Y, rows.shape[0])
        else:
            rows, labels = self._begin(X, Y)
        self._refuse_changed_parameters()
        for _ in range(self._times_shown()):
            self._learned = self._learned.updated(rows, labels)

    def _begin(self, X: Any, Y: Any) -> tuple[AnyMatrix, AnyMatrix]:
        """Check the first batch, and make the state that is to learn it."""
        rows = features.first_features(self, X)
        n_rows, allow_missing = rows.shape[0], self.supports_missing_labels
        labels, self.label_names_ = first_labels(Y, n_rows, self.label_names, allow_missing=allow_missing)
        self.classes_ = np.arange(labels.shape[1])
        self._n_values = self._kinds_of_features(rows)
        self._seed = self._draw_seed()
        algorithm, self._began_with = self._algorithm(), self.get_params(deep=False)
        self._learned = Learned(algorithm, self._init(algorithm, self._n_values, labels.shape[1]))
        return rows, labels

    def _kinds_of_features(self, X: AnyMatrix) -> IntArray:
        """Find how many values each nominal feature has, at least those of the first batch; 0 for a numeric one."""
        n_values = validation.categorical_values(self.categorical_features, X.shape[1], self._feature_names)
        validation.check_codes(X, n_values)
        return columns.widest_values(n_values, X)

    def _times_shown(self) -> int:
        """How often each batch is learned in a row."""
        return 1

    def predict(self, X: Any, ids: Any = None, top: int | None = None) -> npt.NDArray[np.int8]:
        """Predict label sets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. Names in dicts that the model does not know are ignored.
        ids : sequence or None
            An id for each row, such as a number or text, by which `learn` teaches its labels when they are known. The
            newest `buffer_size` rows are kept; an id that comes again replaces its row.
        top : int or None
            How many labels to predict for every row, those with the highest scores; None lets the model decide.

        Returns
        -------
        (n, l) array of 0 and 1, of one byte each
        """
        check_is_fitted(self)
        checked = self._check_features(X, reset=False)
        listed = None if ids is None else waiting.check_ids(ids, checked.shape[0])
        if top is None:
            predicted = self._learned.algorithm.predict(self._learned.derived, checked).view(np.int8)
        else:
            parameters.check_whole("top", top, 1)
            predicted = _best(self._learned.algorithm.scores(self._learned.derived, checked), top)
        if listed is not None:
            self._keep(listed, X, checked)
        return predicted

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
        merging.merge(self, other)
        return self

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

    def _check_features(self, X: Any, *, reset: bool) -> AnyMatrix:
        """Check rows that begin a model, or rows that it is asked about."""
        return features.first_features(self, X) if reset else features.asked_features(self, X)

    def _refuse_changed_parameters(self) -> None:
        # Comparing references is quick, and where none has changed it is enough.
        untouched = all(self.__dict__[name] is value for name, value in self._began_with.items())
        if not untouched and self._algorithm() != self._learned.algorithm:
            raise ValueError(
                "The parameters are not those that learning began with: set them back, or start anew with fit."
            )

    @property
    def supports_missing_labels(self) -> bool:
        """Whether a NaN in Y is a label that is not known, rather than an error."""
        return self._is_able_to("learns_partial_labels")

    def _allows_missing(self) -> bool:
        """Tell whether NaN in X is a missing value rather than an error."""
        return self._is_able_to("skips_missing")

    def _is_able_to(self, ability: str) -> bool:
        try:
            algorithm = self._learned.algorithm if self.__sklearn_is_fitted__() else self._algorithm()
        except ValueError:
            # A wrong parameter is reported where learning starts, not where somebody asks for the tags.
            return False
        return bool(getattr(algorithm, ability))

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


def _best(scores: FloatArray, count: int) -> npt.NDArray[np.int8]:
    """Mark the labels with the highest scores in every row."""
    n_labels = scores.shape[1]
    marked = np.zeros(scores.shape, dtype=np.int8)
    first = n_labels - min(count, n_labels)
    np.put_along_axis(marked, np.argpartition(scores, first, axis=1)[:, first:], 1, axis=1)
    return marked
