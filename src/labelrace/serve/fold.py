"""The fold: what is known after a batch of the journal. Pure: the same entries give the same model.

They give the same to the bit where products of matrices are rounded alike: with the same libraries on processors of the
same kind. Elsewhere the last digits differ (`labelrace.serve.snapshots` says so when it meets the other kind's).

A batch is learned as one. If the model refuses it, its entries are learned one at a time, and those that are refused
then are noted, with the reason: everybody who folds the journal refuses the same ones. So it is with an error of the
model that nobody foresaw; only what is the machine's fault, such as a lack of memory, is raised, and tried again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from labelrace.serve.journal import MAX_BATCH, Entry
from labelrace.serve.quality import NOTHING, Mark, NewTag, Quality, Sums, Verdict, day_of
from labelrace.tables import Tagger
from labelrace.tables.read import Table, as_table

TEACHING = ("learn", "feedback")
"""Kinds of entries with rows; the others change tags or settings."""

KINDS = (*TEACHING, "rename", "merge", "retire", "describe", "set")
"""All kinds of entries."""

# What the model raises for rows that it cannot read; anything else is no fault of the rows.
REFUSALS = (ValueError, TypeError, OverflowError, FloatingPointError)
# What another machine, or the same one later, may not raise.
_OF_THE_MACHINE = (MemoryError, OSError, ImportError, RecursionError)
# Refused entries that are remembered: at least all of a batch, whose requests are to be told.
MAX_REFUSED = MAX_BATCH


class Folded(NamedTuple):
    """The model and quality at a position of the journal."""

    position: int
    tagger: Tagger  # never changed; not fitted before the first row with a tag
    quality: Quality = Quality()
    refused: tuple[tuple[int, str], ...] = ()  # the last entries that could not be learned, and why
    time: float = 0.0  # of the entry at the position; it tells journals apart of which one lost its end

    def refused_of(self, batch: Iterable[Entry]) -> list[Entry]:
        """Return the entries of the last batch that could not be learned."""
        return [entry for entry in batch if self.why_refused(entry.position) is not None]

    def why_refused(self, position: int) -> str | None:
        """Return why an entry could not be learned, or None if it was."""
        # Positions ascend, and mostly the last ones are asked for.
        later = takewhile(lambda one: one[0] >= position, reversed(self.refused))
        return next((why for at, why in later if at == position), None)


def fold(folded: Folded, batch: Sequence[Entry]) -> Folded:
    """Return model and quality after a further batch."""
    try:
        return _after(folded, batch)
    except _OF_THE_MACHINE:
        raise
    except Exception:  # The same everywhere: if it stopped one process, it would stop all, for ever.
        return reduce(_after_one, batch, folded)


def fold_all(folded: Folded, batches: Iterable[Sequence[Entry]]) -> Folded:
    """Return model and quality after further batches: learning a journal again."""
    return reduce(fold, batches, folded)


def _after_one(folded: Folded, entry: Entry) -> Folded:
    try:
        return _after(folded, [entry])
    except _OF_THE_MACHINE:
        raise
    except Exception as error:
        refused = (*folded.refused, (entry.position, why_of(error)))[-MAX_REFUSED:]
        return folded._replace(position=entry.position, time=entry.time, refused=refused)


def why_of(error: Exception) -> str:
    """Return in a line why rows were refused."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _after(folded: Folded, batch: Sequence[Entry]) -> Folded:
    last = batch[-1]
    if last.kind not in TEACHING:
        # A change of tags or settings is a batch of its own.
        tagger = change(folded.tagger, last.kind, last.body)
        after = folded._replace(position=last.position, time=last.time, tagger=tagger)
        if tagger.is_fitted:
            after = after._replace(quality=after.quality.renamed(tagger.state.names.current))
        return _marked(folded, after, last)
    # What is said and taken back counts in its order, as it would in commits of its own.
    for is_withdrawn, run in groupby(_rows(batch), lambda row: row["tags"] is None):
        if is_withdrawn:
            quality = reduce(Quality.without, (row["id"] for row in run), folded.quality)
            folded = folded._replace(quality=quality)
        else:
            folded = _learned(folded, list(run), last)
    return folded._replace(position=last.position, time=last.time)


def _learned(folded: Folded, rows: list[dict[str, Any]], last: Entry) -> Folded:
    """Learn rows with tags that were said at once."""
    tagger, tests, n_corrections = _taught(folded.tagger, rows, day_of(last.time))
    counted = Sums(rows=sum(not row["again"] for row in rows), corrections=n_corrections)
    return _marked(folded, folded._replace(position=last.position, tagger=tagger), last, tests, counted)


