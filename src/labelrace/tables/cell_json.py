"""The cells of tables as JSON, to save pending rows and the first rows of a tagger."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

# Types that JSON does not have, by the name that stands for them.
_READERS: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "Decimal": Decimal,
    "bytes": bytes.fromhex,
    "object": json.loads,
    "list": lambda cells: [read_cell(cell) for cell in cells],
}


def plain_cell(cell: Any) -> Any:
    """Return a cell as a JSON value; other types as an object of one entry, from the type to a text."""
    if cell is None or isinstance(cell, (bool, int, float, str)):
        return cell
    match cell:
        case datetime():
            return {"datetime": datetime.isoformat(cell)}
        case date():
            return {"date": cell.isoformat()}
        case Decimal():
            return {"Decimal": str(cell)}
        case bytes():
            return {"bytes": cell.hex()}
        case dict():
            return {"object": json.dumps(cell, default=str)}
        case list() | tuple() | np.ndarray():
            return {"list": list(map(plain_cell, cell))}
        case set() | frozenset():
            return {"list": list(map(plain_cell, sorted(cell, key=str)))}
    raise ValueError(f"Rows can be saved if their cells are numbers, texts, times or lists, got {cell!r:.80}.")


def read_cell(plain: Any) -> Any:
    """Read what `plain_cell` returned."""
    if not isinstance(plain, dict):
        return plain
    [(kind, content)] = plain.items()
    return _READERS[kind](content)
