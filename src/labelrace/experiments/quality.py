"""How good, how calibrated and how fast the online models are, on every dataset that is available."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from labelrace.base.registry import is_online, model_names
from labelrace.evaluation import ModelSpec, as_reliability, prequential
from labelrace.experiments.baselines import BASELINES, JUDGE, available, best_in_hindsight, settings, spec_of
from labelrace.experiments.datasets import Source, drifting_streams, find_datasets
from labelrace.experiments.paper import over_runs
from labelrace.experiments.plan import OnProgress, Part, Record, possible, run_plan, within
from labelrace.experiments.ranking import CALIBRATION, OVERALL, RankTable, average_ranks
from labelrace.experiments.speed import traced_memory
from labelrace.measures import PAPER_MEASURES
from labelrace.measures.calibration import Reliability, merge
from labelrace.race.classifier import RACEClassifier
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
class QualitySummary:
    """What is known so far. `manifest` is that of the last dataset: runs, seed and machine are those of all.

    ``records`` are what CSV files have and tables and charts are made of: ``quality``, one for each dataset and model,
    the reference last, with means over finished runs; ``ranks``; and ``reliability``, the bins of probability.
    """

    manifest: Record
    models: tuple[str, ...]  # those that are ranked
    records: dict[str, list[Record]]
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
    blocks: list[_Block] = []
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


class _Block(NamedTuple):
    """One dataset: its records by model, the reference last; its bins; the settings that were best in hindsight."""

    source: Source
    rows: dict[str, Record]
    bins: list[Record]
    chosen: list[str]


def _read_block(part: Part, manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> _Block:
    """Read the records of all models on a dataset, and rank the models."""
    source = part.source
    runs = group_records(manifest, records)
    described = {model["name"]: model for model in summarize(manifest, records)["models"]}
    judged = {name: over_runs(model, JUDGE)["mean"] for name, model in described.items() if name != REFERENCE}
    shown = best_in_hindsight(judged)
    memory = _memory(part)
    rows: dict[str, Record] = {}
    bins: list[Record] = []
    for model, label in (shown | {REFERENCE: REFERENCE}).items():
        known = [as_reliability(run.calibration) for run in runs[label].values() if run.done and run.calibration]
        rows[model] = {
            **_about(source),
            "model": model,
            "reference": model == REFERENCE,
            **_measures(described[label], known),
            **_times(described[label], runs[label], runs[REFERENCE]),
            "memory": memory.get(label),
            **_windows(source, runs[label]),
            "error": next((run.failed["error"] for run in runs[label].values() if run.failed), None),
        }
        bins += _bins(source, model, reduce(merge, known)) if known else []
    for (model, measure), place in _ranks("", [source.name], list(shown), rows.values()).averages.items():
        if measure != OVERALL:
            rows[model][f"{measure}_rank"] = place
    chosen = [label for model, label in shown.items() if label != model and judged[label] is not None]
    return _Block(source, rows, bins, chosen)


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


def _about(source: Source) -> Record:
    sizes = {key: getattr(source.facts, key) for key in ("rows", "features", "labels", "cardinality")}
    named = {"dataset": source.name, "synthetic": source.synthetic, "drift": source.drift}
    return named | sizes | {"batch_size": source.batch_size}


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


def _windows(source: Source, runs: Mapping[int, Run]) -> Record:
    """Return the mean example F1 of the batches just before the drift of a synthetic stream, and just after it."""
    batches = [batch for run in runs.values() if run.done for batch in run.tested.values()]
    means = []
    for low, high in source.windows or ((np.inf, 0), (np.inf, 0)):
        values = [value_of(b, "example_f1") for b in batches if b["start"] >= low and b["end"] <= high]
        means.append(float(np.mean(values)) if values else None)
    return {"example_f1_before": means[0], "example_f1_after": means[1]}


def _bins(source: Source, model: str, found: Reliability) -> Iterator[Record]:
    parts = (found.edges[:-1], found.edges[1:], found.entries, found.mean_probability, found.share_present)
    names = ("low", "high", "entries", "mean_probability", "share_present")
    for values in zip(*(part.tolist() for part in parts), strict=True):
        # Empty bins have neither a mean nor a share.
        plain = [None if value != value else value for value in values]
        about = {"dataset": source.name, "synthetic": source.synthetic, "model": model}
        yield about | dict(zip(names, plain, strict=True))


def _summarize(
    blocks: Sequence[_Block], manifest: Mapping[str, Any], notes: Sequence[str], missing: Sequence[str], planned: int
) -> QualitySummary:
    """Put together what is known after some of the planned datasets and streams."""
    values = [row for block in blocks for row in block.rows.values()]
    models = tuple(dict.fromkeys(row["model"] for row in values if not row["reference"]))
    groups: list[tuple[str, list[_Block], Sequence[str]]] = []
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
        _ranks(title, [block.source.name for block in of], ranked, values)
        for title, of, ranked in groups
        if of and len(ranked) > 1
    ]
    averages = [
        {"over": of.title, "datasets": "; ".join(of.datasets), "model": m, "measure": k, "average_rank": value}
        for of in ranks
        for (m, k), value in of.averages.items()
    ]
    bins = [record for block in blocks for record in block.bins]
    found = {"quality": values, "ranks": averages, "reliability": bins}
    told = _notes(blocks, notes, missing, planned)
    return QualitySummary(dict(manifest), models, found, ranks, told, len(blocks) == planned)


def _ranks(title: str, datasets: Sequence[str], models: Sequence[str], rows: Iterable[Record]) -> RankTable:
    """Rank models on datasets; a model that failed ranks after the others."""
    values = {}
    for row, measure in product(rows, MEASURES):
        # What gives no probabilities has no calibration error, and is not ranked by it.
        is_missing = row[measure] is None and not row["error"]
        values[row["dataset"], row["model"], measure] = np.nan if is_missing else row[measure]
    return average_ranks(title, datasets, models, MEASURES, values)


def _notes(blocks: Sequence[_Block], found: Sequence[str], missing: Sequence[str], planned: int) -> list[str]:
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
            notes.append(f"Best in hindsight on {block.source.title}: {'; '.join(block.chosen)}.")
        if all(row[MEASURES[0]] is None for row in block.rows.values()):
            notes.append(f"{block.source.title} gave no values: it has no second batch, or every model failed.")
        failed = [row for row in block.rows.values() if row["error"]]
        notes += [f"{row['model']} failed on {block.source.title}: {row['error']}" for row in failed]
    return notes
