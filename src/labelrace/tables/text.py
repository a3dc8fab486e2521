"""Texts as words and their counts.

A word is two or more letters or digits, in lower case, or a single character of a script without spaces between words.
Each word is hashed to 64 bits together with the name of its column, so that every column has its own words.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from labelrace.base.sparse import canonical
from labelrace.typing import SparseMatrix

# Number of characters of a text that are read.
MAX_CHARACTERS = 2**17

# Han and kana: each character is a word.
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_SINGLE}]|[^\W{_SINGLE}]{{2,}}")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
# What is not visible up to its end, and these ends.
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
    """Remove comments, scripts and styles, in one pass; what does not end is left."""
    parts, start, position, endless = list[str](), 0, 0, set[str]()
    while found := _INVISIBLE.search(text, position):
        position, what = found.end(), found[1].lower()
        # What has no end here has none further on: looking again would take the square of the time.
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
    return count_items([_WORD.findall(text[:MAX_CHARACTERS].lower()) for text in texts])


def count_items(items: Sequence[Sequence[str]]) -> WordCounts:
    """Count the items of each row, in order of appearance."""
    columns: dict[str, int] = {word: column for column, word in enumerate(dict.fromkeys(chain.from_iterable(items)))}
    ends = np.cumsum([0, *map(len, items)])
    indices = np.fromiter(map(columns.__getitem__, chain.from_iterable(items)), dtype=np.int32, count=int(ends[-1]))
    shape = (len(items), len(columns))
    counts = scipy.sparse.csr_array((np.ones(len(indices)), indices, ends.astype(np.int32)), shape=shape)
    return WordCounts(canonical(counts), list(columns))


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
