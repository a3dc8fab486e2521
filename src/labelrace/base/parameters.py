"""Checks of single parameters: an error names the parameter, what it must be and what was given."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labelrace.typing import FloatArray


def are_equal(one: Any, other: Any) -> bool:
    """Compare two values of a parameter, which may be arrays or lists of arrays."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def quoted_list(names: Iterable[str], most: int = 5) -> str:
    """Return up to `most` names, quoted, to list in an error or a warning."""
    listed = list(names)
    return ", ".join(map(repr, listed[:most])) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that are there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Refuse a value that is not True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_number(name: str, value: object, low: float, high: float = math.inf, *, open_low: bool = False) -> None:
    """Refuse a value that is not a number in the range."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    in_range = is_number and math.isfinite(value) and low <= value <= high  # type: ignore[arg-type, operator]
    if not in_range or (open_low and value == low):
        bounds = f"{'above' if open_low else 'of at least'} {low:g}"
        bounds += f" and at most {high:g}" if high < math.inf else ""
        raise ValueError(f"{name} must be a number {bounds}, got {value!r}.")


def check_whole(name: str, value: object, low: int) -> None:
    """Refuse a value that is not a whole number in the range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, got {value!r}.")


def numbers(name: str, value: Any, n_axes: int) -> FloatArray:
    """Read a list of finite numbers, if there is one axis, or a matrix of them, if there are two."""
    try:
        read = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        read = np.zeros(())
    if read.ndim != n_axes or not np.isfinite(read).all():
        raise ValueError(f"{name} must be a {('list', 'matrix')[n_axes - 1]} of finite numbers, got {value!r:.80}.")
    return read


def memory_size(name: str, value: Any) -> float:
    """Read a number of bytes, or a number with a unit.

    Examples
    --------
    >>> memory_size("max_memory", "1GB"), memory_size("max_memory", "1.5 MiB"), memory_size("max_memory", 4096)
    (1000000000.0, 1572864.0, 4096.0)
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", value.lower())
        if found and (found[2] or not found[3]):
            return float(found[1]) * (1024.0 if found[3] else 1000.0) ** " kmgt".index(found[2] or " ")
    elif isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise ValueError(f"{name} must be a number of bytes above 0 or a number with a unit such as '1GB', got {value!r}.")


def component_count(n_components: Any, n_labels: int) -> int:
    """Compute the number of pseudo labels.

    Examples
    --------
    >>> component_count("log2", 53), component_count("log2_squared", 53), component_count(8, 53)
    (6, 36, 8)
    """
    log2 = max(1, math.ceil(math.log2(n_labels)))
    if isinstance(n_components, str) and n_components in ("log2", "log2_squared"):
        # The square of a small logarithm can exceed the number of labels, which is the useful maximum.
        return log2 if n_components == "log2" else min(log2**2, n_labels)
    if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)) or n_components < 1:
        raise ValueError(
            f"n_components must be 'log2', 'log2_squared' or a whole number of at least 1, got {n_components!r}."
        )
    if n_components > n_labels:
        raise ValueError(
            f"n_components must be at most the number of labels, {n_labels}, got {n_components}: label compression "
            "needs no more pseudo labels than labels."
        )
    return int(n_components)


def generator(random_state: Any) -> np.random.Generator:
    """Make a random generator from a ``random_state`` as scikit-learn has it."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a whole number of at least 0, a Generator, a RandomState or None, got "
            f"{random_state!r}."
        ) from None


def draw_seed(random_state: Any) -> int:
    """Choose the seed of everything that a model draws later.

    The model keeps it, so that it draws the same after it was saved and loaded.
    """
    rng = generator(random_state)
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.Generator) and hasattr(rng.bit_generator.seed_seq, "spawn"):
        # A child generator draws, so that the first batch gets what the generator itself would draw next.
        rng = np.random.Generator(rng.bit_generator.spawn(1)[0])
    return int(rng.integers(2**63))


def count_or_auto(name: str, value: Any) -> int | None:
    """Check a whole number of at least 1; None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str):
        raise ValueError(f"{name} must be a whole number of at least 1 or 'auto', got {value!r}.")
    check_whole(name, value, 1)
    return int(value)


def rows_to_half(half_life: float | None, forgetting: float | None) -> float | None:
    """Return after how many rows half is forgotten, by ``forgetting``, a rate, if that is given; None for never."""
    if forgetting is None:
        return half_life
    check_number("forgetting", forgetting, 0, 1, open_low=True)
    return None if forgetting == 1 else math.log(0.5) / math.log(forgetting)
