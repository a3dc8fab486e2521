"""The paper's experiments: what is run for which of its tables, and the results beside the paper's."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from labelrace.evaluation import ModelSpec
from labelrace.experiments.datasets import Source, counted, find_paper_datasets
from labelrace.experiments.plan import OnProgress, Part, possible, run_plan, within
from labelrace.experiments.published import (
    Estimate,
    Facts,
    Reference,
    Verdict,
    judge,
    paper_datasets,
    printed_ranks,
    published,
    rerun,
)
from labelrace.experiments.ranking import OVERALL, RankTable, average_ranks, worst
from labelrace.measures import PAPER_MEASURES, measure_names
from labelrace.models.registry import model_group, model_names
from labelrace.report import Summary, summarize
from labelrace.report.text import listing, plural

VARIANTS = ("race-cls-fixed", "race-cls-adaptive", "race-reg-fixed", "race-reg-adaptive")
BASELINES = ("majority", "negative", "obr", "oecc")
# PLST as the paper had it, from MEKA.
HOLDOUT = ("race-cls-adaptive", "race-cls-adaptive-iter3", "race-offline", "plst-meka")
RELATED = tuple(name for name in model_names(online=True) if model_group(name) in ("online", "compression"))
SWEPT = ("race-cls-adaptive", "race-reg-fixed")
# The method that times are compared with.
_REFERENCE = "race-cls-adaptive"
# The paper ranks what it prints.
_PRINTED_DIGITS = 2


class _Layout(NamedTuple):
    """What must be run for a table, its title, methods and measures."""

    kinds: tuple[str, ...]
    title: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]


TABLES = {
    "2": _Layout(("variants",), "The four variants of RACE", VARIANTS, PAPER_MEASURES),
    "3": _Layout(
        ("variants", "baselines"),
        "RACE and other online methods",
        ("race-cls-adaptive", "race-reg-fixed", *BASELINES),
        PAPER_MEASURES,
    ),
    "4": _Layout(
        ("holdout",),
        "RACE and offline compression, on rows held out",
        HOLDOUT,
        ("example_accuracy", "hamming_loss"),
    ),
    "related": _Layout(
        ("variants", "baselines", "related"),
        "The related work on the paper's data",
        ("race", "race-cls-adaptive", "race-reg-fixed", "obr", *RELATED, "majority"),
        PAPER_MEASURES,
    ),
    "sweep": _Layout(("sweep",), "The number of pseudo labels", SWEPT, PAPER_MEASURES),
}
_SWEEP_DATASETS = ("CAL500", "enron")
_METHODS = {"variants": VARIANTS, "baselines": BASELINES, "holdout": HOLDOUT, "related": ("race", *RELATED)}
# In Table 4 rows are held out; everywhere else each batch is tested, then learned. All measures are taken where the
# paper's source has all, else those that it prints.
_OPTIONS: dict[str, dict[str, Any]] = {
    "variants": {"measures": "all"},
    "baselines": {"measures": "all"},
    "holdout": {"measures": "paper", "protocol": "holdout"},
    "sweep": {"measures": "paper"},
    "related": {"measures": "paper"},
}
# The related work runs at most this often, and what takes it beyond this many seconds is left out.
_RELATED_RUNS, _RELATED_SECONDS = 3, 1200.0


class Outcome(NamedTuple):
    """The summary of one part of the plan: some models on a dataset."""

    source: Source
    kind: str
    summary: Summary


@dataclass(frozen=True)
class Cell:
    """One method, dataset and measure of a table: ours, the paper's, and that of the authors' program run again."""

    table: str
    source: Source
    method: str
    measure: str
    printed: bool  # whether the paper prints it; otherwise only its source has it
    ours: Estimate | None  # None if no run finished
    rank: int | None  # of ours among the methods of the table
    paper: Reference | None  # None if there is none, or if the data is not the paper's
    rerun: Reference | None

    @property
    def verdict(self) -> Verdict | None:
        """How ours compares with the paper's."""
        return judge(self.ours, self.paper) if self.ours and self.paper else None

    @property
    def rerun_verdict(self) -> Verdict | None:
        """How ours compares with the rerun of the authors' program."""
        return judge(self.ours, self.rerun) if self.ours and self.rerun else None


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's Tables 2 to 4, or that of the related work.

    Cells are by dataset, method and measure. `measures` are those that the paper prints; Tables 2 and 3 have cells of
    the others, too. `seconds` are by dataset and method: ours and the paper's.
    """

    number: str
    title: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    cells: dict[tuple[Source, str, str], Cell]
    seconds: dict[tuple[Source, str], tuple[float | None, float | None]]
    ranks: list[RankTable]

    @property
    def name(self) -> str:
        """What to call the table."""
        return f"Table {self.number}" if self.number.isdigit() else self.title

    def average_rank(self, source: Source, method: str) -> float | None:
        """Return a method's mean rank over the printed measures, as in the paper's last column but one."""
        ranks = [self.cells[source, method, measure].rank for measure in self.measures]
        return float(np.mean([place for place in ranks if place is not None])) if all(ranks) else None


@dataclass(frozen=True)
class Sweep:
    """Measures of a method over the number of pseudo labels, on one dataset: means and deviations over runs."""

    source: Source
    method: str
    counts: list[int]
    means: dict[str, list[float | None]]
    deviations: dict[str, list[float]]


@dataclass(frozen=True)
class PaperSummary:
    """Everything that came out of the paper's experiments."""

    manifest: dict[str, Any]  # of the first part: runs, seed, version, time and machine are those of all
    facts: dict[Source, Facts]  # what was counted in each source
    missing: list[str]  # the paper's datasets that were not found
    tables: list[PaperTable]
    sweeps: list[Sweep]
    notes: list[str]  # what a reader must know before relying on the comparison

    def is_papers(self, source: Source) -> bool:
        """Tell whether a source can be the paper's dataset: it has as many rows, features and labels."""
        return _is_papers(source, self.facts[source])

    def time_ratios(self) -> list[tuple[Source, str, dict[str, float | None]]]:
        """Return log10 of running times against those of race-cls-adaptive: ours, and the paper's on its datasets."""
        rows = []
        for source in self.facts:
            seconds = {
                m: pair for t in self.tables if t.number in "23" for (s, m), pair in t.seconds.items() if s == source
            }
            if seconds:
                rows.append((source, "ours", _log_ratios({method: ours for method, (ours, _) in seconds.items()})))
            if seconds and self.is_papers(source):
                rows.append((source, "the paper's", _log_ratios({m: theirs for m, (_, theirs) in seconds.items()})))
        return rows


