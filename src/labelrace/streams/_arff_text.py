"""What the header and the rows of an ARFF file share: quoting, and errors that say where they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from labelrace.exceptions import DataFormatError

__all__ = ["Place", "scan", "shown", "skip_space"]

_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPE = re.compile(r"\\(.)")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_SPACE = re.compile(r"\s*")


class Place(NamedTuple):
    """A line of a file, to name in an error."""

    path: Path
    line: int

    def error(self, what: str) -> DataFormatError:
        """Return the error that says `what` is wrong here."""
        return DataFormatError(f"{self.path}, line {self.line}: {what}")


def skip_space(text: str, start: int) -> int:
    """Return the position of the first non-space at or after `start`."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def scan(text: str, start: int, bare: re.Pattern[str], place: Place) -> tuple[str, bool, int]:
    r"""Read one name or value of `text`, which begins at `start`.

    Parameters
    ----------
    text : str
    start : int
        Position of the value's first character.
    bare : pattern
        What an unquoted value consists of.
    place : Place
        For the error of an unclosed quote.

    Returns
    -------
    value : str
        Without quotes. Backslash escapes mean something within quotes only.
    quoted : bool
    end : int
        The position of the next non-space after the value.

    Examples
    --------
    >>> word = re.compile(r"[^,]*")
    >>> scan(r"'it\'s', 2", 0, word, Place(Path("a.arff"), 1))
    ("it's", True, 7)
    >>> scan(r"it\'s , 2", 0, word, Place(Path("a.arff"), 1))
    ("it\\'s", False, 6)
    """
    if text.startswith(("'", '"'), start):
        match = _QUOTED.match(text, start)
        if match is None:
            raise place.error(f"the quote in column {start + 1} is never closed; close it, or the file is cut")
        inner = match[1] if match[1] is not None else match[2]
        value = _ESCAPE.sub(lambda escape: _CONTROL.get(escape[1], escape[1]), inner)
        return value, True, skip_space(text, match.end())
    match = bare.match(text, start)
    end = match.end() if match else start
    return text[start:end].rstrip(), False, skip_space(text, end)


def shown(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Return up to `most` names, quoted, to list in an error."""
    listed = ", ".join(map(repr, names[:most]))
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed
