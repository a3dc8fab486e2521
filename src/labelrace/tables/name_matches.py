"""Matches of tag names: rows whose texts contain all the words of a tag's name.

A tag of a row is often written in the row. The name and the synonyms of each tag are searched in the short texts of a
row, such as titles, and in the long ones; and the share of its description that the row's texts contain is computed.
Words are compared by their first letters, so that a plural is the same word. An index leads from words to the names
that have them; no row is compared with all tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelrace.base.sparse import entry_rows
from labelrace.tables.tag_details import TagDetails
from labelrace.tables.text import words_of
from labelrace.typing import FloatArray, IntArray, SparseMatrix

N_KINDS = 3
"""Where a name may be found: in short texts, in long texts, and in the tag's description."""

# Letters of a word that count, and the shortest word whose final s does not.
_LETTERS, _PLURAL = 6, 4
# Most words of a name, and the least share of a description's words that counts.
_LONGEST, _LEAST_SHARE = 6, 0.25
# Most indexes one after the other, and up to how many tags there is one: it is made again in half a millisecond.
_MAX_INDEXES, _FEW_TAGS = 8, 256


class TextWords(NamedTuple):
    """The words of a column of texts: how often each of them, a column, occurs in each row."""

    counts: SparseMatrix
    words: Sequence[str]
    is_short: bool
    hashes: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)  # those of the words, by which a vocabulary knows them

    def by_stems(self) -> TextWords:
        """Return the same with each word by its first letters; words may be there several times then."""
        return self._replace(words=list(map(stem, self.words)))


class Matches(NamedTuple):
    """Pairs of a row and a tag whose name is in the row's texts, in order, and how far it is found in each source."""

    rows: IntArray
    tags: IntArray
    found: FloatArray  # (pairs, N_KINDS), from 0 to 1

    @classmethod
    def none(cls) -> Matches:
        """Make no pairs."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, N_KINDS)))


@lru_cache(maxsize=1 << 17)
def stems(name: str) -> tuple[str, ...]:
    """Return the distinct words of a name, each by its first letters.

    Examples
    --------
    >>> stems("Food-safety"), stems("eggs"), stems("C++")
    (('food', 'safety'), ('egg',), ('c',))
    """
    found = words_of(name) or name.lower().strip(" +#.-").split()
    return tuple(dict.fromkeys(map(stem, found)))


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return the first letters of a word, without the s of a plural."""
    first = word[:_LETTERS]
    return first[:-1] if len(first) >= _PLURAL and first.endswith("s") and not first.endswith("ss") else first


class NameIndex:
    """Finds tags by the words of their names, synonyms and descriptions; it is not changed once it is made.

    Examples
    --------
    >>> from labelrace.tables.text import count_words
    >>> index = NameIndex({"oven": TagDetails(), "cast-iron": TagDetails(("skillet",))})
    >>> texts = TextWords(*count_words(["Iron pan, cast in 1900", "An oven"]), is_short=True)
    >>> matches = index.find([texts.by_stems()])
    >>> matches.rows.tolist(), matches.tags.tolist()
    ([0, 1], [1, 0])
    """

    def __init__(self, tags: Mapping[str, TagDetails]) -> None:
        self.tags = list(tags.items())
        names = [
            (number, of_name)
            for number, (tag, details) in enumerate(self.tags)
            for of_name in dict.fromkeys(map(stems, (tag, *details.synonyms)))
            if 0 < len(of_name) <= _LONGEST
        ]
        described = [(number, stems(d.description)) for number, d in enumerate(tags.values()) if d.description]
        self._numbers: dict[str, int] = {}
        self._n_tags = max(1, len(tags))
        self._names = _Names.of(self._numbered(names), len(self._numbers))
        self._descriptions = self._numbered(described)

    def _numbered(self, names: Iterable[tuple[int, tuple[str, ...]]]) -> list[tuple[int, list[int]]]:
        """Replace words by their numbers."""
        known = self._numbers
        return [(tag, [known.setdefault(word, len(known)) for word in listed]) for tag, listed in names]

    def find(self, texts: Sequence[TextWords]) -> Matches:
        """Find the names of tags in texts, whose words are stems."""
        n_words = max(1, len(self._numbers))
        sources = [self._words(texts, is_short=is_short) for is_short in (True, False)]
        pairs = [self._names.find(keys, n_words) for keys in sources]
        found: list[tuple[IntArray, FloatArray | float]] = [(rows * self._n_tags + tags, 1.0) for rows, tags in pairs]
        found.append(self._described(sources, n_words))
        keys = np.unique(np.concatenate([one for one, _ in found]))
        table = np.zeros((len(keys), N_KINDS))
        for kind, (one, share) in enumerate(found):
            table[np.searchsorted(keys, one), kind] = share
        rows, tags = np.divmod(keys, self._n_tags)
        return Matches(rows, tags, table)

    def _words(self, texts: Sequence[TextWords], *, is_short: bool) -> IntArray:
        """Return which rows hold which words of names, as ``row * n_words + word``, in order."""
        keys, n_words = [np.zeros(0, np.int64)], max(1, len(self._numbers))
        for text in texts:
            if text.is_short != is_short or not len(text.words):
                continue
            numbers = np.array([self._numbers.get(word, -1) for word in text.words])
            words = numbers[text.counts.indices]
            keys.append((entry_rows(text.counts) * n_words + words)[words >= 0])
        return np.unique(np.concatenate(keys))

    def _described(self, sources: Sequence[IntArray], n_words: int) -> tuple[IntArray, FloatArray]:
        """Return pairs of rows and tags, as ``row * n_tags + tag``, and the share of a description that a row has."""
        if not self._descriptions:
            return np.zeros(0, np.int64), np.zeros(0)
        tags = np.repeat([tag for tag, _ in self._descriptions], [len(words) for _, words in self._descriptions])
        words = np.concatenate([words for _, words in self._descriptions]).astype(np.int64)
        order = np.argsort(words, kind="stable")
        pairs = _joined(np.union1d(*sources), n_words, words[order], tags[order])
        pairs, counts = np.unique(pairs[0] * self._n_tags + pairs[1], return_counts=True)
        lengths = np.bincount(tags, minlength=self._n_tags)
        share = counts / lengths[pairs % self._n_tags]
        kept = (counts > 1) & (share >= _LEAST_SHARE)
        return pairs[kept], share[kept]