def compare(
    outcomes: Sequence[Outcome], facts: Mapping[Source, Facts], missing: Sequence[str], tables: Sequence[str]
) -> PaperSummary:
    """Compare the results of the parts of a plan with what the paper printed, in the tables asked for.

    `facts` are what was counted in each source, in the order to show them; `missing` the datasets that were not found.
    """
    models = {
        (outcome.source, outcome.kind): {model["name"]: model for model in outcome.summary["models"]}
        for outcome in outcomes
    }
    return PaperSummary(
        outcomes[0].summary["manifest"],
        dict(facts),
        list(missing),
        [_table(number, facts, models) for number in TABLES if number in tables and number != "sweep"],
        [sweep for source in facts for sweep in _sweeps(source, models.get((source, "sweep"), {}))],
        _notes(facts, missing, outcomes),
    )


def estimate(model: Mapping[str, Any] | None, measure: str) -> Estimate | None:
    """Return a model's mean over finished runs; runs that broke off are no means of the whole stream."""
    if model is None or not model["ranked"]:
        return None
    cell = model["measures"][measure]
    return None if cell["mean"] is None else Estimate(cell["mean"], cell["sd"], cell["runs"])


_Models: TypeAlias = Mapping[tuple[Source, str], Mapping[str, Mapping[str, Any]]]


def _table(number: str, facts: Mapping[Source, Facts], models: _Models) -> PaperTable:
    cells, seconds = {}, {}
    for source, sizes in facts.items():
        found = {name: one for kind in TABLES[number].kinds for name, one in models.get((source, kind), {}).items()}
        comparable = _is_papers(source, sizes)
        for cell in _cells(number, source, found, comparable):
            cells[source, cell.method, cell.measure] = cell
        for method in TABLES[number].methods:
            model = found.get(method)
            ours = model["seconds"]["total"] if model and model["ranked"] else None
            printed = published().get((number, source.name, method, "running_time")) if comparable else None
            seconds[source, method] = (ours, printed.value if printed else None)
    ranks = []
    if number in "23":
        ranks = _paper_ranks(number, cells, [source for source in facts if _is_papers(source, facts[source])])
    elif number == "related":
        # The methods that ran on all datasets are ranked, by values that are not rounded.
        sources, (_, _, methods, measures) = [source for source in facts if not source.synthetic], TABLES[number]
        ran = [method for method in methods if all(cells[source, method, measures[0]].ours for source in sources)]
        if sources and ran:
            ranks = [average_ranks("ours", [s.name for s in sources], ran, measures, _ours(cells, sources))]
    return PaperTable(number, *TABLES[number][1:], cells, seconds, ranks)


def _is_papers(source: Source, facts: Facts) -> bool:
    return not source.synthetic and facts[:3] == paper_datasets()[source.name][0][:3]


