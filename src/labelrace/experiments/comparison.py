"""What the runs gave beside what the paper printed: cells with verdicts, ranks, times, and the sweep."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from labelrace.evaluation import is_loss, rank
from labelrace.experiments.datasets import Source
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
from labelrace.experiments.ranking import OVERALL, RankTable, average_ranks
from labelrace.measures import PAPER_MEASURES, measure_names
from labelrace.models.registry import model_group, model_names
from labelrace.report import Summary
from labelrace.report.text import listing, plural
from labelrace.typing import FloatArray

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


class _Shape(NamedTuple):
    """A table: what must be run for it, its title, methods and measures."""

    kinds: tuple[str, ...]
    title: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]


TABLES = {
    "2": _Shape(("variants",), "The four variants of RACE", VARIANTS, PAPER_MEASURES),
    "3": _Shape(
        ("variants", "baselines"),
        "RACE and other online methods",
        ("race-cls-adaptive", "race-reg-fixed", *BASELINES),
        PAPER_MEASURES,
    ),
    "4": _Shape(
        ("holdout",),
        "RACE and offline compression, on rows held out",
        HOLDOUT,
        ("example_accuracy", "hamming_loss"),
    ),
    "related": _Shape(
        ("variants", "baselines", "related"),
        "The related work on the paper's data",
        ("race", "race-cls-adaptive", "race-reg-fixed", "obr", *RELATED, "majority"),
        PAPER_MEASURES,
    ),
    "sweep": _Shape(("sweep",), "The number of pseudo labels", SWEPT, PAPER_MEASURES),
}


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
class Block:
    """One dataset of a table: cells by method and measure, and seconds by method, ours and the paper's."""

    source: Source
    cells: dict[tuple[str, str], Cell]
    seconds: dict[str, float | None]
    paper_seconds: dict[str, float | None]

    def average_rank(self, method: str, measures: Sequence[str]) -> float | None:
        """Return a method's mean rank over measures, as in the paper's last column but one."""
        ranks = [self.cells[method, measure].rank for measure in measures]
        return float(np.mean([place for place in ranks if place is not None])) if all(ranks) else None


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's Tables 2 to 4, or that of the related work.

    `measures` are those printed; the blocks of Tables 2 and 3 have the others, too.
    """

    number: str
    title: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    blocks: list[Block]
    ranks: list[RankTable]

    @property
    def name(self) -> str:
        """What to call the table."""
        return f"Table {self.number}" if self.number.isdigit() else self.title

    def cells(self, *, printed: bool = True) -> list[Cell]:
        """Return the cells of the printed measures, or those of the others."""
        return [
            cell for block in self.blocks for cell in block.cells.values() if (cell.measure in self.measures) == printed
        ]

    def verdicts(self, *, printed: bool = True) -> Counter[str]:
        """Count how many of these cells agree with the paper and for what reason, and how many differ."""
        return _count(cell.verdict for cell in self.cells(printed=printed))

    def rerun_verdicts(self) -> Counter[str]:
        """Count the same against the rerun of the authors' program."""
        return _count(cell.rerun_verdict for cell in self.cells())


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
    notes: list[str]  # what a reader must know before believing the comparison

    def is_papers(self, source: Source) -> bool:
        """Tell whether a source can be the paper's dataset: it has as many rows, features and labels."""
        return _is_papers(source, self.facts[source])

    def time_ratios(self) -> list[tuple[Source, str, dict[str, float | None]]]:
        """Return log10 of running times against those of race-cls-adaptive: ours, and the paper's on its datasets."""
        rows = []
        for source in self.facts:
            blocks = [b for table in self.tables if table.number in "23" for b in table.blocks if b.source == source]
            ours = {method: seconds for block in blocks for method, seconds in block.seconds.items()}
            theirs = {method: seconds for block in blocks for method, seconds in block.paper_seconds.items()}
            rows += [(source, "ours", _log_ratios(ours))] if blocks else []
            rows += [(source, "the paper's", _log_ratios(theirs))] if blocks and self.is_papers(source) else []
        return rows


