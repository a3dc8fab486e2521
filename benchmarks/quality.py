"""How good, how calibrated and how fast the online models are, on every dataset that is available."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Annotated, Any

import numpy as np
import typer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks import bounds
from benchmarks.datasets import Source, find_datasets
from benchmarks.paper import over_runs
from benchmarks.plan import RUNS, Data, Datasets, Everything, Out, Part, Record, Resume, publish, run_plan, within
from benchmarks.ranking import (
    CALIBRATION,
    OVERALL,
    RankTable,
    average_ranks,
    lower_is_better,
    rank_charts,
    rank_records,
    ranks_table,
)
from benchmarks.rivals import BASELINES, JUDGE, available, best_in_hindsight, settings, spec_of
from labelrace.base.registry import is_online, model_names
from labelrace.cli.options import Models, Runs, Seed, as_names, as_specs
from labelrace.evaluation import ModelSpec, as_reliability, prequential
from labelrace.measures import PAPER_MEASURES
from labelrace.race.classifier import RACEClassifier
from labelrace.report import summarize
from labelrace.report.document import Document, Section, made_by
from labelrace.report.runs import Run, group_records
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_significant, as_value, listing, macro_note, measure_label, plural
from labelrace.streams.synthetic import SyntheticStream

MEASURES = (*PAPER_MEASURES, CALIBRATION)
# The model that times are compared with: it is run and shown, and not ranked.
REFERENCE = "race-cls-fixed, fast"
# What makes the published form slower, and exact to the digit of the authors' program.
_PUBLISHED = ("learner", "start", "zero_score")
# The estimated seconds of all runs together, so that the benchmark ends within about half an hour.
_SECONDS = 1050.0


def quality(
    models: Models = None,
    data: Data = None,
    datasets: Datasets = None,
    runs: Runs = 1,
    seed: Seed = 0,
    workers: Annotated[
        int, typer.Option("--workers", "--jobs", help="Processes; with more than one, times are not comparable.")
    ] = 1,
    out: Out = RUNS / "quality",
    resume: Resume = False,
    everything: Everything = False,
    tuned: Annotated[
        bool,
        typer.Option(
            "--tuned", help="Also show rivals with the best of several settings on each dataset, in hindsight."
        ),
    ] = False,
    bounds_only: Annotated[
        bool,
        typer.Option("--bounds", help="Check only what the default promises on synthetic streams; about a minute."),
    ] = False,
) -> None:
    """Compare online models on all available data.

    There are measures, calibration, time and ranks. Without --model, all online models are compared but those that
    would take hours: notes name them, --all runs them. vowpal-wabbit and river-logistic can be named, too.

    [dim]Examples:[/dim]

    python -m benchmarks quality

    python -m benchmarks quality --model race --model mine=mymodule:MyClassifier --datasets enron --out quick

    python -m benchmarks quality --model race --model arow --model ridge --tuned
    """
    if bounds_only:
        bounds.check()
        return
    specs = quality_models(None if models is None else as_specs(models, None), tuned=tuned)
    found = find_datasets(data or (), as_names(datasets or ""))
    plan, notes = [Part(source, tuple(specs), {"calibration": True}) for source in found.sources], found.unreadable
    if found.missing:
        notes = [f"Datasets of the paper that are not available: {listing(found.missing)}.", *notes]
    if models is None and not everything:
        plan, slow = within(plan, runs, _SECONDS, REFERENCE)
        notes += slow
    if workers == 1:
        _warm_up(specs)
    rows = list[Record]()
    for part, manifest, records in run_plan(plan, out, runs=runs, seed=seed, jobs=workers, resume=resume):
        rows += dataset_rows(part.source, manifest, records)
    publish(quality_document(manifest, rows, [*notes, *_notes(rows)]), out)


def quality_models(given: Sequence[ModelSpec] | None = None, *, tuned: bool = False) -> list[ModelSpec]:
    """Return the models to compare after the reference, the default `RACEClassifier`; tuned ones with their grids."""
    if given is None:
        given = [ModelSpec(name) for name in (*model_names(online=True), *available())]
    for name in (spec.name for spec in given):
        if name not in BASELINES and ":" not in name and not is_online(name):
            raise ValueError(f"models must learn batch by batch, and {name} learns all data at once; leave it out")
    chosen = [spec_of(spec.name) if spec.name in BASELINES else spec for spec in given]
    defaults = RACEClassifier().get_params(deep=False)
    reference = ModelSpec("race-cls-fixed", {name: defaults[name] for name in _PUBLISHED}, REFERENCE)
    return [reference, *chosen, *(setting for spec in given if tuned for setting in settings(spec.name))]


def _warm_up(specs: Iterable[ModelSpec]) -> None:
    """Let every model learn a few rows, so that the time of imports counts for none of them."""
    sizes: dict[str, Any] = {"n_rows": 60, "n_features": 8, "n_labels": 6, "cardinality": 2.0}
    with threadpool_limits(limits=1):
        for stream, spec in product((SyntheticStream(**sizes), SyntheticStream(**sizes, density=0.3)), specs):
            # A failure here occurs on the datasets, too, and is recorded there.
            with suppress(Exception):
                list(prequential(spec.make(0, stream.categorical), stream, 30))


def dataset_rows(source: Source, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Return a record of each model on a dataset, with its ranks; the reference comes last.

    Of a grid there is one, of the setting that was best in hindsight.
    """
    runs = group_records(manifest, records)
    described = {model["name"]: model for model in summarize(manifest, records)["models"]}
    shown = best_in_hindsight({m: over_runs(of, JUDGE)["mean"] for m, of in described.items() if m != REFERENCE})
    rows: dict[str, Record] = {}
    for model, setting in (shown | {REFERENCE: REFERENCE}).items():
        seconds, base = (described[m]["seconds"]["total"] for m in (setting, REFERENCE))
        finished = described[setting]["ranked"]
        rows[model] = {
            "dataset": source.name,
            **source.facts._asdict(),
            "batch_size": source.batch_size,
            "model": model,
            "setting": setting,
            **_measures(described[setting], runs[setting].values()),
            "seconds": seconds if finished else None,
            "time_ratio": seconds / base if finished and base else None,
            "error": next((run.failed["error"] for run in runs[setting].values() if run.failed), None),
        }
    for (model, measure), average in _ranks("", [source.name], list(shown), rows.values()).averages.items():
        if measure != OVERALL:
            rows[model][f"{measure}_rank"] = average
    return list(rows.values())