def _cells(number: str, source: Source, models: Mapping[str, Any], comparable: bool) -> Iterator[Cell]:
    """Put ours beside the paper's, for one dataset of one table; nothing is compared if it is not comparable."""
    methods = TABLES[number].methods
    # The paper's source has all measures of Tables 2 and 3.
    measures = measure_names("all") if number in "23" else TABLES[number].measures
    ours = {(method, measure): estimate(models.get(method), measure) for measure in measures for method in methods}
    places = average_ranks(
        "", [source.name], methods, measures, lambda _, *key: _mean(ours[key], key[1]), "min", _PRINTED_DIGITS
    ).averages
    for (method, measure), value in ours.items():
        place = None if value is None else int(places[method, measure])
        paper = published().get((number, source.name, method, measure)) if comparable else None
        again = rerun().get((source.name, method, measure)) if comparable and number in "23" else None
        printed = measure in TABLES[number].measures
        yield Cell(number, source, method, measure, printed, value, place, paper, again)


def _mean(value: Estimate | None, measure: str) -> float:
    """Return the mean to rank by; a method without a finished run ranks after the others."""
    return worst(measure) if value is None else value.mean


def _paper_ranks(number: str, cells: Mapping[Any, Cell], sources: Sequence[Source]) -> list[RankTable]:
    """Return ours, the paper's on the same datasets, the paper's on all of its own, and what it printed of these.

    Values are ranked as the paper does: rounded to the digits that it prints, ties share the better rank.
    """
    methods, measures = TABLES[number].methods, TABLES[number].measures

    def theirs(dataset: str, method: str, measure: str) -> float:
        return published()[number, dataset, method, measure].value

    everything, found = tuple(paper_datasets()), {source.name for source in sources}
    same = tuple(name for name in everything if name in found)
    wanted = [("ours", same, _ours(cells, sources))] if same else []
    if same and same != everything:
        wanted.append(("the paper's, on the same datasets", same, theirs))
    wanted.append(("the paper's, recomputed from its cells", everything, theirs))
    tables = [
        average_ranks(title, datasets, methods, measures, value, "min", _PRINTED_DIGITS)
        for title, datasets, value in wanted
    ]
    printed = {(m, k): printed_ranks()[number, m, k] for m in methods for k in (*measures, OVERALL)}
    return [*tables, RankTable("the paper's, as printed", everything, printed)]


def _ours(cells: Mapping[Any, Cell], sources: Sequence[Source]) -> Callable[[str, str, str], float]:
    """Return a function of our means to rank by, by the name of the dataset, method and measure."""
    found = {source.name: source for source in sources}
    return lambda dataset, method, measure: _mean(cells[found[dataset], method, measure].ours, measure)


def _log_ratios(seconds: Mapping[str, float | None]) -> dict[str, float | None]:
    base = seconds.get(_REFERENCE)
    return {name: math.log10(time / base) if time and base else None for name, time in seconds.items()}


def _sweeps(source: Source, models: Mapping[str, Mapping[str, Any]]) -> list[Sweep]:
    sweeps = []
    for method in SWEPT:
        done = {
            int(model["parameters"]["n_components"]): model
            for name, model in models.items()
            if name.startswith(f"{method} k=") and model["ranked"]
        }
        if done:
            # A summary has the best models first; a line goes from few pseudo labels to many.
            counts = sorted(done)
            cells = {measure: [done[count]["measures"][measure] for count in counts] for measure in PAPER_MEASURES}
            means = {measure: [cell["mean"] for cell in line] for measure, line in cells.items()}
            deviations = {measure: [cell["sd"] or 0.0 for cell in line] for measure, line in cells.items()}
            sweeps.append(Sweep(source, method, counts, means, deviations))
    return sweeps


def _notes(facts: Mapping[Source, Facts], missing: Sequence[str], outcomes: Iterable[Outcome]) -> list[str]:
    """Return what is missing, what is not the paper's data, and what failed, in sentences."""
    notes = []
    if missing:
        notes.append(f"Not available, and so not compared: {listing(missing)}.")
    if made := [source.name for source in facts if source.synthetic]:
        notes.append(
            f"Synthetic streams of the same shape are shown for {listing(made)}. They are marked, and none of their "
            "values is compared with the paper."
        )
    for source, here in facts.items():
        if not source.synthetic and not _is_papers(source, here):
            sizes = (here, paper_datasets()[source.name][0])
            found, wanted = (f"{size.rows} × {size.features}, {size.labels} labels" for size in sizes)
            notes.append(
                f"The {source.name} found here is not the paper's ({found}; the paper's is {wanted}): its results are "
                "shown, but not compared."
            )
    for outcome in outcomes:
        failures = outcome.summary["failures"]
        for model in dict.fromkeys(failure["model"] for failure in failures):
            errors = [failure["error"] for failure in failures if failure["model"] == model]
            notes.append(f"{model} failed on {outcome.source.title}, in {plural(len(errors), 'run')}: {errors[0]}")
    return notes


