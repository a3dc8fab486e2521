"""Details of tags beside their names: synonyms, descriptions and parents.

A table of tags has a column ``tag`` and any of ``synonyms``, ``description`` and ``parent``. A parent may also be part
of the name: ``hardware > printer`` and ``hardware::printer`` are children of ``hardware``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labelrace.base.parameters import quoted_list
from labelrace.tables.cells import as_lists, as_name, as_texts
from labelrace.tables.column_kinds import find_separator
from labelrace.tables.read import Table, as_table, table_batches

_COLUMNS = ("tag", "synonyms", "description", "parent")
_BELOW = re.compile(r"\s*(?:::|\s>\s)\s*")
# Rows of a file that are read at a time.
_ROWS = 10_000
# The value of predicting the parent of a tag.
_HALF = 0.5


class TagDetails(NamedTuple):
    """The details of a tag beside its name."""

    synonyms: tuple[str, ...] = ()
    description: str = ""
    parent: str | None = None


def read_details(tags: Any) -> dict[str, TagDetails]:
    """Read tags and their details.

    Parameters
    ----------
    tags : list of str, dict from tag to dict, table or path
        Names alone; or ``{"oven": {"synonyms": ["stove"], "description": "…", "parent": "equipment"}}``; or a table, or
        its file, with the columns ``tag``, ``synonyms``, ``description`` and ``parent``.

    Examples
    --------
    >>> read_details({"oven": {"synonyms": ["stove", "cooker"]}})
    {'oven': TagDetails(synonyms=('stove', 'cooker'), description='', parent=None)}
    """
    if isinstance(tags, Mapping) and all(isinstance(one, Mapping) for one in tags.values()):
        rows = [{"tag": tag, **one} for tag, one in tags.items()]
        return _of_table(as_table(rows)) if rows else {}
    if isinstance(tags, (list, tuple, set, frozenset)) and all(isinstance(tag, str) for tag in tags):
        return _of_table(Table({"tag": list(tags)}, len(tags))) if tags else {}
    details: dict[str, TagDetails] = {}
    for table in table_batches(tags, _ROWS):
        details |= _of_table(table, str(tags) if isinstance(tags, (str, Path)) else "")
    return details


def _of_table(table: Table, source: str = "") -> dict[str, TagDetails]:
    """Read what a table says of tags; ``source`` is its file, for errors."""
    where = f"{source}: " if source else ""
    columns = {name.strip().lower(): cells for name, cells in table.columns.items()}
    if "tag" not in columns:
        got = quoted_list(table.columns, 20)
        raise ValueError(
            f"{where}The tags must have the columns 'tag' and any of {quoted_list(_COLUMNS[1:])}, got {got}."
        )
    if others := [name for name in table.columns if name.strip().lower() not in _COLUMNS]:
        warnings.warn(f"{where}Columns that say nothing of tags are left out: {quoted_list(others, 20)}.", stacklevel=2)
    table = table._replace(columns=columns)
    nothing = [None] * table.n_rows
    texts = {name: as_texts(table.columns.get(name, nothing)) for name in _COLUMNS}
    cells = table.columns.get("synonyms", nothing)
    separator = find_separator([cell for cell in cells if isinstance(cell, str)]) if isinstance(cells, list) else None
    # A name of several words is one synonym, unless something other than a space separates them.
    synonyms = as_lists(cells, None if separator == " " else separator)
    names = list(map(as_name, texts["tag"]))
    if "" in names:
        raise ValueError(f"{where}The tags must all have a name, got none in row {names.index('') + 1}.")
    parents = [as_name(parent) or None for parent in texts["parent"]]
    rows = zip(names, synonyms, texts["description"], parents, strict=True)
    return {tag: TagDetails(tuple(map(as_name, listed)), text.strip(), parent) for tag, listed, text, parent in rows}


def parent_of(tag: str, details: Mapping[str, TagDetails]) -> str | None:
    """Return the parent of a tag, None if it has none.

    Examples
    --------
    >>> parent_of("hardware > printer", {}), parent_of("a::b::c", {}), parent_of("oven", {})
    ('hardware', 'a::b', None)
    """
    given = details.get(tag)
    if given is not None and given.parent is not None:
        return given.parent
    parts = list(_BELOW.finditer(tag))
    return tag[: parts[-1].start()] if parts else None


def f1_with_parents(true: set[str], predicted: set[str], details: Mapping[str, TagDetails]) -> float:
    """Compute the F1 of a row, where the parent of a true tag is half right.

    Examples
    --------
    >>> f1_with_parents({"hardware > printer"}, {"hardware"}, {})
    0.5
    """
    if not true and not predicted:
        return 1.0
    missed, parents = true - predicted, predicted - true
    half_found = sum(parent_of(tag, details) in parents for tag in missed)
    half_right = len(parents.intersection(filter(None, (parent_of(tag, details) for tag in missed))))
    right = len(true & predicted)
    return (2 * right + _HALF * (half_found + half_right)) / (len(true) + len(predicted))
