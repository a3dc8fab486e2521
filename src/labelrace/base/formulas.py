"""Texts that spreadsheets would compute: a quote before them keeps them texts, and is taken off when they are read."""

from __future__ import annotations

# Cells that begin with these are computed by spreadsheets; the quote itself is added, so that it stays unambiguous.
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "'")

GUARDED = r"^'([=+\-@\t\r'])"
"""A text with such a quote, as a regular expression; its group is what stands behind the quote."""


def escape_formula(value: object) -> object:
    """Return a cell of a CSV file with a quote before text that spreadsheets would compute.

    >>> escape_formula("=cmd()"), escape_formula("-x"), escape_formula(-1.5), escape_formula("obr")
    ("'=cmd()", "'-x", -1.5, 'obr')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_COMPUTED) else value


def unescape_formula(text: str) -> str:
    """Return a text without the quote that guards it, if it has one.

    >>> unescape_formula("'@pid"), unescape_formula("'tis")
    ('@pid', "'tis")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(_COMPUTED) else text