def run_paper(
    out: str | os.PathLike[str],
    *,
    data: Iterable[str | os.PathLike[str]] = (),
    tables: Iterable[str] = tuple(TABLES),
    runs: int = 10,
    seed: int = 0,
    jobs: int | None = None,
    resume: bool = False,
    everything: bool = False,
    synthetic: bool = False,
    synthetic_rows: int | None = None,
    on_progress: OnProgress | None = None,
) -> PaperSummary:
    """Run the paper's experiments on those of its datasets that are available.

    Parameters
    ----------
    out : path
        The folder for the records of all runs.
    data : iterable of paths, default=()
        Folders to look for datasets in, before those of ``$LABELRACE_DATA`` and the cache.
    tables : iterable of str, default=("2", "3", "4", "related", "sweep")
        "related" are the methods that the paper names and does not run; "sweep" is its figure of the number of pseudo
        labels.
    runs, seed, jobs, resume
        As `labelrace.evaluation.run` takes them; the related work has at most 3 runs.
    everything : bool, default=False
        Whether to run also what of the related work takes long; otherwise the notes tell what it would take.
    synthetic : bool, default=False
        Whether to run on a synthetic stream of the same shape for each dataset that is not available. Its results are
        called synthetic, and are not compared with the paper's.
    synthetic_rows : int or None, default=None
        Rows of each such stream; None for as many as the dataset has.
    on_progress : callable, default=None
        Called with a `Step` whenever a run starts, has tested a batch, or ends.

    Raises
    ------
    FileNotFoundError
        If none of the datasets is available.
    FileExistsError, ValueError
        If the folder holds runs already and they are not to be resumed, or are others.
    """
    asked = check_tables(tables)
    found = find_paper_datasets(map(Path, data), synthetic=synthetic, synthetic_rows=synthetic_rows)
    if not found.sources:
        raise FileNotFoundError(
            f"none of the paper's datasets is available ({', '.join(found.missing)}): see `labelrace data list`, give "
            "their folder by --data or LABELRACE_DATA, or run on synthetic ones by --synthetic"
        )
    if not make_plan(found.sources, asked):
        raise FileNotFoundError("the sweep is on CAL500 and enron, and neither is available")
    sources = [counted(source) for source in found.sources]
    plan, notes = possible(make_plan(sources, asked))
    if not everything:
        kept, slow = within(
            [part for part in plan if part.kind == "related"], min(runs, _RELATED_RUNS), _RELATED_SECONDS
        )
        plan, notes = [*(part for part in plan if part.kind != "related"), *kept], [*notes, *slow]
    outcomes = [
        Outcome(part.source, part.kind, summarize(manifest, records))
        for part, manifest, records in run_plan(plan, out, on_progress, runs=runs, seed=seed, jobs=jobs, resume=resume)
    ]
    summary = compare(outcomes, {source: source.facts for source in sources if source.facts}, found.missing, asked)
    return replace(summary, notes=[*summary.notes, *notes])


def check_tables(texts: Iterable[str]) -> list[str]:
    """Return the tables asked for, in the paper's order; raise ValueError for one that does not exist.

    Examples
    --------
    >>> check_tables(["sweep", "2"])
    ['2', 'sweep']
    """
    asked = list(texts)
    for text in asked:
        if text not in TABLES:
            raise ValueError(f"tables must be some of {', '.join(TABLES)}, got {text!r}")
    return [table for table in TABLES if table in asked]


def make_plan(sources: Sequence[Source], tables: Iterable[str]) -> list[Part]:
    """List what must be run for these tables on these datasets, small datasets first."""
    kinds = {kind for table in check_tables(tables) for kind in TABLES[table].kinds}
    parts = []
    for source in sorted(sources, key=lambda source: paper_datasets()[source.name][0].rows):
        models = {kind: [ModelSpec(name) for name in methods] for kind, methods in _METHODS.items()}
        if source.name in _SWEEP_DATASETS:
            models["sweep"] = _sweep(paper_datasets()[source.name][0].labels)
        limits = {"related": _RELATED_RUNS}
        parts += [
            Part(source, tuple(models[kind]), _OPTIONS[kind], kind, limits.get(kind))
            for kind in models
            if kind in kinds
        ]
    return parts


def _sweep(n_labels: int) -> list[ModelSpec]:
    """List the methods of the sweep with k, 2k, … k² pseudo labels, k being the usual number of them."""
    least = math.ceil(math.log2(n_labels))
    counts = range(least, least**2 + 1, least)
    return [ModelSpec(name, {"n_components": k}, f"{name} k={k}") for name in SWEPT for k in counts]
