"""The service itself: it predicts by the newest model, appends lessons to the journal, and answers for rows and tags.

A thread that predicts takes the newest value (`Folded`) without waiting. Lessons are appended to the journal, one
commit for several requests, and answered when they are on disk and learned here. The value follows the journal by
`follower`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from labelrace import __version__
from labelrace.serve import export, lessons, start, views
from labelrace.serve.database import FILE, Database
from labelrace.serve.drafts import Drafts, answered_before, check_change
from labelrace.serve.fold import TEACHING, Folded
from labelrace.serve.follower import Follower, Options
from labelrace.serve.inbox import STATES, WAITING, Seen, StoredRow
from labelrace.serve.journal import MAX_BATCH, OtherEntries, check_entry
from labelrace.serve.lessons import CheckedRow, Lesson, Prediction
from labelrace.serve.listing import ORDERS, Wanted
from labelrace.serve.problems import Problem, busy

# Rows that are ranked again at once to find the most useful ones, and how often at most.
_LOOKED_AT, _MOST_LOOKS = 250, 8
# What the history of a row tells of each time its tags were given.
_SAID = ("position", "time", "who", "tags")

Answer = dict[str, Any]


class Service(Follower):
    """A tagger that any number of threads predict with, teach and follow.

    Its parameters are those of `Follower`.
    """

    def __init__(self, database: Database, folded: Folded, options: Options = Options()) -> None:  # noqa: B008
        self._teaching = threading.Lock()
        self._looked_at = -1  # the position of the model that last ranked the most useful rows
        super().__init__(database, folded, options)

    # --- Predicting ---------------------------------------------------------------------------------------------------

    def predict(self, requests: Sequence[Prediction]) -> list[Answer | Problem]:
        """Suggest tags for the rows of requests, which are read together; rows with ids wait for their tags."""
        folded = self.folded
        checked: list[list[CheckedRow] | Problem] = []
        for request in requests:
            try:
                checked.append(lessons.rows_to_predict(request.rows, self.limits, views.tags_column(folded)))
            except Problem as problem:
                checked.append(problem)
        rows = [row for one in checked if not isinstance(one, Problem) for row in one]
        of_rows = iter(views.suggested(folded, [row._asdict() for row in rows]) if rows else [])
        read = list[list[tuple[CheckedRow, Answer]] | Problem]()
        for one in checked:
            if isinstance(one, Problem):
                read.append(one)
            else:
                own = list(islice(of_rows, len(one)))
                read.append(views.unreadable(one, own) or list(zip(one, own, strict=True)))
        try:
            self._remember(folded, [pair for found in read if not isinstance(found, Problem) for pair in found])
            trouble = None
        except Problem as problem:
            # Rows without ids need no database.
            trouble = problem
        answers = list[Answer | Problem]()
        for request, found in zip(requests, read, strict=True):
            if isinstance(found, Problem):
                answers.append(found)
            elif trouble and any(row.id is not None for row, _ in found):
                answers.append(trouble)
            else:
                answered = [views.answered(folded, row, own, request.explain) for row, own in found]
                answers.append({"rows": answered, "position": folded.position})
        return answers

    def _remember(self, folded: Folded, suggested: Sequence[tuple[CheckedRow, Answer]]) -> None:
        """Let rows with ids wait for their tags."""
        # What knows nothing has not suggested anything.
        is_fitted = folded.tagger.is_fitted
        seen = [
            Seen(row.id, row.cells, one if is_fitted else None, one["review"], views.useful(one) if is_fitted else 1.0)
            for row, one in suggested
            if row.id is not None
        ]
        if not seen:
            return
        with self.database.writing() as connection:
            self._arrived_here = self.inbox.add_predicted(connection, seen)
        # Counted again when it is asked for: who has the page open sees the number that the next event tells.
        self._waiting = (0.0, self._waiting[1])
        self.tell("row", {"id": seen[-1].id, "state": WAITING, "who": None})

    # --- Teaching -----------------------------------------------------------------------------------------------------

    def teach(self, requests: Sequence[Lesson]) -> list[Answer | Problem]:
        """Append requests to the journal; the answers come when they are on disk and learned here."""
        answers: list[Answer | Problem | None] = [None] * len(requests)
        with self._teaching:
            for group in _groups(requests):
                try:
                    self.wait_for_room()
                    done = self._append([requests[at] for at in group])
                except Problem as problem:
                    done = [problem] * len(group)
                for at, answer in zip(group, done, strict=True):
                    answers[at] = answer
        return self._learned([answer for answer in answers if answer is not None])

    def _append(self, requests: Sequence[Lesson]) -> list[Answer | Problem]:
        """Commit requests as one batch."""
        if requests[0].kind not in TEACHING:
            # Checked against the end of the journal, while nobody else can write: little is left to learn then.
            self.catch_up(self.options.patience_seconds)
        answers, numbers = dict[int, Answer | Problem](), dict[int, int]()
        folded = self.folded
        with self.database.writing() as connection:
            try:
                check_entry(connection, folded.position, folded.time)
            except OtherEntries as error:
                raise busy(f"Learning begins again: {error}.") from error
            told = self.journal.answered(connection, [one.key for one in requests if one.key])
            stored = self.inbox.find(connection, lessons.ids_of(requests))
            drafts = Drafts(self.folded, lambda: self.exact(connection), stored, self.limits)
            for at, request in enumerate(requests):
                try:
                    if request.key in told:
                        answers[at] = answered_before(told[request.key], request)
                    else:
                        numbers[at] = drafts.add(request)
                except Problem as problem:
                    answers[at] = problem
            entries = self.journal.append(connection, drafts.entries) if drafts.entries else []
            self.inbox.add_told(connection, [one for one in entries if one.kind in TEACHING], stored)
        for at, number in numbers.items():
            answers[at] = {"learned": drafts.entries[number].learned, "position": entries[number].position}
        if entries:
            self.appended(entries)
        return [answers[at] for at in range(len(requests))]

    def _learned(self, answers: list[Answer | Problem]) -> list[Answer | Problem]:
        """Wait until what was appended is learned here; tell what was refused, and what is only on disk yet."""
        positions = [answer["position"] for answer in answers if not isinstance(answer, Problem)]
        self.wait_for(max(positions, default=0), self.options.patience_seconds)
        folded = self.folded
        told = list[Answer | Problem]()
        for answer in answers:
            if isinstance(answer, Problem):
                told.append(answer)
            elif answer["position"] > folded.position:
                told.append({**answer, "pending": True})
            elif (why := folded.why_refused(answer["position"])) is not None:
                told.append(Problem(422, "Rows cannot be learned or predicted", why, [{"detail": why}]))
            else:
                told.append(answer)
        return told

    def preview(self, lesson: Lesson) -> Answer:
        """Return the effect of a change of tags."""
        folded = self.folded
        body = lessons.change_of_tags(lesson.kind, lesson.body, self.limits)
        check_change(folded, lesson.kind, body)
        return views.changed(folded, lesson.kind, body)

    # --- Reading ------------------------------------------------------------------------------------------------------

    def status(self) -> Answer:
        """Return the answer of ``GET /v1/status``."""
        return {
            **views.status(self.folded),
            "waiting": self.n_waiting(),
            "journal_position": max(self.head, self.folded.position),
            "snapshot_position": self.snapshot_at,
            "version": __version__,
        }

    def quality(self) -> Answer:
        """Return the answer of ``GET /v1/quality``."""
        return views.quality(self.folded)

    def tags(self, *, search: str = "", limit: int = 1000) -> Answer:
        """Return the tags, the most frequent first."""
        return views.tags(self.folded, search, limit)

    def tag(self, tag: str) -> Answer:
        """Return one tag and its companions."""
        return views.tag(self.folded, tag)

    def rows(
        self,
        *,
        state: str = WAITING,
        order: str = "newest",
        search: str = "",
        tag: str = "",
        limit: int = 50,
        after: str = "",
    ) -> Answer:
        """Return some rows with their current suggestions."""
        for name, value, choices in (("state", state, (*STATES, "all")), ("order", order, ORDERS)):
            if value not in choices:
                raise Problem(422, "Wrong query", f"{name} must be one of {', '.join(choices)}, got {value!r:.40}.")
        if order == "useful" and not after:
            self._look_again(limit)
        wanted = Wanted(STATES if state == "all" else (state,), order, search, tag, limit, after)
        with self.database.reading() as connection:
            found, following = self.inbox.page(connection, wanted)
        folded = self.folded
        suggested = views.suggested(folded, [row._asdict() for row in found]) if found else []
        listed = [views.stored(folded, row, one) for row, one in zip(found, suggested, strict=True)]
        return {"rows": listed, "waiting": self.n_waiting(), "next": following}

    def _look_again(self, limit: int) -> None:
        """Compute again how useful the first rows of that order are, until the newest model gives the same first rows.

        Rows keep the value of when they came, or were last computed. It mostly falls as the model learns, so that rows
        further down can wait.
        """
        folded, known = self.folded, set[str]()
        if not folded.tagger.is_fitted or folded.position == self._looked_at:
            return
        for _ in range(_MOST_LOOKS):
            with self.database.reading() as connection:
                first, _ = self.inbox.page(connection, Wanted((WAITING,), "useful", limit=max(limit, _LOOKED_AT)))
            rows = [row for row in first if row.id not in known]
            if not rows or known.issuperset(row.id for row in first[:limit]):
                break
            known.update(row.id for row in rows)
            useful = map(views.useful, views.suggested(folded, [row._asdict() for row in rows]))
            try:
                with self.database.writing() as connection:
                    self.inbox.rank(connection, dict(zip((row.id for row in rows), useful, strict=True)))
            except Problem:
                # A client that only reads gets the stored order.
                return
        self._looked_at = folded.position

    def row(self, id: str) -> Answer:
        """Return a row with its suggestions, the reasons for them, and the history of its tags."""
        row, folded = self._stored(id), self.folded
        [suggested] = views.suggested(folded, [row._asdict()])
        listed = views.stored(folded, row, suggested)
        listed["explanation"] = views.explained(folded, row._asdict(), suggested)
        return listed | {"history": [{name: said[name] for name in _SAID} for said in row.history]}

    def open_row(self, id: str, who: str, is_open: bool = True) -> Answer:
        """Note that a user opens or closes a row; return who has it open, the first who opened it."""
        self._stored(id)
        with self.database.writing() as connection:
            self._opened_here.append(self.inbox.open(connection, id, who, is_open))
        answer = {"id": id, "open_by": self._stored(id).open_by}
        self.tell("open", answer)
        return answer

    def _stored(self, id: str) -> StoredRow:
        with self.database.reading() as connection:
            found = self.inbox.find(connection, [id])
        if id not in found:
            raise Problem(
                404, "Unknown row", f"There is no row {id!r:.80}: it was not predicted or learned with this id."
            )
        return found[id]

    def keys(self, start: str) -> list[str]:
        """Return the keys of requests that begin with a text, in the order of the journal."""
        with self.database.reading() as connection:
            return self.journal.keys(connection, start)

    def export(self) -> Iterator[bytes]:
        """Yield the journal as JSON lines, see `labelrace.serve.export`."""
        return export.lines(self.database)


def open_service(
    data: str | os.PathLike[str] | None = None,
    *,
    database: str | None = None,
    tagger: str | os.PathLike[str] | None = None,
    new: Mapping[str, Any] | None = None,
    options: Options = Options(),  # noqa: B008
) -> Service:
    """Open a journal, begin it if there is none, and start a service on it.

    Parameters
    ----------
    data : path, default=None
        The folder of the journal, which is made if it does not exist.
    database : str, default=None
        The URL of a database, PostgreSQL or SQLite, instead of SQLite in the folder.
    tagger : path, default=None
        The file of the tagger that a new journal begins with. Ignored for a journal that began with this file.
    new : dict, default=None
        Parameters of `labelrace.Tagger`, with which a new journal begins from nothing.
    options : Options

    Returns
    -------
    Service
    """
    if data is not None and not Path(data, FILE).is_file():
        start.check_beginning(tagger, new)
    opened = start.open_database(data, database, is_new=tagger is not None or new is not None)
    try:
        start.begin(opened, tagger, new)
        return Service(opened, start.newest(opened), options)
    except BaseException:
        opened.close()
        raise


def _groups(requests: Sequence[Lesson]) -> list[list[int]]:
    """Split requests into those that make a batch: a change of tags is one alone."""
    groups, is_open = list[list[int]](), False
    for at, request in enumerate(requests):
        if request.kind in TEACHING and is_open and len(groups[-1]) < MAX_BATCH:
            groups[-1].append(at)
        else:
            groups.append([at])
        is_open = request.kind in TEACHING
    return groups
