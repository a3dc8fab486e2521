"""Pages of rows: in an order, from a cursor on. A page costs the same wherever it is, and however many rows there are.

A cursor is the position of a row in the order: its `arrived`, after the other keys of the order. Rows of one state are
found by an index; pages of several states are merged. A search looks through a limited number of rows of each state; if
there are more, the page has a cursor to go on from, also if it has fewer rows than it may have, or none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Row

from labelrace.serve.database import ROWS
from labelrace.serve.journal import as_text
from labelrace.serve.problems import Problem

SEARCHED = 20_000
"""Rows of a state that a search looks through at once."""

# The columns of an order, and whether the largest come first.
_ORDERS: dict[str, tuple[tuple[str, ...], bool]] = {
    "newest": (("arrived",), True),
    "oldest": (("arrived",), False),
    "review": (("review", "arrived"), True),
    "useful": (("useful", "arrived"), True),
}
ORDERS = tuple(_ORDERS)
_LARGEST = {"arrived": 2**62, "review": 1, "useful": 1e9}

Position = tuple[Any, ...]


class Wanted(NamedTuple):
    """Which rows a page is to have."""

    states: Sequence[str]
    order: str = "newest"
    search: str = ""
    tag: str = ""
    limit: int = 50
    after: str = ""


class _Found(NamedTuple):
    """Rows of a state, and the position up to which there are no others; None if there are no others at all."""

    rows: list[Row[Any]]
    seen_to: Position | None


def searchable(text: str) -> str:
    """Return a text for searching: without case, and without NUL, which PostgreSQL cannot store."""
    return text.casefold().replace("\0", " ")


def page(connection: Connection, columns: Sequence[Any], wanted: Wanted) -> tuple[list[Row[Any]], str | None]:
    """Return some rows, and the cursor of the next page."""
    names, is_falling = _ORDERS[wanted.order]
    after = _position_of(wanted.after, names)
    parts = [_found(connection, columns, wanted, state, after) for state in wanted.states]

    def key(row: Row[Any]) -> Position:
        return tuple(getattr(row, name) for name in names)

    rows = sorted((row for part in parts for row in part.rows), key=key, reverse=is_falling)
    ends = [part.seen_to for part in parts if part.seen_to is not None]
    end = (max(ends) if is_falling else min(ends)) if ends else None
    if end is not None:
        rows = [row for row in rows if (key(row) >= end if is_falling else key(row) <= end)]
    if len(rows) > wanted.limit:
        rows = rows[: wanted.limit]
        end = key(rows[-1])
    return rows, None if end is None else as_text(list(map(_number, end)))[1:-1]


def _found(
    connection: Connection, columns: Sequence[Any], wanted: Wanted, state: str, after: Position | None
) -> _Found:
    """Return the first rows of a state after a position."""
    names, is_falling = _ORDERS[wanted.order]
    keys = [ROWS.c[name] for name in names]
    beyond, ordered = sql.tuple_(*keys), [key.desc() if is_falling else key for key in keys]

    def query(*selected: Any) -> Any:
        made = sql.select(*selected).where(ROWS.c.state == state).order_by(*ordered)
        return made if after is None else made.where(beyond < after if is_falling else beyond > after)

    conditions, last = _conditions(wanted), None
    chosen = query(*columns, *(key for key in keys if key.name not in {column.name for column in columns}))
    if conditions:
        last = connection.execute(query(*keys).offset(SEARCHED - 1).limit(1)).first()
        if last is not None:
            chosen = chosen.where(beyond >= tuple(last) if is_falling else beyond <= tuple(last))
    rows = list(connection.execute(chosen.where(*conditions).limit(wanted.limit + 1)))
    if len(rows) > wanted.limit:
        # The one too many shows that there are others.
        end = tuple(getattr(rows[wanted.limit - 1], name) for name in names)
        return _Found(rows[: wanted.limit], end)
    return _Found(rows, None if last is None else tuple(last))


def _conditions(wanted: Wanted) -> list[Any]:
    """Return the conditions of a search."""
    conditions = [ROWS.c.words.contains(word, autoescape=True) for word in searchable(wanted.search).split()]
    if wanted.tag:
        # As a JSON string: the whole name, in quotes.
        text = as_text(wanted.tag)
        columns = ROWS.c.tags, ROWS.c.suggested
        conditions.append(sql.or_(*(column.contains(text, autoescape=True) for column in columns)))
    return conditions


def _number(value: Any) -> int | float:
    return int(value) if isinstance(value, bool) else value


def _position_of(cursor: str, names: Sequence[str]) -> Position | None:
    """Return the position that a cursor names."""
    if not cursor:
        return None
    try:
        position = json.loads(f"[{cursor}]")
    except (ValueError, RecursionError):
        position = []
    kinds = {"arrived": (int,), "review": (int,), "useful": (int, float)}
    if len(position) != len(names) or not all(
        type(one) in kinds[name] and 0 <= one <= _LARGEST[name] for one, name in zip(position, names, strict=True)
    ):
        raise Problem(422, "Wrong cursor", f"after must be what next was in an answer, got {cursor!r:.40}.")
    return tuple(bool(one) if name == "review" else one for one, name in zip(position, names, strict=True))
