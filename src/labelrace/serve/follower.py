"""The newest value of the fold in this process, and the threads that keep it up to date.

The *follower* folds what other processes append, and replaces the old value by each new one; a thread that needs the
value takes the reference without waiting. What is appended here is folded at once by the thread that appends it. The
*keeper* writes snapshots. These two are the only threads of the service.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from labelrace.exceptions import LabelraceError
from labelrace.serve import snapshots, start, views
from labelrace.serve.database import Database
from labelrace.serve.fold import TEACHING, Folded, fold, fold_all
from labelrace.serve.inbox import TAGGED, WAITING, Inbox, News
from labelrace.serve.journal import Compacted, Entry, Journal, OtherEntries, check_entry
from labelrace.serve.lessons import Limits
from labelrace.serve.problems import Problem, busy

LOGGER = logging.getLogger("labelrace.serve")


class Options(NamedTuple):
    """How a service works; nothing here changes what is learned."""

    limits: Limits = Limits()
    max_waiting: int = 100_000  # rows that wait for tags; the oldest are dropped
    poll_seconds: float = 0.2  # between looks for what other processes have appended
    patience_seconds: float = 10.0  # that a request waits to be learned here, or for room
    max_lag: int = 500  # requests that may wait to be learned here; further ones are refused
    snapshot_seconds: float = 5.0  # of learning, after which there is a new snapshot
    snapshot_every: float = 300.0  # seconds after which there is one, if anything was learned


class Follower:
    """Keeps the model up to date with the journal.

    Parameters
    ----------
    database : Database
        With a journal that was begun (`labelrace.serve.start`).
    folded : Folded
        The model and quality at some position of that journal.
    options : Options
    """

    def __init__(self, database: Database, folded: Folded, options: Options = Options()) -> None:  # noqa: B008
        self.database = database
        self.journal = Journal(database)
        self.options = options
        self.limits = options.limits
        self.inbox = Inbox(database, options.max_waiting)
        self.folded = folded
        self._learning = threading.Lock()
        # Notified when something was learned, or appended.
        self._changed = threading.Condition()
        self._listeners: list[Callable[[str, dict[str, Any]], None]] = []
        self._news: News | None = None  # as those who listen know it
        # The numbers of what was told at once, as it happened here.
        self._arrived_here, self._opened_here = 0, deque[int](maxlen=100)
        self.head = folded.position
        self._seconds, self.snapshot_at, self._snapshot_time = 0.0, folded.position, time.monotonic()
        self._waiting = (0.0, 0)
        self._trouble: str | None = "The journal is being read."
        self._closed = False
        self._threads = [
            threading.Thread(target=work, name=f"labelrace-{work.__name__.strip('_')}", daemon=True)
            for work in (self._follow, self._keep)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads, with a last snapshot if anything was learned, so that the next start is quick."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        if self._has_news(self.folded):
            self._save(self.folded)
        self.database.close()

    # --- Following ----------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Fold new entries of the journal, again and again."""
        pause = 0.0
        while True:
            with self._changed:
                if pause:
                    self._changed.wait_for(
                        lambda: self.head > self.folded.position or self._closed, self.options.poll_seconds
                    )
                if self._closed:
                    return
            try:
                pause = self.options.poll_seconds if not self._step() else 0.0
                if not self.lag:
                    self._trouble = None
            except Problem as problem:
                self._trouble, pause = problem.detail, self.options.poll_seconds
                time.sleep(pause)
            except Exception:  # The thread must live: without it nothing is learned any more.
                LOGGER.exception("The journal cannot be followed")
                # The error may quote a row, and anybody may ask whether the service is ready.
                self._trouble, pause = "The journal cannot be followed; the log says why.", 1.0
                time.sleep(pause)

    def _step(self) -> bool:
        """Fold the next batches; return whether there were any."""
        # Taken first: a transaction sees all that was learned before it began.
        folded = self.folded
        try:
            with self.database.reading() as connection:
                check_entry(connection, folded.position, folded.time)
                batches = self.journal.batches(connection, folded.position)
                head = self.journal.head(connection) if batches else 0
                news = self.inbox.news(connection) if self._listeners else None
            self._hear(news)
            with self._changed:
                self.head = max(self.head, head)
        except OtherEntries as error:
            LOGGER.warning("The model is learned again from the newest snapshot that fits: %s", error)
            self._begin_again()
            return True
        except Compacted:
            self._jump()
            return True
        for batch in batches:
            self._learn(batch)
            if self._closed:
                break
        return bool(batches)

    def _hear(self, news: News | None) -> None:
        """Tell those who listen of rows that arrived or were opened, here or in other processes."""
        before, self._news = self._news, news
        if news is None or before is None:
            return
        if news.arrived > before.arrived and news.arrived != self._arrived_here:
            self.tell("row", {"id": news.id, "state": WAITING, "who": None})
        last = before.opened[-1][0] if before.opened else 0
        for number, id, who in news.opened:
            if number > last and number not in self._opened_here:
                self.tell("open", {"id": id, "open_by": who})

    def _learn(self, batch: Sequence[Entry]) -> None:
        """Fold a batch, if it is the next one."""
        with self._learning:
            if batch[0].position != self.folded.position + 1:
                return
            began = time.perf_counter()
            folded = fold(self.folded, batch)
            self._seconds += time.perf_counter() - began
            # Before anybody knows of it, so that no snapshot goes beyond rows that are to be as before.
            self.inbox.take_back(refused := folded.refused_of(batch))
            for entry in refused:
                LOGGER.warning("The entry at position %d cannot be learned, and is left out.", entry.position)
            self._take(folded, batch)

    def _jump(self) -> None:
        """Continue from a snapshot, as the next entries are gone."""
        folded = snapshots.newest(self.database)
        if folded is None or folded.position <= self.folded.position:
            raise busy("The journal was compacted, and there is no intact snapshot: restore a backup.")
        with self._learning:
            if folded.position > self.folded.position:
                self._take(folded, [])

    def _begin_again(self) -> None:
        """Forget what was learned from entries that are lost."""
        try:
            folded = start.newest(self.database)
        except ValueError as error:
            raise busy(str(error)) from error
        with self.database.reading() as connection:
            head = self.journal.head(connection)
        with self._learning, self._changed:
            self.folded, self.head, self.snapshot_at = folded, max(head, folded.position), folded.position
            self._trouble = "The journal is being read."
            self._changed.notify_all()

    def _take(self, folded: Folded, batch: Sequence[Entry]) -> None:
        before = self.folded
        with self._changed:
            self.folded = folded
            self.head = max(self.head, folded.position)
            self._changed.notify_all()
        for entry in batch:
            is_told = entry.kind in TEACHING and folded.why_refused(entry.position) is None
            for row in entry.body["rows"] if is_told else ():
                if row["id"] is not None:
                    state = WAITING if row["tags"] is None else TAGGED
                    self.tell("row", {"id": row["id"], "state": state, "who": entry.who or None})
        for mark in folded.quality.marks:
            if mark.position > before.position:
                self.tell("mark", {"kind": mark.kind, "row": mark.row})
        if self._listeners:
            self.tell("position", views.short_status(folded, self.n_waiting()))

    def _keep(self) -> None:
        """Write a snapshot now and then: after some time, or much learning."""
        while True:
            with self._changed:
                self._changed.wait(1.0)
                if self._closed:
                    return
            folded, now = self.folded, time.monotonic()
            is_late = now - self._snapshot_time > self.options.snapshot_every
            if self._has_news(folded) and (is_late or self._seconds > self.options.snapshot_seconds):
                self._seconds, self._snapshot_time = 0.0, now
                self._save(folded)

    def _has_news(self, folded: Folded) -> bool:
        return folded.position > self.snapshot_at and folded.tagger.is_fitted

    def _save(self, folded: Folded) -> None:
        try:
            snapshots.save(self.database, folded)
            self.snapshot_at = folded.position
        except (Problem, LabelraceError, OSError, ValueError, OtherEntries) as error:
            LOGGER.warning("No snapshot could be written: %s", error)
        except Exception:  # The thread must live: without it each start takes longer than the one before.
            LOGGER.exception("No snapshot could be written")

    def appended(self, entries: Sequence[Entry]) -> None:
        """Learn a batch that was appended here."""
        with self._changed:
            self.head = max(self.head, entries[-1].position)
        # If it fails, or entries of others come before, it is left to the follower.
        with suppress(Exception):
            self._learn(entries)
        if self.lag:
            with self._changed:
                self._changed.notify_all()

    def wait_for(self, position: int, seconds: float | None) -> bool:
        """Wait until a position is learned here, None for as long as it takes; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self.folded.position >= position or self._closed, seconds)

    def catch_up(self, seconds: float | None) -> None:
        """Wait until all present entries are learned here; raise a problem when the time is over."""
        with self.database.reading() as connection:
            head = self.journal.head(connection)
        with self._changed:
            self.head = max(self.head, head)
            self._changed.notify_all()
        if not self.wait_for(head, seconds):
            raise self._behind()

    def wait_for_room(self) -> None:
        """Wait while too many entries are not learned yet; raise a problem when the time is over."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self.lag <= self.options.max_lag or self._closed, self.options.patience_seconds
            ):
                raise self._behind()
        if self._closed:
            raise busy("The service is about to stop.")

    def _behind(self) -> Problem:
        return busy(f"{self.lag:,} requests wait to be learned.", retry_after=5.0)

    @property
    def lag(self) -> int:
        """Number of entries of the journal that are not learned here yet."""
        return max(0, self.head - self.folded.position)

    def exact(self, connection: Connection) -> Folded:
        """Return the model and quality at the end of the journal, on a connection that writes."""
        folded = self.folded
        try:
            while batches := self.journal.batches(connection, folded.position):
                folded = fold_all(folded, batches)
        except Compacted as error:
            raise busy("The journal was compacted, and a snapshot is being loaded.") from error
        return folded

    # --- Telling ------------------------------------------------------------------------------------------------------

    def is_ready(self) -> str | None:
        """Return why the service cannot be used now; None if it can."""
        return "The service is about to stop." if self._closed else self._trouble

    def listen(self, callback: Callable[[str, dict[str, Any]], None]) -> Callable[[], None]:
        """Call a function for every event, from several threads; return a function that stops that."""
        self._listeners = [*self._listeners, callback]

        def end() -> None:
            self._listeners = [one for one in self._listeners if one is not callback]

        return end

    def tell(self, event: str, data: dict[str, Any]) -> None:
        """Send an event to the listeners."""
        for callback in self._listeners:
            try:
                callback(event, data)
            except Exception:
                LOGGER.exception("A listener failed")

    def n_waiting(self) -> int:
        """Return the number of rows that wait, as counted within the last second."""
        then, count = self._waiting
        if time.monotonic() - then > 1.0:
            with suppress(Problem), self.database.reading() as connection:
                count = self.inbox.n_waiting(connection)
            self._waiting = (time.monotonic(), count)
        return count
