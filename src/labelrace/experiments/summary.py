"""Outcomes of a plan -> everything that tables, figures and the page say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelrace.experiments.cells import Block, Cell, count_verdicts, make_block
from labelrace.experiments.notes import make_notes
from labelrace.experiments.perform import Outcome
from labelrace.experiments.plan import BASELINES, HOLDOUT, SWEPT, TABLES, VARIANTS, sweep_label
from labelrace.experiments.ranking import RankTable, rank_tables
from labelrace.experiments.sources import BenchSource, SourceFacts, source_facts
from labelrace.measures import PAPER_MEASURES, measure_names

__all__ = ["HeatRow", "PaperSummary", "PaperTable", "Sweep", "make_summary"]

_SHAPES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "2": ("The four variants of RACE", VARIANTS, PAPER_MEASURES),
    "3": ("RACE and other online methods", ("race-cls-adaptive", "race-reg-fixed", *BASELINES), PAPER_MEASURES),
    "4": ("RACE and offline compression, on rows held out", HOLDOUT, ("example_accuracy", "hamming_loss")),
}
_REFERENCE = "race-cls-adaptive"


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's Tables 2 to 4.

    Parameters
    ----------
    number, title : str
    methods, measures : tuple of str
        The measures are those that the paper printed.
    blocks : list of Block
        One for each dataset; with the measures that it did not print, too.
    ranks : list of RankTable
    """

    number: str
    title: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    blocks: list[Block]
    ranks: list[RankTable]

    def cells(self, *, printed: bool = True) -> list[Cell]:
        """Return the cells of the printed measures, or those of the others."""
        return [
            cell for block in self.blocks for cell in block.cells.values() if (cell.measure in self.measures) == printed
        ]

    def verdicts(self, *, printed: bool = True) -> Counter[str]:
        """Count the verdicts of these cells against the paper."""
        return count_verdicts(cell.verdict for cell in self.cells(printed=printed))

    def rerun_verdicts(self) -> Counter[str]:
        """Count the verdicts against the rerun of the authors' program."""
        return count_verdicts(cell.rerun_verdict for cell in self.cells())


@dataclass(frozen=True)
class Sweep:
    """Measures of a method over the number of pseudo labels, on one dataset: means and deviations over runs."""

    source: BenchSource
    method: str
    counts: list[int]
    means: dict[str, list[float]]
    deviations: dict[str, list[float]]


@dataclass(frozen=True)
class HeatRow:
    """log10 of running times against `race-cls-adaptive`'s, by method: ours, or the paper's."""

    source: BenchSource
    whose: str
    ratios: dict[str, float | None]


@dataclass(frozen=True)
class PaperSummary:
    """All that came out of a benchmark. `settings` are those of the runs and the machine, as manifests have them."""

    settings: dict[str, Any]
    facts: list[SourceFacts]
    missing: list[str]
    tables: list[PaperTable]
    heat: list[HeatRow]
    sweeps: list[Sweep]
    notes: list[str]


def make_summary(
    outcomes: Sequence[Outcome], sources: Sequence[BenchSource], missing: Sequence[str], tables: Sequence[str]
) -> PaperSummary:
    """Put together what the parts of a plan gave.

    Parameters
    ----------
    outcomes : sequence of Outcome
    sources : sequence of BenchSource
        The datasets, in the order to show them.
    missing : sequence of str
        Names of the datasets that were not found.
    tables : sequence of str
        Those asked for.
    """
    facts = [source_facts(source) for source in sources]
    models = {(outcome.part.source, outcome.part.kind): outcome.models for outcome in outcomes}
    made = [_table(number, facts, models) for number in _SHAPES if number in tables]
    manifest = outcomes[0].manifest
    settings = {key: manifest[key] for key in ("runs", "seed", "version", "created", "machine")}
    heat = [row for fact in facts for row in _heat(fact, made)]
    sweeps = [sweep for fact in facts for sweep in _sweeps(fact.source, models)]
    return PaperSummary(settings, facts, list(missing), made, heat, sweeps, make_notes(facts, missing, outcomes))


def _table(
    number: str, facts: Sequence[SourceFacts], models: Mapping[tuple[BenchSource, str], Mapping[str, Any]]
) -> PaperTable:
    title, methods, printed = _SHAPES[number]
    # The paper's source has all measures of Tables 2 and 3.
    measures = printed if number == "4" else measure_names("all")
    blocks = []
    for fact in facts:
        found: dict[str, Any] = {}
        for kind in TABLES[number]:
            found |= models.get((fact.source, kind), {})
        blocks.append(make_block(number, fact.source, methods, measures, found, comparable=fact.same))
    compared = [block for block, fact in zip(blocks, facts, strict=True) if fact.same]
    ranks = [] if number == "4" else rank_tables(number, methods, printed, compared)
    return PaperTable(number, title, methods, printed, blocks, ranks)


def _heat(fact: SourceFacts, tables: Sequence[PaperTable]) -> list[HeatRow]:
    blocks = [block for table in tables if table.number != "4" for block in table.blocks if block.source == fact.source]
    if not blocks:
        return []
    ours: dict[str, float | None] = {}
    theirs: dict[str, float | None] = {}
    for block in blocks:
        ours |= block.seconds
        theirs |= block.paper_seconds
    rows = [HeatRow(fact.source, "ours", _ratios(ours))]
    return [*rows, HeatRow(fact.source, "the paper's", _ratios(theirs))] if fact.same else rows


def _ratios(seconds: Mapping[str, float | None]) -> dict[str, float | None]:
    base = seconds.get(_REFERENCE)
    return {name: math.log10(time / base) if time and base else None for name, time in seconds.items()}


def _sweeps(source: BenchSource, models: Mapping[tuple[BenchSource, str], Mapping[str, Any]]) -> list[Sweep]:
    found = models.get((source, "sweep"), {})
    sweeps = []
    for method in SWEPT:
        done = [name for name in found if name.startswith(sweep_label(method, 0)[:-1]) and found[name]["ranked"]]
        cells = {measure: [found[name]["measures"][measure] for name in done] for measure in PAPER_MEASURES}
        if done:
            sweeps.append(
                Sweep(
                    source,
                    method,
                    [int(found[name]["parameters"]["n_components"]) for name in done],
                    {measure: [_number(cell["mean"]) for cell in cells[measure]] for measure in PAPER_MEASURES},
                    {measure: [cell["sd"] or 0.0 for cell in cells[measure]] for measure in PAPER_MEASURES},
                )
            )
    return sweeps


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
