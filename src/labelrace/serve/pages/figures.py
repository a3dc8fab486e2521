"""The numbers of the service as tables and charts of a report: the quality of the tagger, and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from labelrace.report.charts import Chart, Mark, Panel, Panels, Series, bars, panels
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.tagger_report import calibration_chart
from labelrace.report.text import MISSING, plural

ENOUGH = 50
"""Rows that must be tested before numbers say something: fewer may be luck."""

MEASURES = {"example_f1": "F1", "precision": "Precision", "recall": "Recall", "agreement": "Agreement"}
# The days that bars have room for, and the most names that stand below an axis.
_DAYS, _NAMES = 14, 5
_WIDE = (6.0, 3.0)
_WHAT = {"alarm": "alarm: the rows may have changed", "drift": "drift confirmed"}
_MEANINGS = {
    "alarm": "an alarm: the rows may have changed",
    "drift": "a confirmed drift: earlier rows count less from there on",
}


class Tile(NamedTuple):
    """A number at the top of the page, with a remark."""

    name: str
    value: str
    remark: str = ""


class Part(NamedTuple):
    """A section of the page; ``missing`` is what it says while it has nothing to show."""

    name: str
    title: str
    hint: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    missing: str = ""


class Figures(NamedTuple):
    """The content of the page: a sentence, numbers, and sections."""

    verdict: str
    tiles: Sequence[Tile]
    parts: Sequence[Part]
    position: int

    @property
    def charts(self) -> list[Chart]:
        """All charts of the page."""
        return [chart for part in self.parts for chart in part.charts]


def quality_figures(quality: Mapping[str, Any]) -> Figures:
    """Return the content of the page, made from the answer of ``GET /v1/quality``."""
    parts = [
        _over_rows(quality),
        _over_days(quality),
        _precision(quality["precision_curve"]),
        _calibration(quality["calibration"]),
        _tags(quality["tags"]),
        _new_tags(quality["new_tags"]),
    ]
    return Figures(_verdict(quality), _tiles(quality), parts, quality["position"])


def _verdict(quality: Mapping[str, Any]) -> str:
    tested, recent = quality["tested"], quality["recent"]
    if not tested:
        return (
            "Nothing has been tested yet. Each row that a person tags tests the suggestions that stood beside it, "
            "before it is learned: the first numbers come with the first rows."
        )
    if tested < ENOUGH:
        return (
            f"Only {plural(tested, 'row')} tested yet: numbers from fewer than {ENOUGH} may be luck. "
            "They get better with every row that a person tags."
        )
    text = f"Of the last {plural(recent['rows'], 'row')} that people tagged, {_share(recent['agreement'])} got just the"
    text += " tags that were suggested."
    drifts = [mark for mark in quality["marks"] if mark["kind"] == "drift"]
    if drifts and drifts[-1]["row"] > tested - recent["rows"]:
        text += " The rows changed not long ago, and the tagger is learning what is new."
    return text


def _tiles(quality: Mapping[str, Any]) -> list[Tile]:
    recent, all_rows = quality["recent"], ""
    tiles = []
    for name, title in MEASURES.items():
        value = recent[name]
        all_rows = "" if quality[name] is None else f"all rows: {_share(quality[name])}"
        tiles.append(Tile(title, MISSING if value is None else _share(value), all_rows))
    return [
        *tiles,
        Tile(
            "Rows tested", f"{quality['tested']:,}", f"the last {recent['rows']:,} count here" if recent["rows"] else ""
        ),
    ]


def _over_rows(quality: Mapping[str, Any]) -> Part:
    windows = quality["windows"]
    hint = (
        "Each point is a window of rows: their suggestions, as they stood before a person tagged them, compared with "
        "the tags that the person gave. Agreement is the share of rows that got just the suggested tags."
    )
    if len(windows) < 2:
        return Part("rows", "Over rows", hint, missing="The chart appears when two windows of rows are tested.")
    marks = [Mark(m["row"], 0, _MEANINGS[m["kind"]], _WHAT[m["kind"]], m["kind"] == "alarm") for m in quality["marks"]]
    marks += [Mark(new["row"], None, "a new tag", f"new tag: {new['tag']}") for new in quality["new_tags"]]
    series = _curves([window["row"] for window in windows], windows)
    panel = Panel("", series, "rows tested", "share", y_range=(0.0, 1.0), decimals=2)
    content = Panels({"": [panel]}, size=_WIDE, marks=marks, position="After {} rows")
    return Part("rows", "Over rows", charts=[Chart("rows", "How good suggestions were, row after row", content, hint)])


def _over_days(quality: Mapping[str, Any]) -> Part:
    days = quality["days"]
    if not days:
        return Part("days", "Day by day", missing="The chart appears when rows have been tagged.")
    names = [_day_name(day["day"]) for day in days]
    shown = [(day, round(day["tested"] * (day["agreement"] or 0))) for day in days[-_DAYS:]]
    parts: dict[str, list[float]] = {
        "as suggested": [agreed for _, agreed in shown],
        "with other tags": [max(0, day["rows"] - agreed) for day, agreed in shown],
        "corrected later": [day["corrections"] for day, _ in shown],
    }
    texts = [f"{day['rows'] + day['corrections']:,}" for day, _ in shown]
    hint = "Rows that got just the suggested tags, rows that got others, and rows that were tagged again."
    charts = [Chart("work", "Rows and corrections", bars(names[-_DAYS:], parts, texts), hint)]
    if sum(day["example_f1"] is not None for day in days) > 1:
        step = max(1, -(-len(days) // _NAMES))
        ticks = list(range(len(days) - 1, -1, -step))[::-1]
        series = _curves(list(range(len(days))), days, marker="o")
        panel = Panel("", series, "", "share", y_range=(0.0, 1.0), x_ticks=ticks, x_names=names, decimals=2)
        content = Panels({"": [panel]}, size=_WIDE, position="{}")
        charts.insert(0, Chart("days", "How good suggestions were, day by day", content))
    return Part("days", "Day by day", charts=charts)


def _curves(x: Sequence[float], points: Sequence[Mapping[str, Any]], marker: str = "") -> list[Series]:
    return [
        Series(title, x, [point[name] for point in points], color, marker=marker)
        for color, (name, title) in enumerate(MEASURES.items())
    ]


def _precision(curve: Mapping[str, Any]) -> Part:
    title, target = "What can go without asking", curve["target"]
    rows = sorted(zip(curve["handled"], curve["precision"], curve["confidence"], strict=True))
    rows = [row for row in rows if row[0] is not None and row[1] is not None]
    hint = (
        "Each point is a confidence from which on tags are given without asking: how many rows then get tags, and how "
        "often these are right."
    )
    if len(rows) < 2:
        return Part("precision", title, hint, missing="Not enough rows are tested yet.")
    x, y = [row[0] for row in rows], [row[1] for row in rows]
    tips = [f"From {_share(c)} confidence on: {_share(p)} right, in {_share(h)} of rows" for h, p, c in rows]
    series = [Series("found" if target else "", x, y, 0, marker="o", tips=tips)]
    if target is not None:
        tip = f"{_share(target)} is the target precision"
        series.append(Series("target", [0.0, 1.0], [target, target], None, tips=[tip, tip]))
        reached = max((h for h, p, _ in rows if p >= target), default=None)
        hint += " " + (
            f"At a target of {_share(target)}, {_share(reached)} of rows can be left to the tagger."
            if reached is not None
            else f"At a target of {_share(target)}, every row still needs a person."
        )
    labels = ("share of rows with a tag", "precision")
    panel = Panel("", series, *labels, x_range=(0.0, 1.0), y_range=(0.0, 1.0), percent=True)
    content = panels([panel], 1, _WIDE)
    return Part(
        "precision", title, charts=[Chart("precision", "Precision against the share of rows handled", content, hint)]
    )


def _calibration(bins: Sequence[Mapping[str, Any]]) -> Part:
    shown = [one for one in bins if one["count"]]
    title, hint = "Are probabilities true?", "On the diagonal, tags of a probability of 70% are right in 70% of rows."
    if len(shown) < 2:
        return Part("calibration", title, hint, missing="Not enough rows are tested yet.")
    tips = [f"Tags of {_share(b['probability'])}: {_share(b['right'])} right, of {b['count']:,}" for b in shown]
    chart = calibration_chart([one["probability"] for one in shown], [one["right"] for one in shown], tips)
    return Part("calibration", title, charts=[chart._replace(hint=hint)])


def _tags(tags: Mapping[str, Sequence[Mapping[str, Any]]]) -> Part:
    tables = []
    for name, caption in (("best", "Best"), ("worst", "Worst")):
        rows = [Row(one["tag"], [_number(one["f1"]), Cell(f"{one['tested']:,}")]) for one in tags[name]]
        if rows:
            tables.append(Table(name, caption, [Column("F1"), Column("Rows")], [Group(rows)], "Tag"))
    for name, caption in (("rising", "Rising"), ("falling", "Falling")):
        rows = [Row(one["tag"], [_number(one["f1"]), _number(one["before"])]) for one in tags[name]]
        if rows:
            tables.append(Table(name, caption, [Column("F1"), Column("Before")], [Group(rows)], "Tag"))
    missing = "" if tables else "Tags appear here when they have been tested often enough."
    return Part("tag-quality", "Tags", "F1 of tags in the rows that people tagged last.", (), tables, missing)


def _new_tags(tags: Sequence[Mapping[str, Any]]) -> Part:
    rows = [
        Row(one["tag"], [Cell(_day_name(one["time"][:10])), Cell(f"{one['row']:,}")]) for one in reversed(tags[-20:])
    ]
    tables = (
        [Table("new", "New tags", [Column("First said"), Column("After rows")], [Group(rows)], "Tag")] if rows else []
    )
    return Part("new-tags", "New tags", "", (), tables, "" if rows else "No tag is new.")


def _number(value: float | None) -> Cell:
    return Cell(MISSING if value is None else f"{value:.2f}", number=value)


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _day_name(day: str) -> str:
    """Return a day of ISO 8601 as day and month.

    >>> _day_name("2026-11-09")
    '9 Nov'
    """
    parsed = date.fromisoformat(day)
    return f"{parsed.day} {parsed:%b}"
