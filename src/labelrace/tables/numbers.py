"""Numbers as people write them: ``1,234.50``, ``1.234,50 €``, ``1 234,5`` or ``45%``.

Most numbers show which sign is their decimal sign. For ambiguous ones, such as ``1.234``, the other cells of the column
decide; if these are ambiguous, too, it is a point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_MONEY = r"(?:[$€£¥%]|EUR|USD|GBP|CHF)"
_WRITTEN = re.compile(rf"([-+−]?)\s?{_MONEY}?\s?([-−]?)((?=\d)[\d.,'’\s]*\d)\s?{_MONEY}?")
# Spaces that do not break a line are in numbers only.
_HARD_SPACES = re.compile("[\u00a0\u202f\u2009]")
_GROUPS = {sign: re.compile(rf"[1-9]\d{{0,2}}(?:{re.escape(sign)}\d{{3}})+") for sign in (".", ",", " ", "'")}


def plain_number(text: str, decimal: str | None) -> str | None:
    """Return a number as Python writes it; None if the text is none, or if it is one already.

    Examples
    --------
    >>> [plain_number(text, None) for text in ("1,234.50", "1.234,50 €", "12,5", "1,234", "1, 2")]
    ['1234.50', '1234.50', '12.5', '1234', None]
    >>> plain_number("1.234", ","), plain_number("1 234", ","), plain_number("1 234", None)
    ('1234', '1234', None)
    """
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return None
    sign = "-" if written[1] in ("-", "−") or written[2] else ""
    digits, point = _HARD_SPACES.sub("'", written[3]).replace("’", "'"), _own_decimal(written[3])
    if " " in digits and point is None and decimal is None:
        return None  # may be several numbers
    if point is None:
        point = decimal if decimal is not None and decimal in digits else _default_decimal(digits, decimal)
    whole, _, part = digits.partition(point) if point else (digits, "", "")
    if part and not part.isdigit():
        return None
    if not whole.isdigit():
        if not any(groups.fullmatch(whole) for groups in _GROUPS.values()):
            return None
        whole = re.sub(r"\D", "", whole)
    return f"{sign}{whole}.{part}" if part else sign + whole


def _default_decimal(digits: str, decimal: str | None) -> str:
    """Return the decimal sign of a number that has none of the column's: a point, unless it separates thousands."""
    return "." if "." in digits and decimal != "," else ""


def _own_decimal(digits: str) -> str | None:
    """Return the decimal sign of a number, empty if it has none; None if it is ambiguous."""
    points, commas = digits.count("."), digits.count(",")
    if points and commas:
        last = "." if digits.rfind(".") > digits.rfind(",") else ","
        return last if digits.count(last) == 1 else ""
    if points + commas != 1:
        return "" if points or commas else None
    sign = "." if points else ","
    is_group = _GROUPS[sign].fullmatch(digits) is not None
    return None if is_group else sign


def find_decimal(cells: Iterable[Any]) -> str | None:
    """Return the decimal sign of most unambiguous cells; None if there are none.

    Examples
    --------
    >>> find_decimal(["1.234", "1.234,50 €"]), find_decimal(["1,234", "2.5"]), find_decimal(["1,234"])
    (',', '.', None)
    """
    told = [sign for text in cells if isinstance(text, str) and (sign := _told(text.strip()))]
    return max((",", "."), key=told.count) if told else None


def _told(text: str) -> str | None:
    """Return the decimal sign that a text shows, also by its sign for thousands."""
    written = _WRITTEN.fullmatch(text)
    if written is None:
        return None
    own = _own_decimal(written[3])
    if own == "" and plain_number(text, None) is not None:
        return "," if "." in written[3] else "."
    return own