def compare(
    outcomes: Sequence[Outcome], facts: Mapping[Source, Facts], missing: Sequence[str], tables: Sequence[str]
) -> PaperSummary:
    """Put what the parts of a plan gave beside what the paper printed, in the tables asked for.

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
# The value of a dataset, method and measure.
_Values: TypeAlias = Callable[[str, str, str], float]


def _table(number: str, facts: Mapping[Source, Facts], models: _Models) -> PaperTable:
    shape = TABLES[number]
    blocks = []
    for source, counted in facts.items():
        found = {name: model for kind in shape.kinds for name, model in models.get((source, kind), {}).items()}
        blocks.append(_block(number, source, found, comparable=_is_papers(source, counted)))
    compared = [block for block in blocks if _is_papers(block.source, facts[block.source])]
    ranks = _rank_tables(number, compared) if number in "23" else []
    if number == "related":
        ranks = _our_ranks([block for block in blocks if not block.source.synthetic])
    return PaperTable(number, shape.title, shape.methods, shape.measures, blocks, ranks)


def _is_papers(source: Source, facts: Facts) -> bool:
    return not source.synthetic and facts[:3] == paper_datasets()[source.name][0][:3]


def _block(number: str, source: Source, models: Mapping[str, Mapping[str, Any]], *, comparable: bool) -> Block:
    """Put ours beside the paper's, for one dataset of one table; nothing is compared if it is not comparable."""
    methods = TABLES[number].methods
    # The paper's source has all measures of Tables 2 and 3.
    measures = measure_names("all") if number in "23" else TABLES[number].measures
    cells = {}
    for measure in measures:
        ours = [estimate(models.get(method), measure) for method in methods]
        values = [np.nan if value is None else value.mean for value in ours]
        for method, value, place in zip(methods, ours, _ranks(values, measure), strict=True):
            paper = published().get((number, source.name, method, measure)) if comparable else None
            again = rerun().get((source.name, method, measure)) if comparable and number in "23" else None
            order = None if value is None else int(place)
            cells[method, measure] = Cell(number, source, method, measure, value, order, paper, again)
    seconds, paper_seconds = {}, {}
    for method in methods:
        model = models.get(method)
        seconds[method] = model["seconds"]["total"] if model and model["ranked"] else None
        printed = published().get((number, source.name, method, "running_time")) if comparable else None
        paper_seconds[method] = printed.value if printed else None
    return Block(source, cells, seconds, paper_seconds)


def _rank_tables(number: str, blocks: Sequence[Block]) -> list[RankTable]:
    """Return ours, the paper's on the same datasets, the paper's on all of its own, and what it printed of these."""
    methods, measures = TABLES[number].methods, TABLES[number].measures
    found = {block.source.name: block for block in blocks}

    def ours(dataset: str, method: str, measure: str) -> float:
        value = found[dataset].cells[method, measure].ours
        return np.nan if value is None else value.mean

    def theirs(dataset: str, method: str, measure: str) -> float:
        return published()[number, dataset, method, measure].value

    everything = tuple(paper_datasets())
    same = tuple(name for name in everything if name in found)
    wanted: list[tuple[str, _Values, tuple[str, ...]]] = []
    if same:
        wanted.append(("ours", ours, same))
    if same and same != everything:
        wanted.append(("the paper's, on the same datasets", theirs, same))
    wanted.append(("the paper's, recomputed from its cells", theirs, everything))
    tables = []
    for title, value, datasets in wanted:
        ranks = [[_ranks([value(d, m, k) for m in methods], k) for k in measures] for d in datasets]
        tables.append(average_ranks(title, datasets, np.array(ranks), methods, measures))
    printed = {(m, k): printed_ranks()[number, m, k] for m in methods for k in (*measures, OVERALL)}
    return [*tables, RankTable("the paper's, as printed", everything, printed)]


def _our_ranks(blocks: Sequence[Block]) -> list[RankTable]:
    """Rank the methods of the related work that ran on all datasets, by values that are not rounded."""
    measures, titles = TABLES["related"].measures, [block.source.name for block in blocks]

    def value(block: Block, method: str, measure: str) -> float:
        ours = block.cells[method, measure].ours
        return np.nan if ours is None else ours.mean

    methods = [m for m in TABLES["related"].methods if not any(np.isnan(value(b, m, measures[0])) for b in blocks)]
    if not blocks or not methods:
        return []
    ranks = [
        [rank([value(b, m, k) for m in methods], lower_is_better=is_loss(k), ties="average") for k in measures]
        for b in blocks
    ]
    return [average_ranks("ours", titles, np.array(ranks), methods, measures)]


def _ranks(values: Sequence[float], measure: str) -> FloatArray:
    """Rank values as the paper does: rounded to the digits that it prints, ties share the better rank."""
    return rank(values, lower_is_better=is_loss(measure), digits=_PRINTED_DIGITS)


def _count(verdicts: Iterable[Verdict | None]) -> Counter[str]:
    return Counter(verdict.reason for verdict in verdicts if verdict is not None)


def _log_ratios(seconds: Mapping[str, float | None]) -> dict[str, float | None]:
    base = seconds.get(_REFERENCE)
    return {name: math.log10(time / base) if time and base else None for name, time in seconds.items()}


def _sweeps(source: Source, models: Mapping[str, Mapping[str, Any]]) -> list[Sweep]:
    sweeps = []
    for method in SWEPT:
        done = [model for name, model in models.items() if name.startswith(f"{method} k=") and model["ranked"]]
        if done:
            cells = {measure: [model["measures"][measure] for model in done] for measure in PAPER_MEASURES}
            counts = [int(model["parameters"]["n_components"]) for model in done]
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
    for source, counted in facts.items():
        if not source.synthetic and not _is_papers(source, counted):
            sizes = (counted, paper_datasets()[source.name][0])
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
