"""A labelrace classifier behind River's interface."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from labelrace.base import parameters, registry, validation
from labelrace.base.estimator import OnlineClassifier
from labelrace.base.naming import NamedRows
from labelrace.exceptions import GrowthError, LabelraceError
from labelrace.river import rows
from labelrace.river.rows import Columns, Named, Row
from labelrace.typing import AnyMatrix, Array

try:
    from river import base
except ImportError as error:
    raise ImportError("labelrace.river needs River, which is not installed: pip install 'labelrace[river]'") from error

# What classifiers raise for rows that they cannot learn.
_REFUSALS = (ValueError, ArithmeticError)


class _Example(NamedTuple):
    """A row that is still to be learned."""

    features: Row
    labels: Row
    number: int


# A row that cannot be learned, and why.
_Refused: TypeAlias = tuple[_Example, Exception]


class _Names(NamedTuple):
    """The columns of features and of labels."""

    features: Columns
    labels: Columns


class _Predicted(dict[Hashable, bool]):
    """Whether each label is present. An unknown one is not: River's metrics look up labels that are new."""

    def __missing__(self, label: Hashable) -> bool:
        return False


class _Likely(dict[Hashable, dict[bool, float]]):
    """The probabilities of each label; an unknown one is absent."""

    def __missing__(self, label: Hashable) -> dict[bool, float]:
        return {False: 1.0, True: 0.0}


