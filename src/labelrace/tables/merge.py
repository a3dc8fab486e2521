"""What taggers know, merged: words and tags by name, and the models by the words' new columns."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from labelrace.tables import features
from labelrace.tables.read import Table, as_table
from labelrace.tables.state import Known, TagCounts, TaggerState, TagSets, add_sets
from labelrace.typing import IntArray


def merge(known: Known, other: Known) -> Known:
    """Merge the knowledge of two taggers that learned different rows."""
    # The same tags have the same names in both, so that models join them.
    names = known.state.names.joined(other.state.names)
    known, other = known.translate_tags(names), other.translate_tags(names)
    state, columns = merge_states(known.state, other.state)
    # The rows of the other one count as later, and so do the words in them.
    words, vocabulary = other.state.features.vocabulary, state.features.vocabulary
    later = vocabulary.seen.copy()
    later[columns] = np.where(words.rows > 0, known.state.features.vocabulary.n_rows + words.seen, later[columns])
    state = _with_seen(state, later)
    model = copy.copy(known.model)
    model.merge(other.model, columns=model_columns(columns, other.model.n_features_in_))
    return Known(state, model, copy.copy(known.features).restore(state.features))


def merge_states(one: TaggerState, other: TaggerState) -> tuple[TaggerState, IntArray]:
    """Add the counts of two taggers; return the result and the new columns of the other's words."""
    learned, columns = features.merge(one.features, other.features)
    counts = dict(one.counts)
    for tag, count in other.counts.items():
        counts[tag] = counts.get(tag, TagCounts()).plus(count)
    state = TaggerState(
        learned,
        one.separator or other.separator,
        one.names.joined(other.names),
        counts,
        one.n_rows + other.n_rows,
        one.n_tested + other.n_tested,
        one.sum_f1 + other.sum_f1,
        add_sets(one.together, other.together.items()),
    )
    return state, columns


def model_columns(columns: IntArray, n_features: int) -> IntArray:
    """Return the new columns of a model's features: a model without words has one feature that is always 0."""
    return columns if len(columns) == n_features else np.arange(n_features)


def since(before: TaggerState, after: TaggerState) -> TaggerState:
    """Return what was learned between two states, as differences of counts."""
    nothing = TagCounts()
    return after._replace(
        features=features.since(before.features, after.features),
        counts={
            tag: TagCounts(*np.subtract(count, before.counts.get(tag, nothing)).tolist())
            for tag, count in after.counts.items()
        },
        n_rows=after.n_rows - before.n_rows,
        n_tested=after.n_tested - before.n_tested,
        sum_f1=after.sum_f1 - before.sum_f1,
        together={tags: more for tags, n in after.together.items() if (more := n - before.together.get(tags, 0)) > 0},
    )


def keep_words(state: TaggerState) -> TaggerState:
    """Mark all words as just seen, so that no column is reused."""
    return _with_seen(state, np.full(len(state.features.vocabulary.seen), np.inf))


def restore_seen(state: TaggerState, before: TaggerState) -> TaggerState:
    """Undo `keep_words` for the words that were not seen since."""
    seen, known = state.features.vocabulary.seen.copy(), before.features.vocabulary.seen
    seen[: len(known)] = np.where(np.isinf(seen[: len(known)]), known, seen[: len(known)])
    return _with_seen(state, seen)


def _with_seen(state: TaggerState, seen: Any) -> TaggerState:
    """Replace when each word was last seen."""
    vocabulary = state.features.vocabulary._replace(seen=seen)
    return state._replace(features=state.features._replace(vocabulary=vocabulary))


def as_one_batch(tagger: Any, X: Any, y: Any = None) -> tuple[Table, TagSets]:
    """Return a table without its tags, and the tags, whatever the tagger's ``batch_size`` is."""
    table, whole = as_table(X), copy.copy(tagger)
    whole.batch_size = max(1, table.n_rows)
    [(table, tags, _)] = whole.tagged_batches(table, y)
    return table, tags
