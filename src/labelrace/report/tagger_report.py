"""What a tagger has learned, and the page of a test of it: measures, tags, precision at each target, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from labelrace.base import model_file
from labelrace.base.fitted_attributes import model_facts
from labelrace.evaluation.tagging import CONVENTION, PRECISIONS, Measured, measure_tagger
from labelrace.report.charts import Chart, Panel, Series, panels
from labelrace.report.document import Document, Section
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import MISSING, measure_label
from labelrace.tables import Tagger
from labelrace.tables.read import table_batches
from labelrace.tables.suggestions import least_confidence
from labelrace.tables.tagger_facts import quality_text, tagger_facts

# Tags and confusions that are listed in a report, and what is said of a tag.
_MAX_TAGS, _MAX_CONFUSIONS = 50, 10
_OF_TAGS = ("f1", "precision", "recall")
_MEANING = "Rows of a tagged file are predicted and compared with the tags that people gave; nothing is learned."


class Handled(NamedTuple):
    """The share of recent rows that get tags where a precision is asked for, and the confidence that it takes."""

    precision: float
    least_confidence: float | None  # None if no suggestion reaches it
    handled: float


def precisions_of(tagger: Tagger) -> list[Handled]:
    """Return what each precision that may be asked for leads to; nothing if no row was tested."""
    curve, suggestions = tagger.precision_curve_, tagger.state.suggestions
    if not curve.n_suggestions.any():
        return []
    found = []
    for precision in PRECISIONS:
        least = least_confidence(suggestions, precision)
        reached = curve.confidence >= least
        is_reached = bool(reached.any())
        handled = float(curve.handled[reached.argmax()]) if is_reached else 0.0
        found.append(Handled(precision, least if is_reached else None, handled))
    return found


def learned_document(tagger: Tagger) -> Document:
    """Return what a tagger has learned: facts, the precision to ask for, columns and tags."""
    facts, model = tagger_facts(tagger), model_facts(tagger.model_)
    counts = model | {"bytes": model_file.size(*tagger.pack()), "rows": facts["rows"]}
    told = [Row(name, [Cell(_fact(value))]) for name, value in counts.items() if value is not None]
    precisions = precisions_of(tagger)
    asked = [Row(f"{one.precision:.2f}", [Cell(f"{one.handled:.0%}", number=one.handled)]) for one in precisions]
    columns = [Row(name, [Cell(kind)]) for name, kind in facts["columns"].items()]
    tags = [
        Row(tag, [Cell(str(one["rows"]), number=one["rows"]), *(_tested_cell(one, name) for name in _OF_TAGS)])
        for tag, one in list(facts["tags"].items())[:_MAX_TAGS]
    ]
    of_tags = [Column("Rows"), *(Column(measure_label(name), False) for name in _OF_TAGS)]
    listed = (
        f"The {len(tags)} most frequent tags" if len(tags) < len(facts["tags"]) else "Tags, the most frequent first"
    )
    caption = f"{listed}. Precision, recall and F1 are those of rows before they were learned."
    tables = [
        Table("facts", "What was learned.", [Column("Value")], [Group(told)], ""),
        Table(
            "precisions",
            "Recent rows that get tags, by the precision asked for.",
            [Column("Rows")],
            [Group(asked)],
            "Precision",
        ),
        Table("columns", "Columns of the table.", [Column("Kind")], [Group(columns)], "Column"),
        Table("tags", caption, of_tags, [Group(tags)], "Tag", sortable=True),
    ]
    shown = [table for table in tables if table.groups[0].rows]
    charts = [_handled_chart(precisions)] if precisions else []
    quality = quality_text(facts["quality"])
    lead = f"{facts['rows']:,} rows and {len(facts['tags']):,} tags were learned." + (
        f" Before it learned them, it predicted rows with {quality}." if quality else ""
    )
    return Document(
        "tagger", "What a tagger has learned", lead, "", [Section("Learned", tables=shown, charts=charts)], {}
    )


def _handled_chart(precisions: Sequence[Handled]) -> Chart:
    """Return the share of recent rows that get tags, by the precision that is asked for."""
    x, y = [one.precision for one in precisions], [one.handled for one in precisions]
    tips = [f"{one.precision:g} asked for: tags for {one.handled:.0%} of rows" for one in precisions]
    panel = Panel(
        "",
        _by_x("handled", x, y, 0, tips),
        "precision asked for",
        "share of rows with a tag",
        y_range=(0.0, 1.0),
        percent=True,
    )
    return Chart("handled", "Recent rows that get tags, by the precision asked for", panels([panel], 1, (6.0, 3.6)))


def _fact(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _tested_cell(counts: dict[str, float], name: str) -> Cell:
    """Return a measure of a tag; a dash where the tag was never tested."""
    return Cell(f"{counts[name]:.2f}", number=counts[name]) if counts["tested"] else Cell(MISSING)


def test_document(tagger: Tagger, X: Any) -> Document:
    """Return the test of a tagger on a table with tags."""
    tables = table_batches(X, max(1, int(tagger.batch_size)))
    return tested_document(measure_tagger(tagger, tables, PRECISIONS), "the tagger", "the table", _MAX_TAGS)


def measures_table(tested: Measured) -> Table:
    """Return the measures, one a row."""
    rows = [Row(measure_label(name), [Cell(f"{value:.3f}", number=value)]) for name, value in tested.measures().items()]
    return Table(
        "measures", f"{CONVENTION} Calibration is that of the ten likeliest tags.", [Column("Value")], [Group(rows)], ""
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
        Section("Confusions", tables=[confusions_table(tested, _MAX_CONFUSIONS)]),
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
