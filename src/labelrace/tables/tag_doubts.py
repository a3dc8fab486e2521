"""Warnings about suspicious tags, with what to do; and folding of tags that differ in spelling only."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping

from labelrace.base.parameters import quoted_list
from labelrace.tables.column_kinds import SEPARATORS
from labelrace.tables.state import TaggerState, TagSets
from labelrace.tables.tag_details import TagDetails

# Share of rows from which signs in tags that usually separate them are suspicious.
_MANY_JOINT = 0.2
_BETWEEN = (*SEPARATORS, " / ", " + ", " & ", " - ")
# Signs between words, as other separators are; words with hyphens and points are one.
_SIGNS = re.compile(r"(?<=\w)\s*([^\w\s.'-]+)\s*(?=\w)")
# Tags that mean that there is none.
_NOTHING = frozenset(("-", "--", "?", "n/a", "na", "nan", "none", "null", "nil", "unknown", "#n/a"))
# Tagged rows from which mostly unique tags, or those of one column of 0 and 1, are suspicious.
_ENOUGH = 50
_UNIQUE = 0.8


def doubts(tags: TagSets, known: Iterable[str] = ()) -> dict[str, str]:
    """Return warnings about the tags of rows, by their subject; ``known`` are tags of earlier rows.

    Examples
    --------
    >>> list(doubts([{"Oven"}, {"oven"}, {"N/A"}]))
    ['nothing', 'spelling']
    """
    tagged = [row for row in tags if row]
    counts, found = Counter(tag for row in tagged for tag in sorted(row)), dict[str, str]()
    for sign in _joints(counts):
        if sum(n for tag, n in counts.items() if sign in tag) > _MANY_JOINT * len(tagged):
            found[f"separator {sign}"] = (
                f"Many tags hold {sign!r}: give the separator (--separator) if it separates tags."
            )
    if nothing := [tag for tag in counts if tag.lower() in _NOTHING]:
        found["nothing"] = (
            f"The tag {nothing[0]!r} looks like a missing value, but is learned as a tag: leave such cells empty if it "
            "is one."
        )
    if twins := _twins(counts, known):
        found["spelling"] = (
            f"Tags differ by case, spaces or composition only, such as {' and '.join(map(repr, twins))}: fold_tags "
            "(--fold-tags) makes them one."
        )
    if len(tagged) >= _ENOUGH and set(counts) <= {"0", "1"}:
        found["truths"] = (
            "The tags are 0 and 1: if the column says whether a tag applies, give it as a list of one column "
            "(--tags with a comma behind the name)."
        )
    if len(tagged) >= _ENOUGH and len(counts) > _UNIQUE * counts.total():
        some = quoted_list([tag[:40] for tag in counts], 3)
        found["unique"] = f"Most tags are in one row only ({some}): is it the right column?"
    return found


def _joints(tags: Iterable[str]) -> list[str]:
    """Return possible separators of tags: the usual ones, and signs that join few words to many tags."""
    joined = dict[str, list[str]]()
    for tag in tags:
        for sign in set(_SIGNS.findall(tag)):
            joined.setdefault(sign, []).append(tag)
    others = [
        sign
        for sign, held in joined.items()
        if not any(sign in usual for usual in _BETWEEN if any(usual in tag for tag in held))
        and len({part.strip() for tag in held for part in tag.split(sign)}) < len(held)
    ]
    return [*_BETWEEN, *sorted(others)]


def say_doubts(said: set[str], tags: TagSets, before: TaggerState | None) -> None:
    """Warn of suspicious tags of a batch, once for each subject."""
    for what, text in doubts(tags, before.all_names() if before else ()).items():
        if what not in said:
            said.add(what)
            warnings.warn(text, UserWarning, stacklevel=2)


def spelling(tag: str) -> str:
    """Return the form that tags share if they differ by case, spaces or composition only."""
    return "".join(unicodedata.normalize("NFKC", tag).casefold().split())


def _twins(counts: Mapping[str, int], known: Iterable[str]) -> list[str]:
    """Return two tags that differ in spelling only, one of them new; none if there are no such."""
    earlier = dict.fromkeys(known)
    first = {spelling(tag): tag for tag in earlier} if any(tag not in earlier for tag in counts) else {}
    for tag in counts:
        if tag not in earlier:
            other = first.setdefault(spelling(tag), tag)
            if other != tag:
                return [other, tag]
    return []


def fold(tags: TagSets, known: Iterable[str]) -> TagSets:
    """Return tags with one spelling for those that differ by case, spaces or composition only.

    It is that of a known tag, or else the most frequent one.

    Examples
    --------
    >>> fold([{"oven"}, {"Oven"}, {"oven"}, {"OVEN", "bread"}], []) == [{"oven"}] * 3 + [{"oven", "bread"}]
    True
    """
    earlier = dict.fromkeys(known)
    counts = Counter(tag for row in tags if row for tag in sorted(row) if tag not in earlier)
    if not counts:
        return tags
    # The first one stays: known ones, then the most frequent.
    one = folded((tag for tag, _ in counts.most_common()), earlier)
    return [row and {one.get(tag, tag) for tag in row} for row in tags]


def folded(tags: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return for each tag the spelling that was first, among known ones or else among the tags.

    Examples
    --------
    >>> folded(["OVEN", "Bread", "bread"], ["oven"])
    {'OVEN': 'oven', 'Bread': 'Bread', 'bread': 'Bread'}
    """
    earlier, spellings = dict.fromkeys(known), dict[str, str]()
    for tag in earlier:
        spellings.setdefault(spelling(tag), tag)
    return {tag: tag if tag in earlier else spellings.setdefault(spelling(tag), tag) for tag in tags}


def fold_details(details: Mapping[str, TagDetails], known: Iterable[str]) -> dict[str, TagDetails]:
    """Return what is said of tags, and of their parents, with one spelling for each, as `fold` has it."""
    parents = [said.parent for said in details.values() if said.parent is not None]
    one = folded([*details, *parents], known)
    joined = dict[str, TagDetails]()
    for tag, said in details.items():
        before, parent = joined.get(one[tag], TagDetails()), said.parent and one[said.parent]
        joined[one[tag]] = TagDetails(
            tuple(dict.fromkeys((*before.synonyms, *said.synonyms))),
            before.description or said.description,
            before.parent or (parent if parent != one[tag] else None),
        )
    return joined