class RiverClassifier(base.MultiLabelClassifier):  # type: ignore[misc]
    """Online multi-label classification by label compression, for River.

    Features are a dict of numbers, bools and text; text becomes a feature of its own (``{"colour": "red"}`` is
    ``{"colour=red": 1}``), an absent feature is 0, and None is a missing value. Labels are a set of names, or
    a dict ``{label: True or False}``, in which None is a label that is not known. Features and labels may appear at any
    time. A model that cannot take new ones raises a `GrowthError` when they come after its first batch.

    Rows are learned in small batches, which is many times faster than one by one: `learn_one` collects them and learns
    when `batch_size` have come, so that predictions do not know of the newest rows, fewer than `batch_size`. At the
    beginning all rows so far are learned again at the 1st, 2nd, 4th, 8th, … row, until the first batch is complete.
    `flush` learns the pending rows at once.

    Parameters
    ----------
    model : str or classifier
        A name of an online model, see `labelrace.model_names`, or one of labelrace's classifiers that has not learned
        anything yet. It is copied.
    batch_size : int
        Rows that are learned together. 1 learns every row at once.
    seed : int or None
        Seed for reproducibility: the classifier's ``random_state``. None leaves that as it is.

    Attributes
    ----------
    classifier : classifier
        The classifier with its named features and labels, to save it or to explain predictions. It is replaced with
        every batch.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from labelrace.river import RiverClassifier
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> X, Y = next(SyntheticStream(n_rows=2000, n_features=20, n_labels=10, seed=0).batches(2000))
    >>> stream = [(dict(enumerate(x)), dict(enumerate(y))) for x, y in zip(X.tolist(), (Y.toarray() > 0).tolist())]
    >>> metric = metrics.multioutput.SampleAverage(metrics.Jaccard())
    >>> evaluate.progressive_val_score(stream, RiverClassifier(seed=0), metric)
    SampleAverage(Jaccard): 7...%
    """

    def __init__(self, model: str | OnlineClassifier = "race", batch_size: int = 32, seed: int | None = None) -> None:
        parameters.check_whole("batch_size", batch_size, 1)
        self.model = model
        self.batch_size = batch_size
        self.seed = seed
        self.classifier = _new_classifier(model, seed)
        self._learns_missing_labels = self.classifier.supports_missing_labels
        self._allows_missing = self.classifier.supports_missing_values
        given = self.classifier.label_names
        self._features, self._labels = Columns(), Columns(() if given is None else given)
        self._pending: list[_Example] = []
        self._in_first_batch = True
        # The number of pending rows that are learned already, in the first batch, and that make the next update due.
        self._n_learned, self._n_due = 0, 1
        self._n_rows = 0

    def learn_one(self, x: dict[Hashable, Any], y: Any) -> None:
        """Learn a row, at the latest when `batch_size` of them have come.

        Parameters
        ----------
        x : dict
            Features.
        y : dict or set
            Labels.
        """
        features = self._read(x)
        labels = rows.read_labels(y, allow_missing=self._learns_missing_labels)
        if not (self._features.knows(features.names) and self._labels.knows(labels.names)):
            self._add_columns(features, labels)
        self._n_rows += 1
        self._pending.append(_Example(self._features.row(features), self._labels.row(labels), self._n_rows))
        if len(self._pending) >= self._n_due:
            self.flush()

    def flush(self) -> None:
        """Learn the pending rows now.

        Raises
        ------
        ValueError, DivergenceError
            If rows cannot be learned; the error names the first of them, counted from 1. The others are learned.
        """
        if not (self._features and self._labels):
            # Nothing can be learned before there is a feature and a label.
            del self._pending[: -self.batch_size]
            return
        if len(self._pending) == self._n_learned:
            return
        names = _Names(self._features, self._labels)
        known, new, refused = self._pending[: self._n_learned], self._pending[self._n_learned :], list[_Refused]()
        while True:
            classifier = copy.copy(self.classifier)
            wrong = self._learn_or_refuse(classifier, names, known, new) if new and all(names) else []
            if not wrong:
                break
            # Rows that cannot be learned are not tried again, and the others are learned without the names of these.
            refused += wrong
            numbers = {row.number for row, _ in refused}
            rest = [row for row in (*known, *new) if row.number not in numbers]
            names, rest = self._without_unused(names, rest)
            known, new = rest[: len(known)], rest[len(known) :]
        after: dict[str, Any] = {"classifier": classifier, "_features": names.features, "_labels": names.labels}
        # Those learned already stay in the first batch, and so do those that wait for a first feature or label.
        after["_pending"] = known if all(names) else new
        if all(names) and (known or new) and self._in_first_batch:
            learned = [*known, *new]
            is_first = len(learned) < self.batch_size
            pending = learned if is_first else []
            after |= {"_pending": pending, "_n_learned": len(pending), "_in_first_batch": is_first}
            after |= {"_n_due": min(2 * len(learned), self.batch_size)}
        # In one step: wherever an interrupt comes, rows have been learned or are pending.
        self.__dict__.update(after)
        if refused:
            (row, error), *others = refused
            more = f" Nor can {len(others)} others of the same batch." if others else ""
            kind: Any = type(error) if isinstance(error, LabelraceError) else ValueError
            raise kind(f"Row {row.number} cannot be learned, and is left out: {error}{more}") from error

    def _learn_or_refuse(
        self, classifier: OnlineClassifier, names: _Names, known: list[_Example], new: list[_Example]
    ) -> list[_Refused]:
        """Learn rows; if some cannot be learned, return these, and why. Then the classifier is of no further use.

        In the first batch the ``known`` ones are learned again with them.
        """
        try:
            self._learn(classifier, names, [*known, *new])
        except _REFUSALS as error:
            if len(new) == 1:
                return [(new[0], error)]
        else:
            return []
        reasons = [(row, self._why_not(classifier, names, known, row)) for row in new]
        refused = [(row, error) for row, error in reasons if error is not None]
        if refused:
            return refused
        # Only together they cannot be learned: one after the other, until they are too many.
        learned = known
        for row in new:
            try:
                self._learn(classifier, names, [*learned, row])
            except _REFUSALS as error:
                refused.append((row, error))
            else:
                learned = [*learned, row] if self._in_first_batch else []
        return refused

    def _why_not(
        self, classifier: OnlineClassifier, names: _Names, known: list[_Example], row: _Example
    ) -> Exception | None:
        """Return why a row cannot be learned, found by letting a copy of the classifier learn it."""
        try:
            self._learn(copy.copy(classifier), names, [*known, row])
        except _REFUSALS as error:
            return error
        return None

    def _without_unused(self, names: _Names, examples: list[_Example]) -> tuple[_Names, list[_Example]]:
        """Return the names without those that are new and in none of the rows, and the rows in their columns."""
        classifier = self.classifier
        given = () if classifier.label_names is None else classifier.label_names
        known = (classifier.n_features_in_, len(classifier.classes_)) if classifier.is_fitted else (0, len(given))
        features, of_features = names.features.used_by([row.features for row in examples], known[0])
        labels, of_labels = names.labels.used_by([row.labels for row in examples], known[1])
        numbers = (row.number for row in examples)
        return _Names(features, labels), list(map(_Example, of_features, of_labels, numbers))

    def _learn(self, classifier: OnlineClassifier, names: _Names, examples: list[_Example]) -> None:
        """Let a classifier learn rows: after all before them or, in the first batch, from the start."""
        features = rows.matrix([row.features for row in examples], len(names.features))
        labels = rows.matrix([row.labels for row in examples], len(names.labels))
        X: Any = NamedRows(features, self._names(names.features, "feature_names_in_"))
        Y: Any = NamedRows(labels, self._names(names.labels, "label_names_"))
        (classifier.fit if self._in_first_batch else classifier.partial_fit)(X, Y)

    def _names(self, known: Columns, attribute: str) -> Any:
        """Return the names of columns: the classifier's own array where none is new, which it need not compare."""
        own = None if self._in_first_batch else getattr(self.classifier, attribute)
        return own if own is not None and len(own) == len(known) else list(known.texts)

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Hashable, bool]:
        """Predict for every known label whether it is present; no labels are known before the first row is learned.

        Parameters
        ----------
        x : dict
            Features. Those that are not known are ignored.

        Returns
        -------
        dict from label to bool
        """
        if not self.classifier.is_fitted:
            return _Predicted()
        present = self.classifier.predict_row(self._matrix(x))
        return _Predicted(zip_longest(self._labels.columns, present, fillvalue=False))

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Hashable, dict[bool, float]]:
        """Estimate the probability that each known label is present, True, and absent, False.

        Parameters
        ----------
        x : dict
            Features. Those that are not known are ignored.

        Returns
        -------
        dict from label to dict
        """
        if not self.classifier.is_fitted:
            return _Likely()
        present = self.classifier.predict_proba(self._named(self._matrix(x)))[0].tolist()
        pairs = zip_longest(self._labels.columns, present, fillvalue=0.0)
        return _Likely((label, {False: 1.0 - likely, True: likely}) for label, likely in pairs)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn many rows as `learn_one` does, one after the other and with the same batches.

        Parameters
        ----------
        X : data frame of n rows
            Features.
        y : data frame of n rows, or series or list of n dicts or sets
            Labels: True and False by name, or as for `learn_one`.

        Raises
        ------
        ValueError, DivergenceError
            If rows cannot be learned: the first error. All other rows are learned.
        """
        labels = list(_dicts(y) if hasattr(y, "columns") else y)
        if len(labels) != len(X):
            raise ValueError(f"X and y must have the same number of rows, got {len(X)} and {len(labels)}.")
        errors = []
        for x, of_row in zip(_dicts(X), labels, strict=True):
            try:
                self.learn_one(x, of_row)
            except _REFUSALS as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def predict_many(self, X: Any) -> Any:
        """Predict the labels of many rows.

        Parameters
        ----------
        X : data frame

        Returns
        -------
        data frame of bools, with a row for each row of ``X`` and a column for each label
        """
        return self._frame(X, lambda queries: self.classifier.predict(queries).toarray(), bool)

    def predict_proba_many(self, X: Any) -> Any:
        """Estimate the probabilities of the labels of many rows.

        Parameters
        ----------
        X : data frame

        Returns
        -------
        data frame of numbers, with a row for each row of ``X`` and a column for each label
        """
        return self._frame(X, self.classifier.predict_proba, float)

    def _frame(self, X: Any, predict: Any, kind: type) -> Any:
        import pandas as pd

        labels = list(self._labels.columns) if self.classifier.is_fitted else []
        predicted: Array = np.zeros((len(X), len(labels)), dtype=kind)
        if labels and len(X):
            width = self.classifier.n_features_in_
            queries = [self._features.row(self._read(x), width) for x in _dicts(X)]
            known = predict(self._named(rows.matrix(queries, width)))
            predicted[:, : known.shape[1]] = known
        return pd.DataFrame(predicted, index=X.index, columns=pd.Index(labels, dtype=object))

    def _read(self, x: Any) -> Named:
        """Read a row's features, and refuse what is not finite unless it is missing and may be."""
        named = rows.read_features(x)
        if not np.isfinite(named.values).all():
            validation.check_finite(named.values, allow_missing=self._allows_missing)
        return named

    def _matrix(self, x: Any) -> AnyMatrix:
        """Make the matrix of one row to be predicted."""
        width: int = self.classifier.n_features_in_
        return rows.matrix([self._features.row(self._read(x), width)], width)

    def _named(self, matrix: AnyMatrix) -> Any:
        return NamedRows(matrix, list(self._features.texts)[: matrix.shape[1]])

    def _add_columns(self, features: Named, labels: Named) -> None:
        """Give columns to features and labels that are new, if the classifier can take them."""
        if not self._in_first_batch:
            self._refuse_new("feature", self._features, features.names, self.classifier.why_no_new_features())
            n_labels = len({*self._labels.columns, *labels.names})
            self._refuse_new("label", self._labels, labels.names, self.classifier.why_no_new_labels(n_labels))
        # Both are checked before either is changed: a refused row leaves nothing behind.
        new_features, new_labels = (
            self._features.new(features.names, "feature"),
            self._labels.new(labels.names, "label"),
        )
        self._features.add(new_features)
        self._labels.add(new_labels)

    def _refuse_new(self, what: str, known: Columns, names: Iterable[Hashable], reason: str | None) -> None:
        new = [name for name in names if name not in known.columns]
        if new and reason:
            raise GrowthError(
                f"The {what} {new[0]!r} is new, but {type(self.classifier).__name__} cannot take new ones after its "
                f"first batch: {reason}. Use the model 'race', which can."
            )


def _new_classifier(model: Any, seed: int | None) -> OnlineClassifier:
    """Make an unfitted classifier."""
    made = registry.make_model(model) if isinstance(model, str) else model
    if not isinstance(made, OnlineClassifier):
        raise ValueError(f"model must be a model's name or a classifier of labelrace, got {model!r}.")
    if not made.is_online:
        raise ValueError(f"model must learn batch by batch, got {model!r}, which needs all data at once.")
    if made.is_fitted:
        raise ValueError("model must not have learned anything yet: give a new one.")
    made = clone(made)
    if seed is not None and "random_state" in made.get_params():
        made.set_params(random_state=seed)
    return made


def _dicts(frame: Any) -> Iterator[dict[Hashable, Any]]:
    """Turn the rows of a data frame into dicts."""
    names = list(frame.columns)
    for values in frame.itertuples(index=False, name=None):
        yield dict(zip(names, values, strict=True))
