"""What a tagger has learned, as values, which predict and explain tags, count rows, and rename and merge tags."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from labelrace.tables.cells import as_name
from labelrace.tables.features import FeatureState, TableFeatures
from labelrace.typing import SparseMatrix

# The tags of each row; None if the row has none.
TagSets: TypeAlias = list[set[str] | None]

# A row without tags may mean that its tags are not known, or that no tag applies.
UNTAGGED = ("unknown", "none")
# Number of different sets of tags that are counted.
MAX_SETS = 2**16
# Number of tags to explain if none is predicted.
_EXPLAINED = 3


class TagCounts(NamedTuple):
    """How often a tag occurred, and how well it was predicted before its rows were learned.

    Of tags that were merged, what was tested before is added up: a row with two of them counts twice there.
    """

    rows: int = 0  # learned rows that have the tag
    tested: int = 0  # of the rows that were predicted before they were learned, those that have the tag
    predicted: int = 0  # of these rows, those for which it was predicted
    right: int = 0  # of these rows, those for which it was predicted correctly

    def f1(self) -> float:
        """Compute the F1; 0 if the tag neither occurred nor was predicted."""
        return 2 * self.right / (self.tested + self.predicted) if self.tested + self.predicted else 0.0

    def plus(self, other: TagCounts) -> TagCounts:
        """Return the sum of both."""
        return TagCounts(*(one + two for one, two in zip(self, other, strict=True)))


class TagNames(NamedTuple):
    """The tags that are no longer used, and what replaces them."""

    aliases: Mapping[str, str] = {}  # the current names of tags that were renamed or merged into another one
    retired: frozenset[str] = frozenset()  # tags that are ignored

    def current(self, tags: Iterable[str]) -> set[str]:
        """Return the current names of tags.

        Examples
        --------
        >>> sorted(TagNames({"ovens": "oven"}, frozenset({"old"})).current({"ovens", "egg", "old"}))
        ['egg', 'oven']
        """
        return {self.aliases.get(tag, tag) for tag in tags} - self.retired

    def tagged(self, tags: TagSets, untagged: str) -> tuple[list[int], list[set[str]]]:
        """Return the rows whose tags are known, and their tags; ``untagged`` says what rows without tags mean."""
        rows = [row for row, names in enumerate(tags) if names is not None or untagged == "none"]
        return rows, [self.current(tags[row] or ()) for row in rows]

    def of_likely(self, row: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """Return tags with their current names; merged tags have the largest of their probabilities."""
        if not self.aliases and not self.retired:
            return row
        best: dict[str, float] = {}
        for label, probability in row:
            for tag in self.current([label]):
                best.setdefault(tag, probability)
        return list(best.items())

    def with_alias(self, old: str, new: str) -> TagNames:
        """Return the names after a tag, and all that were merged into it, were replaced by another one."""
        aliases = {name: new if target == old else target for name, target in self.aliases.items() if name != new}
        return TagNames({**aliases, old: new}, self.retired - {new})

    def with_label(self, old: str, new: str) -> TagNames:
        """Return the names after the model's label of a tag that is no longer used got another name."""
        aliases = {**self.aliases, new: self.aliases[old]} if old in self.aliases else self.aliases
        return TagNames(aliases, self.retired | {new} if old in self.retired else self.retired)

    def joined(self, other: TagNames) -> TagNames:
        """Return the names of both; what either has dropped is dropped, and of two new names the first one stays.

        Examples
        --------
        >>> TagNames({"a": "b"}).joined(TagNames({"b": "c", "d": "a"})).aliases
        {'a': 'c', 'b': 'c', 'd': 'c'}
        """
        names = self
        for old, target in other.aliases.items():
            new = names.aliases.get(target, target)
            if old != new and old not in names.aliases:
                names = names.with_alias(old, new)
        return names._replace(retired=self.retired | other.retired)


