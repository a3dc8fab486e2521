"""Merge taggers that learned different rows: words and tags by name, and the models by the words' new columns.

`started`, `gained`, `added` and `joined` are for many shards of one tagger, like those of `labelrace.merging.shards`
for a model. While shards learn, columns of words are not reused: if no columns are left, new words are ignored.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from labelrace.merging import shards
from labelrace.tables import features
from labelrace.tables.state import Known, TagCounts, TaggerState, TagNames
from labelrace.typing import IntArray

_NOTHING: Any = (None, None, [], [])


class TaggerGain(NamedTuple):
    """What shards of a tagger have learned: ``state`` has differences of counts, ``model`` is the gain of the model."""

    state: TaggerState
    model: Any
    n_features: int


def merged(known: Known, other: Known) -> Known:
    """Merge the knowledge of two taggers."""
    state, places = _merged(known.state, other.state)
    # The rows of the other one count as later, and so do the words in them.
    words = other.state.features.vocabulary
    later = state.features.vocabulary.seen.copy()
    later[places] = np.where(words.rows > 0, known.state.features.vocabulary.n_rows + words.seen, later[places])
    learned = state.features._replace(vocabulary=state.features.vocabulary._replace(seen=later))
    model = copy.copy(known.model)
    model.merge(other.model, columns=_of_model(places, other.model.n_features_in_))
    return Known(state._replace(features=learned), model, copy.copy(known.features).restore(learned))


def started(tagger: Any) -> Any:
    """Return the tagger that a shard begins with."""
    return tagger.exchanged(_kept(tagger.state), shards.started(tagger.model_))


def _kept(state: TaggerState) -> TaggerState:
    """Mark all words as just seen, so that no column is reused."""
    words = state.features.vocabulary
    kept = state.features._replace(vocabulary=words._replace(seen=np.full(len(words.seen), np.inf)))
    return state._replace(features=kept)


def _with_seen(state: TaggerState, before: TaggerState) -> TaggerState:
    """Undo `_kept` for the words that were not seen since."""
    words, known = state.features.vocabulary, before.features.vocabulary
    seen = words.seen.copy()
    seen[: len(known.seen)] = np.where(np.isinf(seen[: len(known.seen)]), known.seen, seen[: len(known.seen)])
    return state._replace(features=state.features._replace(vocabulary=words._replace(seen=seen)))


def gained(start: Any, end: Any) -> TaggerGain:
    """Return what a shard has learned since the start."""
    before, after = start.state, end.state
    nothing = TagCounts()
    learned = features.since(before.features, after.features)
    state = after._replace(
        features=learned,
        counts={
            tag: TagCounts(*np.subtract(count, before.counts.get(tag, nothing)).tolist())
            for tag, count in after.counts.items()
        },
        n_rows=after.n_rows - before.n_rows,
        n_tested=after.n_tested - before.n_tested,
        sum_f1=after.sum_f1 - before.sum_f1,
    )
    model = shards.gained(start.model_, end.model_, np.flatnonzero(learned.vocabulary.rows > 0))
    return TaggerGain(state, model, end.model_.n_features_in_)


def added(one: TaggerGain, other: TaggerGain) -> TaggerGain:
    """Add the gains of two shards."""
    state, places = _merged(one.state, other.state)
    model = shards.added(one.model, other.model, _of_model(places, other.n_features))
    return TaggerGain(state, model, max(1, len(state.features.vocabulary.rows)))


def joined(start: Any, total: TaggerGain, table: Any = None, tags: Any = None) -> Any:
    """Return the tagger of a start and the gain of all shards, after it has learned the rows that were held out."""
    state, places = _merged(start.state, total.state)
    places = _of_model(places, total.n_features)
    learned, X, rows, truth = start.exchanged(_kept(state), start.model_).as_rows(table, tags) if tags else _NOTHING
    if not rows:
        return start.exchanged(state, shards.joined(start.model_, total.model, places=places))
    model = shards.joined(start.model_, total.model, X[rows], truth, places)
    return start.exchanged(_with_seen(learned, state), model)


def _merged(one: TaggerState, other: TaggerState) -> tuple[TaggerState, IntArray]:
    """Add the counts of two taggers; return the result and the new columns of the other's words."""
    learned, places = features.merged(one.features, other.features)
    names = TagNames({**other.names.aliases, **one.names.aliases}, one.names.retired | other.names.retired)
    counts = dict(one.counts)
    for tag, count in other.counts.items():
        counts[tag] = counts.get(tag, TagCounts()).plus(count)
    state = TaggerState(
        learned,
        one.separator or other.separator,
        names,
        counts,
        one.n_rows + other.n_rows,
        one.n_tested + other.n_tested,
        one.sum_f1 + other.sum_f1,
    )
    return state, places


def _of_model(places: IntArray, n_features: int) -> IntArray:
    """Return the new columns of a model's features: a model without words has one feature that is always 0."""
    return places if len(places) == n_features else np.arange(n_features)
