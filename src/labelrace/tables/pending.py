"""Rows of tables that wait for their tags, for `labelrace.DelayedLabels`: kept as tables, saved as JSON and arrays."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from labelrace.base.parameters import quoted_list
from labelrace.base.pending import Step
from labelrace.tables.cell_json import plain_cell, read_cell
from labelrace.tables.cells import COLLECTIONS, Cells
from labelrace.tables.read import Table, stack_tables, table_batches
from labelrace.tables.tags import without_tags
from labelrace.typing import Array, IntArray


class TableRows:
    """Rows of tables, for a tagger."""

    def __init__(self, tagger: Any) -> None:
        self.tagger = tagger

    def copied(self, X: Any) -> Table:
        """Copy the rows of a table or file, without their tags."""
        parts = [without_tags(part, self.tagger.tags) for part in table_batches(X, max(1, int(self.tagger.batch_size)))]
        table = stack_tables(parts)
        return table._replace(columns={name: _own_cells(cells) for name, cells in table.columns.items()})

    def ids(self, rows: Table) -> list[Hashable]:
        """Return the cells of the column of identifiers."""
        known = [column.name for column in self.tagger.columns_ if column.kind == "identifier"]
        names = [name for name in known if name in rows.columns]
        if len(names) != 1:
            raise ValueError(
                "ids must be given unless the table has one column of identifiers, got "
                f"{quoted_list(names) if names else 'none'}: give ids=, or id= to the tagger before it learns."
            )
        cells = rows.columns[names[0]]
        listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
        if any(one is None or one != one for one in listed):
            raise ValueError(f"ids must be given, as cells of the column {names[0]!r} are empty.")
        # Whole numbers are floats in a table.
        return [int(one) if isinstance(one, float) and one.is_integer() else one for one in listed]

    def steps(self, parts: list[Table], order: IntArray, y: Any) -> list[Step]:
        """Return the batches in which the tagger learns rows; those whose tags are still unknown stay pending."""
        table, steps, start = stack_tables(parts).take(order.tolist()), list[Step](), 0
        for batch in self.tagger.tagged_batches(table, y):
            tagged, _ = self.tagger.state.names.tagged(batch[1], self.tagger.untagged)
            steps.append(Step([start + row for row in tagged], partial(self.tagger.learn_batch, *batch)))
            start += batch[0].n_rows
        return steps

    def model_state(self) -> Any:
        """Return the state of the tagger."""
        return self.tagger._known

    def pack(self, rows: Table, path: str) -> tuple[Any, dict[str, Array]]:
        """Return rows as a description and their columns: numbers and times as such, others as JSON."""
        kinds, tensors = dict[str, str](), dict[str, Array]()
        for number, (name, cells) in enumerate(rows.columns.items()):
            if isinstance(cells, np.ndarray):
                kinds[name] = "times" if cells.dtype.kind == "M" else "numbers"
                tensors[f"{path}.{number}"] = cells.view(np.int64) if cells.dtype.kind == "M" else cells
            else:
                kinds[name] = "json"
                text = json.dumps([plain_cell(cell) for cell in cells])
                tensors[f"{path}.{number}"] = np.frombuffer(text.encode(), dtype=np.uint8)
        return {"n_rows": rows.n_rows, "has_names": rows.has_names, "columns": kinds}, tensors

    def unpack(self, described: Any, path: str, tensors: dict[str, Array]) -> Table:
        """Return the rows of a file."""
        columns = dict[str, Cells]()
        for number, (name, kind) in enumerate(described["columns"].items()):
            columns[name] = _read_column(kind, tensors[f"{path}.{number}"])
        n_rows = described["n_rows"]
        if not isinstance(n_rows, int) or any(len(cells) != n_rows for cells in columns.values()):
            raise ValueError("its pending rows have columns of other lengths than the header says")
        return Table(columns, n_rows, bool(described["has_names"]))


def _own_cells(cells: Cells) -> Cells:
    """Copy cells, so that nobody changes them later."""
    if isinstance(cells, np.ndarray):
        return cells.copy()
    return [list(cell) if isinstance(cell, COLLECTIONS) else cell for cell in cells]


def _read_column(kind: str, stored: Array) -> Cells:
    """Read the cells of a column of a file."""
    if stored.ndim != 1 or stored.dtype != {"numbers": np.float64, "times": np.int64, "json": np.uint8}[kind]:
        raise ValueError("its pending rows have columns of other types than the header says")
    if kind == "json":
        return [read_cell(cell) for cell in json.loads(stored.tobytes())]
    return stored.view("datetime64[s]") if kind == "times" else stored
