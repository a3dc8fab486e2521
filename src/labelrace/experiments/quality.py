"""How good, how calibrated and how fast the online models are, on every dataset that is available."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace.evaluation import ModelSpec, as_reliability, prequential
from labelrace.experiments.baselines import BASELINES, available, best_in_hindsight, settings, spec_of
from labelrace.experiments.datasets import Source, drifting_streams, find_datasets
from labelrace.experiments.paper import estimate
from labelrace.experiments.plan import OnProgress, Part, possible, run_plan, within
from labelrace.experiments.published import Estimate
from labelrace.experiments.ranking import CALIBRATION, RankTable, average_ranks, worst
from labelrace.experiments.speed import traced_memory
from labelrace.measures import PAPER_MEASURES
from labelrace.measures.calibration import Reliability, merge
from labelrace.models.race import RACEClassifier
from labelrace.models.registry import is_online, model_names
from labelrace.report import summarize
from labelrace.report.runs import Run, group_records, value_of
from labelrace.report.text import listing, plural
from labelrace.streams.synthetic import SyntheticStream

MEASURES = (*PAPER_MEASURES, CALIBRATION)
# The model that times are compared with: it is run and shown, and not ranked.
REFERENCE = "race-cls-fixed, fast"
# What makes the published form slower, and exact to the digit of the authors' program.
_PUBLISHED = ("learner", "start", "zero_score")
# The estimated seconds of all runs together, so that the benchmark ends within about half an hour.
_SECONDS = 1050.0


@dataclass(frozen=True)
class QualityRow:
    """One model on one dataset: means over the runs that were finished."""

    model: str
    values: dict[str, Estimate | None]  # of each of `MEASURES`
    reliability: Reliability | None  # over all runs; None for a model that gives no probabilities
    seconds: float | None  # of a run, to predict label sets and to learn
    ratio: float | None  # to those of the reference: the median over runs, each compared with the same run of it
    memory: int | None  # bytes that it allocated at most, to learn a batch, predict another and learn it
    before: float | None  # example F1 just before the drift of a synthetic stream
    after: float | None  # and just after it
    failed: str  # why the first of its runs that failed did


class QualityBlock(NamedTuple):
    """One dataset: its rows by model, the reference last; ranks by model and measure; settings chosen in hindsight."""

    source: Source
    rows: dict[str, QualityRow]
    ranks: dict[tuple[str, str], float]
    chosen: Mapping[str, str] = {}


@dataclass(frozen=True)
class QualitySummary:
    """What is known so far. `manifest` is that of the last dataset: runs, seed and machine are those of all."""

    manifest: dict[str, Any]
    models: tuple[str, ...]
    blocks: list[QualityBlock]
    ranks: list[RankTable]
    notes: list[str]
    complete: bool


def run_quality(
    out: str | os.PathLike[str],
    *,
    models: Iterable[str] | None = None,
    data: Iterable[str | os.PathLike[str]] = (),
    datasets: Sequence[str] = (),
    runs: int = 1,
    seed: int = 0,
    jobs: int = 1,
    resume: bool = False,
    everything: bool = False,
    synthetic: bool = False,
    synthetic_rows: int = 4000,
    tuned: bool = False,
    on_progress: OnProgress | None = None,
    on_summary: Callable[[QualitySummary], object] | None = None,
) -> QualitySummary:
    """Compare online models on all datasets that are available: quality, calibration, time, memory and ranks.

    Parameters
    ----------
    out : path
        The folder for the records of all runs.
    models : iterable of str or None, default=None
        Names for `labelrace.make_model`, or of `labelrace.experiments.baselines`; None for all that are online, and
        those baselines that are installed, without those that take long.
    data : iterable of paths, default=()
        Folders to look for datasets in, before those of ``$LABELRACE_DATA`` and the cache.
    datasets : sequence of str, default=()
        Which datasets; all that are found if empty.
    runs, seed, resume
        As `labelrace.evaluation.run` takes them.
    jobs : int, default=1
        As `labelrace.evaluation.run` takes it. Times are comparable if it is 1: no other model runs at the same time.
    everything : bool, default=False
        Whether to run also what takes long or much memory; otherwise notes tell how much it would take. Models that are
        named are always run.
    synthetic : bool, default=False
        Whether to add synthetic streams, without drift and with each kind of it.
    synthetic_rows : int, default=4000
        Rows of each such stream.
    tuned : bool, default=False
        Whether to run also the grids of the models that have one, and to show the best setting on each dataset.
    on_progress : callable, default=None
        Called with a `Step` whenever a run starts, has tested a batch, or ends.
    on_summary : callable, default=None
        Called after each dataset with what is known so far.

    Raises
    ------
    FileNotFoundError
        If no dataset is available and there are no synthetic streams.
    FileExistsError, ValueError
        If the folder holds runs already and they are not to be resumed, or are others; if a model is not known.
    """
    names = None if models is None else list(models)
    specs = quality_models(names, tuned=tuned)
    found = find_datasets(map(Path, data), datasets)
    sources = [*found.sources, *(drifting_streams(synthetic_rows, seed) if synthetic else ())]
    plan = [Part(source, tuple(specs), {"calibration": True}) for source in sources]
    if not plan:
        raise FileNotFoundError(
            "no dataset is available: see `labelrace data list`, give a folder of them by --data or LABELRACE_DATA, "
            "or run on synthetic streams by --synthetic"
        )
    left_out: list[str] = []
    if names is None:
        plan, left_out = possible(plan)
        if not everything:
            plan, slow = within(plan, runs, _SECONDS, REFERENCE)
            left_out += slow
    if jobs == 1:
        _warm_up(specs)
    blocks: list[QualityBlock] = []
    for part, manifest, records in run_plan(plan, out, on_progress, runs=runs, seed=seed, jobs=jobs, resume=resume):
        blocks.append(_read_block(part, manifest, records))
        summary = _summarize(blocks, manifest, [*left_out, *found.unreadable], found.missing, len(plan))
        if on_summary is not None:
            on_summary(summary)
    return summary


def quality_models(names: Iterable[str] | None = None, *, tuned: bool = False) -> list[ModelSpec]:
    """Return the models to compare after the reference, the default `RACEClassifier`; tuned ones with their grids."""
    chosen = list(dict.fromkeys(names)) if names is not None else [*model_names(online=True), *available()]
    for name in chosen:
        if name not in BASELINES and not is_online(name):
            raise ValueError(f"models must learn batch by batch, and {name} learns all data at once; leave it out")
    if not chosen:
        raise ValueError("there must be models to run, got no models")
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


def _read_block(part: Part, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> QualityBlock:
    """Read the records of all models on a dataset, and rank the models."""
    source = part.source
    runs = group_records(manifest, records)
    described = {model["name"]: model for model in summarize(manifest, records)["models"]}
    models = [name for name in described if name != REFERENCE]
    memory = _memory(part)
    every = {name: _row(source, described[name], runs[name], runs[REFERENCE], memory.get(name)) for name in models}
    rows, chosen = best_in_hindsight(every)
    ranks = _ranks("", {source.name: rows}, list(rows)).averages
    reference = _row(source, described[REFERENCE], runs[REFERENCE], runs[REFERENCE], memory.get(REFERENCE))
    return QualityBlock(source, {**rows, REFERENCE: reference}, ranks, chosen)


def _memory(part: Part) -> dict[str, int | None]:
    """Let each model go through two batches again, and trace what it allocates, which slows it down."""
    stream = part.source.open()
    batches = list(islice(stream.batches(part.source.batch_size), 2))
    found: dict[str, int | None] = {}
    for spec in part.models:
        # A failure here has occurred in the run, too, and is recorded there.
        with suppress(Exception), threadpool_limits(limits=1):
            found[spec.label] = traced_memory(spec, batches, stream.categorical)
    return found


def _row(
    source: Source,
    described: Mapping[str, Any],
    runs: Mapping[int, Run],
    reference: Mapping[int, Run],
    memory: int | None,
) -> QualityRow:
    finished = {number: run for number, run in runs.items() if run.done}
    bins = [as_reliability(run.calibration) for run in finished.values() if run.calibration]
    errors = np.array([one.error for one in bins if not np.isnan(one.error)])
    sd = float(errors.std(ddof=1)) if errors.size > 1 else None
    calibration = Estimate(float(errors.mean()), sd, errors.size) if errors.size else None
    # Times are compared run by run, so that what slows the machine down for a while slows both.
    ratios = [
        _model_seconds(run) / _model_seconds(reference[number])
        for number, run in finished.items()
        if number in reference and reference[number].done
    ]
    before, after = (_window(finished.values(), span) for span in source.windows or (None, None))
    return QualityRow(
        described["name"],
        {**{name: estimate(described, name) for name in PAPER_MEASURES}, CALIBRATION: calibration},
        reduce(merge, bins) if bins else None,
        described["seconds"]["total"] if finished else None,
        float(np.median(ratios)) if ratios else None,
        memory,
        before,
        after,
        next((str(run.failed["error"]) for run in runs.values() if run.failed), ""),
    )


def _model_seconds(run: Run) -> float:
    seconds = run.seconds()
    return seconds["predict"] + seconds["learn"]


def _window(runs: Iterable[Run], span: tuple[float, float] | None) -> float | None:
    """Return the mean example F1 of the batches that lie in a span of rows, over runs."""
    if span is None:
        return None
    low, high = span
    values = [
        value_of(batch, "example_f1")
        for run in runs
        for batch in run.tested.values()
        if batch["start"] >= low and batch["end"] <= high
    ]
    return float(np.mean(values)) if values else None


def _summarize(
    blocks: Sequence[QualityBlock],
    manifest: Mapping[str, Any],
    notes: Sequence[str],
    missing: Sequence[str],
    planned: int,
) -> QualitySummary:
    """Put together what is known after some of the planned datasets and streams."""
    models = tuple(dict.fromkeys(name for block in blocks for name in block.rows if name != REFERENCE))
    groups: list[tuple[str, list[QualityBlock], Sequence[str]]] = []
    for kind, synthetic in (("Datasets", False), ("Synthetic streams", True)):
        of_kind = [block for block in blocks if block.source.synthetic == synthetic]
        everywhere = [model for model in models if all(model in block.rows for block in of_kind)]
        complete = [block for block in of_kind if all(model in block.rows for model in models)]
        if len(everywhere) == len(models):
            groups.append((kind, of_kind, models))
        else:
            groups.append((f"{kind}, models that ran on all of them", of_kind, everywhere))
            groups.append((f"{kind} that all models ran on", complete, models))
    ranks = [
        _ranks(title, {block.source.name: block.rows for block in of}, ranked)
        for title, of, ranked in groups
        if of and len(ranked) > 1
    ]
    told = _notes(blocks, notes, missing, planned)
    return QualitySummary(dict(manifest), models, list(blocks), ranks, told, len(blocks) == planned)


def _ranks(title: str, blocks: Mapping[str, Mapping[str, QualityRow]], models: Sequence[str]) -> RankTable:
    """Rank models on datasets, given by name with their rows; a model that failed ranks after the others."""

    def value(dataset: str, model: str, measure: str) -> float:
        row = blocks[dataset][model]
        found = row.values[measure]
        return found.mean if found is not None else worst(measure) if row.failed else np.nan

    return average_ranks(title, list(blocks), models, MEASURES, value)


def _notes(blocks: Sequence[QualityBlock], found: Sequence[str], missing: Sequence[str], planned: int) -> list[str]:
    """Return what a reader must know before relying on the numbers, in sentences."""
    notes = []
    if len(blocks) < planned:
        notes.append(f"Not complete: {len(blocks)} of {plural(planned, 'dataset')} so far.")
    if missing:
        notes.append(f"Datasets of the paper that are not available: {listing(missing)}.")
    notes += found
    if any(block.source.synthetic for block in blocks):
        notes.append("Synthetic streams are marked, and ranked by themselves.")
    if any(block.chosen for block in blocks):
        notes.append(
            "The best of a grid is the setting with the highest example F1 on the dataset, chosen after the fact: what "
            "tuning could have reached."
        )
    for block in blocks:
        if block.chosen:
            notes.append(f"Best in hindsight on {block.source.title}: {'; '.join(block.chosen.values())}.")
        if not any(row.values[PAPER_MEASURES[0]] for row in block.rows.values()):
            notes.append(f"{block.source.title} gave no values: it has no second batch, or every model failed.")
        failed = [row for row in block.rows.values() if row.failed]
        notes += [f"{row.model} failed on {block.source.title}: {row.failed}" for row in failed]
    return notes