class NameIndexes:
    """Indexes of tags one after the other: further tags need not index those before them again."""

    def __init__(self, indexes: Sequence[NameIndex] = ()) -> None:
        self._indexes = tuple(indexes)
        self._tags = [tag for index in indexes for tag in index.tags]

    def extended(self, tags: Mapping[str, TagDetails]) -> NameIndexes:
        """Return the indexes of tags: these, and one of those that are new, or one of all where they are many."""
        listed, n_known = list(tags.items()), len(self._tags)
        if listed == self._tags:
            return self
        n_new = len(listed) - n_known
        is_more = listed[:n_known] == self._tags and 2 * n_new < n_known
        if is_more and len(self._indexes) < _MAX_INDEXES and len(listed) > _FEW_TAGS:
            return NameIndexes([*self._indexes, NameIndex(dict(listed[n_known:]))])
        return NameIndexes([NameIndex(tags)])

    def find(self, texts: Sequence[TextWords]) -> Matches:
        """Find the names of tags in the texts of rows."""
        parts, start, by_stems = [Matches.none()], 0, [text.by_stems() for text in texts]
        for index in self._indexes:
            rows, numbers, found = index.find(by_stems)
            parts.append(Matches(rows, numbers + start, found))
            start += len(index.tags)
        rows, numbers, found = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((numbers, rows))
        return Matches(rows[order], numbers[order], found[order])


class _Names(NamedTuple):
    """Names by their rarest word, the key: a row without this word does not have the name."""

    keys: IntArray  # the keys, in order
    tags: IntArray
    others: IntArray  # (names, _LONGEST - 1): the other words, -1 for none

    @classmethod
    def of(cls, names: Sequence[tuple[int, list[int]]], n_words: int) -> _Names:
        """Make the table of names, given as a tag and the numbers of the words."""
        flat = np.array([word for _, words in names for word in words], dtype=np.int64)
        common = np.bincount(flat, minlength=n_words)
        others, keys = np.full((len(names), _LONGEST - 1), -1, dtype=np.int64), np.zeros(len(names), np.int64)
        for number, (_, words) in enumerate(names):
            key = min(words, key=common.__getitem__)
            keys[number] = key
            rest = [word for word in words if word != key]
            others[number, : len(rest)] = rest
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], np.array([tag for tag, _ in names], dtype=np.int64)[order], others[order])

    def find(self, present: IntArray, n_words: int) -> tuple[IntArray, IntArray]:
        """Find the rows that have all words of a name: pairs of rows and tags, some of them several times."""
        if not len(present):
            return present, present
        rows, names = _joined(present, n_words, self.keys, np.arange(len(self.keys)))
        others = self.others[names]
        wanted = rows[:, None] * n_words + others
        at = np.minimum(np.searchsorted(present, wanted), len(present) - 1)
        has_all = ((others < 0) | (present[at] == wanted)).all(axis=1)
        return rows[has_all], self.tags[names[has_all]]


def _joined(present: IntArray, n_words: int, words: IntArray, values: IntArray) -> tuple[IntArray, IntArray]:
    """Join rows and values that share a word: ``words`` are in order, ``present`` is ``row * n_words + word``."""
    rows, word = np.divmod(present, n_words)
    first, last = np.searchsorted(words, word), np.searchsorted(words, word, side="right")
    counts = last - first
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(rows, counts), values[np.repeat(first, counts) + within]