class TaggerState(NamedTuple):
    """Everything a tagger has learned apart from its model."""

    features: FeatureState  # the kinds of the columns, and the words
    separator: str | None  # what separates tags that are written as one text; None if it is not known yet
    names: TagNames = TagNames()  # the tags that were renamed, merged and retired
    counts: Mapping[str, TagCounts] = {}
    n_rows: int = 0  # rows learned
    n_tested: int = 0  # rows predicted before they were learned
    sum_f1: float = 0.0  # sum of the F1 of these rows
    together: Mapping[tuple[str, ...], int] = {}  # rows learned with each set of several tags, which are in order

    def add_tested(self, true: Sequence[set[str]], predicted: Sequence[set[str]]) -> TaggerState:
        """Count how well rows were predicted, and return the new state."""
        counts = dict(self.counts)
        for one, two in zip(true, predicted, strict=True):
            # In order, as that of a set differs from run to run.
            for tag in sorted(one | two):
                added = TagCounts(0, tag in one, tag in two, tag in one and tag in two)
                counts[tag] = counts.get(tag, TagCounts()).plus(added)
        sum_f1 = self.sum_f1 + sum(f1(one, two) for one, two in zip(true, predicted, strict=True))
        return self._replace(counts=counts, n_tested=self.n_tested + len(true), sum_f1=sum_f1)

    def add_learned(self, true: Sequence[set[str]]) -> TaggerState:
        """Count the tags of rows that were learned, and return the new state."""
        counts, sets = dict(self.counts), [tuple(sorted(tags)) for tags in true]
        for tags in sets:
            for tag in tags:
                counts[tag] = counts.get(tag, TagCounts()).plus(TagCounts(1))
        together = add_sets(self.together, ((tags, 1) for tags in sets))
        return self._replace(counts=counts, n_rows=self.n_rows + len(true), together=together)

    def quality(self) -> dict[str, float]:
        """Return the number of rows that were tested, their example F1 and their micro F1."""
        if not self.n_tested:
            return {"rows": 0, "example_f1": float("nan"), "micro_f1": float("nan")}
        micro_f1 = reduce(TagCounts.plus, self.counts.values(), TagCounts()).f1()
        return {"rows": self.n_tested, "example_f1": self.sum_f1 / self.n_tested, "micro_f1": micro_f1}

    def check_tags(self, tags: Iterable[str]) -> list[str]:
        """Return the tags as a list; raise ValueError if one is not known."""
        is_list = isinstance(tags, Iterable) and not isinstance(tags, str)
        named = (as_name(tag) if isinstance(tag, str) else repr(tag) for tag in tags) if is_list else ()
        listed = list(dict.fromkeys(named))
        unknown = [tag for tag in listed if tag not in self.counts]
        if unknown or not listed:
            raise ValueError(f"tags must be a list of tags that the tagger knows, got {(unknown or tags)!r:.80}.")
        return listed

    def rename_tags(self, names: Mapping[str, str]) -> TaggerState:
        """Return the state with new names for tags."""
        if not isinstance(names, Mapping) or not all(isinstance(new, str) for new in names.values()):
            raise ValueError(f"names must be a dict from old to new name, got {names!r:.80}.")
        unknown = [old for old in names if old not in self.counts]
        if unknown:
            raise ValueError(f"names must be of tags that the tagger knows, got {unknown[0]!r}.")
        taken = [new for new in names.values() if new in self.counts or list(names.values()).count(new) > 1]
        if taken:
            raise ValueError(f"names must be new, got {taken[0]!r}, which is a tag: use merge_labels to join them.")
        changed, counts = self.names, dict(self.counts)
        for old, new in names.items():
            changed = changed.with_alias(old, new)
            counts[new] = counts.pop(old)
        return self._replace(names=changed, counts=counts)._with_current_sets()

    def merge_tags(self, tags: Iterable[str], into: str) -> TaggerState:
        """Return the state with tags merged into another one."""
        changed, counts, merged = self.names, dict(self.counts), {*tags, into}
        for tag in sorted(merged - {into}):
            changed = changed.with_alias(tag, into)
            counts[into] = counts[into].plus(counts.pop(tag))
        # Rows that have several of the tags were counted for each.
        n_again = sum(n * max(0, len(merged.intersection(tags)) - 1) for tags, n in self.together.items())
        counts[into] = counts[into]._replace(rows=counts[into].rows - n_again)
        return self._replace(names=changed, counts=counts)._with_current_sets()

    def drop_tags(self, tags: Iterable[str]) -> TaggerState:
        """Return the state without some tags, which are ignored from now on."""
        retired = set(tags)
        counts = {tag: number for tag, number in self.counts.items() if tag not in retired}
        names = self.names._replace(retired=self.names.retired | retired)
        return self._replace(names=names, counts=counts)._with_current_sets()

    def _with_current_sets(self) -> TaggerState:
        """Return the state with the current names of tags in the sets, too."""
        current = ((tuple(sorted(self.names.current(tags))), n) for tags, n in self.together.items())
        return self._replace(together=add_sets({}, current))


