"""Merging of taggers: words and tags by name, and the models by the words' new columns."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from labelrace.exceptions import MergeError
from labelrace.tables import features, suggestions
from labelrace.tables.known import Known
from labelrace.tables.read import Table, as_table
from labelrace.tables.state import TagCounts, TaggerState, TagNames, TagSets, add_sets
from labelrace.tables.suggestions import Suggestions
from labelrace.tables.tag_doubts import folded
from labelrace.tables.trial import Trial, uses_encoders
from labelrace.typing import IntArray, SparseMatrix


def merge(known: Known, other: Known, *, fold_tags: bool = False, separator: str | None = None) -> Known:
    """Merge the knowledge of two taggers that learned different rows; tags may be folded to one spelling.

    ``separator`` is that of later tags, where it is given.

    Raises
    ------
    MergeError
        If both have learned the same first rows, tags have other separators, or their models cannot be merged.
    """
    if known.state.starts & other.state.starts:
        raise MergeError(
            "The taggers cannot be merged: both have learned the same first rows, which would count twice. Let one of "
            "them learn its rows from start.emptied(), or use labelrace.merging (start, gain, add, join)."
        )
    signs = [one.state.separator for one in (known, other)]
    if separator is None and None not in signs and signs[0] != signs[1]:
        raise MergeError(
            f"The taggers cannot be merged: tags are separated by {signs[0]!r} in one and by {signs[1]!r} in the "
            "other. Say how later ones are, by set_params(separator=…) of the one that is to go on."
        )
    if fold_tags:
        spelled = folded(other.state.counts, known.state.all_names())
        other = other.translate_tags(TagNames({tag: one for tag, one in spelled.items() if tag != one}))
    # The same tags have the same names in both, so that models join them.
    names = known.state.names.joined(other.state.names)
    known, other = known.translate_tags(names), other.translate_tags(names)
    if known.trial is None or other.trial is None:
        known, other = known.decided(), other.decided()
    elif uses_encoders(known.state.features) != uses_encoders(other.state.features):
        other = other.second()
    if not known.state.n_rows or not other.state.n_rows:
        # A model that has learned nothing has nothing to add; the details of tags are kept.
        one, two = (known, other) if known.state.n_rows else (other, known)
        return replace(one, state=one.state.add_tags({**two.state.details, **one.state.details}))
    state, columns = merge_states(known.state, other.state)
    # The rows of the other one count as later, and so do the words in them.
    words, vocabulary = other.state.features.vocabulary, state.features.vocabulary
    later = vocabulary.seen.copy()
    later[columns] = np.where(words.rows > 0, known.state.features.vocabulary.n_rows + words.seen, later[columns])
    state, trial = _with_seen(state, later), known.trial
    model = _merge_models(known.model, other.model, columns)
    if trial is not None and other.trial is not None:
        trial = Trial(
            _merge_models(trial.model, other.trial.model, columns),
            suggestions.merge(trial.suggestions, other.trial.suggestions),
            trial.n_rows + other.trial.n_rows,
            trial.difference + other.trial.difference,
        )
    return Known(state, model, copy.copy(known.features).restore(state.features), trial=trial)


def _merge_models(model: Any, other: Any, columns: IntArray) -> Any:
    """Merge a copy of a model with another one, whose words have new columns."""
    return copy.copy(model).merge(other, columns=model_columns(columns, other.n_features_in_))


def emptied(known: Known) -> Known:
    """Return a value with the same columns, words and tags that has learned nothing."""
    known = known.decided()
    state, fitted = known.state, known.model.fitted
    words = state.features.vocabulary
    none = np.zeros_like(words.rows)
    words = words._replace(rows=none, seen=none, counters=np.zeros_like(words.counters), n_rows=0.0)
    learned = state.features._replace(moments={}, vocabulary=words)
    counts = dict.fromkeys(state.counts, TagCounts())
    empty = TaggerState(learned, state.separator, state.names, counts, details=state.details)
    if fitted.algorithm.shares is None:
        model = known.model.emptied()
    else:
        # The default starts again: two of its models are merged as such that had no weights to begin with.
        rng = np.random.default_rng(fitted.seed)
        model = known.model.with_fitted(fitted.replace(fitted.schema, fitted.algorithm.init(fitted.schema, rng)))
    return Known(empty, model, copy.copy(known.features).restore(learned))


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
        {**other.details, **one.details},
        suggestions.merge(one.suggestions, other.suggestions),
        starts=one.starts | other.starts,
        known_rows=one.known_rows.merged(other.known_rows),
        n_known=one.n_known + other.n_known,
        n_corrections=one.n_corrections + other.n_corrections,
    )
    return state, columns


def model_columns(columns: IntArray, n_features: int) -> IntArray:
    """Return the new columns of a model's features: a model without words has one feature that is always 0."""
    return columns if len(columns) == n_features else np.arange(n_features)


def since(before: TaggerState, after: TaggerState) -> TaggerState:
    """Return the differences of counts between two states."""
    return after.counted_since(before)._replace(
        features=features.since(before.features, after.features),
        starts=after.starts - before.starts,
        suggestions=Suggestions(),
        together={tags: more for tags, n in after.together.items() if (more := n - before.together.get(tags, 0)) > 0},
        known_rows=after.known_rows.since(before.known_rows),
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


def hash_rows(matrix: SparseMatrix, tags: Sequence[set[str]]) -> str:
    """Return a hash of rows and their tags, to detect that two taggers have learned the same ones."""
    total = hashlib.sha256(repr([sorted(one) for one in tags]).encode("utf-8", "surrogatepass"))
    for part in (matrix.data, matrix.indices, matrix.indptr):
        total.update(np.ascontiguousarray(part).tobytes())
    return total.hexdigest()[:32]
