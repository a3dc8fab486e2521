"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing if there are no rows."""
    lines = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}", *lines, ""]) if lines else ""


def cell(text: str) -> str:
    """Return a text as it may stand in a table."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
