"""The first rows of a tagger: kept until there are enough of them to detect the kinds of the columns.

A tagger that learns row by row has seen a single cell of each column after the first one. So it keeps its first rows,
at most 100, and detects the kinds from all of them with each further batch. If a kind changes, the rows are learned
again. A first batch of 100 rows decides at once, and nothing is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from labelrace.tables import trial
from labelrace.tables.cell_json import plain_cell, read_cell
from labelrace.tables.cells import Cells, as_text
from labelrace.tables.column_kinds import Column
from labelrace.tables.features import FeatureState
from labelrace.tables.known import Known
from labelrace.tables.read import Table, stack_tables
from labelrace.tables.state import TaggerState, TagSets

# Number of rows after which kinds stay, and of characters of their texts.
N_FIRST, MAX_CHARACTERS = 100, 1 << 22


class FirstRows(NamedTuple):
    """The rows that were learned so far, and their tags."""

    table: Table = Table({}, 0)
    tags: tuple[set[str] | None, ...] = ()
    n_learned: int = 0  # rows of these whose tags were known

    def plus(self, table: Table, tags: TagSets, n_learned: int) -> FirstRows | None:
        """Return these rows and further ones; None if there are enough."""
        whole = stack_tables([self.table, table]) if self.table.n_rows else table
        cells = (cell for column in whole.columns.values() if isinstance(column, list) for cell in column)
        is_large = sum(len(cell) for cell in cells if isinstance(cell, str)) > MAX_CHARACTERS
        if whole.n_rows >= N_FIRST or is_large:
            return None
        return FirstRows(whole, (*self.tags, *tags), self.n_learned + n_learned)


def keep(before: TaggerState | None, table: Table, tags: TagSets, n_learned: int) -> FirstRows | None:
    """Return the rows to keep after a batch; None once there were enough."""
    kept = FirstRows() if before is None else _kept(before)
    return kept and kept.plus(table, tags, n_learned) if kept is not None else None


def _kept(state: TaggerState) -> FirstRows | None:
    """Return the rows kept, if the tagger has learned these and no others."""
    first = state.first
    return first if first is not None and first.n_learned == state.n_rows else None


def revise(tagger: Any, known: Known, table: Table) -> Known:
    """Return the tagger's value with kinds that are detected again, from the rows kept and a further batch.

    It is the same, unless a kind has changed: then the rows are learned again.
    """
    kept = _kept(known.state)
    if kept is None or not table.n_rows:
        return known
    features = tagger.new_features()
    whole = stack_tables([kept.table, table])
    detected = features.detect_columns(whole)
    if _are_alike(known.state.features, detected):
        return known
    state, X, *_ = features.update(detected, whole.slice(0, kept.table.n_rows))
    rows, truth = known.state.names.tagged(list(kept.tags), tagger.untagged)
    model = tagger.new_model().partial_fit(X[rows], truth)
    after = known.state._replace(features=state)
    made = replace(known, state=after, model=model, features=features.restore(state), trial=None)
    nothing = np.zeros(0, dtype=np.intp)
    return trial.learn(None, made, trial.Batch(None, X[rows], nothing, truth), tagger.new_model)


def _are_alike(known: FeatureState, detected: FeatureState) -> bool:
    """Return whether two kinds read cells in the same way; signs that are found later may differ."""
    pairs = {column.name: column for column in known.columns}
    return all(_is_like(pairs.get(column.name), column) for column in detected.columns)


def _is_like(one: Column | None, other: Column) -> bool:
    if one is None:
        return other.kind == "empty"
    if one.kind == "empty":
        return True
    # Signs that were not known yet are found as rows come.
    same = one._replace(
        width=0,
        separator=other.separator if one.separator is None else one.separator,
        decimal=other.decimal if one.decimal is None else one.decimal,
        is_open=other.is_open,
    )
    return same == other


# --- In a file --------------------------------------------------------------------------------------------------------


def pack(first: FirstRows | None) -> Any:
    """Return the rows kept as JSON."""
    if first is None:
        return None
    columns = {
        name: [cells.dtype.kind if isinstance(cells, np.ndarray) else "O", [_plain(cell) for cell in _items(cells)]]
        for name, cells in first.table.columns.items()
    }
    tags = [None if row is None else sorted(row) for row in first.tags]
    return {"columns": columns, "tags": tags, "n_learned": first.n_learned, "has_names": first.table.has_names}


def _items(cells: Cells) -> list[Any]:
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return [None if np.isnat(cell) else str(cell) for cell in cells]
    return [None if cell != cell else cell for cell in cells.tolist()] if isinstance(cells, np.ndarray) else cells


def _plain(cell: Any) -> Any:
    try:
        return plain_cell(cell)
    except ValueError:
        return as_text(cell)


def unpack(content: Any) -> FirstRows | None:
    """Read the rows kept; raise ValueError if they are invalid."""
    if content is None:
        return None
    tags = tuple(None if row is None else set(map(str, row)) for row in content["tags"])
    columns = {str(name): _cells(kind, cells) for name, (kind, cells) in content["columns"].items()}
    n_learned = content["n_learned"]
    if len(tags) >= N_FIRST or any(len(cells) != len(tags) for cells in columns.values()):
        raise ValueError("its first rows have columns of different lengths, or are too many")
    if not isinstance(n_learned, int) or not 0 <= n_learned <= len(tags):
        raise ValueError("n_learned of its first rows must be between 0 and their number")
    return FirstRows(Table(columns, len(tags), bool(content["has_names"])), tags, n_learned)


def _cells(kind: str, cells: list[Any]) -> Cells:
    if kind == "M":
        return np.array([np.datetime64("NaT", "s") if cell is None else cell for cell in cells], dtype="datetime64[s]")
    if kind == "f":
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    return [read_cell(cell) for cell in cells]