class Known(NamedTuple):
    """Everything a tagger has learned, as one value: the state and the model, which are never modified.

    ``features`` is the transformer of tables with the features of that state.
    """

    state: TaggerState
    model: Any
    features: TableFeatures

    def predict(self, rows: SparseMatrix) -> list[set[str]]:
        """Predict tags, with their current names."""
        return [self.state.names.current(tags) for tags in self.model.predict_labels(rows)]

    def predict_top(self, rows: SparseMatrix, k: int) -> list[list[tuple[str, float]]]:
        """Return the most likely tags of each row with their probabilities."""
        names = self.state.names
        n_more = len(names.aliases) + len(names.retired)
        return [names.of_likely(row)[:k] for row in self.model.predict_top(rows, k + n_more)]

    def predict_scored(self, rows: SparseMatrix) -> list[dict[str, float]]:
        """Predict tags with their probabilities, most likely first."""
        predicted, n_tags = self.model.predict_labels(rows), len(self.model.label_names_)
        k = max([1, *map(len, predicted)])
        ranked = self.model.predict_top(rows, k)
        # Tags have thresholds of their own, so a predicted one may be less likely than one that is not predicted.
        while k < n_tags and any(tags - dict(row).keys() for tags, row in zip(predicted, ranked, strict=True)):
            k = min(2 * k, n_tags)
            ranked = self.model.predict_top(rows, k)
        pairs = ([pair for pair in row if pair[0] in tags] for tags, row in zip(predicted, ranked, strict=True))
        return [dict(self.state.names.of_likely(row)) for row in pairs]

    def explain(
        self, row: SparseMatrix, tags: Iterable[str] | None, n_words: int
    ) -> dict[str, list[tuple[str, float]]]:
        """Return the words and values that contribute to tags: the given, else the predicted, else the most likely."""
        own_labels = list(self.model.label_names_)
        if tags is None:
            tags = sorted(self.predict(row)[0]) or [tag for tag, _ in self.predict_top(row, _EXPLAINED)[0]]
        names, words = self.state.names, self.state.features.vocabulary.names
        explained = {}
        for tag in map(as_name, tags):
            labels = [label for label in own_labels if names.current([label]) == {tag}]
            if not labels:
                raise ValueError(f"tags must be tags that the tagger knows, got {tag!r}.")
            explanation = max(self.model.explain(row, labels, n_words), key=lambda one: one.score)
            explained[tag] = [(words[column], amount) for column, amount in explanation.features]
        return explained

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
        model.rename_labels(away)
        model.rename_labels({old: new for old, new in names.items() if old in labels})
        return self._replace(state=changed, model=model)

    def merge_tags(self, tags: Iterable[str], into: str) -> Known:
        """Merge tags into one: one of them, another tag, or a new name."""
        listed = self.state.check_tags(tags)
        if not isinstance(into, str):
            raise ValueError(f"into must be the name of a tag, got {into!r:.80}.")
        into = as_name(into)
        known = self if into in self.state.counts else self.rename_tags({listed[0]: into})
        present = [tag for tag in listed if tag in known.state.counts]
        return known._replace(state=known.state.merge_tags(present, into))

    def translate_tags(self, names: TagNames) -> Known:
        """Rename, merge and drop tags as another tagger did."""
        known = self
        for old, new in names.aliases.items():
            if old in known.state.counts:
                known = known.merge_tags([old], new)
        return known._replace(state=known.state.drop_tags(names.retired))


def add_sets(sets: Mapping[tuple[str, ...], int], added: Iterable[tuple[tuple[str, ...], int]]) -> dict[Any, int]:
    """Add the rows of sets of tags, of those with several; the rarest are forgotten if there are too many."""
    counts = dict(sets)
    for tags, n in added:
        if len(tags) > 1:
            counts[tags] = counts.get(tags, 0) + n
    if len(counts) > MAX_SETS:
        counts = dict(sorted(counts.items(), key=lambda pair: -pair[1])[: MAX_SETS // 2])
    return counts


def f1(true: set[str], predicted: set[str]) -> float:
    """Compute the F1 of one row; 1 if there are no tags and none was predicted."""
    return 2 * len(true & predicted) / (len(true) + len(predicted)) if true or predicted else 1.0
