"""The comparison of online models as tables, figures and a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labelrace.experiments.plan import Record
from labelrace.experiments.quality import MEASURES, REFERENCE, QualitySummary
from labelrace.experiments.ranking import CALIBRATION, OVERALL, lower_is_better, rank_charts, ranks_table
from labelrace.report.charts import Chart, Panel, Panels, Series, panels
from labelrace.report.document import Document, Section, made_by
from labelrace.report.tables import Cell, Column, Group, Row, Table, text_table
from labelrace.report.text import MISSING, as_significant, as_value, measure_label, plural

# A share of fewer entries is mostly chance, and is not drawn.
_FEWEST_ENTRIES = 30


def quality_document(summary: QualitySummary) -> Document:
    """Return the comparison as sections of tables and charts."""
    runs = summary.manifest["runs"]
    over = (
        "Values are those of one run." if runs == 1 else f"Means over {runs} runs; models without randomness ran once."
    )
    kinds = _kinds(summary)
    on = " and ".join(plural(len(datasets), kind) for kind, datasets in kinds.items())
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
                [_values_table(kinds)],
            ),
        ],
        records=summary.records,
        notes=summary.notes,
        complete=summary.complete,
    )


def _kinds(summary: QualitySummary) -> dict[str, dict[str, dict[str, Record]]]:
    """Return the records by dataset and model, datasets and synthetic streams apart, if there are such."""
    kinds: dict[str, dict[str, dict[str, Record]]] = {}
    for record in sorted(summary.records["quality"], key=lambda record: record["synthetic"]):
        datasets = kinds.setdefault("synthetic stream" if record["synthetic"] else "dataset", {})
        datasets.setdefault(record["dataset"], {})[record["model"]] = record
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


def _reliability_section(summary: QualitySummary, kinds: Mapping[str, Iterable[str]]) -> Section:
    bins: dict[str, dict[str, list[Record]]] = {model: {} for model in (*summary.models, REFERENCE)}
    for record in summary.records["reliability"]:
        bins[record["model"]].setdefault(record["dataset"], []).append(record)
    charts = []
    for kind, datasets in kinds.items():
        if models := {model: of for model, of in bins.items() if any(dataset in of for dataset in datasets)}:
            name = f"reliability-{kind.replace(' ', '-')}s"
            caption = f"Share of labels present against their probability, {kind}s"
            charts.append(Chart(name, caption, _diagrams(models, datasets)))
    hint = (
        "Of the entries that were given about a probability, the share that is present. On the dashed line the two are "
        "equal; below it labels are rarer than the model says, above it more frequent. All labels and rows that were "
        f"tested are pooled, in 15 bins; those with fewer than {_FEWEST_ENTRIES} entries are not drawn."
    )
    return Section(
        "Calibration of the probabilities", hint if charts else "No model gave probabilities.", charts=charts
    )


def _diagrams(models: Mapping[str, Mapping[str, Iterable[Record]]], datasets: Iterable[str]) -> Panels:
    """Return a reliability diagram for each model, with a line for each dataset."""
    shown = []
    for model, bins in models.items():
        series = []
        for place, dataset in enumerate(datasets):
            if dataset not in bins:
                continue
            drawn = [record for record in bins[dataset] if record["entries"] >= _FEWEST_ENTRIES]
            x, y = ([record[key] for record in drawn] for key in ("mean_probability", "share_present"))
            tips = [
                f"{dataset}: probability {a:.3f}, present {b:.3f} of {record['entries']:,}"
                for a, b, record in zip(x, y, drawn, strict=True)
            ]
            series.append(Series(dataset, x, y, place, marker="o", tips=tips))
        shown.append(Panel(model, series, "probability", "", "", (0, 1), (0, 1), (0, 0.5, 1), diagonal=True))
    return panels(shown, across=4, size=(2.3, 2.3), columns=3)


def _drift_section(summary: QualitySummary, kinds: Mapping[str, Mapping[str, Mapping[str, Record]]]) -> list[Section]:
    streams = list(kinds.get("synthetic stream", {}).values())
    if not streams:
        return []
    rows = {model: [_change(of.get(model, {})) for of in streams] for model in (*summary.models, REFERENCE)}
    titles = [of[REFERENCE]["drift"].capitalize() for of in streams]
    hint = (
        "Synthetic streams that are alike but for their drift: the fifth of the stream before the first drift begins, "
        "and the fifth after the last one has ended. Without drift, before and after the middle."
    )
    caption = "Example F1 just before and just after a drift, on synthetic streams."
    return [Section("The effect of drift", hint, [text_table("drift", caption, titles, rows)])]


def _change(record: Record) -> str:
    before, after = (record.get(f"example_f1_{when}") for when in ("before", "after"))
    return MISSING if before is None or after is None else f"{before:.2f}→{after:.2f}"


def _values_table(kinds: Mapping[str, Mapping[str, Mapping[str, Record]]]) -> Table:
    groups = []
    for name, models in ((name, of) for datasets in kinds.values() for name, of in datasets.items()):
        detail = "{rows:,} rows, {features:,} features, {labels:,} labels, batches of {batch_size}"
        ranks = {m: [of[f"{m}_rank"] for of in models.values() if of[f"{m}_rank"] is not None] for m in MEASURES}
        best = {measure: min(places, default=None) for measure, places in ranks.items()}
        rows = [Row(model, _cells(of, best), "failed" if of["error"] else "") for model, of in models.items()]
        one = models[REFERENCE]
        groups.append(Group(rows, name, "synthetic" if one["synthetic"] else "", detail.format(**one)))
    columns = [Column(measure_label(name), lower_is_better(name)) for name in MEASURES]
    columns += [Column("Time (s)", True), Column("Memory (MB)", True)]
    return Table("values", "Measures and times on each dataset.", columns, groups)


def _cells(record: Record, best: Mapping[str, float | None]) -> list[Cell]:
    cells = []
    for measure in MEASURES:
        place = record[f"{measure}_rank"]
        # Where labels are many and rare, calibration errors differ in the fourth decimal.
        decimals = 4 if measure == CALIBRATION else 3
        value, sd = as_value(record[measure], decimals), as_value(record[f"{measure}_sd"], decimals, "")
        is_best = place is not None and place == best[measure]
        cells.append(Cell(value, sd, "" if place is None else f"{place:g}", is_best))
    memory = record["memory"]
    return [*cells, Cell(as_significant(record["seconds"])), Cell(as_significant(memory and memory / 1e6))]
