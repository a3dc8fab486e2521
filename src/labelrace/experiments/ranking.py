"""Average ranks over datasets, ours and the paper's, and whether they mean anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from labelrace.evaluation import critical_difference, friedman, is_loss, rank
from labelrace.experiments.cells import Block
from labelrace.experiments.published import paper_datasets, printed_ranks, published
from labelrace.typing import FloatArray

__all__ = ["OVERALL", "Comparison", "RankTable", "rank_tables"]

OVERALL = "overall"

# Average rank by method, and measure or "overall".
_Averages: TypeAlias = dict[tuple[str, str], float]
# The value of a dataset, method and measure.
_Values: TypeAlias = Callable[[str, str, str], float]


@dataclass(frozen=True)
class Comparison:
    """Friedman's test of the mean ranks over measures, dataset by dataset, and Nemenyi's critical difference.

    Parameters
    ----------
    places : dict
        Average rank of each method; methods that tie share the mean of their ranks.
    statistic, p_value : float
    difference : float
        Methods whose places differ by less are not told apart at the 5 % level.
    """

    places: dict[str, float]
    statistic: float
    p_value: float
    difference: float


@dataclass(frozen=True)
class RankTable:
    """Average ranks of the methods of a table.

    Parameters
    ----------
    title : str
        Whose they are.
    datasets : tuple of str
        What they are averaged over.
    averages : dict
        By method, and measure or "overall". As in the paper, values are rounded to two digits first, and methods that
        tie share the better rank.
    comparison : Comparison or None
        None where there are fewer than two datasets.
    """

    title: str
    datasets: tuple[str, ...]
    averages: _Averages
    comparison: Comparison | None


def rank_tables(
    table: str, methods: Sequence[str], measures: Sequence[str], blocks: Sequence[Block]
) -> list[RankTable]:
    """Return ours, the paper's on the same datasets, the paper's on all of its own, and what it printed of these.

    Parameters
    ----------
    table : {"2", "3"}
    methods, measures : sequence of str
    blocks : sequence of Block
        Those of the paper's datasets that are at hand, without synthetic ones.
    """
    found = {block.source.name: block for block in blocks}

    def ours(dataset: str, method: str, measure: str) -> float:
        estimate = found[dataset].cells[method, measure].ours
        return np.nan if estimate is None else estimate.mean

    def theirs(dataset: str, method: str, measure: str) -> float:
        return published()[table, dataset, method, measure].value

    everything = tuple(paper_datasets())
    same = tuple(name for name in everything if name in found)
    tables = []
    if same:
        tables.append(_rank_table("ours", ours, same, methods, measures))
    if same and same != everything:
        tables.append(_rank_table("the paper's, on the same datasets", theirs, same, methods, measures))
    tables.append(_rank_table("the paper's, recomputed from its cells", theirs, everything, methods, measures))
    printed = {(m, k): printed_ranks()[table, m, k] for m in methods for k in (*measures, OVERALL)}
    tables.append(RankTable("the paper's, as printed", everything, printed, None))
    return tables


def _rank_table(
    title: str, value: _Values, datasets: tuple[str, ...], methods: Sequence[str], measures: Sequence[str]
) -> RankTable:
    # datasets × measures × methods
    ranks = np.array([[_ranks(value, dataset, measure, methods) for measure in measures] for dataset in datasets])
    means = ranks.mean(axis=0)
    averages = {(m, k): float(means[row, column]) for row, k in enumerate(measures) for column, m in enumerate(methods)}
    averages |= {(m, OVERALL): float(means[:, column].mean()) for column, m in enumerate(methods)}
    return RankTable(title, datasets, averages, _compare(methods, ranks.mean(axis=1)))


def _ranks(value: _Values, dataset: str, measure: str, methods: Sequence[str]) -> FloatArray:
    values = [value(dataset, method, measure) for method in methods]
    return rank(values, lower_is_better=is_loss(measure), digits=2)


def _compare(methods: Sequence[str], mean_ranks: FloatArray) -> Comparison | None:
    if len(mean_ranks) < 2:
        return None
    # Mean ranks of a dataset are compared with one another, as values are; the digits are those of round-off.
    result = friedman(mean_ranks, lower_is_better=True, digits=9)
    places = dict(zip(methods, map(float, result.average_ranks), strict=True))
    difference = critical_difference(len(methods), len(mean_ranks))
    return Comparison(places, result.statistic, result.p_value, difference)
