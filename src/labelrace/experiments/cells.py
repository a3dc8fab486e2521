"""The cells of a table: ours beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelrace.evaluation import is_loss, rank
from labelrace.experiments.published import Reference, published, rerun
from labelrace.experiments.sources import BenchSource
from labelrace.experiments.verdict import Estimate, Verdict, judge

__all__ = ["Block", "Cell", "count_verdicts", "make_block"]

# The paper ranks what it prints.
_PRINTED_DIGITS = 2


@dataclass(frozen=True)
class Cell:
    """One method, dataset and measure of a table.

    Parameters
    ----------
    table, method, measure : str
    source : BenchSource
    ours : Estimate or None
        None where no run finished.
    rank : int or None
        Of ours among the methods of the table.
    paper, rerun : Reference or None
        None where there is none, or where the data is not the paper's.
    """

    table: str
    source: BenchSource
    method: str
    measure: str
    ours: Estimate | None
    rank: int | None
    paper: Reference | None
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
    """One dataset of a table.

    Parameters
    ----------
    source : BenchSource
    cells : dict
        By method and measure.
    seconds, paper_seconds : dict
        Running time of each method, ours and the paper's; None where there is none.
    """

    source: BenchSource
    cells: dict[tuple[str, str], Cell]
    seconds: dict[str, float | None]
    paper_seconds: dict[str, float | None]

    def average_rank(self, method: str, measures: Sequence[str]) -> float | None:
        """Return a method's mean rank over measures, as in the paper's last column but one."""
        ranks = [self.cells[method, measure].rank for measure in measures]
        return float(np.mean([place for place in ranks if place is not None])) if all(ranks) else None


def make_block(
    table: str,
    source: BenchSource,
    methods: Sequence[str],
    measures: Sequence[str],
    models: Mapping[str, Mapping[str, Any]],
    *,
    comparable: bool,
) -> Block:
    """Put ours beside the paper's, for one dataset of one table.

    Parameters
    ----------
    table : {"2", "3", "4"}
    source : BenchSource
    methods, measures : sequence of str
    models : mapping
        What `labelrace.report.summarize` says of each method.
    comparable : bool
        Whether the data is the paper's. If not, nothing is compared.
    """
    cells = {}
    for measure in measures:
        ours = [_estimate(models.get(method), measure) for method in methods]
        for method, estimate, place in zip(methods, ours, _ranks(ours, measure), strict=True):
            paper = published().get((table, source.name, method, measure)) if comparable else None
            again = rerun().get((source.name, method, measure)) if comparable and table != "4" else None
            cells[method, measure] = Cell(table, source, method, measure, estimate, place, paper, again)
    theirs = {
        method: published().get((table, source.name, method, "running_time")) if comparable else None
        for method in methods
    }
    return Block(
        source,
        cells,
        {method: _seconds(models.get(method)) for method in methods},
        {method: reference.value if reference else None for method, reference in theirs.items()},
    )


def count_verdicts(verdicts: Iterable[Verdict | None]) -> Counter[str]:
    """Count how many agree and for what reason: "rounding", "chance", "spread" and "differs"."""
    return Counter(verdict.reason or "differs" for verdict in verdicts if verdict is not None)


def _estimate(model: Mapping[str, Any] | None, measure: str) -> Estimate | None:
    # Values of runs that broke off are no means of the whole stream.
    if model is None or not model["ranked"]:
        return None
    cell = model["measures"][measure]
    return None if cell["mean"] is None else Estimate(cell["mean"], cell["sd"], cell["runs"])


def _seconds(model: Mapping[str, Any] | None) -> float | None:
    return None if model is None or not model["ranked"] else model["seconds"]["total"]


def _ranks(ours: Sequence[Estimate | None], measure: str) -> list[int | None]:
    values = [np.nan if estimate is None else estimate.mean for estimate in ours]
    places = rank(values, lower_is_better=is_loss(measure), digits=_PRINTED_DIGITS)
    return [None if estimate is None else int(place) for estimate, place in zip(ours, places, strict=True)]
