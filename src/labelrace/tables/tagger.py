"""Tables in, tags out: features and a model as one estimator, `Tagger`.

As with a model, everything that a tagger has learned is one value, `Known`. A change makes a new value, with a copy of
the model, and assigns it when nothing can fail any more. So a refused or interrupted batch leaves the tagger unchanged,
and threads that predict read one reference.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from inspect import signature
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, clone

from labelrace.base import events, frames, model_file, parameters
from labelrace.base.progress import progress_bar
from labelrace.base.registry import make_model
from labelrace.base.threads import one_at_a_time
from labelrace.tables import known_rows, tagger_file, trial
from labelrace.tables.features import ColumnParameters, Rows, TableFeatures
from labelrace.tables.known import Known, Ranked, Suggestion, Wanted
from labelrace.tables.learning import Lesson, learn
from labelrace.tables.pending import TableRows
from labelrace.tables.read import Table, count_rows, one_row, table_batches
from labelrace.tables.state import UNTAGGED, TaggerState, TagSets
from labelrace.tables.tag_details import read_details
from labelrace.tables.tag_doubts import fold, say_doubts
from labelrace.tables.tagger_attributes import TaggerAttributes
from labelrace.tables.tags import check_separator, tagged_batches, without_tags
from labelrace.typing import Array, SparseMatrix


class Tagger(ColumnParameters, TaggerAttributes, BaseEstimator):  # type: ignore[misc]
    """Learn to tag the rows of tables, batch by batch, and continue training on later ones.

    A table is a data frame (pandas, polars), an Arrow table, a list of dicts, or the path of a file: CSV, TSV,
    Excel, JSON lines, Parquet or Arrow. The kinds of its columns are detected from the first batch, or from the first
    100 rows if it has fewer (see `columns_`); new tags and words are learned as they appear.

    A table of more than `batch_size` rows is learned batch by batch: after an error or an interrupt, each batch has
    been learned completely or not at all, and `n_rows_` is the number of rows learned. Other threads may predict
    meanwhile.

    Parameters
    ----------
    tags : str or list of str, default=None
        The column that holds the tags of each row: lists, or a text such as ``"oven; bread"``. Or a list of columns of
        0 and 1, one for each tag. None if tags are always given as `y`.
    separator : str, default=None
        The separator of tags in a text. By default it is detected: ``;``, ``|``, ``,``, line ends or spaces.
    untagged : {"unknown", "none"}, default="unknown"
        Whether a row without tags has not been tagged yet and is not learned, or no tag applies to it, which is
        learned. A row of 0 in all columns of tags has none, either way. Batches before the first tag are not learned.
    model : str or classifier, default="race"
        The name of a model, see `labelrace.model_names`, or an unfitted classifier of labelrace. It must accept new
        features and labels.
    precision : float, default=None
        Share of the given tags that is to be right, such as 0.9: only tags of a confidence that has reached it, on rows
        not learned yet, are given. Rows without a tag are for people, see `suggest`. None for as many as rows have.
    min_probability : float, default=0.0
        Tags that are less likely are not given.
    single : {"auto", True, False}, default="auto"
        Whether one tag is predicted for each row, the most likely one; by default if all rows had one, of at least 100.
        With `precision` or `min_probability` it is given where it is sure enough.
    fold_tags : bool, default=False
        Whether tags that differ by case, spaces or composition only are one tag, in the spelling learned first.
    vocabulary : dict, list, table or path, default=None
        Tags that are known beforehand; see `add_labels`.
    skip_known : bool, default=True
        Whether rows that were learned before are noticed, the last 2²⁰ of them: with the same tags they are skipped,
        with other tags they are learned as corrections, and not tested. A row is known by its identifier and its texts,
        or by all its cells if it has one of both. See `n_known_` and `n_corrections_`.
    batch_size : int, default=500
        Number of rows that are learned at once; larger tables are split. Of the first 2,000 rows, 100 are learned at
        once at most, so that most of them are tested.
    random_state : int, default=None
        Seed of the model.

    Attributes
    ----------
    columns_ : tuple of labelrace.tables.Column
        The kind of each column of the table.
    tags_ : dict from tag to labelrace.tables.TagCounts
        How often each tag occurred, and how well it was predicted before its rows were learned.
    separator_ : str or None
        The separator of tags that are written as one text.
    n_rows_ : int
        Number of rows learned.
    n_known_ : int
        Number of rows that were skipped, as they had been learned with the same tags; see `skip_known`.
    n_corrections_ : int
        Number of rows learned that had been learned with other tags.
    quality_ : dict
        Quality of the predictions of `prequential_fit`: rows, example F1 and micro F1; NaN if there were none.
    precision_curve_ : PrecisionCurve
        What a least confidence leads to, on recent rows: the precision of tags, and the share of rows with one.
    model_ : classifier
        The model inside.

    Examples
    --------
    >>> import labelrace
    >>> rows = [
    ...     {"body": "The oven is too hot", "tags": "oven; heat"},
    ...     {"body": "The oven door is broken", "tags": "oven; door"},
    ...     {"body": "My toaster does not heat", "tags": "toaster; heat"},
    ...     {"body": "The toaster is broken", "tags": "toaster"},
    ... ]
    >>> tickets = [{"number": number, **rows[number % 4]} for number in range(40)]
    >>> tagger = labelrace.Tagger(tags="tags", random_state=0).partial_fit(tickets)
    >>> tagger.predict([{"body": "An oven"}, {"body": "A toaster"}])
    [{'oven'}, {'toaster'}]
    >>> tagger.explain({"body": "An oven"}, tags=["oven"])["oven"][0][0]
    'body: oven'
    """

    tags: str | Sequence[str] | None = field(default=None, kw_only=False)
    separator: str | None = None
    untagged: str = "unknown"
    model: Any = "race"
    precision: float | None = None
    min_probability: float = 0.0
    single: Any = "auto"
    fold_tags: bool = False
    vocabulary: Any = None
    skip_known: bool = True
    batch_size: int = 500
    random_state: Any = None
    _known: Known = field(init=False)

    warns = True
    """Whether columns that are new or absent are warned of, and not only logged."""

    # --- Learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, confirmed: bool = False) -> Self:
        """Learn a table, and forget everything learned before.

        Parameters
        ----------
        X : table or path
        y : list of sets, lists or texts, or data frame of 0 and 1, default=None
            The tags of each row, if they are not a column of the table.
        confirmed : bool, default=False
            Whether people have looked at all rows of a table that the command ``predict`` has written. By default rows
            that still have the tags predicted for them are skipped.

        Returns
        -------
        self
        """
        fresh = copy.copy(self)
        fresh.__dict__.pop("_known", None)

        def change() -> None:
            fresh.partial_fit(X, y, confirmed=confirmed)
            if not fresh.is_fitted:
                raise ValueError(
                    "X must have rows with tags, got none: learn tables that may have none by partial_fit."
                )
            self._known = fresh._known

        one_at_a_time(self._writers, change)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, confirmed: bool = False) -> Self:
        """Learn a further table; see `fit`.

        Parameters
        ----------
        X, y, confirmed
            As for `fit`.

        Returns
        -------
        self
        """
        for batch in self.tagged_batches(X, y, confirmed=confirmed):
            self.learn_batch(*batch)
        return self

    def learn_batch(self, table: Table, tags: TagSets, separator: str | None, *, test: bool = False) -> list[set[str]]:
        """Learn one of `tagged_batches`, completely or not at all; return what was predicted before, if asked to."""
        return one_at_a_time(self._writers, self._learn, table, tags, separator, test)

    def after_batch(
        self, table: Table, tags: TagSets, separator: str | None, *, test: bool = False
    ) -> tuple[Self, Lesson]:
        """Return a copy that has learned one of `tagged_batches`, and the result, with predictions if ``test`` is true.

        This tagger does not change: `labelrace.serve` folds a journal this way.
        """
        before = self._known if self.is_fitted else None
        # More may be known than when the batch was read.
        tags = self._folded(tags)
        lesson = learn(self, before, table, tags, separator, self._wanted if test else None)
        after = copy.copy(self)
        if lesson.known is not None:
            after._known = lesson.known
        return after, lesson

    def tested(self, true: Sequence[set[str]], predicted: Sequence[set[str]]) -> Self:
        """Return a copy that has counted rows as tested, with the predictions that people saw."""
        after = copy.copy(self)
        known = self._checked_known()
        after._known = replace(known, state=known.state.add_tested(true, predicted))
        return after

    def prequential_fit(
        self, X: Any, y: Any = None, *, confirmed: bool = False, progress: bool = False
    ) -> list[set[str]]:
        """Predict the rows of a table, batch by batch, each before it is learned; `quality_` is the quality so far.

        Parameters
        ----------
        X, y, confirmed
            As for `fit`. Rows of a table that was predicted before are learned, but test nothing.
        progress : bool, default=False
            Whether to show how many rows have been learned, in a terminal or a notebook.

        Returns
        -------
        list of sets of tags
            The predictions; empty sets for the rows of the first batch, or for the first 100 of them.
        """
        predicted = list[set[str]]()
        with progress_bar(progress, count_rows(X)) as show:
            for batch in self.tagged_batches(X, y, confirmed=confirmed):
                predicted += one_at_a_time(self._writers, self._learn, *batch, True)
                show(len(predicted), f"{len(predicted):,} rows")
        return predicted

    def tagged_batches(
        self,
        X: Any,
        y: Any = None,
        *,
        reading: Any = None,
        confirmed: bool = False,
        on_unchanged: Callable[[int], object] | None = None,
    ) -> Iterator[tuple[Table, TagSets, str | None]]:
        """Yield the batches of a table without its tags, the tags, and their separator.

        Rows with just the tags that were predicted are left out, see `fit`; ``on_unchanged`` gets their number in each
        batch. By default there is one warning of them.
        """
        parameters.check_choice("untagged", self.untagged, UNTAGGED)
        for name in ("fold_tags", "skip_known", "encoders_only"):
            parameters.check_flag(name, getattr(self, name))
        parameters.check_flag("confirmed", confirmed)
        if not isinstance(self.separator, str | None) or self.separator == "":
            raise ValueError(f"separator must be a text, or None to detect it, got {self.separator!r}.")
        if y is None and self.tags is not None and not self.tags:
            raise ValueError(f"tags must be the name of a column, or a list of columns, got {self.tags!r}.")
        parameters.check_whole("batch_size", self.batch_size, 1)
        separator = self.separator or (self._known.state.separator if self.is_fitted else None)
        unchanged = list[int]()
        settings: Any = {"confirmed": confirmed, "on_unchanged": on_unchanged or unchanged.append}
        for table, tags, found in tagged_batches(X, y, self.tags, separator, self.batch_size, reading, **settings):
            if y is None and self.is_fitted and found is not None and found == self.state.separator:
                check_separator(tags, found, self.state.all_names())
            yield table, self._folded(tags), found
        if unchanged:
            rows = "1 row" if sum(unchanged) == 1 else f"{sum(unchanged):,} rows"
            warnings.warn(
                f"Left out {rows} with just the tags that were predicted: a tagger learns only what people said. If "
                "somebody has looked at all rows, give confirmed=True.",
                UserWarning,
                stacklevel=3,
            )

    def _folded(self, tags: TagSets) -> TagSets:
        """Return tags with one spelling for each, if that is wanted."""
        if not self.fold_tags:
            return tags
        return fold(tags, self.state.all_names() if self.is_fitted else read_details(self.vocabulary or ()))

    def _learn(self, table: Table, tags: TagSets, separator: str | None, test: bool = False) -> list[set[str]]:
        """Learn a batch; if ``test`` is true, predict it first."""
        before = self._known if self.is_fitted else None
        # More may be known than when the batch was read.
        tags = self._folded(tags)
        known, predicted, *_ = learn(self, before, table, tags, separator, self._wanted if test else None)
        if known is not None and known is not before:
            self._known = known
            state = before.state if before else None
            say_doubts(self.__dict__.setdefault("_said", set()), tags, state)
            events.log_columns(state.features.columns if state else (), known.state.features.columns)
        return predicted

    def new_features(self) -> TableFeatures:
        """Return an unfitted transformer with the parameters of the tagger."""
        features = TableFeatures(**{name: getattr(self, name) for name in signature(ColumnParameters).parameters})
        features.warns = self.warns
        return features

    def without_warnings(self) -> Self:
        """Return a copy that logs new or absent columns, and does not warn of them."""
        quiet = copy.copy(self)
        quiet.warns = False
        return quiet.exchanged(self.state, self.model_, self._known.trial) if self.is_fitted else quiet

    def new_model(self) -> Any:
        """Return a model that has learned nothing."""
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
        return [tags for rows in self._rows(known, X) for tags in known.predict(rows, self._wanted)]

    @overload
    def predict_top(self, X: Any, k: int = 5, *, as_frame: Literal[False] = False) -> list[list[tuple[str, float]]]: ...
    @overload
    def predict_top(self, X: Any, k: int = 5, *, as_frame: bool) -> Any: ...
    def predict_top(self, X: Any, k: int = 5, *, as_frame: bool = False) -> Any:
        """Return the most likely tags of each row with their probabilities, best first.

        Parameters
        ----------
        X : table or path
        k : int, default=5
            Number of tags; all if there are fewer.
        as_frame : bool, default=False
            Whether to return a data frame, of polars if ``X`` is one of polars, otherwise of pandas.

        Returns
        -------
        list of lists of (tag, probability), or data frame with the columns row, rank, label and probability

        Examples
        --------
        >>> from labelrace.streams.demo import demo_tickets
        >>> tagger = Tagger("tags", id="ticket", random_state=0).partial_fit(demo_tickets(2000))
        >>> [best] = tagger.predict_top([{"subject": "Parcel late", "body": "The courier lost my password"}], k=2)
        >>> [tag for tag, probability in best]
        ['shipping', 'login']
        """
        parameters.check_whole("k", k, 1)
        known = self._checked_known()
        top = [row for rows in self._rows(known, X) for row in known.predict_top(rows, k)]
        return frames.top_frame(top, X) if as_frame else top

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
        tops = (row for rows in self._rows(known, X) for row in known.predict_top(rows, len(known.tags)))
        # Tags that no row has had yet have no label in the model.
        return [dict(row) | dict.fromkeys(known.tags.keys() - dict(row).keys(), 0.0) for row in tops]

    @overload
    def suggest(self, X: Any, *, as_frame: Literal[False] = False) -> list[Suggestion]: ...
    @overload
    def suggest(self, X: Any, *, as_frame: bool) -> Any: ...
    def suggest(self, X: Any, *, as_frame: bool = False) -> Any:
        """Suggest tags with their probabilities, and whether a person should look at each row.

        Parameters
        ----------
        X : table or path
        as_frame : bool, default=False
            As for `predict_top`; the columns are row, tags, probabilities and review.

        Returns
        -------
        list of Suggestion, or data frame
            Each with ``tags``, a dict from tag to probability, most likely first, and ``review``: true where no tag is
            sure enough, or nothing in the row has been seen before. Where rows were learned to which no tag applies
            (``untagged="none"``, or columns of 0 and 1), a row without tags may be one of these.
        """
        known = self._checked_known()
        suggested = [one for rows in self._rows(known, X) for one in known.suggest(rows, self._wanted)]
        return frames.suggestion_frame(suggested, X) if as_frame else suggested

    def rank(self, X: Any, k: int = 10) -> list[Ranked]:
        """Suggest tags as `suggest` does, and return the ``k`` most likely ones beside them, computed once.

        Parameters
        ----------
        X : table or path
        k : int, default=10

        Returns
        -------
        list of Ranked
            Each with ``tags`` and ``review``, and ``likely``, pairs of tag and probability, best first.
        """
        parameters.check_whole("k", k, 0)
        known = self._checked_known()
        return [one for rows in self._rows(known, X) for one in known.ranked(rows, self._wanted, k)]

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the subset accuracy, as classifiers do: the share of rows whose tags are predicted exactly.

        With many tags a row this is strict. `quality_` has the F1 of rows before they were learned, and
        ``labelrace.measures.evaluate(tags, tagger.predict(table))`` other measures.

        Parameters
        ----------
        X, y
            As for `fit`. Rows without tags are ignored if `untagged` is "unknown".

        Returns
        -------
        float
        """
        known, are_right = self._checked_known(), list[bool]()
        for table, tags, _ in self.tagged_batches(X, y):
            if not table.n_rows:
                continue
            predicted = known.predict(known.features.read(table), self._wanted)
            rows, truth = known.state.names.tagged(tags, self.untagged)
            are_right += [names == predicted[row] for row, names in zip(rows, truth, strict=True)]
        if not are_right:
            raise ValueError("X must have rows with tags to compute a score, got none.")
        return float(np.mean(are_right))

    @overload
    def explain(
        self, row: Any, tags: Iterable[str] | None = None, n_words: int = 10, *, as_frame: Literal[False] = False
    ) -> dict[str, list[tuple[str, float]]]: ...
    @overload
    def explain(self, row: Any, tags: Iterable[str] | None = None, n_words: int = 10, *, as_frame: bool) -> Any: ...
    def explain(self, row: Any, tags: Iterable[str] | None = None, n_words: int = 10, *, as_frame: bool = False) -> Any:
        """Return the words and values that contribute to tags.

        Parameters
        ----------
        row : dict, or table of one row
        tags : list of str, default=None
            The tags to explain; by default the predicted ones, or the most likely ones if there are none.
        n_words : int, default=10
            Maximum number of words and values for each tag.
        as_frame : bool, default=False
            As for `predict_top`; the columns are label, feature and contribution.

        Returns
        -------
        dict from tag to list of (word or value, amount), or data frame
            The largest amounts come first; a negative amount is evidence against the tag.

        Examples
        --------
        >>> from labelrace.streams.demo import demo_tickets
        >>> tagger = Tagger("tags", id="ticket", random_state=0).partial_fit(demo_tickets(2000))
        >>> found = tagger.explain({"subject": "Parcel late", "body": "The courier lost my password"}, ["login"])
        >>> word, amount = found["login"][0]
        >>> word, amount > 0
        ('body: password', True)
        """
        parameters.check_whole("n_words", n_words, 1)
        known = self._checked_known()
        if not hasattr(known.model, "explain"):
            raise ValueError(f"The model {self.model!r} cannot explain its predictions: use 'race'.")
        [rows] = self._rows(known, one_row(row))
        explained = known.explain(rows, tags, n_words)
        return frames.explanation_frame(explained, row) if as_frame else explained

    def _rows(self, known: Known, X: Any) -> Iterator[Rows]:
        """Yield the rows of a table, batch by batch."""
        for table in table_batches(X, max(1, int(self.batch_size))):
            if table.n_rows:
                yield known.features.read(without_tags(table, self.tags))

    @property
    def _wanted(self) -> Wanted:
        if self.precision is not None:
            parameters.check_number("precision", self.precision, 0.0, 1.0)
        parameters.check_number("min_probability", self.min_probability, 0.0, 1.0)
        if self.single not in (True, False, "auto"):
            raise ValueError(f'single must be True, False or "auto", got {self.single!r}.')
        may_be_none = self.untagged == "none" or isinstance(self.tags, (list, tuple))
        return Wanted(self.precision, self.min_probability, self.single, may_be_none)

    @property
    def predicts_one_tag(self) -> bool:
        """Whether one tag is predicted for each row."""
        return self.is_fitted and self._known.is_single(self._wanted)

    # --- Parts of it, for merging and the service ---------------------------------------------------------------------

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
        met = known_rows.meet(before.known_rows, learned.columns, table, tagged, truth)
        after = before.add_learned(truth)._replace(features=learned, first=None, known_rows=met.rows)
        return after, X, tagged, truth

    def exchanged(self, state: TaggerState, model: Any, second: trial.Trial | None = None) -> Self:
        """Return a copy with another state and model."""
        copied = copy.copy(self)
        copied._known = Known(state, model, copied.new_features().restore(state.features), trial=second)
        return copied

    # --- What was learned ---------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tagger to one file, which `labelrace.load` reads; it is written completely or not at all.

        Parameters
        ----------
        path : path

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import labelrace
        >>> rows = [{"body": "hot oven", "tags": "oven"}, {"body": "broken toaster", "tags": "toaster"}] * 10
        >>> tagger = Tagger("tags", text="body", random_state=0).partial_fit(rows)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tagger.save(Path(folder, "tickets.safetensors"))
        ...     labelrace.load(Path(folder, "tickets.safetensors")).predict([{"body": "A hot oven"}])
        [{'oven'}]
        """
        model_file.write(path, *self.pack())

    def pack(self, *, exact: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the content of a file of the tagger, a header and arrays by name, for a file that holds more than it.

        With `exact`, a tagger made of them goes on as this one would, to the bit; files of large ones are shorter.
        """
        return tagger_file.pack_tagger(self, self._checked_known(), exact)

    def rows_to_keep(self) -> TableRows:
        """Return the kind of pending rows for `labelrace.DelayedLabels`."""
        return TableRows(self)

    @classmethod
    def from_file(
        cls, header: dict[str, Any], tensors: dict[str, Array], encoders: Any = None, embed: Any = None
    ) -> Self:
        """Make a tagger from the content of its file; `labelrace.load` calls this."""
        given, state, model, second = tagger_file.unpack_tagger(header, tensors, encoders, embed)
        return cls(**given).exchanged(state, model, second)

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted
