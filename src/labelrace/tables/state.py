"""The tags of a tagger, as values: their counts, their predictions and their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, sub
from typing import Any, NamedTuple, TypeAlias

from labelrace.tables.cells import as_name
from labelrace.tables.features import FeatureState
from labelrace.tables.known_rows import KnownRows, Met, hash_tags
from labelrace.tables.suggestions import Suggestions
from labelrace.tables.tag_details import TagDetails

# The tags of each row; None if the row has none.
TagSets: TypeAlias = list[set[str] | None]

# A row without tags may mean that its tags are not known, or that no tag applies.
UNTAGGED = ("unknown", "none")
# Number of rows from which one tag a row counts as the rule.
ENOUGH = 100
# Number of different sets of tags that are counted.
MAX_SETS = 2**16
F1_OF_NOTHING = "The example F1 of a row without tags for which none is predicted is 1."
"""The convention of `f1`, for footnotes."""


class TagCounts(NamedTuple):
    """How often a tag occurred, and how well it was predicted before its rows were learned.

    For merged tags the counts are added up: a row with two of them counts twice there.

    Attributes
    ----------
    rows : int
        Learned rows that have the tag.
    tested : int
        Of the rows that were predicted before they were learned, those that have the tag.
    predicted : int
        Of these rows, those for which it was predicted.
    right : int
        Of these rows, those for which it was predicted correctly.
    """

    rows: int = 0
    tested: int = 0
    predicted: int = 0
    right: int = 0

    def precision(self) -> float:
        """Compute the share of the predictions that were right; 0 if there was none.

        Returns
        -------
        float
        """
        return self.right / self.predicted if self.predicted else 0.0

    def recall(self) -> float:
        """Compute the share of the rows with the tag for which it was predicted; 0 if there was none.

        Returns
        -------
        float
        """
        return self.right / self.tested if self.tested else 0.0

    def f1(self) -> float:
        """Compute the F1; 0 if the tag neither occurred nor was predicted.

        Returns
        -------
        float
        """
        return 2 * self.right / (self.tested + self.predicted) if self.tested + self.predicted else 0.0

    def plus(self, other: TagCounts) -> TagCounts:
        """Return the sum of both."""
        return TagCounts(*map(add, self, other))

    def minus(self, other: TagCounts) -> TagCounts:
        """Return the difference of both."""
        return TagCounts(*map(sub, self, other))


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
        """Return the rows whose tags are known, and their tags; ``untagged`` is the meaning of rows without tags."""
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
        """Return the names after the model's label of an unused tag was renamed."""
        aliases = {**self.aliases, new: self.aliases[old]} if old in self.aliases else self.aliases
        return TagNames(aliases, self.retired | {new} if old in self.retired else self.retired)

    def joined(self, other: TagNames) -> TagNames:
        """Return the names of both; tags that either has dropped are dropped, and of two new names the first one stays.

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
    """Everything a tagger has learned except its model."""

    features: FeatureState  # the kinds of the columns, and the words
    separator: str | None  # separator of tags that are written as one text; None if it is not known yet
    names: TagNames = TagNames()  # the tags that were renamed, merged and retired
    counts: Mapping[str, TagCounts] = {}
    n_rows: int = 0  # rows learned
    n_tested: int = 0  # rows predicted before they were learned
    sum_f1: float = 0.0  # sum of the F1 of these rows
    together: Mapping[tuple[str, ...], int] = {}  # rows learned with each set of several tags, which are in order
    details: Mapping[str, TagDetails] = {}  # synonyms, descriptions and parents of tags, also of such without rows
    suggestions: Suggestions = Suggestions()  # how names are used, and how far suggestions can be trusted
    starts: frozenset[str] = frozenset()  # hashes of the first rows learned, here and in taggers that were merged
    first: Any = None  # the first rows, while they are too few to detect the kinds of columns; see `first_rows`
    known_rows: KnownRows = KnownRows()  # the rows that were learned last
    n_known: int = 0  # rows that were skipped, as they had been learned with the same tags
    n_corrections: int = 0  # of the rows learned, those that had been learned with other tags

    def add_tested(self, true: Sequence[set[str]], predicted: Sequence[set[str]]) -> TaggerState:
        """Count the tested rows, and return the new state."""
        counts = count_tested(self.counts, zip(true, predicted, strict=True))
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

    def add_met(self, met: Met) -> TaggerState:
        """Count the rows of a batch that had been learned before, and return the new state."""
        return self._replace(
            known_rows=met.rows,
            n_known=self.n_known + int(met.is_known.sum()),
            n_corrections=self.n_corrections + int(met.is_correction.sum()),
        )

    def counted_since(self, before: TaggerState | None) -> TaggerState:
        """Return the state with the counts since an earlier one; None is before the first row."""
        if before is None:
            return self
        counts = {tag: count.minus(before.counts.get(tag, TagCounts())) for tag, count in self.counts.items()}
        names = ("n_rows", "n_tested", "sum_f1", "n_known", "n_corrections")
        numbers: Any = {name: getattr(self, name) - getattr(before, name) for name in names}
        return self._replace(counts=counts, **numbers)

    def add_tags(self, details: Mapping[str, TagDetails]) -> TaggerState:
        """Return the state with further tags, or further details of known ones."""
        names = self.names
        current = {names.aliases.get(tag, tag): one for tag, one in details.items()}
        retired = names.retired.difference(current)
        counts = {**self.counts, **{tag: TagCounts() for tag in current if tag not in self.counts}}
        details = {**self.details, **current}
        return self._replace(details=details, counts=counts, names=names._replace(retired=retired))

    def quality(self) -> dict[str, float]:
        """Return the number of rows that were tested, their example F1 and their micro F1."""
        if not self.n_tested:
            return {"rows": 0, "example_f1": float("nan"), "micro_f1": float("nan")}
        micro_f1 = reduce(TagCounts.plus, self.counts.values(), TagCounts()).f1()
        return {"rows": self.n_tested, "example_f1": self.sum_f1 / self.n_tested, "micro_f1": micro_f1}

    def all_names(self) -> list[str]:
        """Return all names of tags, also those that are no longer used."""
        return [*self.counts, *self.details, *self.names.aliases, *self.names.retired]

    def has_one_tag_a_row(self) -> bool:
        """Return whether all rows, and enough of them, had exactly one tag."""
        n_tags = sum(counts.rows for counts in self.counts.values())
        return self.n_rows >= ENOUGH and not self.together and n_tags == self.n_rows

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
        if "" in names.values():
            raise ValueError("names must be texts with at least one letter, got an empty one: use drop_labels.")
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
        details = {names.get(tag, tag): one for tag, one in self.details.items()}
        return self._replace(names=changed, counts=counts, details=details)._with_current_sets()

    def merge_tags(self, tags: Iterable[str], into: str) -> TaggerState:
        """Return the state with tags merged into another one."""
        changed, counts, merged = self.names, dict(self.counts), {*tags, into}
        for tag in sorted(merged - {into}):
            changed = changed.with_alias(tag, into)
            counts[into] = counts[into].plus(counts.pop(tag))
        # Rows that have several of the tags were counted for each.
        n_again = sum(n * max(0, len(merged.intersection(tags)) - 1) for tags, n in self.together.items())
        counts[into] = counts[into]._replace(rows=counts[into].rows - n_again)
        details = {tag: one for tag, one in self.details.items() if tag not in merged or tag == into}
        return self._replace(names=changed, counts=counts, details=details)._with_current_sets()

    def drop_tags(self, tags: Iterable[str]) -> TaggerState:
        """Return the state without some tags, which are ignored from now on."""
        retired = set(tags)
        counts = {tag: number for tag, number in self.counts.items() if tag not in retired}
        names = self.names._replace(retired=self.names.retired | retired)
        details = {tag: one for tag, one in self.details.items() if tag not in retired}
        return self._replace(names=names, counts=counts, details=details)._with_current_sets()

    def _with_current_sets(self) -> TaggerState:
        """Return the state with the current names of tags in the sets, too."""
        current = ((tuple(sorted(self.names.current(tags))), n) for tags, n in self.together.items())
        # Rows are known by their current tags.
        sets = [*self.together, *((tag,) for tag in (*self.names.aliases, *self.names.retired))]
        rows = self.known_rows.with_tags(hash_tags(sets), hash_tags(map(self.names.current, sets)))
        return self._replace(together=add_sets({}, current), known_rows=rows)


def add_sets(sets: Mapping[tuple[str, ...], int], added: Iterable[tuple[tuple[str, ...], int]]) -> dict[Any, int]:
    """Add the rows of sets of tags, of those with several; the rarest are forgotten if there are too many."""
    counts = dict(sets)
    for tags, n in added:
        if len(tags) > 1:
            counts[tags] = counts.get(tags, 0) + n
    if len(counts) > MAX_SETS:
        counts = dict(sorted(counts.items(), key=lambda pair: -pair[1])[: MAX_SETS // 2])
    return counts


def count_tested(counts: Mapping[str, TagCounts], rows: Iterable[tuple[set[str], set[str]]]) -> dict[str, TagCounts]:
    """Add the tags of rows, true and predicted ones, to the counts."""
    added = dict(counts)
    for true, predicted in rows:
        # In order, as that of a set differs from run to run.
        for tag in sorted(true | predicted):
            one = TagCounts(0, tag in true, tag in predicted, tag in true and tag in predicted)
            added[tag] = added.get(tag, TagCounts()).plus(one)
    return added


def f1(true: set[str], predicted: set[str]) -> float:
    """Compute the F1 of one row; 1 if there are no tags and none was predicted."""
    return 2 * len(true & predicted) / (len(true) + len(predicted)) if true or predicted else 1.0
