"""Names that others chose, as text that only shows itself."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    r"""Return the text without control and formatting characters, which could control a terminal or break a line.

    >>> printable("a\tb\u202e\x1b[2J")
    'a b[2J'
    """
    spaced = text.translate(dict.fromkeys(map(ord, "\n\r\t"), " "))
    return "".join(char for char in spaced if unicodedata.category(char) not in {"Cc", "Cf", "Cs"})
