"""The fitted attributes of a tagger, the methods that change its tags, and how taggers are merged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

from sklearn.exceptions import NotFittedError

from labelrace.base.fitted_attributes import Displayed
from labelrace.base.registry import make_report
from labelrace.base.threads import Writable, one_at_a_time
from labelrace.exceptions import MergeError
from labelrace.tables import merge
from labelrace.tables.column_kinds import Column
from labelrace.tables.known import Known
from labelrace.tables.state import TagCounts, TaggerState
from labelrace.tables.suggestions import PrecisionCurve, precision_curve
from labelrace.tables.tag_details import read_details
from labelrace.tables.tag_doubts import fold_details


class TaggerAttributes(Displayed, Writable):
    """The fitted attributes, and the names of tags; everything is in the one value ``_known``."""

    separator: str | None
    fold_tags: bool
    _known: Known

    @property
    def state(self) -> TaggerState:
        """Everything that was learned except the model, as a value."""
        return self._checked_known().state

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
        """Quality of the predictions of `prequential_fit`: rows, example F1 and micro F1; NaN if there were none."""
        return self.state.quality()

    @property
    def precision_curve_(self) -> PrecisionCurve:
        """The precision of tags and the share of rows with one, by the least confidence, on recent rows."""
        return precision_curve(self.state.suggestions)

    @property
    def n_rows_(self) -> int:
        """Number of rows learned."""
        return self.state.n_rows

    @property
    def n_known_(self) -> int:
        """Number of rows that were skipped, as they had been learned with the same tags; see `skip_known`."""
        return self.state.n_known

    @property
    def n_corrections_(self) -> int:
        """Number of rows learned that had been learned with other tags."""
        return self.state.n_corrections

    @property
    def model_(self) -> Any:
        """The model inside."""
        return self._checked_known().model

    def report(self, X: Any = None) -> Any:
        """Return a report that a notebook shows as tables and charts, and a terminal as text.

        Parameters
        ----------
        X : table or path, default=None
            A table with tags to test the tagger on, as ``labelrace test`` does; nothing is learned. By default the
            report is of what the tagger has learned: columns, tags with their F1, and the precision to ask for.

        Returns
        -------
        Document
            Its ``_repr_html_`` is what notebooks show.
        """
        self._checked_known()
        return make_report("tagger", self) if X is None else make_report("test", self, X)

    def _html(self) -> str:
        from labelrace.tables.tagger_facts import tagger_html  # here, as only notebooks need it

        return tagger_html(self)

    def _checked_known(self) -> Known:
        if not self.is_fitted:
            raise NotFittedError(
                "This Tagger instance is not fitted yet. Call 'fit' or 'partial_fit' with rows that have tags first."
            )
        return self._known

    # --- Tags change --------------------------------------------------------------------------------------------------

    def add_labels(self, tags: Any) -> Self:
        """Add tags that no row has had yet, or details of known ones: synonyms, descriptions and parents.

        A tag is suggested for rows whose texts have its name or a synonym, or much of its description.

        Parameters
        ----------
        tags : list of str, dict from tag to dict, table or path
            Names alone; or ``{"oven": {"synonyms": ["stove"], "description": "…", "parent": "kitchen"}}``; or a table
            with the columns ``tag``, ``synonyms``, ``description`` and ``parent``.

        Returns
        -------
        self
        """
        details = read_details(tags)

        def added(known: Known) -> Known:
            given = fold_details(details, known.state.all_names()) if self.fold_tags else details
            return replace(known, state=known.state.add_tags(given))

        return self._exchange(added)

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
        return self._exchange(lambda known: replace(known, state=known.state.drop_tags(known.state.check_tags(tags))))

    def _exchange(self, change: Callable[[Known], Known]) -> Self:
        """Replace the value of everything learned by one assignment, while no other thread does."""

        def assign() -> None:
            self._known = change(self._checked_known())

        one_at_a_time(self._writers, assign)
        return self

    # --- Merging ------------------------------------------------------------------------------------------------------

    def merge(self, other: TaggerAttributes) -> Self:
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

        Examples
        --------
        >>> import labelrace
        >>> from labelrace.streams.demo import demo_tickets
        >>> tickets = demo_tickets(2000)
        >>> one = labelrace.Tagger("tags", id="ticket", random_state=0).partial_fit(tickets[:1000])
        >>> other = labelrace.Tagger("tags", id="ticket", random_state=0).partial_fit(tickets[1000:])
        >>> "calendar" in one.tags_, "calendar" in one.merge(other).tags_
        (False, True)
        """
        if not isinstance(other, TaggerAttributes):
            raise MergeError(f"other must be a Tagger, got {type(other).__name__}.")
        given: dict[str, Any] = {"fold_tags": self.fold_tags, "separator": self.separator}
        return self._exchange(lambda known: merge.merge(known, other._checked_known(), **given))

    def emptied(self) -> Self:
        """Return a copy that knows the columns, words and tags of this one, and has learned nothing.

        Replicas of a tagger that go on from such a copy, each with rows of its own, are merged with the tagger and with
        one another; then no row counts twice.

        Returns
        -------
        Tagger

        Raises
        ------
        MergeError
            If the model cannot be merged, with the reason.

        Examples
        --------
        >>> import labelrace
        >>> from labelrace.streams.demo import demo_tickets
        >>> rows = demo_tickets(1500)
        >>> start = labelrace.Tagger("tags", random_state=0).partial_fit(rows[:500])
        >>> replica = start.emptied().partial_fit(rows[500:1000])
        >>> start.partial_fit(rows[1000:]).merge(replica).n_rows_
        1500
        """
        copied = copy.copy(self)
        copied._known = merge.emptied(self._checked_known())
        return copied
