"""How good, how calibrated and how fast the online models are, on every dataset that is available."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks import bounds
from benchmarks.datasets import Source, find_datasets
from benchmarks.paper import over_runs
from benchmarks.plan import RUNS, Data, Everything, Out, Part, Record, Resume, possible, publish, run_plan, within
from benchmarks.ranking import CALIBRATION, OVERALL, RankTable, average_ranks
from benchmarks.rivals import BASELINES, JUDGE, available, best_in_hindsight, settings, spec_of
from labelrace.base.registry import is_online, model_names
from labelrace.cli.options import Runs, Seed, as_names, option
from labelrace.evaluation import ModelSpec, as_reliability, prequential
from labelrace.measures import PAPER_MEASURES
from labelrace.measures.calibration import Reliability
from labelrace.race.classifier import RACEClassifier
from labelrace.report import summarize
from labelrace.report.runs import Run, group_records
from labelrace.report.text import listing
from labelrace.streams.synthetic import SyntheticStream

MEASURES = (*PAPER_MEASURES, CALIBRATION)
# The model that times are compared with: it is run and shown, and not ranked.
REFERENCE = "race-cls-fixed, fast"
# What makes the published form slower, and exact to the digit of the authors' program.
_PUBLISHED = ("learner", "start", "zero_score")
# The estimated seconds of all runs together, so that the benchmark ends within about half an hour.
_SECONDS = 1050.0


@dataclass(frozen=True)
class QualitySummary:
    """What came out of it. `manifest` is that of the last dataset: runs, seed and machine are those of all.

    ``records`` are what CSV files have and tables and charts are made of: ``quality``, one for each dataset and model,
    the reference last, with means over finished runs; and ``ranks``.
    """

    manifest: Record
    models: tuple[str, ...]  # those that are ranked
    records: dict[str, list[Record]]
    ranks: list[RankTable]
    notes: list[str]


def quality(
    models: Annotated[
        str | None,
        option(
            help="Which models, separated by commas, module:Class for your own; by default all online models that do "
            "not take hours. vowpal-wabbit and river-logistic can be named, too."
        ),
    ] = None,
    data: Data = None,
    datasets: Annotated[str | None, option(help="Which datasets, separated by commas, if not all available.")] = None,
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
    """Compare online models on every available dataset: measures, calibration, time and ranks.

    Without --models, what would take hours is left out, and notes name it; --all runs it.

    [dim]Examples:[/dim]

    python -m benchmarks quality

    python -m benchmarks quality --models race,obr,mymodule:MyClassifier --datasets enron --out quick

    python -m benchmarks quality --models race,arow,adagrad-logistic,ridge --tuned
    """
    from benchmarks.quality_report import quality_document

    if bounds_only:
        bounds.check()
        return
    names = None if models is None else as_names(models)
    specs = quality_models(names, tuned=tuned)
    found = find_datasets(data or (), as_names(datasets or ""))
    if not found.sources:
        raise FileNotFoundError(
            "no dataset is available: see `labelrace data list`, or give a folder of them by --data or LABELRACE_DATA"
        )
    plan, notes = [Part(source, tuple(specs), {"calibration": True}) for source in found.sources], list[str]()
    if names is None:
        plan, notes = possible(plan)
        if not everything:
            plan, slow = within(plan, runs, _SECONDS, REFERENCE)
            notes += slow
    if workers == 1:
        _warm_up(specs)
    blocks = []
    for part, manifest, records in run_plan(plan, out, runs=runs, seed=seed, jobs=workers, resume=resume):
        blocks.append(_read_block(part.source, manifest, records))
    publish(quality_document(_summarize(blocks, manifest, [*notes, *found.unreadable], found.missing)), out)


def quality_models(names: Iterable[str] | None = None, *, tuned: bool = False) -> list[ModelSpec]:
    """Return the models to compare after the reference, the default `RACEClassifier`; tuned ones with their grids."""
    chosen = list(dict.fromkeys(names)) if names is not None else [*model_names(online=True), *available()]
    for name in chosen:
        if name not in BASELINES and ":" not in name and not is_online(name):
            raise ValueError(f"models must learn batch by batch, and {name} learns all data at once; leave it out")
    if not chosen:
        raise ValueError("models must be some names, got none")
    defaults = RACEClassifier().get_params(deep=False)
    reference = ModelSpec("race-cls-fixed", {name: defaults[name] for name in _PUBLISHED}, REFERENCE)
    grids = [spec for name in chosen for spec in settings(name)] if tuned else []
    return [reference, *map(spec_of, chosen), *grids]


def _warm_up(specs: Iterable[ModelSpec]) -> None:
    """Let every model learn a few rows, so that the time of imports counts for none of them."""
    sizes: dict[str, Any] = {"n_rows": 60, "n_features": 8, "n_labels": 6, "cardinality": 2.0}
    with threadpool_limits(limits=1):
        for stream in (SyntheticStream(**sizes), SyntheticStream(**sizes, density=0.3)):
            for spec in specs:
                # A failure here occurs on the datasets, too, and is recorded there.
                with suppress(Exception):
                    list(prequential(spec.make(0, stream.categorical), stream, 30))


class _Block(NamedTuple):
    """One dataset: its records by model, the reference last; the settings that were best in hindsight."""

    source: Source
    rows: dict[str, Record]
    chosen: list[str]


def _read_block(source: Source, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> _Block:
    """Read the records of all models on a dataset, and rank the models."""
    runs = group_records(manifest, records)
    described = {model["name"]: model for model in summarize(manifest, records)["models"]}
    judged = {name: over_runs(model, JUDGE)["mean"] for name, model in described.items() if name != REFERENCE}
    shown = best_in_hindsight(judged)
    rows: dict[str, Record] = {}
    for model, label in (shown | {REFERENCE: REFERENCE}).items():
        known = [as_reliability(run.calibration) for run in runs[label].values() if run.done and run.calibration]
        rows[model] = {
            "dataset": source.name,
            **source.facts._asdict(),
            "batch_size": source.batch_size,
            "model": model,
            "reference": model == REFERENCE,
            **_measures(described[label], known),
            **_times(described[label], runs[label], runs[REFERENCE]),
            "error": next((run.failed["error"] for run in runs[label].values() if run.failed), None),
        }
    for (model, measure), average in _ranks("", [source.name], list(shown), rows.values()).averages.items():
        if measure != OVERALL:
            rows[model][f"{measure}_rank"] = average
    chosen = [label for model, label in shown.items() if label != model and judged[label] is not None]
    return _Block(source, rows, chosen)


def _measures(described: Mapping[str, Any], bins: Iterable[Reliability]) -> Record:
    """Return means over the runs that were finished; ranks are known when all models are.

    A model that gives no probabilities has no calibration error.
    """
    cells = {name: over_runs(described, name) for name in PAPER_MEASURES}
    errors = np.array([one.error for one in bins if not np.isnan(one.error)])
    mean = float(errors.mean()) if errors.size else None
    sd = float(errors.std(ddof=1)) if errors.size > 1 else None
    cells[CALIBRATION] = {"mean": mean, "sd": sd, "runs": errors.size}
    record: Record = {"runs": max(cell["runs"] or 0 for cell in cells.values())}
    for measure, cell in cells.items():
        record |= {measure: cell["mean"], f"{measure}_sd": cell["sd"], f"{measure}_rank": None}
    return record


def _times(described: Mapping[str, Any], runs: Mapping[int, Run], reference: Mapping[int, Run]) -> Record:
    """Return the seconds of a run, to predict label sets and to learn, and the median of ratios to the reference.

    Times are compared run by run, so that what slows the machine down for a while slows both.
    """
    finished = {number: run for number, run in runs.items() if run.done}
    ratios = [
        _model_seconds(run) / _model_seconds(reference[number])
        for number, run in finished.items()
        if number in reference and reference[number].done
    ]
    seconds = described["seconds"]["total"] if finished else None
    return {"seconds": seconds, "time_ratio": float(np.median(ratios)) if ratios else None}


def _model_seconds(run: Run) -> float:
    seconds = run.seconds()
    return seconds["predict"] + seconds["learn"]


def _summarize(
    blocks: Sequence[_Block], manifest: Mapping[str, Any], notes: Sequence[str], missing: Sequence[str]
) -> QualitySummary:
    """Put all datasets together."""
    values = [row for block in blocks for row in block.rows.values()]
    models = tuple(dict.fromkeys(row["model"] for row in values if not row["reference"]))
    everywhere = [model for model in models if all(model in block.rows for block in blocks)]
    complete = [block for block in blocks if all(model in block.rows for model in models)]
    groups: list[tuple[str, Sequence[_Block], Sequence[str]]] = [("Datasets", blocks, models)]
    if len(everywhere) < len(models):
        groups = [
            ("Datasets, models that ran on all of them", blocks, everywhere),
            ("Datasets that all models ran on", complete, models),
        ]
    ranks = [
        _ranks(title, [block.source.name for block in of], ranked, values)
        for title, of, ranked in groups
        if of and len(ranked) > 1
    ]
    averages = [
        {"over": of.title, "datasets": "; ".join(of.datasets), "model": m, "measure": k, "average_rank": value}
        for of in ranks
        for (m, k), value in of.averages.items()
    ]
    records = {"quality": values, "ranks": averages}
    return QualitySummary(dict(manifest), models, records, ranks, _notes(blocks, notes, missing))


def _ranks(title: str, datasets: Sequence[str], models: Sequence[str], rows: Iterable[Record]) -> RankTable:
    """Rank models on datasets; a model that failed ranks after the others."""
    values = {}
    for row, measure in product(rows, MEASURES):
        # What gives no probabilities has no calibration error, and is not ranked by it.
        is_missing = row[measure] is None and not row["error"]
        values[row["dataset"], row["model"], measure] = np.nan if is_missing else row[measure]
    return average_ranks(title, datasets, models, MEASURES, values)


def _notes(blocks: Sequence[_Block], before: Sequence[str], missing: Sequence[str]) -> list[str]:
    """Return what a reader must know before relying on the numbers, in sentences."""
    notes = [f"Datasets of the paper that are not available: {listing(missing)}."] if missing else []
    notes += before
    if any(block.chosen for block in blocks):
        notes.append(
            "The best of a grid is the setting with the highest example F1 on the dataset, chosen after the fact: what "
            "tuning could have reached."
        )
    for block in blocks:
        if block.chosen:
            notes.append(f"Best in hindsight on {block.source.name}: {'; '.join(block.chosen)}.")
        if all(row[MEASURES[0]] is None for row in block.rows.values()):
            notes.append(f"{block.source.name} gave no values: it has no second batch, or every model failed.")
        failed = [row for row in block.rows.values() if row["error"]]
        notes += [f"{row['model']} failed on {block.source.name}: {row['error']}" for row in failed]
    return notes
