"""The comparison of online models as tables, figures and a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.plan import Record
from benchmarks.quality import MEASURES, REFERENCE, QualitySummary
from benchmarks.ranking import CALIBRATION, OVERALL, lower_is_better, rank_charts, ranks_table
from labelrace.report.document import Document, Section, made_by
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_significant, as_value, measure_label, plural

if TYPE_CHECKING:
    pass


def quality_document(summary: QualitySummary) -> Document:
    """Return the comparison as sections of tables and charts."""
    runs = summary.manifest["runs"]
    over = (
        "Values are those of one run." if runs == 1 else f"Means over {runs} runs; models without randomness ran once."
    )
    datasets: dict[str, dict[str, Record]] = {}
    for record in summary.records["quality"]:
        datasets.setdefault(record["dataset"], {})[record["model"]] = record
    models, on = plural(len(summary.models), "online model"), plural(len(datasets), "dataset")
    return Document(
        name="quality",
        title="Online models compared",
        lead=f"{models} on {on}, each batch tested first, then learned. {over}",
        footer=made_by(summary.manifest),
        sections=[
            *_ranks_section(summary),
            Section(
                "Values",
                "Means over test batches. The calibration error is over all tested entries, in 15 bins. Times are the "
                "model's, to predict label sets and to learn, on one thread. The "
                f"last row, {REFERENCE} (RACEClassifier with its default parameters), is not ranked.",
                [_values_table(datasets)],
            ),
        ],
        records=summary.records,
        notes=summary.notes,
    )


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


def _values_table(datasets: Mapping[str, Mapping[str, Record]]) -> Table:
    groups = []
    for name, models in datasets.items():
        detail = "{rows:,} rows, {features:,} features, {labels:,} labels, batches of {batch_size}"
        ranks = {m: [of[f"{m}_rank"] for of in models.values() if of[f"{m}_rank"] is not None] for m in MEASURES}
        best = {measure: min(of, default=None) for measure, of in ranks.items()}
        rows = [Row(model, _cells(of, best), "failed" if of["error"] else "") for model, of in models.items()]
        groups.append(Group(rows, name, detail=detail.format(**models[REFERENCE])))
    columns = [Column(measure_label(name), lower_is_better(name)) for name in MEASURES]
    columns += [Column("Time (s)", True), Column(f"Time / {REFERENCE}", True)]
    return Table("values", "Measures and times on each dataset.", columns, groups)


def _cells(record: Record, best: Mapping[str, float | None]) -> list[Cell]:
    cells = []
    for measure in MEASURES:
        rank = record[f"{measure}_rank"]
        # Where labels are many and rare, calibration errors differ in the fourth decimal.
        decimals = 4 if measure == CALIBRATION else 3
        value, sd = as_value(record[measure], decimals), as_value(record[f"{measure}_sd"], decimals, "")
        is_best = rank is not None and rank == best[measure]
        cells.append(Cell(value, sd, "" if rank is None else f"{rank:g}", is_best))
    return [*cells, Cell(as_significant(record["seconds"])), Cell(as_significant(record["time_ratio"]))]
