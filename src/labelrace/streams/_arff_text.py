"""What the header and the rows of an ARFF file share: quoting."""

from __future__ import annotations

import re

from labelrace.streams._source import Place

__all__ = ["quoted", "scan", "skip_space"]

_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPE = re.compile(r"\\(.)")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]+")
_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'", **{sign: f"\\{letter}" for letter, sign in _CONTROL.items()}})
_SPACE = re.compile(r"\s*")


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
    >>> from pathlib import Path
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


def quoted(text: str) -> str:
    r"""Return the text of a name or value as `scan` reads it, in quotes where it needs them.

    Examples
    --------
    >>> print(quoted("hue"), quoted("it's, well"))
    hue 'it\'s, well'
    """
    return text if _PLAIN.fullmatch(text) else f"'{text.translate(_ESCAPED)}'"
