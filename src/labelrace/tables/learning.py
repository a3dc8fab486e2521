"""How a tagger learns a batch: its rows are read, compared with known ones, tested, and learned.

Everything learned is a value (`labelrace.tables.known.Known`): a batch makes a new one, which the tagger assigns when
nothing can fail any more.

1. The kinds of the columns are detected again as long as few rows are known (`labelrace.tables.first_rows`).
   The first 2,000 rows of a tagger are learned 100 at a time: so most of them are tested, and even a small table
   shows how names count and how far suggestions can be trusted. The steps below are done for each part.
2. The table becomes a matrix, in which new words get columns (`labelrace.tables.features`).
3. Rows that were learned before with the same tags are left out (`labelrace.tables.known_rows`).
4. New rows are predicted before they are learned: that shows how names count, and how far suggestions can be trusted.
5. A copy of the model learns the rows; so does a second one while encoders are on trial (`labelrace.tables.trial`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labelrace.tables import first_rows, known_rows, merge, trial
from labelrace.tables.features import FeatureState, Rows, Update
from labelrace.tables.known import Known, Wanted
from labelrace.tables.known_rows import Met
from labelrace.tables.read import Table
from labelrace.tables.state import TaggerState, TagSets
from labelrace.tables.tag_details import read_details
from labelrace.tables.tag_doubts import fold_details

if TYPE_CHECKING:
    from labelrace.tables.tagger import Tagger


# The first rows of a tagger are learned in parts: the number of these rows, and that of a part.
_FIRST, _PART = 2000, 100


class Lesson(NamedTuple):
    """The result of learning a batch."""

    known: Known | None  # the value after it
    predicted: list[set[str]]  # what was predicted for its rows; empty sets if nothing was
    rows: list[int]  # the numbers of its rows that have tags
    met: Met | None  # which of these are new, known or corrected; None if there was nothing to learn


def learn(
    tagger: Tagger,
    known: Known | None,
    table: Table,
    tags: TagSets,
    separator: str | None,
    test_with: Wanted | None = None,
) -> Lesson:
    """Learn a batch, or predict and learn it.

    Parameters
    ----------
    tagger : Tagger
        Only its parameters are used.
    known : Known
        The value before the batch; None before the first one.
    table, tags, separator
        As `Tagger.tagged_batches` yields them.
    test_with : Wanted, default=None
        Which suggestions are tested as predictions; None to predict nothing. Predictions are empty sets then, and for
        the first rows.
    """
    if not tags or (known is None and not any(tags)):
        return Lesson(known, [set() for _ in tags], [], None)
    detected = None
    if known is not None:
        known = first_rows.revise(tagger, known, table)
    else:
        # All rows decide on the kinds of the columns, not only those of the first part.
        detected = tagger.new_features().detect_columns(table)
    lessons = list[Lesson]()
    for start, end in _parts(known.state.n_rows if known else 0, table.n_rows):
        part = table.slice(start, end)
        lesson = _learn_part(tagger, known, part, tags[start:end], separator, test_with, detected)
        lessons.append(lesson._replace(rows=[start + row for row in lesson.rows]))
        known = lesson.known
    return lessons[0] if len(lessons) == 1 else _joined(lessons)


def _parts(n_known: int, n_rows: int) -> list[tuple[int, int]]:
    """Split a batch into the parts that are learned at once."""
    n_first = min(n_rows, max(0, _FIRST - n_known))
    cuts = [*range(0, n_first, _PART), *([n_first] if n_first < n_rows else []), n_rows]
    return list(pairwise(cuts))


def _joined(lessons: Sequence[Lesson]) -> Lesson:
    """Join the results of the parts of a batch."""
    met = [lesson.met for lesson in lessons if lesson.met is not None]
    return Lesson(
        lessons[-1].known,
        [tags for lesson in lessons for tags in lesson.predicted],
        [row for lesson in lessons for row in lesson.rows],
        Met(
            met[-1].rows,
            np.concatenate([one.is_known for one in met]),
            np.concatenate([one.is_correction for one in met]),
        ),
    )


def _learn_part(
    tagger: Tagger,
    known: Known | None,
    table: Table,
    tags: TagSets,
    separator: str | None,
    test_with: Wanted | None,
    detected: FeatureState | None,
) -> Lesson:
    """Learn rows that are read at once; ``detected`` are the kinds of the columns, if nothing was learned before."""
    predicted = [set[str]() for _ in tags]
    if known is None and not any(tags):
        return Lesson(None, predicted, [], None)
    before = trial.to_read(known) if known else detected
    update = (known.features if known else tagger.new_features()).update(before, table)
    state = known.state if known else TaggerState(update.state, separator)
    if known is None:
        details = read_details(tagger.vocabulary or ())
        state = state.add_tags(fold_details(details, ()) if tagger.fold_tags else details)
    given = state.names.tagged(tags, tagger.untagged)
    met = known_rows.all_new(state.known_rows, len(given[0]))
    if tagger.skip_known:
        met = known_rows.meet(state.known_rows, update.state.columns, table, *given)
    to_learn, to_test = met.to_learn(*given), met.to_test(*given)
    if table.was_predicted:
        to_test = [], []
    rows = None
    # A model that has learned nothing, as in an emptied tagger, is not tested: its errors mean nothing.
    if known is not None and known.state.n_rows and (test_with is not None or to_learn[0]):
        rows = Rows(update.as_before(), update.texts, update.values)
        state, predicted = _tested(known, rows, to_test, test_with, predicted)
    state = state.add_met(met)
    if not to_learn[0]:
        return Lesson(replace(known, state=state) if known else None, predicted, given[0], met)
    state = state._replace(
        separator=state.separator or separator, first=_first_rows(known, table, tags, given[0], to_learn[0])
    )
    return Lesson(_learned(tagger, known, state, update, rows, to_learn), predicted, given[0], met)


def _tested(
    known: Known,
    rows: Rows,
    to_test: tuple[list[int], list[set[str]]],
    wanted: Wanted | None,
    predicted: list[set[str]],
) -> tuple[TaggerState, list[set[str]]]:
    """Return the state after rows were tested before they are learned, and their predictions if wanted."""
    new, truth = to_test
    seen = rows._replace(matrix=trial.seen_by(known, rows.matrix))
    state = known.observe(seen.take(new), truth) if new else known.state
    if wanted is not None:
        predicted = known.predict(seen, wanted)
        state = state.add_tested(truth, [predicted[row] for row in new])
    return state, predicted


def _first_rows(known: Known | None, table: Table, tags: TagSets, tagged: list[int], learned: list[int]) -> Any:
    """Return the rows to be kept while these are few, without those that were known already."""
    again = set(tagged).difference(learned)
    others = [row for row in range(len(tags)) if row not in again]
    state = known.state if known else None
    return first_rows.keep(state, table.take(others), [tags[row] for row in others], len(learned))


def _learned(
    tagger: Tagger,
    known: Known | None,
    state: TaggerState,
    update: Update,
    rows: Rows | None,
    to_learn: tuple[list[int], list[set[str]]],
) -> Known:
    """Let a copy of the model learn rows; the model itself does not change."""
    tagged, truth = to_learn
    model = copy.copy(known.model) if known else tagger.new_model()
    if len(update.reused):
        model.reset_features(update.reused)
    X = update.matrix[tagged] if len(tagged) < update.matrix.shape[0] else update.matrix
    model.partial_fit(trial.seen_by(known, X), truth)
    starts = state.starts if state.n_rows else frozenset({merge.hash_rows(X, truth)})
    after = state.add_learned(truth)._replace(features=update.state, starts=starts)
    features = copy.copy(known.features if known else tagger.new_features()).restore(update.state)
    made = Known(after, model, features, vars(known).get("names") if known else None)
    batch = trial.Batch(rows and rows.take(tagged), X, update.reused, truth)
    return trial.learn(known, made, batch, tagger.new_model)
