"""Checks of single parameters: the error names the parameter, what was given and what would do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["check_choice", "check_number", "check_whole"]


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is not known: use one of {', '.join(map(repr, choices))}.")


def check_number(name: str, value: object, low: float, high: float = math.inf, *, open_low: bool = False) -> None:
    """Refuse a value that is not a number in the range."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    in_range = is_number and math.isfinite(value) and low <= value <= high  # type: ignore[arg-type, operator]
    if not in_range or (open_low and value == low):
        bounds = f"{'above' if open_low else 'at least'} {low:g}" + (
            f" and at most {high:g}" if high < math.inf else ""
        )
        raise ValueError(f"{name}={value!r} does not do: give a number {bounds}.")


def check_whole(name: str, value: object, low: int) -> None:
    """Refuse a value that is not a whole number in the range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name}={value!r} does not do: give a whole number of at least {low}.")
