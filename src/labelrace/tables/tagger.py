"""Tables in, tags out: features and a model as one estimator, `Tagger`.

As with a model, everything that a tagger has learned is one value, `Known`. A change makes a new value, with a copy of
the model, and assigns it when nothing can fail any more. So a refused or interrupted batch leaves the tagger unchanged,
and threads that predict read one reference.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from labelrace.base import model_file, parameters
from labelrace.base.registry import make_model
from labelrace.base.threads import Writable, one_at_a_time
from labelrace.exceptions import MergeError
from labelrace.tables import merge, tagger_file
from labelrace.tables.column_kinds import Column
from labelrace.tables.features import ColumnParameters, TableFeatures
from labelrace.tables.read import Table, one_row, table_batches
from labelrace.tables.state import UNTAGGED, Known, TagCounts, TaggerState, TagSets, f1
from labelrace.tables.tags import tagged_batches, without_tags
from labelrace.typing import Array, SparseMatrix


class Tagger(ColumnParameters, Writable, BaseEstimator):  # type: ignore[misc]
    """Learn to tag the rows of tables, batch by batch, and continue training on later ones.

    A table is a data frame (pandas, polars), an Arrow table, a list of dicts, or the path of a file: CSV, TSV, JSON
    lines, Parquet or Arrow. The kinds of its columns are detected from the first batch (see `columns_`); new tags and
    words are learned as they appear.

    A table of more than `batch_size` rows is learned batch by batch: after an error or an interrupt, each batch has
    been learned completely or not at all, and `n_rows_` is the number of rows learned. Other threads may predict
    meanwhile.

    Parameters
    ----------
    tags : str or list of str, default=None
        The column that holds the tags of each row: lists, or a text such as ``"oven; bread"``. Or a list of columns of
        0 and 1, one for each tag. None if tags are always given as `y`.
    separator : str, default=None
        The separator of tags in a text. By default it is detected: ``;``, ``|``, ``,`` or spaces.
    untagged : {"unknown", "none"}, default="unknown"
        Whether a row without tags has not been tagged yet and is not learned, or no tag applies to it, which is
        learned. A row of 0 in all columns of tags has none, either way. Batches before the first tag are not learned.
    model : str or classifier, default="race"
        The name of a model, see `labelrace.model_names`, or an unfitted classifier of labelrace. It must accept new
        features and labels.
    batch_size : int, default=500
        Number of rows that are learned at once; larger tables are split.
    random_state : int, default=None
        Seed of the model.

    Examples
    --------
    >>> import labelrace
    >>> rows = [
    ...     {"body": "The oven is too hot", "tags": "oven; heat"},
    ...     {"body": "The oven door is broken", "tags": "oven; door"},
    ...     {"body": "My toaster does not heat", "tags": "toaster; heat"},
    ...     {"body": "The toaster is broken", "tags": "toaster"},
    ... ] * 10
    >>> tagger = labelrace.Tagger(tags="tags", random_state=0).partial_fit(rows)
    >>> tagger.predict([{"body": "An oven"}, {"body": "A toaster"}])
    [{'oven'}, {'toaster'}]
    >>> tagger.explain({"body": "An oven"}, tags=["oven"])["oven"][0][0]
    'body: oven'
    """

    tags: str | Sequence[str] | None = field(default=None, kw_only=False)
    separator: str | None = None
    untagged: str = "unknown"
    model: Any = "race"
    batch_size: int = 500
    random_state: Any = None
    _known: Known = field(init=False)

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a table, and forget everything learned before.

        Parameters
        ----------
        X : table or path
        y : list of sets, lists or texts, or data frame of 0 and 1, default=None
            The tags of each row, if they are not a column of the table.

        Returns
        -------
        self
        """
        fresh = copy.copy(self)
        fresh.__dict__.pop("_known", None)

        def change() -> None:
            fresh.partial_fit(X, y)
            if not fresh.is_fitted:
                raise ValueError(
                    "X must have rows with tags, got none: learn tables that may have none by partial_fit."
                )
            self._known = fresh._known

        one_at_a_time(self._writers, change)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn a further table; see `fit`."""
        for batch in self.tagged_batches(X, y):
            one_at_a_time(self._writers, self._learn, *batch)
        return self

    def prequential_fit(self, X: Any, y: Any = None) -> list[set[str]]:
        """Predict the rows of a table, batch by batch, each before it is learned; `quality_` is the quality so far.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        list of sets of tags
            The predictions; empty sets for the rows of the first batch.
        """
        predicted = list[set[str]]()
        for batch in self.tagged_batches(X, y):
            predicted += one_at_a_time(self._writers, self._learn, *batch, True)
        return predicted

    def tagged_batches(
        self, X: Any, y: Any = None, *, delimiter: str | None = None
    ) -> Iterator[tuple[Table, TagSets, str | None]]:
        """Yield the batches of a table without its tags, the tags, and their separator."""
        parameters.check_choice("untagged", self.untagged, UNTAGGED)
        parameters.check_whole("batch_size", self.batch_size, 1)
        separator = self.separator or (self._known.state.separator if self.is_fitted else None)
        return tagged_batches(X, y, self.tags, separator, self.batch_size, delimiter)

    def _learn(self, table: Table, tags: TagSets, separator: str | None, test: bool = False) -> list[set[str]]:
        """Learn a batch; if asked to, predict it first."""
        known = self._known if self.is_fitted else None
        before = known and known.state
        predicted = [set[str]() for _ in tags]
        if before is None and not any(tags):
            return predicted
        features = known.features if known else self.new_features()
        state, X, reused, as_before = features.update(before and before.features, table)
        tested = before or TaggerState(state, separator)
        tagged, truth = tested.names.tagged(tags, self.untagged)
        if test and known is not None:
            predicted = known.predict(as_before())
            tested = known.state.add_tested(truth, [predicted[row] for row in tagged])
        if tagged:
            # What a model has learned is a value, so learning with a copy leaves the model unchanged.
            model = copy.copy(known.model) if known else self._new_model()
            if len(reused):
                model.reset_features(reused)
            model.partial_fit(X[tagged] if len(tagged) < len(tags) else X, truth)
            after = tested.add_learned(truth)._replace(features=state, separator=separator)
            self._known = Known(after, model, copy.copy(features).restore(state))
        return predicted

    def new_features(self) -> TableFeatures:
        """Return an unfitted transformer with the parameters of the tagger."""
        return TableFeatures(**{name: getattr(self, name) for name in signature(ColumnParameters).parameters})

    def _new_model(self) -> Any:
        model = make_model(self.model) if isinstance(self.model, str) else clone(self.model)
        if not hasattr(model, "partial_fit") or not hasattr(model, "predict_labels"):
            raise ValueError(f"model must be one of labelrace's online classifiers, got {self.model!r}.")
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=self.random_state)
        return model

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> list[set[str]]:
        """Predict the tags of each row.

        Parameters
        ----------
        X : table or path
            The columns of tags are ignored, if there are any.

        Returns
        -------
        list of sets of str
        """
        known = self._checked_known()
        return [tags for matrix in self._matrices(known, X) for tags in known.predict(matrix)]

    def predict_top(self, X: Any, k: int = 5) -> list[list[tuple[str, float]]]:
        """Return the most likely tags of each row with their probabilities, best first.

        Parameters
        ----------
        X : table or path
        k : int, default=5
            Number of tags; all if there are fewer.

        Returns
        -------
        list of lists of (tag, probability)
        """
        parameters.check_whole("k", k, 1)
        known = self._checked_known()
        return [row for matrix in self._matrices(known, X) for row in known.predict_top(matrix, k)]

    def predict_proba(self, X: Any) -> list[dict[str, float]]:
        """Return the probabilities of all tags of each row; `predict_top` returns only the best.

        Parameters
        ----------
        X : table or path

        Returns
        -------
        list of dicts from tag to probability
        """
        known = self._checked_known()
        n_tags = len(known.model.label_names_)
        return [dict(row) for matrix in self._matrices(known, X) for row in known.predict_top(matrix, n_tags)]

    def predict_scored(self, X: Any) -> list[dict[str, float]]:
        """Predict the tags of each row, with their probabilities.

        Parameters
        ----------
        X : table or path

        Returns
        -------
        list of dicts from tag to probability
            Only the predicted tags, most likely first.
        """
        known = self._checked_known()
        return [row for matrix in self._matrices(known, X) for row in known.predict_scored(matrix)]

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean F1 of the rows, of their tags and the predicted tags.

        Parameters
        ----------
        X, y
            As for `fit`. Rows without tags are ignored if `untagged` is "unknown".

        Returns
        -------
        float
        """
        known, sums = self._checked_known(), list[float]()
        for table, tags, _ in self.tagged_batches(X, y):
            predicted = known.predict(known.features.transform(table))
            rows, truth = known.state.names.tagged(tags, self.untagged)
            sums += [f1(names, predicted[row]) for row, names in zip(rows, truth, strict=True)]
        if not sums:
            raise ValueError("X must have rows with tags to compute a score, got none.")
        return float(np.mean(sums))

    def explain(
        self, row: Any, tags: Iterable[str] | None = None, n_words: int = 10
    ) -> dict[str, list[tuple[str, float]]]:
        """Return the words and values that contribute to tags.

        Parameters
        ----------
        row : dict, or table of one row
        tags : list of str, default=None
            The tags to explain; by default the predicted ones, or the most likely ones if there are none.
        n_words : int, default=10
            Maximum number of words and values for each tag.

        Returns
        -------
        dict from tag to list of (word or value, amount)
            The largest amounts come first; a negative amount is evidence against the tag.
        """
        known = self._checked_known()
        if not hasattr(known.model, "explain"):
            raise ValueError(f"The model {self.model!r} cannot explain its predictions: use 'race'.")
        [matrix] = self._matrices(known, one_row(row))
        return known.explain(matrix, tags, n_words)

    def _matrices(self, known: Known, X: Any) -> Iterator[SparseMatrix]:
        """Yield the features of a table, batch by batch."""
        for table in table_batches(X, max(1, int(self.batch_size))):
            yield known.features.transform(without_tags(table, self.tags))

    # --- Merging ------------------------------------------------------------------------------------------------------

    def merge(self, other: Tagger) -> Self:
        """Add what another tagger has learned from other rows; words and tags are matched by name.

        Merging is as exact as that of the model (see `model_`). Each tagger has weighted words by its own rows, so the
        result is close to a tagger that learned all rows.

        Parameters
        ----------
        other : Tagger
            It is not changed; its rows count as the later ones.

        Returns
        -------
        self

        Raises
        ------
        MergeError
            If the taggers cannot be merged, with the reason.
        """
        if not isinstance(other, Tagger):
            raise MergeError(f"other must be a Tagger, got {type(other).__name__}.")
        return self._exchange(lambda known: merge.merge(known, other._checked_known()))

    def as_rows(self, table: Table, tags: TagSets) -> tuple[TaggerState, SparseMatrix, list[int], list[set[str]]]:
        """Turn a batch into rows for the model, without learning them.

        Returns
        -------
        state, matrix, rows, tags
            The state after the batch; the features of all rows; the rows that have tags, and their tags.
        """
        known = self._checked_known()
        before = known.state
        learned, X, *_ = known.features.update(before.features, table)
        tagged, truth = before.names.tagged(tags, self.untagged)
        return before.add_learned(truth)._replace(features=learned), X, tagged, truth

    def exchanged(self, state: TaggerState, model: Any) -> Self:
        """Return a copy with another state and model."""
        copied = copy.copy(self)
        copied._known = Known(state, model, copied.new_features().restore(state.features))
        return copied

    @property
    def state(self) -> TaggerState:
        """Everything that was learned apart from the model, as a value."""
        return self._checked_known().state

    # --- Tags change --------------------------------------------------------------------------------------------------

    def rename_labels(self, names: Mapping[str, str]) -> Self:
        """Rename tags; an old name in later rows means the new one.

        Parameters
        ----------
        names : dict from old to new name

        Returns
        -------
        self
        """
        return self._exchange(lambda known: known.rename_tags(names))

    def merge_labels(self, tags: Iterable[str], into: str) -> Self:
        """Merge tags into one; each of them means this one in later rows.

        Parameters
        ----------
        tags : list of str
        into : str
            One of them, another tag, or a new name.

        Returns
        -------
        self
        """
        return self._exchange(lambda known: known.merge_tags(tags, into))

    def drop_labels(self, tags: Iterable[str]) -> Self:
        """Retire tags: they are no longer predicted, and ignored in later rows.

        Parameters
        ----------
        tags : list of str

        Returns
        -------
        self
        """
        return self._exchange(lambda known: known._replace(state=known.state.drop_tags(known.state.check_tags(tags))))

    def _exchange(self, change: Callable[[Known], Known]) -> Self:
        """Replace the value of everything learned by one assignment, while no other thread does."""

        def assign() -> None:
            self._known = change(self._checked_known())

        one_at_a_time(self._writers, assign)
        return self

    # --- What was learned ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to one file, which `labelrace.load` reads; it is written completely or not at all.

        Parameters
        ----------
        path : path
        """
        known = self._checked_known()
        model_file.write(path, *tagger_file.pack_tagger(self, known.state, known.model))

    @classmethod
    def from_file(cls, header: dict[str, Any], tensors: dict[str, Array], encoders: Any = None) -> Self:
        """Make a tagger from the content of its file; `labelrace.load` calls this."""
        given, state, model = tagger_file.unpack_tagger(header, tensors, encoders)
        return cls(**given).exchanged(state, model)

    @property
    def is_fitted(self) -> bool:
        """Whether anything has been learned."""
        return "_known" in self.__dict__

    @property
    def columns_(self) -> tuple[Column, ...]:
        """The kind of each column of the table."""
        return self.state.features.columns

    @property
    def separator_(self) -> str | None:
        """The separator of tags that are written as one text."""
        return self.state.separator

    @property
    def tags_(self) -> Mapping[str, TagCounts]:
        """All tags, with how often they occurred and how well they were predicted before their rows were learned."""
        return self.state.counts

    @property
    def quality_(self) -> dict[str, float]:
        """Quality of the predictions of `prequential_fit`: rows, example F1 and micro F1."""
        return self.state.quality()

    @property
    def n_rows_(self) -> int:
        """Number of rows learned."""
        return self.state.n_rows

    @property
    def model_(self) -> Any:
        """The model inside."""
        return self._checked_known().model

    def _checked_known(self) -> Known:
        if not self.is_fitted:
            raise NotFittedError(
                "This Tagger instance is not fitted yet. Call 'fit' or 'partial_fit' with rows that have tags first."
            )
        return self._known

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted
