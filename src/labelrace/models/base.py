"""What all online multi-label classifiers have in common.

Everything a model knows is one value, `Fitted`: an algorithm of the core, the schema of its columns, and its state.
`partial_fit` makes a new one, in the order check, grow, update, and assigns it when nothing can fail any more. So a
failed call, or an interrupted one, leaves the model as it was, and threads that predict read one reference. Threads
that learn wait for one another.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from labelrace import limits, parameters
from labelrace.core.algorithm import Algorithm
from labelrace.core.linalg import sparse_marks
from labelrace.core.locks import one_at_a_time
from labelrace.core.schema import Schema
from labelrace.exceptions import GrowthError, MergeError
from labelrace.models import inputs, labels, naming, persistence
from labelrace.models.fitted import Fitted, beyond_bounds
from labelrace.models.inputs import Owner
from labelrace.models.signature import DeclaredParameters
from labelrace.models.writing import Writable
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray, MatrixLike, TargetLike

__all__ = ["OnlineClassifier", "read_only"]

# Scores computed at once where not all of them are kept: 2²² are 32 MB.
_CELLS = 2**22


def _is_online(model: OnlineClassifier) -> bool:
    if not model.is_online:
        raise AttributeError(f"{type(model).__name__} is offline: it learns all data at once, by fit.")
    return True


class OnlineClassifier(DeclaredParameters, Writable, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the classifiers, nearly all of which learn batch by batch.

    A subclass is its parameters, declared as fields, and makes its algorithm of them.

    Parameters
    ----------
    categorical_features : mask, indices, names or None, default=None
        Features that hold codes 0, 1, 2, … of nominal values.
    label_names : sequence of str or None, default=None
        Names of the labels, if ``y`` is not a data frame, whose columns have names.

    Attributes
    ----------
    label_names_ : array of str or None
        Names of the labels.
    classes_ : (l,) array
        Columns of the labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if they have any.
    """

    is_online = True
    """Whether the classifier learns batch by batch; otherwise it has no `partial_fit`."""

    categorical_features: Any = None
    label_names: Any = None
    _fitted: Fitted = field(init=False)

    @abstractmethod
    def _algorithm(self, seed: int) -> Algorithm[Any]:
        """Check the parameters and make the algorithm of them; ``seed`` is for algorithms that draw by themselves."""

    def _seed(self) -> int:
        """Choose what the algorithm, and labels that come later, are drawn from."""
        return parameters.draw_seed(getattr(self, "random_state", 0))

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: TargetLike) -> Self:
        """Forget everything and learn from one batch.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. A dict is ``{name: number}``; what it does not name is 0.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, 0 or 1, a column for each; or for each row the set of its labels' names.

        Returns
        -------
        self
        """
        return self._exchange(lambda _: self._learned(None, X, y))

    @available_if(_is_online)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: MatrixLike, y: TargetLike, classes: None = None) -> Self:
        """Learn from a further batch.

        It may bring labels that were not there before: further columns behind the others, or new names in a data frame
        or in sets. Further columns of a sparse ``X``, or new names in dicts, are new features likewise. Names of
        labels, and of features in dicts, may come in any order.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. A dict is ``{name: number}``; what it does not name is 0.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels, 0 or 1, a column for each; or for each row the set of its labels' names. Labels whose names are
            known and not there are absent. If `supports_missing_labels`, NaN is a missing label.
        classes : None
            Not used: a label is 0 or 1. Here because scikit-learn's tools pass it.

        Returns
        -------
        self
        """
        return self._exchange(lambda before: self._learned(before, X, y))

    def _exchange(self, change: Callable[[Fitted | None], Fitted]) -> Self:
        """Put a new value in the place of what is known, while no other thread does; with one assignment."""

        def assign() -> None:
            self._fitted = change(self.__dict__.get("_fitted"))

        one_at_a_time(self._writers, assign)
        return self

    def _learned(self, before: Fitted | None, X: Any, y: Any) -> Fitted:
        """Check a batch, grow where it brings something new, and learn it."""
        if before is None:
            batch = inputs.first_batch(
                X,
                y,
                self._owner(self._algorithm(0)),
                label_names=self.label_names,
                categorical_features=self.categorical_features,
            )
            # Drawn when the batch is known to be in order: a refused one takes nothing from a generator.
            seed = self._seed()
            algorithm = self._algorithm(seed)
            state = algorithm.init(batch.schema, parameters.generator(getattr(self, "random_state", 0)))
            return Fitted(algorithm, batch.schema, state, seed, self.get_params(deep=False)).learned(batch)
        self._refuse_changed_parameters(before)
        batch = inputs.next_batch(X, y, before.schema, self._owner(before.algorithm))
        return before.learned(batch)

    def add_labels(self, new: int | Sequence[str]) -> Self:
        """Add labels that have not occurred so far; `partial_fit` does so by itself where new ones occur.

        Parameters
        ----------
        new : int or sequence of str
            How many labels, or their names.

        Returns
        -------
        self
        """
        return self._exchange(lambda _: self._checked_fitted().grown(self._schema_with(new)))

    def _schema_with(self, new: int | Sequence[str]) -> Schema:
        """Return the schema with further labels."""
        schema = self._checked_fitted().schema
        n_labels, names = labels.added_names(new, schema.n_labels, schema.label_names)
        reason = self.why_no_new_labels(n_labels)
        if reason:
            raise GrowthError(f"{type(self).__name__} cannot take new labels: {reason}.")
        return schema._replace(n_labels=n_labels, label_names=names)

    def reset_features(self, columns: Any) -> Self:
        """Forget features whose columns stand for others from now on, as far as the model can.

        Parameters
        ----------
        columns : list of int

        Returns
        -------
        self
        """
        given = np.asarray(columns)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError(f"columns must be a list of whole numbers, got {columns!r:.80}.")
        places = given.astype(np.intp)

        def reset(_: Fitted | None) -> Fitted:
            fitted = self._checked_fitted()
            n_features = fitted.schema.n_features
            if places.size and not (places.min() >= 0 and places.max() < n_features):
                raise ValueError(f"columns must be numbers of the {n_features} features, got {columns!r:.80}.")
            return fitted.replaced(fitted.schema, fitted.algorithm.reset_features(fitted.state, places))

        return self._exchange(reset)

    def rename_labels(self, names: Mapping[str, str]) -> Self:
        """Give labels other names; what has been learned of them stays.

        Parameters
        ----------
        names : dict from old to new name

        Returns
        -------
        self
        """
        return self._exchange(lambda _: self._renamed(names))

    def _renamed(self, names: Mapping[str, str]) -> Fitted:
        fitted = self._checked_fitted()
        if not isinstance(names, Mapping):
            raise ValueError(f"names must be a dict from old to new name, got {names!r:.80}.")
        schema = fitted.schema
        known = [] if schema.label_names is None else list(schema.label_names)
        unknown = [old for old in names if old not in known]
        if unknown:
            raise ValueError(f"names must be of labels that the model knows, got {unknown[0]!r}.")
        renamed = [str(names.get(name, name)) for name in known]
        if len(set(renamed)) < len(renamed):
            raise ValueError(f"names must be distinct and new, got {names!r:.80}.")
        return fitted.replaced(schema._replace(label_names=naming.as_array(renamed)), fitted.state)

    def merge(self, other: OnlineClassifier) -> Self:
        """Take in what another model has learned from other rows.

        Labels and features are joined by name, or by column if they have none. For models whose state is sums the
        result is the model that learned all rows. Let both start from one model (`emptied`) or `random_state`, so that
        what they draw, and what a first batch settles, is the same. The default, `LabelRaceClassifier`, merges well but
        not exactly: it goes half of the way from the mean of both to the sum of what they know.

        Parameters
        ----------
        other : classifier of the same class
            Is not changed. Where the order of rows matters, as for new labels, its rows are taken for the later ones.

        Returns
        -------
        self

        Raises
        ------
        MergeError
            Where merging makes no sense, with the reason.
        """
        return self.merge_columns(other, None)

    def merge_columns(self, other: OnlineClassifier, columns: IntArray | None) -> Self:
        """Merge a model whose features have no names but are known to be certain columns; see `merge`.

        Parameters
        ----------
        other : classifier of the same class
        columns : (m,) array or None
            Which of this model's columns, or of further ones, each feature of the other model is.

        Returns
        -------
        self
        """
        if type(other) is not type(self):
            self._checked_fitted()
            raise MergeError(f"other must be a {type(self).__name__}, got {type(other).__name__}.")
        return self._exchange(lambda _: self._merged(self._checked_fitted(), other._checked_fitted(), columns))

    def _merged(self, one: Fitted, other: Fitted, columns: IntArray | None) -> Fitted:
        """Join what two models know."""
        return one.merged(other, columns)

    def emptied(self) -> Self:
        """Return a copy that has learned nothing but knows what the first batch settled: the columns, what was drawn.

        Models that learn different rows from there on can be merged with one another and with this one.

        Returns
        -------
        classifier

        Raises
        ------
        MergeError
            For models that do not merge exactly, with the reason.
        """
        copied = copy.copy(self)
        copied._fitted = self._checked_fitted().emptied()
        return copied

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def predict(self, X: MatrixLike) -> AnyMatrix:
        """Predict label sets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features. Names in dicts that the model does not know are ignored, and so are further columns of a sparse
            ``X`` if the model could learn them.

        Returns
        -------
        (n, l) array of 0 and 1
            Of the type of the labels learned; a sparse array where these were sparse, or sets of names.
        """
        return self._predicted(*self._rows(X))

    def _predicted(self, fitted: Fitted, rows: AnyMatrix) -> AnyMatrix:
        """Predict label sets in the form of those learned."""
        if not fitted.schema.sparse_labels:
            present, dtype = fitted.algorithm.predict(fitted.derived, rows), fitted.schema.label_dtype
            # Types of one byte need no copy.
            return present.view(dtype) if dtype.itemsize == 1 else present.astype(dtype)
        sets = fitted.algorithm.predict_sets(fitted.derived, rows)
        if sets is not None:
            return sets.astype(fitted.schema.label_dtype)
        parts = [sparse_marks(part) for part in self._predicted_blocks(fitted, rows)]
        sets = parts[0] if len(parts) == 1 else scipy.sparse.vstack(parts, format="csr")
        return sets.astype(fitted.schema.label_dtype)

    def predict_labels(self, X: MatrixLike) -> list[set[Any]]:
        """Predict label sets by name.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.

        Returns
        -------
        list of sets
            For each row the names of its labels, or their columns if labels have no names.
        """
        fitted, rows = self._rows(X)
        sets = fitted.algorithm.predict_sets(fitted.derived, rows)
        if sets is not None:
            return [set(fitted.schema.names_of(group)) for group in np.split(sets.indices, sets.indptr[1:-1])]
        predicted = []
        for part in self._predicted_blocks(fitted, rows):
            places, found = np.nonzero(part)
            ends = np.searchsorted(places, np.arange(1, len(part)))
            predicted += [set(fitted.schema.names_of(group)) for group in np.split(found, ends)]
        return predicted

    def predict_top(self, X: MatrixLike, k: int = 5) -> list[list[tuple[Any, float]]]:
        """List the most likely labels of each row with their probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.
        k : int, default=5
            How many labels to list; all if there are fewer.

        Returns
        -------
        list of lists of (label, probability)
            Best first; labels by name, or by column if they have no names.
        """
        parameters.check_whole("k", k, 1)
        fitted, rows = self._rows(X)
        found = fitted.algorithm.predict_best(fitted.derived, rows, min(k, fitted.schema.n_labels))
        if found is not None:
            return _named(fitted.schema, *found)
        best: list[list[tuple[Any, float]]] = []
        for block in _blocks(rows, fitted.schema.n_labels):
            best += _most_likely(fitted, block, min(k, fitted.schema.n_labels))
        return best

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Compute a score for every label; higher is more likely.

        Returns
        -------
        (n, l) array
        """
        fitted, rows = self._rows(X)
        _refuse_large(rows, fitted.schema.n_labels, "decision_function")
        return _finite(fitted.algorithm.scores(fitted.derived, rows))

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Estimate the probability of every label.

        How well it is calibrated depends on the method: see its class.

        Returns
        -------
        (n, l) array
        """
        fitted, rows = self._rows(X)
        _refuse_large(rows, fitted.schema.n_labels, "predict_proba")
        return _finite(fitted.algorithm.probabilities(fitted.derived, rows))

    def score(self, X: MatrixLike, y: TargetLike, sample_weight: Any = None) -> float:
        """Compute the subset accuracy: the share of rows whose label set is predicted exactly.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or list of dicts, of n rows
            Features.
        y : array-like, sparse matrix, data frame or list of sets, of n rows
            Labels. Names that the model does not know make a row's set wrong.
        sample_weight : (n,) array-like, default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        fitted, rows = self._rows(X)
        known = fitted.schema
        truth = labels.next_labels(y, rows.shape[0], known.n_labels, known.label_names, allow_missing=True).matrix
        if np.isnan(truth.data if scipy.sparse.issparse(truth) else truth).any():
            raise ValueError("y must hold no missing labels (NaN) for a score: leave out the rows that have some.")
        predicted = self._predicted(fitted, rows)
        if truth.shape[1] > known.n_labels:
            predicted = scipy.sparse.csr_array(predicted)
            predicted.resize(truth.shape)
        differ = scipy.sparse.csr_array(predicted.astype(float)) != scipy.sparse.csr_array(truth)
        is_right = differ.sum(axis=1) == 0
        from sklearn.metrics import accuracy_score  # here, as importing it is slow and few need it

        return float(accuracy_score(np.ones_like(is_right), is_right, sample_weight=sample_weight))

    def predict_row(self, row: AnyMatrix) -> list[bool]:
        """Decide the labels of one row that is known to be in order: a (1, m) array of floats, nothing is checked."""
        fitted = self._checked_fitted()
        present: list[bool] = fitted.algorithm.predict(fitted.derived, row)[0].tolist()
        return present

    def _rows(self, X: Any) -> tuple[Fitted, AnyMatrix]:
        """Check rows to be predicted; return them with what the model knows at this moment."""
        fitted = self._checked_fitted()
        return fitted, inputs.known_rows(X, fitted.schema, self._owner(fitted.algorithm))

    @staticmethod
    def _predicted_blocks(fitted: Fitted, rows: AnyMatrix) -> Iterator[Array]:
        """Predict some rows at a time, so that there is never an array of all rows and labels."""
        for block in _blocks(rows, fitted.schema.n_labels):
            yield fitted.algorithm.predict(fitted.derived, block)

    # --- What is known ------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which `labelrace.load` reads; the file is complete or not there.

        Parameters
        ----------
        path : path
            The file. It is in the safetensors format, with a header that tells class, parameters and names.
        """
        persistence.write(path, *self.packed())

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a file of the model holds, a header and arrays by name, for a file that holds more than it."""
        fitted = self._checked_fitted()
        self._refuse_changed_parameters(fitted)
        return persistence.packed(self, fitted)

    @property
    def supports_missing_labels(self) -> bool:
        """Whether a NaN in ``y`` is a missing label, rather than an error."""
        algorithm = self._current_algorithm()
        return algorithm is not None and algorithm.learns_missing_labels

    @property
    def supports_missing_values(self) -> bool:
        """Whether a NaN in ``X`` is a missing value, rather than an error."""
        algorithm = self._current_algorithm()
        return algorithm is not None and algorithm.skips_missing

    @property
    def is_fitted(self) -> bool:
        """Whether anything has been learned."""
        return self.__sklearn_is_fitted__()

    def why_no_new_labels(self, n_labels: int) -> str | None:
        """Return why labels that appear later are refused, so that there are ``n_labels``; None if they are learned."""
        algorithm = self._checked_fitted().algorithm
        return algorithm.why_no_new_labels() or algorithm.why_too_many_labels(n_labels)

    def why_no_new_features(self) -> str | None:
        """Return why features that appear later are refused; None if they are learned."""
        return self._checked_fitted().algorithm.why_no_new_features()

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._schema_or_attribute_error().n_features

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features; not there if they have none."""
        names = self._schema_or_attribute_error().feature_names
        if names is None:
            raise AttributeError("feature_names_in_: the features have no names")
        return names

    @property
    def classes_(self) -> Array:
        """Columns of the labels, from 0."""
        return np.arange(self._schema_or_attribute_error().n_labels)

    @property
    def label_names_(self) -> Array | None:
        """Names of the labels, or None if they have none."""
        return self._schema_or_attribute_error().label_names

    def _schema_or_attribute_error(self) -> Schema:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"This {type(self).__name__} has not learned anything yet.")
        return self._fitted.schema

    def _checked_fitted(self) -> Fitted:
        """Return what is known, or raise that nothing is."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._fitted

    def _owner(self, algorithm: Algorithm[Any]) -> Owner:
        return Owner(type(self).__name__, algorithm)

    def _current_algorithm(self) -> Algorithm[Any] | None:
        """Return the algorithm; None if the parameters are wrong, which is reported where learning starts."""
        if self.__sklearn_is_fitted__():
            return self._fitted.algorithm
        try:
            return self._algorithm(0)
        except ValueError:
            return None

    def _refuse_changed_parameters(self, fitted: Fitted) -> None:
        # Comparing references is quick, and where none has changed it is enough.
        changed = [name for name, value in fitted.parameters.items() if self.__dict__[name] is not value]
        if not changed:
            return
        # What the algorithm does not compare was used in the first batch, and would be saved with the model.
        others = [name for name in changed if name in ("projection", "orders", "categorical_features", "label_names")]
        is_other = any(not _are_equal(self.__dict__[name], fitted.parameters[name]) for name in others)
        if is_other or self._algorithm(fitted.seed) != fitted.algorithm:
            raise ValueError(
                "The parameters must be those that learning began with: set them back, or start anew with fit."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.supports_missing_values
        return tags


def read_only(array: Array) -> Array:
    """Return a view that cannot be written to: what a model shows of its state must not change it."""
    view = array.view()
    view.setflags(write=False)
    return view


def _are_equal(one: Any, other: Any) -> bool:
    """Compare two values of a parameter, which may be arrays or lists of arrays."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def _blocks(rows: AnyMatrix, n_labels: int) -> Iterator[AnyMatrix]:
    """Cut rows into blocks with a bounded number of scores."""
    size = max(1, _CELLS // n_labels)
    for start in range(0, rows.shape[0], size):
        yield rows[start : start + size]


def _refuse_large(rows: AnyMatrix, n_labels: int, method: str) -> None:
    """Refuse to make an array of all rows and labels that would be too large."""
    what = f"{method}'s array of {rows.shape[0]:,} rows and {n_labels:,} labels"
    hint = "use predict_top for the best labels of each row or predict_labels for its set, give fewer rows, or"
    limits.SCORES.check(rows.shape[0] * n_labels, what, hint)


def _finite(found: FloatArray) -> FloatArray:
    """Refuse scores and probabilities that are not numbers, and return others."""
    if not np.isfinite(found).all():
        raise beyond_bounds()
    return found


def _most_likely(fitted: Fitted, rows: AnyMatrix, k: int) -> list[list[tuple[Any, float]]]:
    """List the ``k`` most likely labels of some rows with their probabilities."""
    scores, likely = fitted.algorithm.scores_and_probabilities(fitted.derived, rows)
    order = _most_likely_first(likely, scores, k)
    return _named(fitted.schema, order, np.take_along_axis(likely, order, axis=1))


def _named(schema: Schema, labels: Array, likely: FloatArray) -> list[list[tuple[Any, float]]]:
    """Put the names of labels beside their probabilities, row by row."""
    _finite(likely)
    names = (schema.names_of(row) for row in labels)
    return [list(zip(row, values.tolist(), strict=True)) for row, values in zip(names, likely, strict=True)]


def _most_likely_first(likely: FloatArray, scores: FloatArray, k: int) -> Array:
    """List the columns of the ``k`` most likely labels of each row, best first; of equals those with higher scores."""
    if k < likely.shape[1]:
        least = -np.partition(-likely, k - 1, axis=1)[:, k - 1 : k]
        # Above the least probability all are taken, and of those that have it the ones with the highest scores.
        rank = np.where(likely > least, np.inf, np.where(likely == least, scores, -np.inf))
        best = np.sort(np.argpartition(-rank, k - 1, axis=1)[:, :k], axis=1)
    else:
        best = np.tile(np.arange(k), (len(likely), 1))
    keys = (-np.take_along_axis(scores, best, axis=1), -np.take_along_axis(likely, best, axis=1))
    return np.take_along_axis(best, np.lexsort(keys, axis=1), axis=1)
