"""Everything a tagger has learned, as one value, `Known`; it suggests, explains, renames and merges tags."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from labelrace.decisions.rules import Rule
from labelrace.tables import suggestions, vocabulary
from labelrace.tables.cells import as_name
from labelrace.tables.features import Rows, TableFeatures, Values
from labelrace.tables.name_matches import Matches, NameIndexes, TextWords
from labelrace.tables.state import TaggerState, TagNames, f1
from labelrace.tables.suggestions import Candidates
from labelrace.tables.tag_details import TagDetails
from labelrace.tables.trial import Trial, uses_encoders, using
from labelrace.typing import BoolArray, FloatArray, IntArray, SparseMatrix

Found = TypeVar("Found")

# Number of tags to explain if none is predicted.
_EXPLAINED = 3
# The sources of a tag's name, as explanations call them.
_SOURCES = ("its name, in a short text", "its name, in a long text", "its description")
# The details of most tags: one object, as an unchanged one is found faster.
_NO_DETAILS = TagDetails()
# The aim of a model without one.
_AIM = "cardinality"


class Wanted(NamedTuple):
    """Which suggestions are given."""

    precision: float | None = None  # share of them that is to be right; None for label sets by the model's rule
    min_probability: float = 0.0
    single: bool | str = False  # whether it is one tag, the most likely; "auto" if all rows learned had one
    may_be_none: bool = False  # whether it was learned, too, that no tag applies to a row


ANY = Wanted()
"""As many tags as rows have, by the rule for label sets."""


class Suggestion(NamedTuple):
    """The suggested tags of a row."""

    tags: dict[str, float]  # with their probabilities, most likely first
    review: bool  # whether a person should look at it, as no tag is sure enough, or nothing in it is known


class Ranked(NamedTuple):
    """The suggested tags of a row, and its most likely ones."""

    tags: dict[str, float]  # as those of `Suggestion`
    review: bool
    likely: list[tuple[str, float]]  # the most likely tags, best first; the suggested ones are among them


@dataclass(frozen=True, eq=False)
class Known:
    """Everything a tagger has learned: the state and the model, which are never modified.

    ``features`` is the transformer of tables with the features of that state. ``indexed`` are the names of tags that an
    earlier value has indexed already. ``trial`` is the second model, while it is not known whether encoders help.
    """

    state: TaggerState
    model: Any
    features: TableFeatures
    indexed: NameIndexes | None = None
    trial: Trial | None = None

    # --- Suggesting ---------------------------------------------------------------------------------------------------

    @cached_property
    def tags(self) -> dict[str, TagDetails]:
        """All tags and their details; old names of a tag are synonyms."""
        tags = {tag: self.state.details.get(tag, _NO_DETAILS) for tag in self.state.counts}
        for old, tag in self.state.names.aliases.items():
            if tag in tags:
                tags[tag] = tags[tag]._replace(synonyms=(*tags[tag].synonyms, old))
        return tags

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each tag."""
        return {tag: number for number, tag in enumerate(self.tags)}

    @cached_property
    def names(self) -> NameIndexes:
        """The index of the names of tags."""
        return (self.indexed or NameIndexes()).extended(self.tags)

    @cached_property
    def tag_rows(self) -> FloatArray:
        """The number of rows of each tag."""
        return np.array([counts.rows for counts in self.state.counts.values()], dtype=float)

    @cached_property
    def rule(self) -> Rule:
        """The decision rule for scores with names."""
        return suggestions.rule(self.state.suggestions, self._aim)

    @cached_property
    def surplus(self) -> FloatArray:
        """The shift of the log odds of each tag."""
        return suggestions.surplus_of(self.state.suggestions, tuple(self.tags))

    @property
    def _aim(self) -> str:
        return str(getattr(self.model, "optimise", None) or _AIM)

    def predict(self, rows: Rows, wanted: Wanted = ANY) -> list[set[str]]:
        """Predict tags."""
        if self._chooses_with_names or wanted.precision is not None or wanted.min_probability or self.is_single(wanted):
            return [set(one.tags) for one in self.suggest(rows, wanted)]
        return [tags if known else set() for tags, known in zip(self._own(rows), self._is_known(rows), strict=True)]

    def suggest(self, rows: Rows, wanted: Wanted = ANY) -> list[Suggestion]:
        """Suggest tags with their probabilities; a row without any is for review."""
        return [Suggestion(one.tags, one.review) for one in self.ranked(rows, wanted)]

    def predict_top(self, rows: Rows, k: int) -> list[list[tuple[str, float]]]:
        """Return the most likely tags of each row with their probabilities."""
        return self._top(*self._candidates(rows, k), k)

    def ranked(self, rows: Rows, wanted: Wanted = ANY, k: int = 0) -> list[Ranked]:
        """Suggest tags as `suggest` does, and return the ``k`` most likely ones as `predict_top` does."""
        found, likely, chosen, are_open = self._chosen(rows, wanted)
        names, given = tuple(self.tags), [dict[str, float]() for _ in chosen]
        pairs = np.nonzero(chosen)[0], found.tags[chosen], likely[chosen]
        for row, tag, p in zip(*map(np.ndarray.tolist, pairs), strict=True):
            given[row][names[tag]] = p
        # More candidates than suggestions are chosen from would change these.
        tops = self._top(found, likely, k) if k <= suggestions.N_CANDIDATES else self.predict_top(rows, k)
        return [
            Ranked(tags, is_open and not tags, list((dict(top) | tags).items()))
            for tags, is_open, top in zip(given, are_open.tolist(), tops, strict=True)
        ]

    def _top(self, found: Candidates, likely: FloatArray, k: int) -> list[list[tuple[str, float]]]:
        """Return the names and probabilities of the first candidates of each row."""
        names, pairs = tuple(self.tags), zip(found.tags.tolist(), likely.tolist(), strict=True)
        return [list(islice(((names[tag], p) for tag, p in zip(*row, strict=True) if tag >= 0), k)) for row in pairs]

    def _chosen(self, rows: Rows, wanted: Wanted) -> tuple[Candidates, FloatArray, BoolArray, BoolArray]:
        """Return candidates, their probabilities, which of them are suggested, and for which rows none means nothing.

        That no tag is chosen for a row means that none applies only if that was learned, the row is known, and it is
        not a limit that has left none.
        """
        if self.is_single(wanted):
            found, likely = self._candidates(rows)
            chosen = np.cumsum(found.tags >= 0, axis=1) == 1
        elif self._chooses_with_names:
            found, likely = self._candidates(rows)
            chosen = suggestions.choose(self.rule, found)
        else:
            found, likely, chosen = self._own_chosen(rows)
        had_tags = chosen.any(axis=1)
        if wanted.precision is not None:
            least = suggestions.least_confidence(self.state.suggestions, wanted.precision)
            given = self.state.suggestions, likely, found.tags, self.surplus, np.diff(rows.matrix.indptr)
            chosen &= suggestions.confidence(*given) >= least
        is_known = self._is_known(rows)
        chosen &= (found.tags >= 0) & (likely >= wanted.min_probability) & is_known[:, None]
        return found, likely, chosen, had_tags | ~is_known | (not wanted.may_be_none)

    def is_single(self, wanted: Wanted) -> bool:
        """Return whether one tag is suggested for each row."""
        return self._has_one_tag_a_row if wanted.single == "auto" else bool(wanted.single)

    @cached_property
    def _has_one_tag_a_row(self) -> bool:
        return self.state.has_one_tag_a_row()

    @property
    def _chooses_with_names(self) -> bool:
        """Whether label sets are chosen with names: once rows have shown the rule, and that names help."""
        return bool(self.state.suggestions.scores.rows) and self.state.suggestions.uses_names

    def _is_known(self, rows: Rows) -> BoolArray:
        """Return whether a word, or a value that decides, of each row is known; without words, whether anything is.

        A value decides if a tag is more likely than half-way from its share of the rows to certainty.
        """
        is_filled: BoolArray = np.diff(rows.matrix.indptr) > 0
        if not rows.texts or uses_encoders(self.state.features):
            return is_filled
        has_words, has_known = self._has_known(rows.texts, len(is_filled))
        is_known = np.where(has_words, has_known, is_filled)
        unsure = np.flatnonzero(~is_known & self._has_known(rows.values, len(is_filled))[1])
        if len(unsure):
            likely = self._likely(rows.matrix[unsure])
            share = np.append(self.tag_rows / max(self.state.n_rows, 1), 1.0)
            is_known[unsure] = (likely.scores > (1.0 + share[likely.tags]) / 2.0).any(axis=1)
        return is_known

    def _has_known(self, columns: Sequence[TextWords | Values], n_rows: int) -> tuple[BoolArray, BoolArray]:
        """Return whether each row has words or values, and whether it has some that have been seen before."""
        has_some, has_known = np.zeros((2, n_rows), dtype=bool)
        for one in columns:
            is_one_known = vocabulary.find(self.state.features.vocabulary, one.hashes) >= 0
            of_entries = np.repeat(np.arange(n_rows), np.diff(one.counts.indptr))
            has_some[of_entries] = True
            has_known[of_entries[is_one_known[one.counts.indices]]] = True
        return has_some, has_known

    def _own(self, rows: Rows) -> list[set[str]]:
        """Predict tags by the model alone, with their current names."""
        return [self.state.names.current(tags) for tags in self.model.fitted.predict_labels(rows.matrix)]

    def _own_chosen(self, rows: Rows) -> tuple[Candidates, FloatArray, BoolArray]:
        """Return candidates, their probabilities, and which of them the model predicts."""
        own, k = [{self.numbers[tag] for tag in tags} for tags in self._own(rows)], suggestions.N_CANDIDATES
        while True:
            found, likely = self._candidates(rows, k)
            chosen = suggestions.is_among(found.tags, own)
            # Tags have thresholds of their own, so a predicted one may be less likely than one that is not predicted.
            if k >= len(self.tags) or chosen.sum() == sum(map(len, own)):
                return found, likely, chosen
            k *= 2

    def _candidates(self, rows: Rows, k: int = 0) -> tuple[Candidates, FloatArray]:
        """Return at least ``k`` of the most likely tags of rows, best first, and their probabilities."""
        found = self._likely(rows.matrix, k) if k > suggestions.N_CANDIDATES else self._likely_of(rows)
        known = self.state.suggestions
        if not known.uses_names:
            return found, found.scores
        matches = self._matches(rows)
        found = suggestions.with_names(known, found, matches, self.tag_rows).most_likely_first()
        return found, suggestions.probabilities(known, self.rule, found)

    def _likely_of(self, rows: Rows) -> Candidates:
        """Return the most likely tags of rows; those of the last rows are cached, as rows are observed and tested."""
        return self._once("last_likely", rows, lambda: self._likely(rows.matrix))

    def _matches(self, rows: Rows) -> Matches:
        """Return the names of tags in the texts of rows; those of the last rows are cached."""
        return self._once("last_matches", rows, lambda: self.names.find(rows.texts))

    def _once(self, name: str, rows: Rows, find: Callable[[], Found]) -> Found:
        """Return the result of `find`, which is called only for other rows than the last ones."""
        last: tuple[Rows, Found] | None = vars(self).get(name)
        if last is None or last[0] is not rows:
            last = vars(self)[name] = rows, find()
        return last[1]

    def _likely(self, rows: SparseMatrix, k: int = 0) -> Candidates:
        """Return the most likely tags of rows by the model, with their probabilities."""
        n_unused = len(self.state.names.aliases) + len(self.state.names.retired)
        labels, likely = self.model.fitted.most_likely(rows, max(k, suggestions.N_CANDIDATES) + n_unused)
        tags = self._tags_of_labels[labels]
        if self.state.names.aliases:
            # Of labels that were merged into one tag, the most likely one counts.
            again = (tags[:, :, None] == tags[:, None, :]) & np.tri(tags.shape[1], k=-1, dtype=bool)
            tags = np.where(again.any(axis=2), -1, tags)
        # Tags that are no longer used keep their scores: a row that they fit does not get another tag instead.
        return Candidates(tags, likely)

    @cached_property
    def _tags_of_labels(self) -> IntArray:
        """The number of the tag of each of the model's labels; -1 for those that are no longer used."""
        names = self.state.names
        tags = (names.aliases.get(label, label) for label in self.model.label_names_)
        return np.array([-1 if tag in names.retired else self.numbers.get(tag, -1) for tag in tags], dtype=np.intp)

    def observe(self, rows: Rows, true: Sequence[set[str]]) -> TaggerState:
        """Return the state after the predictions of some rows were recorded, which are not learned yet."""
        some = suggestions.monitored(len(true)).tolist()
        rows, known = rows.take(some), [true[row] for row in some]
        own = self._own(rows)
        own_f1 = np.array([f1(one, two) for one, two in zip(known, own, strict=True)])
        # Tags that are new have no number: they cannot have been predicted.
        new = len(self.tags)
        numbers = [{self.numbers.get(tag, new + i) for i, tag in enumerate(sorted(tags))} for tags in known]
        observed = suggestions.observe(
            self.state.suggestions,
            self._likely_of(rows),
            own_f1,
            self._matches(rows),
            numbers,
            self.tag_rows,
            tuple(self.tags),
            self.rule,
            np.diff(rows.matrix.indptr),
        )
        return self.state._replace(suggestions=observed)

    # --- Explaining ---------------------------------------------------------------------------------------------------

    def explain(self, row: Rows, tags: Iterable[str] | None, n_words: int) -> dict[str, list[tuple[str, float]]]:
        """Return the words and values that contribute to tags: the given, else the predicted, else the most likely."""
        if isinstance(tags, str):
            raise ValueError(f"tags must be a list of tags, got {tags!r}: give [{tags!r}].")
        if tags is None:
            tags = sorted(self.predict(row)[0]) or [tag for tag, _ in self.predict_top(row, _EXPLAINED)[0]]
        own_labels, words = list(self.model.label_names_), self.state.features.vocabulary.names
        explained = {}
        for tag in map(as_name, tags):
            if tag not in self.tags:
                raise ValueError(f"tags must be tags that the tagger knows, got {tag!r}.")
            parts = self._explain_by_name(row, tag)
            labels = [label for label in own_labels if self.state.names.current([label]) == {tag}]
            if labels:
                own = max(self.model.explain(row.matrix, labels, n_words), key=lambda one: one.score)
                parts += [(words[column], amount) for column, amount in own.features]
            explained[tag] = sorted(parts, key=lambda part: -abs(part[1]))[:n_words]
        return explained

    def _explain_by_name(self, row: Rows, tag: str) -> list[tuple[str, float]]:
        """Return the contribution of a tag's name, by its source."""
        if not self.state.suggestions.uses_names:
            return []
        matches = self.names.find(row.texts)
        its = matches.tags == self.numbers[tag]
        of_tag = Matches(matches.rows[its], matches.tags[its], matches.found[its])
        amounts = suggestions.added_by_names(self.state.suggestions, self._likely(row.matrix), of_tag, self.tag_rows)
        return [(source, amount) for source, amount in zip(_SOURCES, amounts.tolist(), strict=True) if amount]

    # --- With encoders and without ------------------------------------------------------------------------------------

    def on_trial(self, trial: Trial) -> Known:
        """Return the same with a second model."""
        return replace(self, trial=trial)

    def reading_encoders(self, used: bool) -> Known:
        """Return the same that reads tables with all encoders, or without."""
        learned = using(self.state.features, used)
        features = copy.copy(self.features).restore(learned)
        return replace(self, state=self.state._replace(features=learned), features=features)

    def second(self) -> Known:
        """Return the same with the two models swapped."""
        assert self.trial is not None
        trial = self.trial._replace(
            model=self.model, suggestions=self.state.suggestions, difference=-self.trial.difference
        )
        state = self.state._replace(suggestions=self.trial.suggestions)
        swapped = replace(self, state=state, model=self.trial.model, trial=trial)
        return swapped.reading_encoders(not uses_encoders(self.state.features))

    def decided(self, is_last: bool = True) -> Known:
        """Let the better of two models predict; at the end drop the other one."""
        if self.trial is None:
            return self
        better = self.second() if self.trial.difference > 0.0 else self
        return replace(better, trial=None) if is_last else better

    # --- Tags change --------------------------------------------------------------------------------------------------

    def rename_tags(self, names: Mapping[str, str]) -> Known:
        """Rename tags, also in the model."""
        state, model, taken = self.state, copy.copy(self.model), list[str]()
        labels = set(model.label_names_)
        if isinstance(names, Mapping) and all(isinstance(name, str) for name in (*names, *names.values())):
            names = {as_name(old): as_name(new) for old, new in names.items()}
            taken = sorted(labels.intersection(names.values()) - state.counts.keys())
        # The label of a tag that was dropped, or merged into another one, gives way to the tag that gets its name. No
        # row has a tag that begins with a space.
        away = {name: next(new for i in count(1) if (new := " " * i + name) not in labels) for name in taken}
        for name, new in away.items():
            state = state._replace(names=state.names.with_label(name, new))
        changed = state.rename_tags(names)
        # Tags that others were merged into may have no label in the model.
        second = self.trial and copy.copy(self.trial.model)
        for one in (model, second) if second else (model,):
            one.rename_labels(away)
            one.rename_labels({old: new for old, new in names.items() if old in labels})
        trial = self.trial and self.trial._replace(model=second)
        return replace(self, state=changed, model=model, trial=trial)

    def merge_tags(self, tags: Iterable[str], into: str) -> Known:
        """Merge tags into one: one of them, another tag, or a new name."""
        listed = self.state.check_tags(tags)
        if not isinstance(into, str):
            raise ValueError(f"into must be the name of a tag, got {into!r:.80}.")
        into = as_name(into)
        if not into:
            raise ValueError("into must be the name of a tag, got an empty text.")
        known = self if into in self.state.counts else self.rename_tags({listed[0]: into})
        present = [tag for tag in listed if tag in known.state.counts]
        return replace(known, state=known.state.merge_tags(present, into))

    def translate_tags(self, names: TagNames) -> Known:
        """Rename, merge and drop tags as another tagger did."""
        known = self
        for old, new in names.aliases.items():
            if old in known.state.counts:
                known = known.merge_tags([old], new)
        return replace(known, state=known.state.drop_tags(names.retired))
