"""Texts as words and their counts.

A word is two or more letters or digits with their marks, in lower case and in Unicode's form NFKC. Of scripts without
spaces between words, it is a single character (Han, kana) or two neighbouring letters with their marks (Thai and
others). Each word is hashed to 64 bits together with the name of its column, so that every column has its own words.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import blake2b
from itertools import chain, filterfalse, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from labelrace.typing import SparseMatrix

# Number of characters of a text that are read.
MAX_CHARACTERS = 2**17

# Han and kana: each character is a word.
_SINGLE = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
# Thai, Lao, Burmese and Khmer: letters are not separated into words.
_JOINED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
# Where there are marks: from the first combining accent on, without the planes of Han.
_MAYBE_MARKS = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
# Characters that may be marks or joiners; Europe's alphabets, Han, kana, Hangul and emoji have none in the form NFKC.
_MAYBE_MARKED = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0590-\u10ff\u1300-\u1dff\u200c\u200d\u20d0-\u20ff\u2c80-\u2dff\u302a-\u302f\u3099\u309a"
    "\ua620-\uabff\ufb1e\ufe00-\ufe2f\U00010000-\U0001efff\U000e0100-\U000e01ef]"
)
_ASCII_WORD = re.compile(r"\w{2,}", re.ASCII)
_PLAIN_WORD = re.compile(rf"[{_SINGLE}]|[^\W{_SINGLE}]{{2,}}")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
# Invisible elements, and their ends.
_INVISIBLE = re.compile(r"<(!--|script\b|style\b)", re.IGNORECASE)
_ENDS = {
    "!--": re.compile("-->"),
    "script": re.compile(r"</script\s*>", re.IGNORECASE),
    "style": re.compile(r"</style\s*>", re.IGNORECASE),
}
# Numbers of characters that do not exist; Python refuses to read very long ones.
_NO_CHARACTER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
# Common elements of texts; a text such as "a <b" or "<name>" is not HTML.
_ELEMENT = re.compile(
    r"</?(?:p|div|span|br|hr|b|i|u|em|strong|a|ul|ol|li|h[1-6]|table|tr|td|th|code|pre|img|blockquote|body|html|font)"
    r"(?:\s+[\w:-]+\s*=[^<>]*)?\s*/?>",
    re.IGNORECASE,
)
# Share of the texts that must have elements for a column to be HTML.
_HTML_SHARE = 0.2


class WordCounts(NamedTuple):
    """How often each word, a column, occurs in each text, a row."""

    counts: SparseMatrix
    words: list[str]


def looks_like_html(texts: Sequence[str]) -> bool:
    """Return whether texts are HTML.

    Examples
    --------
    >>> looks_like_html(["<p>Too crisp.</p>", "<p>Why?</p>"]), looks_like_html(["a <b and b> c", "1 < 2"])
    (True, False)
    """
    filled = [text for text in texts if text]
    n_html = sum(_ELEMENT.search(text[:MAX_CHARACTERS]) is not None for text in filled)
    return n_html > 0 and n_html >= _HTML_SHARE * len(filled)


def strip_html(text: str) -> str:
    """Return the visible text of HTML.

    Examples
    --------
    >>> strip_html("<p>Fish &amp; <b>chips</b></p>").split()
    ['Fish', '&', 'chips']
    """
    if "<" in text:
        text = _TAG.sub(" ", _without_invisible(text))
    return html.unescape(_NO_CHARACTER.sub("\ufffd", text)) if "&" in text else text


def _without_invisible(text: str) -> str:
    """Remove comments, scripts and styles, in one pass; unclosed ones stay."""
    parts, start, position, endless = list[str](), 0, 0, set[str]()
    while found := _INVISIBLE.search(text, position):
        position, what = found.end(), found[1].lower()
        # An end that is missing here is missing further on: searching again would take quadratic time.
        if what in endless:
            continue
        end = _ENDS[what].search(text, position)
        if end is None:
            endless.add(what)
        else:
            parts.append(text[start : found.start()])
            start = position = end.end()
    return " ".join([*parts, text[start:]])


def count_words(texts: Sequence[str], *, is_html: bool = False) -> WordCounts:
    """Count the words of texts.

    Examples
    --------
    >>> result = count_words(["To be, or not to be", "Not I"])
    >>> result.words, result.counts.toarray().tolist()
    (['to', 'be', 'or', 'not'], [[2.0, 2.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    """
    if is_html:
        texts = [strip_html(text[:MAX_CHARACTERS]) for text in texts]
    return count_items([words_of(text[:MAX_CHARACTERS]) for text in texts])


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    # The Turkish capital, in lower case, has a dot twice.
    text = unicodedata.normalize("NFKC", text).lower().replace("i\u0307", "i")
    if _MAYBE_MARKED.search(text) is None:
        return _PLAIN_WORD.findall(text)
    word, letter = _patterns()
    words = list[str]()
    for found in word.findall(text):
        letters = letter.findall(found) if letter.match(found) else ()
        words += map("".join, pairwise(letters)) if len(letters) > 1 else [found]
    return words


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a word with marks, and a letter with its marks of a script without spaces.

    Made when the first such text is read, as all characters are checked for marks.
    """
    marks = [sign for sign in map(chr, _MAYBE_MARKS) if unicodedata.category(sign)[0] == "M"]
    # Separately, as a set of characters of the first plane alone is looked up in one step.
    common, others = (f"[{''.join(part)}]" for part in (filter(_is_common, marks), filterfalse(_is_common, marks)))
    plain, joined = rf"[^\W{_SINGLE}{_JOINED}]", rf"(?:(?=[{_JOINED}])\w{common}*)"
    # A joiner within a word belongs to it, as in Persian and Sinhala.
    word = rf"{plain}(?:{plain}+|{common}+|[\u200c\u200d](?=\w)|{others}+)+|[{_SINGLE}]|{joined}+"
    return re.compile(word), re.compile(joined)


def _is_common(sign: str) -> bool:
    return sign < "\U00010000"


def count_items(items: Sequence[Sequence[str]]) -> WordCounts:
    """Count the items of each row, in order of appearance."""
    columns: dict[str, int] = {word: column for column, word in enumerate(dict.fromkeys(chain.from_iterable(items)))}
    ends = np.cumsum([0, *map(len, items)])
    indices = np.fromiter(map(columns.__getitem__, chain.from_iterable(items)), dtype=np.int32, count=int(ends[-1]))
    shape = (len(items), len(columns))
    counts = scipy.sparse.csr_array((np.ones(len(indices)), indices, ends.astype(np.int32)), shape=shape)
    counts.sum_duplicates()
    return WordCounts(counts, list(columns))


def hash_names(space: str, names: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Hash names to 64 bits; the same name has different hashes in different spaces.

    Examples
    --------
    >>> hash_names("title", ["oven"]) == hash_names("body", ["oven"])
    array([False])
    """
    start = blake2b(space.encode("utf-8", "surrogatepass") + b"\0", digest_size=8)
    digests = []
    for name in names:
        state = start.copy()
        state.update(name.encode("utf-8", "surrogatepass"))
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