def _measures(described: Mapping[str, Any], runs: Iterable[Run]) -> Record:
    """Return means over the runs that were finished; ranks are known when all models are.

    A model that gives no probabilities has no calibration error.
    """
    cells = {name: over_runs(described, name) for name in PAPER_MEASURES}
    errors = np.array([as_reliability(run.calibration).error for run in runs if run.done and run.calibration])
    errors = errors[~np.isnan(errors)]
    mean = float(errors.mean()) if errors.size else None
    sd = float(errors.std(ddof=1)) if errors.size > 1 else None
    cells[CALIBRATION] = {"mean": mean, "sd": sd, "runs": errors.size}
    record: Record = {"runs": max(cell["runs"] or 0 for cell in cells.values())}
    for measure, cell in cells.items():
        record |= {measure: cell["mean"], f"{measure}_sd": cell["sd"], f"{measure}_rank": None}
    return record


def _ranks(title: str, datasets: Sequence[str], models: Sequence[str], rows: Iterable[Record]) -> RankTable:
    """Rank models on datasets; a model that failed ranks after the others."""
    values = {}
    for row, measure in product(rows, MEASURES):
        # What gives no probabilities has no calibration error, and is not ranked by it.
        is_missing = row[measure] is None and not row["error"]
        values[row["dataset"], row["model"], measure] = np.nan if is_missing else row[measure]
    return average_ranks(title, datasets, models, MEASURES, values)


def _rank_tables(rows: Sequence[Record]) -> list[RankTable]:
    """Rank over all datasets; where some models ran on some of them only, once for those models and once without."""
    ran = {(row["dataset"], row["model"]) for row in rows}
    datasets, models = (list(dict.fromkeys(row[key] for row in rows)) for key in ("dataset", "model"))
    models.remove(REFERENCE)
    everywhere = [model for model in models if all((dataset, model) in ran for dataset in datasets)]
    complete = [dataset for dataset in datasets if all((dataset, model) in ran for model in models)]
    groups = [("Datasets", datasets, models)]
    if len(everywhere) < len(models):
        groups = [
            ("Datasets, models that ran on all of them", datasets, everywhere),
            ("Datasets that all models ran on", complete, models),
        ]
    return [_ranks(title, on, of, rows) for title, on, of in groups if on and len(of) > 1]


