"""The comparison of online models as tables, figures and a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from labelrace.experiments.quality import MEASURES, REFERENCE, QualityBlock, QualityRow, QualitySummary
from labelrace.experiments.ranking import CALIBRATION, OVERALL, lower_is_better, rank_charts, ranks_table
from labelrace.report.figures import Chart, Panel, Series, panels
from labelrace.report.page import Document, Section, made_by
from labelrace.report.tables import Cell, Column, Group, Row, Table, text_table
from labelrace.report.text import MISSING, as_significant, as_value, measure_label, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A share of fewer entries is mostly chance, and is not drawn.
_FEWEST_ENTRIES = 30
_COLUMNS = [Column(measure_label(name), lower_is_better(name)) for name in MEASURES]


def quality_document(summary: QualitySummary) -> Document:
    """Return the comparison as sections of tables and charts."""
    runs = summary.manifest["runs"]
    over = (
        "Values are those of one run." if runs == 1 else f"Means over {runs} runs; models without randomness ran once."
    )
    kinds = _kinds(summary.blocks)
    on = " and ".join(plural(len(blocks), kind) for kind, blocks in kinds.items())
    return Document(
        name="quality",
        title="Online models compared",
        lead=f"{plural(len(summary.models), 'online model')} on {on}, each batch tested first, then learned. {over}",
        footer=made_by(summary.manifest),
        sections=[
            *_ranks_section(summary),
            _reliability_section(summary, kinds),
            *_drift_section(summary, kinds),
            Section(
                "Values",
                "Means over test batches. The calibration error is over all tested entries, in 15 bins. Times are the "
                "model's, to predict label sets and to learn, on one thread. Memory is what the model allocates at "
                "most, beyond the data, to learn a batch, and to predict and learn another. The last row, "
                f"{REFERENCE} (RACEClassifier with its default parameters), is not ranked.",
                [_values_table(summary)],
            ),
        ],
        records=_records(summary),
        notes=summary.notes,
        complete=summary.complete,
    )


def _kinds(blocks: Sequence[QualityBlock]) -> dict[str, list[QualityBlock]]:
    """Return datasets and synthetic streams apart, those of the two that there are."""
    kinds: dict[str, list[QualityBlock]] = {}
    for block in sorted(blocks, key=lambda block: block.source.synthetic):
        kinds.setdefault("synthetic stream" if block.source.synthetic else "dataset", []).append(block)
    return kinds


def _ranks_section(summary: QualitySummary) -> list[Section]:
    if not summary.ranks:
        return []
    hint = (
        "1 is the best. Models that tie share the mean of their ranks; one that failed ranks after all others. Overall "
        "is the mean over the paper's five measures, without the calibration error. In the diagrams, bars join models "
        "that Nemenyi's test does not tell apart at the 5 % level."
    )
    overall = summary.ranks[0].averages
    models = sorted(summary.models, key=lambda model: overall.get((model, OVERALL), len(summary.models)))
    table = ranks_table("ranks", "Average ranks.", summary.ranks, models, MEASURES)
    return [Section("Average ranks", hint, [table], rank_charts("ranks", "Critical differences", summary.ranks))]


def _reliability_section(summary: QualitySummary, kinds: dict[str, list[QualityBlock]]) -> Section:
    charts = []
    for kind, blocks in kinds.items():
        models = [
            model
            for model in (*summary.models, REFERENCE)
            if any(model in b.rows and b.rows[model].reliability for b in blocks)
        ]
        if models:
            name = f"reliability-{kind.replace(' ', '-')}s"
            caption = f"Share of labels present against their probability, {kind}s"
            charts.append(Chart(name, caption, partial(_diagrams, models, blocks)))
    hint = (
        "Of the entries that were given about a probability, the share that is present. On the dashed line the two are "
        "equal; below it labels are rarer than the model says, above it more frequent. All labels and rows that were "
        f"tested are pooled, in 15 bins; those with fewer than {_FEWEST_ENTRIES} entries are not drawn."
    )
    return Section(
        "Calibration of the probabilities", hint if charts else "No model gave probabilities.", charts=charts
    )


def _diagrams(models: Sequence[str], blocks: Sequence[QualityBlock]) -> Figure:
    """Draw a reliability diagram for each model, with a line for each dataset."""
    shown = []
    for model in models:
        series = []
        for place, block in enumerate(blocks):
            bins = block.rows[model].reliability if model in block.rows else None
            if bins is None:
                continue
            drawn = bins.entries >= _FEWEST_ENTRIES
            x, y, counts = (p[drawn].tolist() for p in (bins.mean_probability, bins.share_present, bins.entries))
            tips = [
                f"{block.source.title}: probability {a:.3f}, present {b:.3f} of {count:,}"
                for a, b, count in zip(x, y, counts, strict=True)
            ]
            series.append(Series(block.source.title, x, y, place, marker="o", tips=tips))
        shown.append(Panel(model, series, "probability", "", "", (0, 1), (0, 1), (0, 0.5, 1), diagonal=True))
    return panels(shown, across=4, size=(2.3, 2.3), columns=3)


def _drift_section(summary: QualitySummary, kinds: dict[str, list[QualityBlock]]) -> list[Section]:
    blocks = kinds.get("synthetic stream", [])
    if not blocks:
        return []
    rows = {model: [_change(block.rows.get(model)) for block in blocks] for model in (*summary.models, REFERENCE)}
    titles = [(block.source.drift or "").capitalize() for block in blocks]
    hint = (
        "Synthetic streams that are alike but for their drift: the fifth of the stream before the first drift begins, "
        "and the fifth after the last one has ended. Without drift, before and after the middle."
    )
    caption = "Example F1 just before and just after a drift, on synthetic streams."
    return [Section("The effect of drift", hint, [text_table("drift", caption, titles, rows)])]


def _change(row: QualityRow | None) -> str:
    if row is None or row.before is None or row.after is None:
        return MISSING
    return f"{row.before:.2f}→{row.after:.2f}"


def _values_table(summary: QualitySummary) -> Table:
    groups = []
    for block in summary.blocks:
        source, facts = block.source, block.source.facts
        sizes = f"{facts.rows:,} rows, {facts.features:,} features, {facts.labels:,} labels" if facts else ""
        detail = f"{sizes}, batches of {source.batch_size}"
        rows = [_values_row(block, model) for model in block.rows]
        groups.append(Group(rows, source.title, "synthetic" if source.synthetic else "", detail))
    columns = [*_COLUMNS, Column("Time (s)", True), Column("Memory (MB)", True)]
    return Table("values", "Measures and times on each dataset.", columns, groups)


def _values_row(block: QualityBlock, model: str) -> Row:
    row, cells = block.rows[model], []
    for measure, value in row.values.items():
        place = block.ranks.get((model, measure))
        best = place is not None and place == min(r for (_, of), r in block.ranks.items() if of == measure)
        # Where labels are many and rare, calibration errors differ in the fourth decimal.
        decimals = 4 if measure == CALIBRATION else 3
        sd = "" if value is None else as_value(value.sd, decimals, "")
        text = as_value(value and value.mean, decimals)
        cells.append(Cell(text, sd, "" if place is None else f"{place:g}", best))
    memory = as_significant(None if row.memory is None else row.memory / 1e6)
    cells += [Cell(as_significant(row.seconds)), Cell(memory)]
    return Row(model, cells, "failed" * bool(row.failed))


def _records(summary: QualitySummary) -> dict[str, list[dict[str, Any]]]:
    """Return what programs read, with all digits: values, average ranks, and bins of probability."""
    values, bins = [], []
    for block in summary.blocks:
        for model, row in block.rows.items():
            values.append(_value_record(block, model))
            if row.reliability is None:
                continue
            known = row.reliability
            parts = (known.edges[:-1], known.edges[1:], known.entries, known.mean_probability, known.share_present)
            about = {"dataset": block.source.name, "synthetic": block.source.synthetic, "model": model}
            names = ("low", "high", "entries", "mean_probability", "share_present")
            for found in zip(*(part.tolist() for part in parts), strict=True):
                # Empty bins have neither a mean nor a share.
                plain = [None if value != value else value for value in found]
                bins.append(about | dict(zip(names, plain, strict=True)))
    ranks = [
        {"over": of.title, "datasets": "; ".join(of.datasets), "model": m, "measure": k, "average_rank": value}
        for of in summary.ranks
        for (m, k), value in of.averages.items()
    ]
    return {"quality": values, "ranks": ranks, "reliability": bins}


def _value_record(block: QualityBlock, model: str) -> dict[str, Any]:
    source, facts, row = block.source, block.source.facts, block.rows[model]
    record: dict[str, Any] = {"dataset": source.name, "synthetic": source.synthetic, "drift": source.drift}
    record |= {key: facts and getattr(facts, key) for key in ("rows", "features", "labels", "cardinality")}
    record |= {"batch_size": source.batch_size, "model": model, "reference": model == REFERENCE}
    record["runs"] = max((value.runs for value in row.values.values() if value is not None), default=0)
    for measure, value in row.values.items():
        record |= {measure: value and value.mean, f"{measure}_sd": value and value.sd}
        record[f"{measure}_rank"] = block.ranks.get((model, measure))
    record |= {"seconds": row.seconds, "time_ratio": row.ratio, "memory": row.memory}
    record |= {"example_f1_before": row.before, "example_f1_after": row.after}
    return record | {"error": row.failed or None}
