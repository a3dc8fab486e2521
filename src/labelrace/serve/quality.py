"""The quality of suggestions: a value that is part of the fold, so it survives kills.

Every row that somebody tags is a test before it is a lesson: its suggestions are compared with the tags that the person
gave. Only the first tags of a row are a test; later ones are a correction. Sums are kept of all tests, of
each day and of each hundred tests; the last tests are kept as they are, for calibration and for tags that get better or
worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from labelrace.tables.state import TagCounts, count_tested, f1

# Tests that are kept as they are, and those that make a point of a curve.
N_RECENT = 1000
PER_WINDOW = 100
# The numbers of windows, days, marks and new tags that are kept.
MAX_WINDOWS, MAX_DAYS, MAX_MARKS, MAX_NEW_TAGS = 500, 366, 200, 500
# Tests of a tag from which its quality is shown, and the difference that makes a trend.
FEWEST = 8
TREND = 0.1
N_BINS = 10
N_LISTED = 10


class Sums(NamedTuple):
    """Counts over some rows."""

    rows: int = 0  # tagged for the first time
    corrections: int = 0  # tagged again, with other tags
    new_tags: int = 0
    tested: int = 0
    f1: float = 0.0  # sum over tests
    right: int = 0  # tags that were suggested and meant
    given: int = 0  # tags that were suggested
    true: int = 0  # tags that were meant
    agreed: int = 0  # tests in which nothing had to be changed

    def plus(self, other: Sums, sign: int = 1) -> Sums:
        """Return the sum of both, or the difference."""
        added: list[Any] = [one + sign * two for one, two in zip(self, other, strict=True)]
        return Sums(*added)

    def as_json(self) -> dict[str, float | None]:
        """Return shares; None where nothing was counted."""
        return {
            "example_f1": _share(self.f1, self.tested),
            "precision": _share(self.right, self.given),
            "recall": _share(self.right, self.true),
            "agreement": _share(self.agreed, self.tested),
        }


NOTHING = Sums()


class Verdict(NamedTuple):
    """A row whose tags a person gave after tags had been suggested."""

    id: str
    day: int  # since 1970
    true: tuple[str, ...]
    given: tuple[str, ...]
    likely: Mapping[str, float]  # probabilities that a person saw; empty if nobody did

    def sums(self) -> Sums:
        """Return its counts."""
        true, given = set(self.true), set(self.given)
        return Sums(0, 0, 0, 1, f1(true, given), len(true & given), len(given), len(true), int(true == given))


def sum_of(tests: Iterable[Verdict]) -> Sums:
    """Return the sum of the counts of tests.

    Examples
    --------
    >>> sum_of([Verdict("T-1", 0, ("oven",), ("oven",), {}), Verdict("T-2", 0, ("egg",), ("oven",), {})]).right
    1
    """
    return Sums(*map(sum, zip(NOTHING, *(test.sums() for test in tests), strict=True)))


class Mark(NamedTuple):
    """An alarm or a drift."""

    kind: str  # alarm or drift
    row: int  # rows tested by then, as in windows
    position: int
    time: float


class NewTag(NamedTuple):
    """A tag that was first seen."""

    tag: str
    row: int  # rows tested by then
    time: float


class Quality(NamedTuple):
    """All counts so far, see the module."""

    total: Sums = Sums()
    days: Mapping[int, Sums] = {}
    windows: tuple[tuple[int, Sums], ...] = ()  # each with the number of its last test
    window: Sums = Sums()  # that is not full yet
    recent: tuple[Verdict, ...] = ()
    marks: tuple[Mark, ...] = ()
    new_tags: tuple[NewTag, ...] = ()

    def after(self, tests: Sequence[Verdict], counted: Sums, day: int) -> Quality:
        """Return the value after further tests, and other counts of that day."""
        total, of_day = self.total.plus(counted), self.days.get(day, Sums()).plus(counted)
        windows, window, left = list(self.windows), self.window, list(tests)
        while left:
            # Up to the end of a window at once.
            n_fit = PER_WINDOW - window.tested
            sums, left = sum_of(left[:n_fit]), left[n_fit:]
            total, of_day, window = total.plus(sums), of_day.plus(sums), window.plus(sums)
            if window.tested == PER_WINDOW:
                windows.append((total.tested, window))
                window = Sums()
        days = {**self.days, day: of_day}
        return self._replace(
            total=total,
            days=dict(sorted(days.items())[-MAX_DAYS:]),
            windows=tuple(windows[-MAX_WINDOWS:]),
            window=window,
            recent=(*self.recent, *tests)[-N_RECENT:],
        )

    def without(self, id: str) -> Quality:
        """Return the value after the last tags of a row were withdrawn; nothing changes if that test is long ago."""
        at = next((i for i in reversed(range(len(self.recent))) if self.recent[i].id == id), None)
        if at is None:
            return self
        test = self.recent[at]
        less = test.sums()._replace(rows=1)
        days = {**self.days, test.day: self.days.get(test.day, Sums()).plus(less, -1)}
        recent = self.recent[:at] + self.recent[at + 1 :]
        return self._replace(total=self.total.plus(less, -1), days=days, recent=recent)

    def renamed(self, current: Callable[[Iterable[str]], set[str]]) -> Quality:
        """Return the value after tags were renamed; ``current`` returns their names."""
        recent = tuple(
            test._replace(true=tuple(sorted(current(test.true))), given=tuple(sorted(current(test.given))))
            for test in self.recent
        )
        return self._replace(recent=recent)

    def marked(self, marks: Iterable[Mark], new_tags: Iterable[NewTag]) -> Quality:
        """Return the value with further marks and new tags."""
        return self._replace(
            marks=(*self.marks, *marks)[-MAX_MARKS:], new_tags=(*self.new_tags, *new_tags)[-MAX_NEW_TAGS:]
        )

    # --- Reading ------------------------------------------------------------------------------------------------------

    def of_recent(self) -> Sums:
        """Return the sums over the last tests."""
        return sum_of(self.recent)

    def recent_counts(self) -> tuple[dict[str, TagCounts], dict[str, TagCounts]]:
        """Return the counts of tags in the older and in the newer half of the last tests."""
        middle = len(self.recent) // 2
        older, newer = (
            count_tested({}, ((set(test.true), set(test.given)) for test in half))
            for half in (self.recent[:middle], self.recent[middle:])
        )
        return older, newer

    def calibration(self) -> list[dict[str, float]]:
        """Return the share of right tags, by the probability that was shown with them."""
        bins = [[0.0, 0.0, 0.0] for _ in range(N_BINS)]
        for test in self.recent:
            for tag, p in test.likely.items():
                one = bins[min(int(p * N_BINS), N_BINS - 1)]
                one[0] += 1
                one[1] += p
                one[2] += tag in test.true
        return [
            {"low": i / N_BINS, "high": (i + 1) / N_BINS, "probability": p / n, "right": right / n, "count": int(n)}
            for i, (n, p, right) in enumerate(bins)
            if n
        ]

    def trends(self) -> dict[str, tuple[float, float]]:
        """Return the F1 of tags in the older and in the newer half of the last tests, where both show it."""
        older, newer = self.recent_counts()
        nothing = TagCounts()
        return {
            tag: (older[tag].f1(), count.f1())
            for tag, count in newer.items()
            if min(count.tested, older.get(tag, nothing).tested) >= FEWEST
        }

    def as_json(self) -> dict[str, Any]:
        """Return its part of the answer of ``GET /v1/quality``."""
        recent = self.of_recent()
        return {
            "tested": self.total.tested,
            **self.total.as_json(),
            "recent": {"rows": recent.tested, **recent.as_json()},
            "days": [
                {"day": date_of(day), **{name: getattr(sums, name) for name in _DAILY}, **sums.as_json()}
                for day, sums in self.days.items()
            ],
            "windows": [{"row": row, "rows": sums.tested, **sums.as_json()} for row, sums in self.windows],
            "calibration": self.calibration(),
            "marks": [{**mark._asdict(), "time": time_of(mark.time)} for mark in self.marks],
            "new_tags": [{**one._asdict(), "time": time_of(one.time)} for one in reversed(self.new_tags)],
            "tags": self._tags(),
        }

    def _tags(self) -> dict[str, list[dict[str, Any]]]:
        counts = count_tested({}, ((set(test.true), set(test.given)) for test in self.recent))
        tested = [(tag, one) for tag, one in counts.items() if one.tested >= FEWEST]
        best = sorted(tested, key=lambda pair: (-pair[1].f1(), pair[0]))
        moved = [(tag, new - old, new, old) for tag, (old, new) in self.trends().items() if abs(new - old) >= TREND]
        moved.sort(key=lambda one: (-abs(one[1]), one[0]))

        def listed(of: Sequence[tuple[str, TagCounts]]) -> list[dict[str, Any]]:
            return [{"tag": tag, "f1": one.f1(), "tested": one.tested} for tag, one in of[:N_LISTED]]

        def changed(sign: int) -> list[dict[str, Any]]:
            chosen = [one for one in moved if one[1] * sign > 0][:N_LISTED]
            return [{"tag": tag, "f1": new, "before": old} for tag, _, new, old in chosen]

        # A tag is not among the best and the worst.
        middle = (len(best) + 1) // 2
        return {
            "best": listed(best[:middle]),
            "worst": listed(best[middle:][::-1]),
            "rising": changed(1),
            "falling": changed(-1),
        }


_DAILY = ("rows", "corrections", "new_tags", "tested")


def pack(quality: Quality) -> dict[str, Any]:
    """Return the value as JSON, from which `unpack` makes it again."""
    return {
        **quality._asdict(),
        "days": list(quality.days.items()),
        "recent": [[*test[:-1], dict(test.likely)] for test in quality.recent],
    }


def unpack(packed: Mapping[str, Any]) -> Quality:
    """Return the value that was packed.

    Examples
    --------
    >>> import json
    >>> test = Verdict("T-1", 20_000, ("oven",), ("oven", "egg"), {"oven": 0.9})
    >>> quality = Quality().after([test], Sums(rows=1), 20_000)
    >>> unpack(json.loads(json.dumps(pack(quality)))) == quality
    True
    """
    return Quality(
        Sums(*packed["total"]),
        {day: Sums(*sums) for day, sums in packed["days"]},
        tuple((row, Sums(*sums)) for row, sums in packed["windows"]),
        Sums(*packed["window"]),
        tuple(Verdict(id, day, tuple(true), tuple(given), likely) for id, day, true, given, likely in packed["recent"]),
        tuple(Mark(*mark) for mark in packed["marks"]),
        tuple(NewTag(*tag) for tag in packed["new_tags"]),
    )


def day_of(time: float) -> int:
    """Return the number of the day since 1970, in universal time."""
    return int(time // 86_400)


def date_of(day: int) -> str:
    """Return a day in ISO 8601.

    >>> date_of(20_000)
    '2024-10-04'
    """
    return time_of(day * 86_400.0)[:10]


def time_of(time: float) -> str:
    """Return a time in ISO 8601, in universal time.

    >>> time_of(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
