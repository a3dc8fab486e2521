"""Tags of rows in any form: sets, lists, a delimited text, JSON lists, or columns of 0 and 1.

`TagNames` has the tags that were renamed, merged and retired since they were learned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from labelrace.features.cells import Cells, Table, as_lists, as_numbers, is_missing, read_table
from labelrace.features.kinds import find_separator
from labelrace.parameters import shown

__all__ = ["UNTAGGED", "TagCounts", "TagNames", "TagSets", "as_given", "from_table", "joined"]

# The tags of each row; None if the row has none.
TagSets: TypeAlias = list[set[str] | None]

# A row without tags may mean that its tags are not known, or that no tag applies.
UNTAGGED = ("unknown", "none")
SEPARATORS = {"space": " ", "tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}


class TagCounts(NamedTuple):
    """How often a tag occurred, and how well it was predicted before its rows were learned."""

    rows: int = 0  # learned rows that have the tag
    tested: int = 0  # of the rows that were predicted before they were learned, those that have the tag
    predicted: int = 0  # of these rows, those for which it was predicted
    right: int = 0  # of these rows, those for which it was predicted correctly

    def f1(self) -> float:
        """Compute the F measure; 0 if the tag neither occurred nor was predicted."""
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
        for label, likely in row:
            for tag in self.current([label]):
                best.setdefault(tag, likely)
        return list(best.items())

    def with_alias(self, old: str, new: str) -> TagNames:
        """Return the names after a tag, and all that were merged into it, were replaced by another one."""
        aliases = {name: new if target == old else target for name, target in self.aliases.items() if name != new}
        return TagNames({**aliases, old: new}, self.retired - {new})


def from_table(table: Table, tags: str | Sequence[str], separator: str | None) -> tuple[TagSets, str | None]:
    """Read the tags of a table: one column of lists or delimited texts, or columns of 0 and 1.

    The separator, which is detected if none is given, is returned, too.
    """
    names = [tags] if isinstance(tags, str) else list(tags)
    gone = [name for name in names if name not in table.columns]
    if gone:
        raise ValueError(
            f"The table must have the column {gone[0]!r}, which tags= names, got columns {shown(table.columns, 20)}."
        )
    if isinstance(tags, str):
        return _from_cells(table.columns[tags], separator)
    return _from_truths({name: table.columns[name] for name in names}, table.n_rows), separator


def as_given(y: Any, n_rows: int, separator: str | None) -> tuple[TagSets, str | None]:
    """Read tags that are given beside a table: sets, lists, texts, or a data frame of 0 and 1."""
    if hasattr(y, "columns") or isinstance(y, Mapping):
        truths = read_table(y)
        found = _from_truths(truths.columns, truths.n_rows)
    else:
        if isinstance(y, str) or not isinstance(y, Iterable) or getattr(y, "ndim", 1) != 1:
            raise ValueError(
                "y must be the tags of each row, as sets, lists or texts, or a data frame of 0 and 1 with the tags as "
                f"its columns, got {type(y).__name__}."
            )
        cells = [None if is_missing(cell) or cell != cell else cell for cell in y]
        found, separator = _from_cells(cells, separator)
    if len(found) != n_rows:
        raise ValueError(f"The table and y must have the same number of rows, got {n_rows} and {len(found)}.")
    return found, separator


def _from_cells(cells: Cells, separator: str | None) -> tuple[TagSets, str | None]:
    separator = SEPARATORS.get(separator or "", separator)
    if separator is None and isinstance(cells, list):
        separator = find_separator([cell for cell in cells if isinstance(cell, str)])
    return [set(names) or None for names in as_lists(cells, separator)], separator


def _from_truths(columns: Mapping[str, Cells], n_rows: int) -> TagSets:
    """Read columns of 0 and 1; a row without any 1 has no tags."""
    sets = [set[str]() for _ in range(n_rows)]
    for name, cells in columns.items():
        numbers, wrong = as_numbers(cells)
        others = [*wrong, *np.flatnonzero(~np.isnan(numbers) & (numbers != 0) & (numbers != 1)).tolist()]
        if others:
            raise ValueError(f"The column of tags {name!r} must hold 0 and 1, got {cells[others[0]]!r}.")
        for row in np.flatnonzero(numbers == 1):
            sets[row].add(name)
    return [found or None for found in sets]


def joined(tags: Iterable[str], separator: str | None) -> str:
    """Write tags as one text, in their order; as a JSON list if a tag contains the separator.

    Examples
    --------
    >>> joined(["oven", "egg"], " "), joined(["a;b", "c"], None)
    ('oven egg', '["a;b", "c"]')
    """
    listed, between = list(tags), separator or ";"
    return json.dumps(listed) if any(between in tag for tag in listed) else between.join(listed)
