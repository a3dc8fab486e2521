"""The entries of a commit: requests become entries that hold all that is needed to learn them.

Feedback names a row by its id; the entry has the row itself, its suggestions, and whether it had tags before. Within a
commit, later requests see the tags of earlier ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from labelrace.serve import lessons, views
from labelrace.serve.fold import TEACHING, Folded, change
from labelrace.serve.inbox import TAGGED, WAITING, StoredRow, unknown_rows
from labelrace.serve.journal import Answered, NewEntry
from labelrace.serve.lessons import CheckedRow, Lesson, Limits
from labelrace.serve.problems import Problem


class Drafts:
    """The entries of one commit, before they have a position.

    Parameters
    ----------
    folded : Folded
        A recent model and quality.
    exact : callable
        Returns model and quality at the end of the journal: changes of tags are checked against these.
    stored : dict
        The rows that requests name, as they were before the commit.
    limits : Limits
    """

    def __init__(
        self, folded: Folded, exact: Callable[[], Folded], stored: Mapping[str, StoredRow], limits: Limits
    ) -> None:
        self.entries = list[NewEntry]()
        self._folded = folded
        self._exact = exact
        self._limits = limits
        self._numbers = dict[str, int]()  # of the entries, by key
        # The columns that are known, with those of the requests so far.
        tagger = folded.tagger
        self._columns = {column.name for column in tagger.columns_} if tagger.is_fitted else set[str]()
        # The rows after the requests so far.
        self._rows = dict(stored)

    def add(self, request: Lesson) -> int:
        """Check a request, and return the number of its entry; one that was sent twice has one."""
        digest = request.digest() if request.key else ""
        if request.key and request.key in self._numbers:
            number = self._numbers[request.key]
            if self.entries[number].digest != digest:
                raise _other_request()
            return number
        body, learned = self._taught(request) if request.kind in TEACHING else self._change(request)
        self.entries.append(NewEntry(request.kind, request.who, request.key, digest, learned, body))
        if request.key:
            self._numbers[request.key] = len(self.entries) - 1
        return len(self.entries) - 1

    def _change(self, request: Lesson) -> tuple[dict[str, Any], int]:
        """Return the body of a change of tags or settings."""
        if request.kind == "set":
            body = dict(request.body)
        else:
            body = lessons.change_of_tags(request.kind, request.body, self._limits)
        check_change(self._exact(), request.kind, body)
        return body, 0

    def _taught(self, request: Lesson) -> tuple[dict[str, Any], int]:
        """Return the body of a lesson, and the number of its rows with tags."""
        given = request.body.get("rows")
        if request.kind == "feedback":
            rows = lessons.rows_of_feedback(given, self._limits)
            if absent := [(at, str(row.id)) for at, row in enumerate(rows) if row.id not in self._rows]:
                raise unknown_rows(absent)
        else:
            rows = lessons.rows_to_learn(given, self._limits, views.tags_column(self._folded))
        drafted = [self._drafted(row, request.kind == "feedback") for row in rows]
        learned = dict[str, None]()
        for at, row in enumerate(drafted):
            if row["tags"] is not None:
                learned |= dict.fromkeys(row["cells"])
                lessons.check_new_columns(at, learned, self._columns, self._limits)
        self._columns |= learned.keys()
        for row in drafted:
            self._say(row, request.who)
        return {"rows": drafted}, sum(row["tags"] is not None for row in drafted)

    def _drafted(self, row: CheckedRow, is_feedback: bool) -> dict[str, Any]:
        """Return a row as an entry has it: with all that is needed to learn it."""
        before = self._rows.get(row.id) if row.id is not None else None
        cells = before.cells if before and is_feedback else row.cells
        was, again = None, False
        if before and before.cells == cells:
            again = before.state == TAGGED
            was = before.suggested and {name: before.suggested[name] for name in ("tags", "probabilities")}
        tags = row.tags
        if row.add or row.remove:
            assert before is not None
            start = before.tags if before.tags is not None else (before.suggested or {}).get("tags", [])
            start = views.current(self._folded, start)
            # Also by the names that they had before.
            removed = {*row.remove, *views.current(self._folded, row.remove)}
            tags = [tag for tag in dict.fromkeys([*start, *row.add]) if tag not in removed]
        return {"id": row.id, "cells": cells, "tags": tags, "was": was, "again": again}

    def _say(self, row: dict[str, Any], who: str) -> None:
        """Let later requests of the commit see a row as this one leaves it."""
        if row["id"] is not None:
            state = WAITING if row["tags"] is None else TAGGED
            self._rows[row["id"]] = StoredRow(
                row["id"], row["cells"], state, row["tags"], row["was"], who, time.time(), [], None
            )


def check_change(folded: Folded, kind: str, body: dict[str, Any]) -> None:
    """Refuse a change of tags that is not possible."""
    try:
        change(folded.tagger, kind, body)
    except ValueError as error:
        raise Problem(422, "Tags cannot be changed", str(error), [{"detail": str(error)}]) from error


def answered_before(told: Answered, request: Lesson) -> dict[str, Any]:
    """Return the answer to a request whose key is in the journal."""
    if told.digest != request.digest():
        raise _other_request()
    return {"learned": told.learned, "position": told.position}


def _other_request() -> Problem:
    detail = "Idempotency-Key must be new for each request: another request has used it."
    return Problem(422, "Key used before", detail, [{"field": "Idempotency-Key", "detail": detail}])
