"""What others add to the package: models, measures and file formats, registered or offered by installed packages."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """Find what installed packages offer in an entry point group."""
    from importlib import metadata  # slow to import, and few need it

    return {point.name: point for point in metadata.entry_points(group=group)}


def check_new(name: Any, function: Any, own: Container[str], registered: Mapping[str, Callable[..., Any]]) -> None:
    """Refuse to register what has no name of its own, or cannot be called.

    ``own`` are the package's names, ``registered`` what was registered before: what is defined again, as in a notebook,
    may be registered again.
    """
    if not isinstance(name, str) or not name or ":" in name:
        raise ValueError(f"name must be text without a colon, got {name!r}.")
    if name in own:
        raise ValueError(f"name must not be one of labelrace's own, got {name!r}: choose another one.")
    if not callable(function):
        raise ValueError(f"What is registered as {name!r} must be a class or a function, got {function!r}.")
    before = registered.get(name, function)
    if _origin(before) != _origin(function):
        raise ValueError(f"name must be free, got {name!r}, which {before!r} has: choose another one.")


def _origin(function: Any) -> tuple[Any, Any]:
    """Return where a function or class is defined."""
    name = getattr(function, "__qualname__", repr(function))
    # Lambdas are all called alike.
    return getattr(function, "__module__", None), repr(function) if "<lambda>" in name else name