def _rows(batch: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    return (row for entry in batch for row in entry.body["rows"])


def _marked(
    before: Folded, after: Folded, last: Entry, tests: Sequence[Verdict] = (), counted: Sums = NOTHING
) -> Folded:
    """Count tests, and note new tags, alarms and drifts."""
    known = before.tagger.tags_ if before.tagger.is_fitted else {}
    tags = after.tagger.tags_ if after.tagger.is_fitted else {}
    # A tag that was renamed is no new one.
    is_named = last.kind in ("rename", "merge", "retire")
    said = [tag for tag in tags if tag not in known and not is_named]
    quality = after.quality.after(tests, counted._replace(new_tags=len(said)), day_of(last.time))
    row = quality.total.tested
    new = [NewTag(tag, row, last.time) for tag in said]
    counts = zip(("alarm", "drift"), changes_of(before.tagger), changes_of(after.tagger), strict=True)
    marks = [Mark(kind, row, last.position, last.time) for kind, old, now in counts for _ in range(now - old)]
    return after._replace(quality=quality.marked(marks, new))


def changes_of(tagger: Tagger) -> tuple[int, int]:
    """Return the numbers of alarms and drifts of a tagger's model."""
    state = getattr(getattr(tagger.model_, "fitted", None), "state", None) if tagger.is_fitted else None
    return int(getattr(state, "n_alarms", 0)), int(getattr(state, "n_drifts", 0))


def change(tagger: Tagger, kind: str, body: dict[str, Any]) -> Tagger:
    """Return a copy of a tagger whose tags or settings were changed."""
    changed = copy.copy(tagger)
    if kind == "set":
        return changed.set_params(**body["parameters"])
    if kind == "describe":
        if tagger.is_fitted:
            return changed.add_labels(body["tags"])
        return changed.set_params(vocabulary={**(tagger.vocabulary or {}), **body["tags"]})
    if not tagger.is_fitted:
        raise ValueError("tags must be tags that the tagger knows, but it knows none yet.")
    if kind == "rename":
        return changed.rename_labels(body["names"])
    if kind == "merge":
        return changed.merge_labels(body["tags"], body["into"])
    if kind == "retire":
        return changed.drop_labels(body["tags"])
    raise ValueError(f"kind must be a kind of entry that this version knows, got {kind!r}: upgrade labelrace.")


# --- Rows -------------------------------------------------------------------------------------------------------------


def _taught(tagger: Tagger, rows: list[dict[str, Any]], day: int) -> tuple[Tagger, list[Verdict], int]:
    """Learn rows; return their tests, and the number of corrections."""
    tests, n_corrections, start = list[Verdict](), 0, 0
    # A row that was predicted before is tested with its suggestions of then, any other with those of now.
    is_shown = all(row["was"] for row in rows)
    for table, tags, separator in tagger.tagged_batches(table_of(tagger, rows), [row["tags"] for row in rows]):
        before = tagger
        tagger, lesson = before.after_batch(table, tags, separator, test=not is_shown)
        part, start = rows[start : start + table.n_rows], start + table.n_rows
        if lesson.met is None:
            continue
        new = list[tuple[set[str], set[str]]]()
        names = tagger.state.names
        for at, is_known, is_correction in zip(lesson.rows, lesson.met.is_known, lesson.met.is_correction, strict=True):
            row = part[at]
            n_corrections += bool(row["again"] or is_correction) and not is_known
            if row["again"] or is_known or is_correction or not before.is_fitted:
                continue
            was = row["was"]
            given = names.current(was["tags"]) if was else lesson.predicted[at]
            true = names.current(tags[at] or ())
            new.append((true, given))
            likely = {name: p for name, p in was["probabilities"].items() if name in tagger.tags_} if was else {}
            tests.append(Verdict(row["id"] or "", day, tuple(sorted(true)), tuple(sorted(given)), likely))
        if is_shown and new:
            tagger = tagger.tested(*zip(*new, strict=True))
    return tagger, tests, n_corrections


def served(tagger: Tagger) -> Tagger:
    """Return a tagger with the settings of a service: in a row without tags, no tag applies."""
    return tagger.without_warnings().set_params(untagged="none")


def table_of(tagger: Tagger, rows: Sequence[dict[str, Any]]) -> Table:
    """Return rows with ``id`` and ``cells`` as a table with all columns that the tagger knows.

    Missing columns are added, so that a prediction does not depend on the other rows of a request.
    """
    name = id_column(tagger)
    listed = [row["cells"] if name is None else {name: row["id"], **row["cells"]} for row in rows]
    if tagger.is_fitted and listed:
        listed[0] = dict.fromkeys(column.name for column in tagger.columns_) | listed[0]
    return as_table(listed)


def id_column(tagger: Tagger) -> str | None:
    """Return the name of the column of identifiers, None if the tagger has none or several."""
    if tagger.is_fitted:
        names = [column.name for column in tagger.columns_ if column.kind == "identifier"]
    else:
        names = [tagger.id] if isinstance(tagger.id, str) else list(tagger.id or ())
    return names[0] if len(names) == 1 else None
