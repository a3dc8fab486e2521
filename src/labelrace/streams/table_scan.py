"""What must be known of a table before its rows are read, by a scan: keys, texts of nominal columns, labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelrace.streams.jsonl import JsonTable, not_a_feature
from labelrace.streams.schema import Given
from labelrace.streams.table import CsvTable, Table, Types, as_numbers

_CHUNK_ROWS = 1024


class Found(NamedTuple):
    """What a scan has found: the sorted texts of nominal columns, and the labels in label lists."""

    values: dict[str, tuple[str, ...]]
    labels: set[str]


@dataclass
class _Kind:
    """Whether the cells of a CSV column are numbers or texts, as far as they were read."""

    is_number: bool = False
    texts: set[str] = field(default_factory=set)
    # Texts such as "nan", which are missing numbers among numbers, and texts among texts.
    unclear: set[str] = field(default_factory=set)

    def add(self, text: str) -> bool:
        """Add a cell; return whether both kinds were met."""
        number = as_numbers((text,))
        if number is None:
            self.texts.add(text)
        elif np.isnan(number[0]):
            self.unclear.add(text)
        else:
            self.is_number = True
        return self.is_number and bool(self.texts)


def mixed_column(name: str, text: str, others: str = "numbers") -> str:
    """Return what is wrong with a text in a column that held `others` so far."""
    cell = text[:40]
    return (
        f"column {name!r} holds {others}, but {cell!r} here; correct it, or give nominal=[{name!r}] to read all of it "
        f"as text, or missing=[{cell!r}] if that means a missing value"
    )


def scan_table(
    table: Table, types: Types, texts: list[str], given: Given, lists: str | None, separator: str | None = None
) -> Found:
    """Scan the file for the texts of nominal columns and the labels in lists, as far as they are not given."""
    lists = lists if given.label_names is None else None
    wanted = {name: types[name] for name in texts if name != lists} | ({lists: types[lists]} if lists else {})
    kinds, labels = {name: _Kind() for name in texts}, set[str]()
    for rows, lines in table.batches(_CHUNK_ROWS, wanted) if wanted else ():
        for name, kind in kinds.items():
            column = rows.column(name).cast(pa.string())
            new = [text for text in column.unique().drop_null().to_pylist() if text not in kind.texts]
            if not isinstance(table, CsvTable) or name in given.nominal:
                kind.texts.update(new)
                continue
            for text in new:
                if kind.add(text):
                    others = "numbers" if text in kind.texts else "text"
                    line = lines[pc.index(column, text).as_py()]
                    raise table.place(line).error(mixed_column(name, text, others))
        if lists is not None:
            labels.update(*label_lists(rows.column(lists), separator))
    values = {name: tuple(sorted(kind.texts | kind.unclear)) if kind.texts else () for name, kind in kinds.items()}
    return Found(values, labels)


def scan_keys(table: JsonTable, types: Types, lists: str | None) -> tuple[Found, list[str]]:
    """Scan a JSONL file for its keys (with their types), the texts of nominal ones, and the labels in lists."""
    keys, texts, labels = dict[str, None](), dict[str, set[str]](), set[str]()
    for rows, lines in table.batches(_CHUNK_ROWS, types, grow=True):
        for key, column in zip(rows.schema.names, rows.columns, strict=True):
            if key != lists or column.null_count < len(column):
                keys[key] = None
            if key == lists:
                labels.update(*label_lists(column))
            elif pa.types.is_string(column.type):
                texts.setdefault(key, set()).update(column.unique().drop_null().to_pylist())
            elif pa.types.is_list(column.type) and column.null_count < len(column):
                first = int(np.argmax(column.is_valid().to_numpy(zero_copy_only=False)))
                raise not_a_feature(key, column[first].as_py(), table.place(lines[first]))
    return Found({key: tuple(sorted(found)) for key, found in texts.items()}, labels), list(keys)


def scan_objects(table: JsonTable, types: Types, lists: str | None) -> tuple[Found, list[str]]:
    """Scan as `scan_keys` does, for sparse rows: a text that is not there is the empty one."""
    counts, texts, labels, n_rows = dict[str, int](), dict[str, set[str]](), set[str](), 0
    for lines, rows in table.objects(_CHUNK_ROWS):
        n_rows += len(rows)
        for row, line in zip(rows, lines, strict=True):
            for key, cell in table.cells(row, types, table.place(line), grow=True).items():
                counts[key] = counts.get(key, 0) + 1
                if key == lists:
                    labels.update(cell or ())
                elif isinstance(cell, list):
                    raise not_a_feature(key, cell, table.place(line))
                elif isinstance(cell, str):
                    texts.setdefault(key, set()).add(cell)
    values = {key: tuple(sorted(found | ({""} if counts[key] < n_rows else set()))) for key, found in texts.items()}
    return Found(values, labels), list(counts)


def label_lists(column: Any, separator: str | None = None) -> list[list[str]]:
    """Return the names in a column of label lists, or of texts that the separator cuts into names."""
    cells = column.to_pylist()
    if separator is None:
        return [[str(name) for name in cell or () if name is not None] for cell in cells]
    return [[name for part in (cell or "").split(separator) if (name := part.strip())] for cell in cells]
