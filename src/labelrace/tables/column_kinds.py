"""The kind of a column, detected from its first cells: text, category, number, date, boolean, list or identifier.

For the tagger. Tables of numbers and nominal codes, as streams have them, are typed in `labelrace.streams.table_files`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from labelrace.tables.cells import COLLECTIONS, Cells, as_dates, as_numbers, as_texts, filled, parse_date, parse_list
from labelrace.tables.numbers import find_decimal
from labelrace.tables.text import MAX_CHARACTERS, looks_like_html

# Kinds of columns that are not part of the matrix, and all kinds; `column_blocks` encodes them.
LEFT_OUT = ("identifier", "dropped", "empty")
KINDS = ("text", "category", "number", "date", "boolean", "list", *LEFT_OUT)
# The parameters of `labelrace.tables.features.ColumnParameters` that name columns, and the kinds of these columns.
KINDS_BY_PARAMETER = {
    "text": "text",
    "category": "category",
    "number": "number",
    "date": "date",
    "id": "identifier",
    "drop": "dropped",
}

# Names of identifiers: `id`, `user_id`, `Order No`, `userId`, `id_of_user`; but not `paid` or `idle`.
_ID_NAME = re.compile(
    r"(?i:(^|[_\s.-])(id|ids|uid|uuid|guid|key|number|no|nr|#)$)|(?<=[a-z])(Id|ID)$|^(?i:id)([_\s.-]|$)|^id(?=[A-Z])"
)
# Names of texts.
_TEXT_NAME = re.compile(
    r"(?i)(^|[_\s.-])(subject|title|body|text|description|summary|message|comment|question|note|betreff|titel)s?$"
)
_CODE = re.compile(r"^[^\s,;|<>\u3040-\u30ff\u3400-\u9fff]{1,64}$")
_TRUTHS = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"})
_DIGITS = re.compile(r"[+-]?[0-9]+")
_DATE_LIKE = re.compile(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?\s*$")
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%Y.%m.%d")
_TIMES = ("", " %H:%M", " %H:%M:%S")
DATE_PATTERNS = ("iso", *(f"{day}{time}" for day in _DAYS for time in _TIMES))
# Signs that separate the values of lists written as text.
SEPARATORS = (";", "|", ",", "\t", "\n")
# Number of cells from which the kind of a column is detected.
_SAMPLE = 1000
# Share of the cells that must be of a kind; the others count as errors in the data.
_MIN_SHARE = 0.95
# Number of cells from which distinct values show that a column is unique.
_ENOUGH = 20
# Share of distinct values from which a column is nearly unique.
_UNIQUE = 0.9
# Share of texts with spaces from which signs that stand alone separate their words.
_MANY_SIGNS = 0.2
# Mean number of words up to which texts are short.
_SHORT = 20


class Column(NamedTuple):
    """The kind of a column and how its cells are read.

    Attributes
    ----------
    name : str
    kind : {"text", "category", "number", "date", "boolean", "list", "identifier", "dropped", "empty"}
        The last three are not learned.
    is_html : bool
        Whether a text is HTML, which is stripped.
    pattern : str
        Format of dates: "iso", or one of `datetime.strptime`.
    has_time : bool
        Whether dates have a time of day.
    separator : str or None
        Separator of the values of a list that is written as text.
    is_short : bool
        Whether texts have few words, as titles do.
    width : int
        Output size of the user's encoder; 0 without an encoder.
    embedding : str
        Hash of the embedding model, if the encoder is one; see `labelrace.tables.embedding`.
    uses_encoder : bool
        False if texts are tagged better without the encoder; see `labelrace.tables.trial`.
    decimal : str or None
        Decimal sign of numbers that are written as text; None if it is not known yet.
    is_open : bool
        Whether day and month of all dates so far could be exchanged.
    """

    name: str
    kind: str
    is_html: bool = False
    pattern: str = "iso"
    has_time: bool = False
    separator: str | None = None
    is_short: bool = False
    width: int = 0
    embedding: str = ""
    uses_encoder: bool = True
    decimal: str | None = None
    is_open: bool = False

    def __str__(self) -> str:
        if self.kind == "text":
            used = "with its encoder" if self.uses_encoder else "without its encoder, which does not help"
            return "text" + (" (HTML, stripped)" if self.is_html else "") + (f", {used}" if self.width else "")
        if self.kind == "list" and self.separator:
            return f"list (separated by {self.separator!r})"
        what = {"identifier": "identifier, left out", "dropped": "left out", "empty": "empty so far"}
        return what.get(self.kind, self.kind)


def check_overrides(given: Mapping[str, Any]) -> dict[str, str]:
    """Turn lists of columns for each kind into the kind of each column.

    Examples
    --------
    >>> check_overrides({"text": ["body"], "category": "product", "number": None})
    {'body': 'text', 'product': 'category'}
    """
    kinds: dict[str, str] = {}
    for kind, names in given.items():
        if names is None:
            continue
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
            raise ValueError(f"{kind} must be the name of a column or a list of such names, got {names!r}.")
        for name in listed:
            if kinds.get(name, kind) != kind:
                raise ValueError(f"The column {name!r} must be of one kind, got {kinds[name]} and {kind}.")
            kinds[name] = kind
    return kinds


def column_of(name: str, cells: Cells, kind: str | None = None) -> Column:
    """Detect the kind of a column from its first cells, unless the user gives it, and how the cells are read.

    Examples
    --------
    >>> str(column_of("body", ["<p>It is too crisp.</p>", "<p>How long, and how hot?</p>"]))
    'text (HTML, stripped)'
    >>> column_of("price", ["1.50", "", "3"]).kind, column_of("ticket", [f"T-{i}" for i in range(30)]).kind
    ('number', 'identifier')
    """
    # The first cells that are not missing, without the end of long texts.
    sample: Cells = filled(cells)[:_SAMPLE]
    if isinstance(sample, list):
        sample = [cell[:MAX_CHARACTERS] if isinstance(cell, str) else cell for cell in sample]
    kind = kind or _kind(name, sample)
    column = Column(name, kind)
    if kind == "text":
        texts = as_texts(sample)
        n_words = sum(len(text.split()) for text in texts)
        return column._replace(is_html=looks_like_html(texts), is_short=n_words <= _SHORT * len(texts))
    if kind == "date":
        pattern = date_pattern(sample) or "iso"
        dates, _ = as_dates(sample, pattern)
        days = dates.astype("datetime64[D]")
        has_time = bool((dates[~np.isnat(dates)] != days[~np.isnat(dates)]).any())
        reads, others, _ = _reads(pattern, sample)
        return column._replace(pattern=pattern, has_time=has_time, is_open=0 < reads == others)
    return with_signs(column, sample)


def with_signs(column: Column, cells: Cells) -> Column:
    """Detect the separator of lists, the decimal sign of numbers or the order of dates, if it is not known yet."""
    if column.is_open:
        reads, others, _ = _reads(column.pattern, cells)
        pattern = batch_pattern(column, cells)
        return column._replace(pattern=pattern, is_open=reads <= others and pattern == column.pattern)
    if column.kind == "number" and column.decimal is None and isinstance(cells, list):
        return column._replace(decimal=find_decimal(cells))
    if column.kind != "list" or column.separator is not None:
        return column
    return column._replace(separator=find_separator([cell for cell in cells if isinstance(cell, str)]))


def _kind(name: str, cells: Cells) -> str:
    """Detect the kind of cells, none of them missing."""
    if not len(cells):
        return "empty"
    if isinstance(cells, np.ndarray):
        return "date" if cells.dtype.kind == "M" else _number_kind(name, cells)
    types = {type(cell) for cell in cells}
    if all(issubclass(one, COLLECTIONS) for one in types):
        return "list"
    if types == {bool}:
        return "boolean"
    texts = as_texts(cells)
    if {text.strip().lower() for text in texts} in (*_TRUTHS, *({one} for pair in _TRUTHS[:2] for one in pair)):
        return "boolean"
    if all(issubclass(one, date) for one in types) or date_pattern(cells) is not None:
        return "date"
    numbers, wrong = as_numbers(cells, find_decimal(cells))
    has_codes = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
    if len(wrong) <= (1 - _MIN_SHARE) * len(cells) and not has_codes:
        is_number = ~np.isnan(numbers)
        exact = [text.strip() for text, flag in zip(texts, is_number, strict=True) if flag]
        return _number_kind(name, numbers[is_number], exact)
    if _share(parse_list(text) is not None for text in texts) >= _MIN_SHARE:
        return "list"
    return _text_kind(name, texts)


def _number_kind(name: str, numbers: Any, texts: Sequence[str] = ()) -> str:
    """Distinguish numbers, identifiers and codes that are written as numbers."""
    if not len(numbers):
        return "empty"
    is_whole = bool((numbers == np.rint(numbers)).all())
    if texts and is_whole and all(map(_DIGITS.fullmatch, texts)):
        # Floats cannot tell long identifiers apart.
        numbers = np.array([int(text) for text in texts], dtype=object)
    n_distinct = len(np.unique(numbers))
    is_unique = n_distinct >= max(2, _UNIQUE * len(numbers))
    if is_whole and _ID_NAME.search(name):
        # Repeated ones, such as the number of an agent, are informative.
        return "identifier" if is_unique else "category"
    # Whole numbers that increase or decrease with the rows.
    steps = np.diff(numbers)
    if is_whole and len(numbers) >= _ENOUGH and is_unique and ((steps > 0).all() or (steps < 0).all()):
        return "identifier"
    return "number"


def _text_kind(name: str, texts: list[str]) -> str:
    """Distinguish texts, categories, lists and identifiers."""
    n, n_distinct = len(texts), len(set(texts))
    n_words = sum(len(text.split()) for text in texts) / n
    are_codes = _share(_CODE.match(text) is not None and "://" not in text for text in texts) >= _MIN_SHARE
    is_unique = n_distinct >= max(2, _UNIQUE * n)
    if are_codes and is_unique:
        # Few rows do not show whether values are unique, but identifiers have digits.
        has_digits = _share(any(sign.isdigit() for sign in text) for text in texts) >= _MIN_SHARE
        if n >= _ENOUGH or has_digits or _ID_NAME.search(name):
            return "identifier"
    separator = find_separator(texts)
    if separator in (";", "|") and n_words <= 3 + 3 * sum(text.count(separator) for text in texts) / n:
        return "list"
    if n_words >= 3 and (n_distinct > 0.05 * n or n < _ENOUGH):
        return "text"
    # For few rows that are all different, the name decides: five subjects are texts, five cities are not.
    are_different = n_distinct > 0.5 * n if n >= _ENOUGH else n_distinct == n
    if are_different and (n_words >= (1.5 if n >= _ENOUGH else 2) or (n < _ENOUGH and _TEXT_NAME.search(name))):
        return "text"
    # Long texts without spaces, as in some scripts.
    if sum(map(len, texts)) / n > 40 and n_distinct > 0.5 * n:
        return "text"
    return "category"


def date_pattern(cells: Cells) -> str | None:
    """Detect the format of dates; None if the cells are not dates."""
    if isinstance(cells, np.ndarray):
        return "iso" if cells.dtype.kind == "M" else None
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not texts or len(texts) < len(cells):
        return None
    if _share(_DATE_LIKE.match(text) is not None for text in texts) < _MIN_SHARE:
        return None
    fits = {pattern: _share(parse_date(text, pattern) is not None for text in texts) for pattern in DATE_PATTERNS}
    best = max(fits, key=lambda pattern: fits[pattern])
    return best if fits[best] >= _MIN_SHARE else None


def batch_pattern(column: Column, cells: Cells) -> str:
    """Return the format of a batch of dates: the learned one, or that with day and month exchanged if only that fits.

    Examples
    --------
    >>> column = Column("when", "date", pattern="%d/%m/%Y")
    >>> batch_pattern(column, ["02/01/2024", "02/13/2024"]), batch_pattern(column, ["02/01/2024", "13/02/2024"])
    ('%m/%d/%Y', '%d/%m/%Y')
    """
    if not as_dates(cells, column.pattern)[1]:
        return column.pattern
    reads, others, both = _reads(column.pattern, cells)
    other = exchanged(column.pattern)
    return other if other is not None and reads < others >= _MIN_SHARE * both else column.pattern


def exchanged(pattern: str) -> str | None:
    """Return a format of dates with day and month exchanged; None if it cannot be taken for another one."""
    other = pattern.translate(str.maketrans("dm", "md"))
    return other if other != pattern and other in DATE_PATTERNS else None


def _reads(pattern: str, cells: Cells) -> tuple[int, int, int]:
    """Count the texts that a format of dates reads, those that it reads with day and month exchanged, and all these."""
    other = exchanged(pattern)
    if other is None or isinstance(cells, np.ndarray):
        return 0, 0, 0
    texts = [cell for cell in cells if isinstance(cell, str)]
    days = (pattern.partition(" ")[0], other.partition(" ")[0])
    read = [[any(parse_date(text, day + time) is not None for time in _TIMES) for text in texts] for day in days]
    return sum(read[0]), sum(read[1]), sum(map(any, zip(*read, strict=True)))


def find_separator(cells: Cells) -> str | None:
    """Detect the separator of cells that are lists written as text; None if there is none.

    Semicolons, bars, commas, tabs and line ends always separate. Spaces do only if there are fewer distinct words than
    distinct cells, or if words are written with hyphens, as tags are.

    Examples
    --------
    >>> find_separator(["a;b", "b"]), find_separator(["oven cooking-time", "eggs"]), find_separator(["login issue"])
    (';', ' ', None)
    """
    texts = [text.strip() for text in as_texts(cells) if text.strip() and parse_list(text) is None]
    if not texts:
        return None
    with_separator = {one: sum(one in text for text in texts) for one in SEPARATORS}
    best = max(SEPARATORS, key=lambda one: with_separator[one])
    if with_separator[best]:
        return best
    wholes = {" ".join(text.split()) for text in texts}
    words = {word for text in wholes for word in text.split()}
    spaced = [text for text in wholes if " " in text]
    # Signs that stand alone between words separate them, and not the spaces: `oven / door`.
    has_signs = [any(not any(map(str.isalnum, word)) for word in text.split()) for text in spaced]
    if not spaced or sum(has_signs) > _MANY_SIGNS * len(spaced):
        return None
    are_joined = any("-" in word.strip("-") or "_" in word.strip("_") for word in words)
    return " " if len(words) < len(wholes) or are_joined else None


def _share(flags: Any) -> float:
    listed = list(flags)
    return sum(listed) / len(listed)
