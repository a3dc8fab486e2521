"""Tables in, tags out: features and a model as one estimator, `Tagger`.

As with a model, everything that a tagger knows is one value, `Known`. Whatever changes it makes a new one, with a copy
of the model, and assigns that when nothing can fail any more. So a refused or an interrupted batch leaves the tagger as
it was, and threads that predict read one reference.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from labelrace import parameters
from labelrace.core.locks import one_at_a_time
from labelrace.exceptions import MergeError
from labelrace.features import Column, TableFeatures
from labelrace.features.cells import Table, read_table
from labelrace.models import persistence
from labelrace.models.registry import make_model
from labelrace.models.writing import Writable
from labelrace.tagger import merging, storage
from labelrace.tagger.state import Known, TaggerState, f1
from labelrace.tagger.tables import batches_of, one_row
from labelrace.tagger.tags import UNTAGGED, TagCounts, TagNames, TagSets, as_given, from_table
from labelrace.typing import Array, SparseMatrix

__all__ = ["Tagger"]

# Tags to explain where none is predicted.
_EXPLAINED = 3


class Tagger(Writable, BaseEstimator):  # type: ignore[misc]
    """Learn to tag the rows of tables, batch by batch, and go on learning.

    A table is a data frame (pandas, polars), an Arrow table, a list of dicts, or the path of a file: CSV, TSV, JSON
    lines, Parquet or Arrow. What its columns hold is found from the first batch (see `columns_`); tags and words that
    are new later are learned as they appear.

    A table of more than `batch_size` rows is learned batch by batch: after an error, or an interrupt, a batch has been
    learned whole or not at all, and `n_rows_` tells how many rows. Threads may predict meanwhile.

    Parameters
    ----------
    tags : str or list of str, default=None
        The column that holds the tags of each row: lists, or a text such as ``"oven; bread"``. A list of names are
        columns of 0 and 1, one for each tag. None if tags are always given beside the table.
    text, category, number, date, id, drop : str or list of str, default=None
        Columns to read as such, in place of what is detected; ``id`` and ``drop`` are not learned from.
    separator : str, default=None
        What separates tags in a text. By default it is found in the data: ``;``, ``|``, ``,`` or spaces.
    untagged : {"unknown", "none"}, default="unknown"
        What a row without tags means: that nobody has tagged it yet, so it is not learned; or that no tag applies to
        it, which is learned. Batches before the very first tag teach nothing, either way.
    model : str or classifier, default="race"
        A model's name, see `labelrace.model_names`, or an unfitted one of labelrace's classifiers. It must be able to
        take new features and labels.
    min_rows : int, default=None
        In how many rows a word must have been to be learned: a larger number takes less memory. By default words of
        short texts, such as titles, are learned at once, and those of long texts when they come the third time.
    max_features : int, default=262144
        Words and values that are known at a time, at most; those long unseen give their place to others.
    encoders : dict of callables by column, default=None
        Encoders of your own for text columns: from a list of texts to an array with a row for each. They are not saved:
        give them to `labelrace.load` again.
    encoders_only : bool, default=False
        Whether columns that have an encoder are left to it alone, without their words.
    batch_size : int, default=500
        Rows that are learned at once; larger tables are cut.
    random_state : int, default=None
        Seed of what the model draws.

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

    _known: Known

    def __init__(
        self,
        tags: str | Sequence[str] | None = None,
        *,
        text: Any = None,
        category: Any = None,
        number: Any = None,
        date: Any = None,
        id: Any = None,
        drop: Any = None,
        separator: str | None = None,
        untagged: str = "unknown",
        model: Any = "race",
        min_rows: int | None = None,
        max_features: int = 2**18,
        encoders: Mapping[str, Any] | None = None,
        encoders_only: bool = False,
        batch_size: int = 500,
        random_state: Any = None,
    ) -> None:
        self.tags, self.text, self.category, self.number = tags, text, category, number
        self.date, self.id, self.drop = date, id, drop
        self.separator, self.untagged = separator, untagged
        self.model = model
        self.min_rows, self.max_features = min_rows, max_features
        self.encoders, self.encoders_only = encoders, encoders_only
        self.batch_size, self.random_state = batch_size, random_state

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything and learn a table.

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
        """Predict the rows of a table, batch by batch, each before it is learned; `quality_` tells how well.

        Parameters
        ----------
        X : table or path
        y : list of sets, lists or texts, or data frame of 0 and 1, default=None
            The tags of each row, if they are not a column of the table.

        Returns
        -------
        list of sets of tags
            What was predicted; nothing for the rows of the first batch.
        """
        predicted = list[set[str]]()
        for batch in self.tagged_batches(X, y):
            predicted += one_at_a_time(self._writers, self._learn, *batch, True)
        return predicted

    def tagged_batches(
        self, X: Any, y: Any = None, *, delimiter: str | None = None
    ) -> Iterator[tuple[Table, TagSets, str | None]]:
        """Yield the batches of a table without the column of tags, their tags, and what separates these."""
        parameters.check_choice("untagged", self.untagged, UNTAGGED)
        parameters.check_whole("batch_size", self.batch_size, 1)
        if y is not None:
            table = read_table(X)
            tags, separator = as_given(y, table.n_rows, self._separator())
            for start in range(0, table.n_rows, self.batch_size):
                part = slice(start, start + self.batch_size)
                yield self._without_tags(table.rows(part.start, part.stop)), tags[part], separator
            return
        if self.tags is None:
            raise ValueError(
                "y must be the tags of each row, or tags= the name of the column that holds them, got None."
            )
        if not isinstance(X, (str, Path)):
            # All tags are read before anything is learned: an error leaves the tagger as it was.
            X = read_table(X)
            from_table(X, self.tags, self._separator())
        separator = self._separator()
        for batch in batches_of(X, self.batch_size, delimiter):
            tags, separator = from_table(batch, self.tags, self._separator() or separator)
            yield self._without_tags(batch), tags, separator

    def _separator(self) -> str | None:
        return self.separator or (self._known.state.separator if self.is_fitted else None)

    def _without_tags(self, table: Table) -> Table:
        return table.without([self.tags] if isinstance(self.tags, str) else self.tags or ())

    def _learn(self, table: Table, tags: TagSets, separator: str | None, test: bool = False) -> list[set[str]]:
        """Learn a batch; if asked to, predict it first."""
        known = self._known if self.is_fitted else None
        before = known and known.state
        tagged = [row for row, names in enumerate(tags) if names is not None or self.untagged == "none"]
        predicted = [set[str]() for _ in tags]
        if before is None and not any(tags):
            return predicted
        features = known.features if known else self.new_features()
        state, X, reused = features.learned(before and before.features, table)
        names = before.names if before else TagNames({}, frozenset())
        truth = [names.current(tags[row] or ()) for row in tagged]
        tested = TaggerState(state, separator, names) if before is None else before
        if test and known is not None:
            predicted = _predicted(known, X)
            tested = known.state.tested(truth, [predicted[row] for row in tagged])
        if tagged:
            # What it knows is a value, so a copy that goes on leaves the model as it is.
            model = copy.copy(known.model) if known else self._new_model()
            if len(reused):
                model.reset_features(reused)
            model.partial_fit(X[tagged] if len(tagged) < len(tags) else X, truth)
            after = tested.learned(truth)._replace(features=state, separator=separator)
            self._known = Known(after, model, copy.copy(features).restore(state))
        return predicted

    def new_features(self) -> TableFeatures:
        """Make the transformer that the parameters describe."""
        names = ("text", "category", "number", "date", "id", "drop", "min_rows", "max_features")
        others = {name: getattr(self, name) for name in (*names, "encoders", "encoders_only")}
        return TableFeatures(**others)

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
            A column of tags, if there is one, is left out.

        Returns
        -------
        list of sets of str
        """
        known = self._checked_known()
        return [tags for matrix in self._matrices(known, X) for tags in _predicted(known, matrix)]

    def predict_top(self, X: Any, k: int = 5) -> list[list[tuple[str, float]]]:
        """List the most likely tags of each row with their probabilities, best first.

        Parameters
        ----------
        X : table or path
        k : int, default=5
            How many tags to list; all if there are fewer.

        Returns
        -------
        list of lists of (tag, probability)
        """
        parameters.check_whole("k", k, 1)
        return self._top(self._checked_known(), X, k)

    def _top(self, known: Known, X: Any, k: int) -> list[list[tuple[str, float]]]:
        names = known.state.names
        n_more = len(names.aliases) + len(names.retired)
        rows = [row for matrix in self._matrices(known, X) for row in known.model.predict_top(matrix, k + n_more)]
        return [names.of_likely(row)[:k] for row in rows]

    def predict_proba(self, X: Any) -> list[dict[str, float]]:
        """Estimate the probability of every tag, by name; `predict_top` lists the best only.

        Parameters
        ----------
        X : table or path

        Returns
        -------
        list of dicts from tag to probability
        """
        known = self._checked_known()
        return [dict(row) for row in self._top(known, X, len(known.model.label_names_))]

    def predict_scored(self, X: Any) -> list[dict[str, float]]:
        """Predict the tags of each row, with their probabilities.

        Parameters
        ----------
        X : table or path

        Returns
        -------
        list of dicts from tag to probability
            Of the predicted tags only, most likely first.
        """
        rows = list[dict[str, float]]()
        known = self._checked_known()
        places = {label: place for place, label in enumerate(known.model.label_names_)}
        for matrix in self._matrices(known, X):
            likely = known.model.predict_proba(matrix)
            for tags, row in zip(known.model.predict_labels(matrix), likely, strict=True):
                pairs = sorted(((tag, float(row[places[tag]])) for tag in tags), key=lambda pair: (-pair[1], pair[0]))
                rows.append(dict(known.state.names.of_likely(pairs)))
        return rows

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean F measure of the rows: what tags and predicted tags have in common.

        Parameters
        ----------
        X : table or path
        y : list of sets, lists or texts, or data frame of 0 and 1, default=None
            The tags of each row, if they are not a column of the table. Rows without tags are left out if they are
            unknown.

        Returns
        -------
        float
        """
        known, sums = self._checked_known(), list[float]()
        for table, tags, _ in self.tagged_batches(X, y):
            predicted = _predicted(known, known.features.transform(table))
            for names, found in zip(tags, predicted, strict=True):
                if names is not None or self.untagged == "none":
                    sums.append(f1(known.state.names.current(names or ()), found))
        if not sums:
            raise ValueError("X must have rows with tags to compute a score, got none.")
        return float(np.mean(sums))

    def explain(
        self, row: Any, tags: Iterable[str] | None = None, n_words: int = 10
    ) -> dict[str, list[tuple[str, float]]]:
        """Tell which words and values carried which tag.

        Parameters
        ----------
        row : dict, or table of one row
        tags : list of str, default=None
            The tags to explain; by default those predicted, or the most likely ones if there are none.
        n_words : int, default=10
            Words and values to list for each tag, at most.

        Returns
        -------
        dict from tag to list of (word or value, amount)
            Those that carried most come first; a negative amount speaks against the tag.
        """
        known = self._checked_known()
        if not hasattr(known.model, "explain"):
            raise ValueError(f"The model {self.model!r} cannot explain its predictions: use 'race'.")
        table = one_row(row)
        [matrix] = self._matrices(known, table)
        own_labels = list(known.model.label_names_)
        [best] = self._top(known, table, len(own_labels))
        chosen = (
            list(tags)
            if tags is not None
            else sorted(_predicted(known, matrix)[0]) or [tag for tag, _ in best[:_EXPLAINED]]
        )
        names, words = known.state.names, known.state.features.vocabulary.names
        explained = {}
        for tag in chosen:
            labels = [label for label in own_labels if names.current([label]) == {tag}]
            if not labels:
                raise ValueError(f"tags must be tags that the tagger knows, got {tag!r}.")
            told = max(known.model.explain(matrix, labels, n_words), key=lambda one: one.score)
            explained[tag] = [(words[column], amount) for column, amount in told.features]
        return explained

    def _matrices(self, known: Known, X: Any) -> Iterator[SparseMatrix]:
        """Yield the features of a table, some rows at a time."""
        for table in batches_of(X, max(1, int(self.batch_size))):
            yield known.features.transform(self._without_tags(table))

    # --- Merging ------------------------------------------------------------------------------------------------------

    def merge(self, other: Tagger) -> Self:
        """Take in what another tagger has learned from other rows; words and tags are joined by name.

        Exact where the model's merging is (see `model_`); words are weighted by what each had seen, so that the result
        comes close to the tagger that learned all rows.

        Parameters
        ----------
        other : Tagger
            Is not changed; its rows are taken for the later ones.

        Returns
        -------
        self

        Raises
        ------
        MergeError
            Where merging makes no sense, with the reason.
        """
        if not isinstance(other, Tagger):
            raise MergeError(f"other must be a Tagger, got {type(other).__name__}.")
        return self._exchange(lambda known: merging.merged(known, other._checked_known()))

    def as_rows(self, table: Table, tags: TagSets) -> tuple[TaggerState, SparseMatrix, list[int], list[set[str]]]:
        """Turn a batch into rows for the model, without letting it learn them.

        Returns
        -------
        state, matrix, rows, tags
            What is known after the batch; the features of all rows; which of them have tags, and their tags.
        """
        known = self._checked_known()
        before = known.state
        learned, X, _ = known.features.learned(before.features, table)
        tagged = [row for row, names in enumerate(tags) if names is not None or self.untagged == "none"]
        truth = [before.names.current(tags[row] or ()) for row in tagged]
        return before.learned(truth)._replace(features=learned), X, tagged, truth

    def exchanged(self, state: TaggerState, model: Any) -> Self:
        """Return a copy with other knowledge."""
        copied = copy.copy(self)
        copied._known = Known(state, model, copied.new_features().restore(state.features))
        return copied

    @property
    def state(self) -> TaggerState:
        """Everything that is known beside the model, as a value."""
        return self._checked_state()

    # --- Tags change --------------------------------------------------------------------------------------------------

    def rename_labels(self, names: Mapping[str, str]) -> Self:
        """Give tags other names; rows that still come with an old one are taken for the new one.

        Parameters
        ----------
        names : dict from old to new name

        Returns
        -------
        self
        """
        return self._exchange(lambda known: _renamed(known, names))

    def merge_labels(self, tags: Iterable[str], into: str) -> Self:
        """Join tags into one; rows that still come with one of them are taken for it.

        Parameters
        ----------
        tags : list of str
        into : str
            One of them, another tag, or a new name.

        Returns
        -------
        self
        """

        def change(known: Known) -> Known:
            listed = known.state.checked_tags(tags)
            if not isinstance(into, str):
                raise ValueError(f"into must be the name of a tag, got {into!r:.80}.")
            if into not in known.state.counts:
                known = _renamed(known, {listed[0]: into})
            here = [tag for tag in listed if tag in known.state.counts]
            return known._replace(state=known.state.merged(here, into))

        return self._exchange(change)

    def drop_labels(self, tags: Iterable[str]) -> Self:
        """Retire tags: they are predicted no more, and left out where rows still come with them.

        Parameters
        ----------
        tags : list of str

        Returns
        -------
        self
        """
        return self._exchange(lambda known: known._replace(state=known.state.without(known.state.checked_tags(tags))))

    def _exchange(self, change: Callable[[Known], Known]) -> Self:
        """Put a new value in the place of what is known, while no other thread does; with one assignment."""

        def assign() -> None:
            self._known = change(self._checked_known())

        one_at_a_time(self._writers, assign)
        return self

    # --- What is known ------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to one file, which `labelrace.load` reads; the file is complete or not there.

        Parameters
        ----------
        path : path
        """
        known = self._checked_known()
        persistence.write(path, *storage.packed(self, known.state, known.model))

    @classmethod
    def restored(cls, header: dict[str, Any], tensors: dict[str, Array], encoders: Any = None) -> Self:
        """Make a tagger of what its file holds; `labelrace.load` calls this."""
        given, state, model = storage.unpacked(header, tensors, encoders)
        tagger = cls(**given)
        tagger._known = Known(state, model, tagger.new_features().restore(state.features))
        return tagger

    @property
    def is_fitted(self) -> bool:
        """Whether anything has been learned."""
        return "_known" in self.__dict__

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What each column of the table was taken for."""
        return self._checked_state().features.columns

    @property
    def separator_(self) -> str | None:
        """What separates the tags of a row where they are one text."""
        return self._checked_state().separator

    @property
    def tags_(self) -> Mapping[str, TagCounts]:
        """All tags, with how often they were there and how well they were predicted before their rows were learned."""
        return self._checked_state().counts

    @property
    def quality_(self) -> dict[str, float]:
        """Quality of what was predicted before it was learned, by `prequential_fit`: rows, example F and micro F."""
        return self._checked_state().quality()

    @property
    def n_rows_(self) -> int:
        """Rows learned."""
        return self._checked_state().n_rows

    @property
    def model_(self) -> Any:
        """The model inside."""
        return self._checked_known().model

    def _checked_state(self) -> TaggerState:
        return self._checked_known().state

    def _checked_known(self) -> Known:
        if not self.is_fitted:
            raise NotFittedError(
                "This Tagger instance is not fitted yet. Call 'fit' or 'partial_fit' with rows that have tags first."
            )
        return self._known

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted


def _predicted(known: Known, matrix: SparseMatrix) -> list[set[str]]:
    """Predict tags, under the names that they have now."""
    return [known.state.names.current(tags) for tags in known.model.predict_labels(matrix)]


def _renamed(known: Known, names: Mapping[str, str]) -> Known:
    """Give tags other names, in the model too."""
    changed, model = known.state.renamed(names), copy.copy(known.model)
    # Tags that came by merging have no label of their own.
    labels = set(model.label_names_)
    model.rename_labels({old: new for old, new in names.items() if old in labels})
    return known._replace(state=changed, model=model)
