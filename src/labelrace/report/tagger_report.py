"""The page of a test of a tagger: measures, tags, precision at each target, and calibration."""

from __future__ import annotations

from collections.abc import Sequence

from labelrace.evaluation.tagging import CONVENTION, Measured
from labelrace.report.charts import Chart, Panel, Series, panels
from labelrace.report.document import Document, Section
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import measure_label

_MEANING = "Rows of a tagged file are predicted and compared with the tags that people gave; nothing is learned."


def measures_table(tested: Measured) -> Table:
    """Return the measures, one a row."""
    rows = [Row(measure_label(name), [Cell(f"{value:.3f}", number=value)]) for name, value in tested.measures().items()]
    return Table(
        "measures", f"{CONVENTION} Calibration is that of the ten likeliest tags.", [Column("")], [Group(rows)], ""
    )


def tags_table(tested: Measured, most: int | None) -> Table:
    """Return precision and recall of the most frequent tags, or of all."""
    rows = [
        Row(tag, [Cell(str(one.tested), number=one.tested), Cell(str(one.predicted), number=one.predicted), *values])
        for tag, one in list(tested.counts.items())[:most]
        for values in [[Cell(f"{v:.2f}", number=v) for v in (one.precision(), one.recall(), one.f1())]]
    ]
    columns = [
        Column("Rows"),
        Column("Predicted"),
        Column("Precision", False),
        Column("Recall", False),
        Column("F1", False),
    ]
    shown = (
        f"The {len(rows)} most frequent tags." if most is not None and len(rows) < len(tested.counts) else "All tags."
    )
    return Table("tags", shown, columns, [Group(rows)], "Tag", sortable=True)


def confusions_table(tested: Measured, most: int) -> Table:
    """Return which tags are predicted instead of which."""
    rows = [Row(wrong, [Cell(missed), Cell(str(n), number=n)]) for wrong, missed, n in tested.confusions[:most]]
    caption = "Tags that were predicted wrongly, and those that were missed in the same rows."
    return Table("confusions", caption, [Column("Missed"), Column("Rows")], [Group(rows)], "Predicted")


def tested_document(tested: Measured, tagger: str, source: str, most: int | None) -> Document:
    """Return the page of a test."""
    sections = [Section("Measures", _MEANING, [measures_table(tested)])]
    if tested.targets:
        sections.append(Section("Leaving rows to people", charts=[precision_chart(tested)]))
    sections += [
        Section("Calibration", charts=[_calibration_chart(tested)]),
        Section("Tags", tables=[tags_table(tested, most)]),
        Section("Confusions", tables=[confusions_table(tested, 10)]),
    ]
    lead = f"{len(tested.rows)} rows of {source}, tagged by {tagger}."
    return Document("test", f"Test of {tagger}", lead, CONVENTION, sections, {}, brand="labelrace test")


def precision_chart(tested: Measured) -> Chart:
    """Return the precision at each target, against the share of rows that got a tag."""
    shown = [one for one in tested.targets if one.n_given]
    handled = [one.n_handled / len(tested.rows) for one in shown]
    found = [one.n_right / one.n_given for one in shown]
    tips = [
        f"target {one.target:g}: {f:.2f} in {h:.0%} of rows" for one, f, h in zip(shown, found, handled, strict=True)
    ]
    targets = [one.target for one in shown]
    series = [*_by_x("found", handled, found, 0, tips), *_by_x("target", handled, targets, None, tips)]
    panel = Panel(
        "", series, "share of rows with a tag", "precision", x_range=(0.0, 1.0), y_range=(0.0, 1.0), percent=True
    )
    hint = "Each point is a target precision, as set by --precision."
    return Chart(
        "precision", "Precision against the share of rows that are handled", panels([panel], 1, (6.0, 3.6)), hint
    )


def _by_x(name: str, x: Sequence[float], y: Sequence[float], color: int | None, tips: Sequence[str]) -> list[Series]:
    order = sorted(range(len(x)), key=lambda i: x[i])
    return [
        Series(name, [x[i] for i in order], [y[i] for i in order], color, marker="o", tips=[tips[i] for i in order])
    ]


def _calibration_chart(tested: Measured) -> Chart:
    """Return how often tags of a probability are right."""
    bins = tested.reliability
    some = [i for i, n in enumerate(bins.entries.tolist()) if n]
    x, y = ([float(values[i]) for i in some] for values in (bins.mean_probability, bins.share_present))
    return calibration_chart(x, y, [f"{bins.entries[i]:,} tags" for i in some])


def calibration_chart(probabilities: Sequence[float], shares: Sequence[float], tips: Sequence[str]) -> Chart:
    """Return the shares that were right of tags, by the probabilities that were said of them."""
    series = [Series("found", probabilities, shares, 0, marker="o", tips=tips)]
    panel = Panel(
        "", series, "probability", "share that is right", x_range=(0.0, 1.0), y_range=(0.0, 1.0), diagonal=True
    )
    return Chart("calibration", "How often tags of a probability are right", panels([panel], 1, (6.0, 3.6)))