def _notes(rows: Sequence[Record]) -> list[str]:
    """Return what a reader must know of the results before relying on them, in sentences."""
    notes, chosen = [], dict[str, list[str]]()
    for row in rows:
        if row["setting"] != row["model"] and row[JUDGE] is not None:
            chosen.setdefault(row["dataset"], []).append(row["setting"])
    if chosen:
        notes.append(
            "The best of a grid is the setting with the highest example F1 on the dataset, chosen after the fact: what "
            "tuning could have reached."
        )
    notes += [f"Best in hindsight on {dataset}: {'; '.join(best)}." for dataset, best in chosen.items()]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        if all(row[MEASURES[0]] is None for row in rows if row["dataset"] == dataset):
            notes.append(f"{dataset} gave no values: it has no second batch, or every model failed.")
    return notes + [f"{row['model']} failed on {row['dataset']}: {row['error']}" for row in rows if row["error"]]


def quality_document(manifest: Mapping[str, Any], rows: Sequence[Record], notes: Sequence[str]) -> Document:
    """Return the comparison as sections of tables and charts."""
    datasets: dict[str, list[Record]] = {}
    for row in rows:
        datasets.setdefault(row["dataset"], []).append(row)
    models, runs = {row["model"] for row in rows} - {REFERENCE}, manifest["runs"]
    over = f"Means over {runs} runs; models without randomness ran once." if runs > 1 else "Values are of one run."
    compared = f"{plural(len(models), 'online model')} on {plural(len(datasets), 'dataset')}"
    hint = (
        "Means over test batches. The calibration error is over all tested entries, in 15 bins. Times are the model's, "
        f"to predict label sets and to learn, on one thread. The last row, {REFERENCE} (RACEClassifier with its "
        "default parameters), is not ranked."
    )
    ranks = _rank_tables(rows)
    return Document(
        name="quality",
        title="Online models compared",
        lead=f"{compared}, each batch tested first, then learned. {over}",
        footer=made_by(manifest),
        sections=[*_ranks_section(ranks, models), Section("Values", hint, [_values_table(datasets)])],
        records={"quality": list(rows), "ranks": rank_records(ranks)},
        notes=notes,
    )


def _ranks_section(ranks: Sequence[RankTable], models: Iterable[str]) -> list[Section]:
    if not ranks:
        return []
    hint = (
        "1 is the best. Models that tie share the mean of their ranks; one that failed ranks after all others. Overall "
        "is the mean over the paper's five measures, without the calibration error. In the diagrams, bars join models "
        "that Nemenyi's test does not tell apart at the 5 % level."
    )
    ordered = sorted(models, key=lambda model: (ranks[0].averages.get((model, OVERALL), np.inf), model))
    table = ranks_table("ranks", "Average ranks.", ranks, ordered, MEASURES)
    return [Section("Average ranks", hint, [table], rank_charts("ranks", "Critical differences", ranks))]


def _values_table(datasets: Mapping[str, Sequence[Record]]) -> Table:
    groups = []
    for name, rows in datasets.items():
        detail = "{rows:,} rows, {features:,} features, {labels:,} labels, batches of {batch_size}".format(**rows[0])
        ranks = {m: [row[f"{m}_rank"] for row in rows if row[f"{m}_rank"] is not None] for m in MEASURES}
        best = {measure: min(of, default=None) for measure, of in ranks.items()}
        lines = [Row(row["model"], _cells(row, best), "failed" if row["error"] else "") for row in rows]
        groups.append(Group(lines, name, detail=detail))
    columns = [Column(measure_label(name), lower_is_better(name)) for name in MEASURES]
    columns += [Column("Time (s)", True), Column(f"Time / {REFERENCE}", True)]
    return Table("values", "Measures and times on each dataset.", columns, groups, note=macro_note(MEASURES, 1.0))


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
