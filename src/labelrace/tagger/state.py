"""What a tagger knows, as values: tags are predicted and explained, rows counted, and tags change their names."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from labelrace.features import TableFeatures
from labelrace.features.table import FeatureState
from labelrace.tagger.tags import TagCounts, TagNames
from labelrace.typing import SparseMatrix

__all__ = ["Known", "TaggerState", "f1"]

# Tags to explain where none is predicted.
_EXPLAINED = 3


class TaggerState(NamedTuple):
    """Everything a tagger knows beside its model.

    Attributes
    ----------
    features : FeatureState
        What the columns hold, and the words.
    separator : str or None
        What separates the tags of a row that are one text; None if that has not been seen yet.
    names : TagNames
        Tags that were renamed, merged and retired.
    counts : dict of TagCounts by tag
    n_rows, n_tested : int
        Rows learned, and rows predicted before they were learned.
    sum_f1 : float
        Sum of the F measures of the rows predicted before they were learned.
    """

    features: FeatureState
    separator: str | None
    names: TagNames
    counts: Mapping[str, TagCounts] = {}
    n_rows: int = 0
    n_tested: int = 0
    sum_f1: float = 0.0

    def tested(self, true: Sequence[set[str]], predicted: Sequence[set[str]]) -> TaggerState:
        """Count how well rows were predicted."""
        counts = dict(self.counts)
        for one, two in zip(true, predicted, strict=True):
            for tag in one | two:
                added = TagCounts(0, tag in one, tag in two, tag in one and tag in two)
                counts[tag] = counts.get(tag, TagCounts()).plus(added)
        sum_f1 = self.sum_f1 + sum(f1(one, two) for one, two in zip(true, predicted, strict=True))
        return self._replace(counts=counts, n_tested=self.n_tested + len(true), sum_f1=sum_f1)

    def learned(self, true: Sequence[set[str]]) -> TaggerState:
        """Count the tags of rows that were learned."""
        counts = dict(self.counts)
        for tags in true:
            for tag in tags:
                counts[tag] = counts.get(tag, TagCounts()).plus(TagCounts(1))
        return self._replace(counts=counts, n_rows=self.n_rows + len(true))

    def quality(self) -> dict[str, float]:
        """Return the number of rows that were tested, their example F and their micro F."""
        if not self.n_tested:
            return {"rows": 0, "example_f1": float("nan"), "micro_f1": float("nan")}
        totals = TagCounts()
        for counts in self.counts.values():
            totals = totals.plus(counts)
        return {"rows": self.n_tested, "example_f1": self.sum_f1 / self.n_tested, "micro_f1": totals.f1()}

    def checked_tags(self, tags: Iterable[str]) -> list[str]:
        """Return a list of tags, all of them known."""
        is_list = isinstance(tags, Iterable) and not isinstance(tags, str)
        listed = list(dict.fromkeys(tag if isinstance(tag, str) else repr(tag) for tag in tags)) if is_list else []
        unknown = [tag for tag in listed if tag not in self.counts]
        if unknown or not listed:
            raise ValueError(f"tags must be a list of tags that the tagger knows, got {(unknown or tags)!r:.80}.")
        return listed

    def renamed(self, names: Mapping[str, str]) -> TaggerState:
        """Give tags other names."""
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
        return self._replace(names=changed, counts=counts)

    def merged(self, tags: Iterable[str], into: str) -> TaggerState:
        """Take tags for another one."""
        changed, counts = self.names, dict(self.counts)
        for tag in tags:
            if tag != into:
                changed = changed.with_alias(tag, into)
                counts[into] = counts[into].plus(counts.pop(tag))
        return self._replace(names=changed, counts=counts)

    def without(self, tags: Iterable[str]) -> TaggerState:
        """Retire tags."""
        retired = set(tags)
        counts = {tag: count for tag, count in self.counts.items() if tag not in retired}
        return self._replace(names=self.names._replace(retired=self.names.retired | retired), counts=counts)


class Known(NamedTuple):
    """Everything a tagger knows, as one value: the model, which is not changed any more, and the state beside it.

    ``features`` is the transformer of tables in that state.
    """

    state: TaggerState
    model: Any
    features: TableFeatures

    def predict(self, rows: SparseMatrix) -> list[set[str]]:
        """Predict tags, under the names that they have now."""
        return [self.state.names.current(tags) for tags in self.model.predict_labels(rows)]

    def predict_top(self, rows: SparseMatrix, k: int) -> list[list[tuple[str, float]]]:
        """List the most likely tags of each row with their probabilities."""
        names = self.state.names
        n_more = len(names.aliases) + len(names.retired)
        return [names.of_likely(row)[:k] for row in self.model.predict_top(rows, k + n_more)]

    def predict_scored(self, rows: SparseMatrix) -> list[dict[str, float]]:
        """Predict tags with their probabilities, most likely first."""
        places = {label: place for place, label in enumerate(self.model.label_names_)}
        scored = []
        for tags, row in zip(self.model.predict_labels(rows), self.model.predict_proba(rows), strict=True):
            pairs = sorted(((tag, float(row[places[tag]])) for tag in tags), key=lambda pair: (-pair[1], pair[0]))
            scored.append(dict(self.state.names.of_likely(pairs)))
        return scored

    def explain(
        self, row: SparseMatrix, tags: Iterable[str] | None, n_words: int
    ) -> dict[str, list[tuple[str, float]]]:
        """Tell which words and values carried which tag; of tags that are not given, those predicted, or likely."""
        own_labels = list(self.model.label_names_)
        if tags is None:
            [likely] = self.predict_top(row, len(own_labels))
            tags = sorted(self.predict(row)[0]) or [tag for tag, _ in likely[:_EXPLAINED]]
        names, words = self.state.names, self.state.features.vocabulary.names
        explained = {}
        for tag in tags:
            labels = [label for label in own_labels if names.current([label]) == {tag}]
            if not labels:
                raise ValueError(f"tags must be tags that the tagger knows, got {tag!r}.")
            told = max(self.model.explain(row, labels, n_words), key=lambda one: one.score)
            explained[tag] = [(words[column], amount) for column, amount in told.features]
        return explained

    def renamed(self, names: Mapping[str, str]) -> Known:
        """Give tags other names, in the model too."""
        changed, model = self.state.renamed(names), copy.copy(self.model)
        # Tags that came by merging have no label of their own.
        labels = set(model.label_names_)
        model.rename_labels({old: new for old, new in names.items() if old in labels})
        return self._replace(state=changed, model=model)

    def joined(self, tags: Iterable[str], into: str) -> Known:
        """Join tags into one: one of them, another tag, or a new name."""
        listed = self.state.checked_tags(tags)
        if not isinstance(into, str):
            raise ValueError(f"into must be the name of a tag, got {into!r:.80}.")
        known = self if into in self.state.counts else self.renamed({listed[0]: into})
        here = [tag for tag in listed if tag in known.state.counts]
        return known._replace(state=known.state.merged(here, into))


def f1(true: set[str], predicted: set[str]) -> float:
    """Compute the F measure of one row; 1 where there is nothing to find and nothing was found."""
    return 2 * len(true & predicted) / (len(true) + len(predicted)) if true or predicted else 1.0
