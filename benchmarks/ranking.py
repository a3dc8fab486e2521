"""Average ranks over datasets and whether they differ by more than chance: values, table and diagram."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from labelrace.evaluation import Friedman, friedman, is_loss, rank
from labelrace.evaluation.ranks import TIE_DIGITS
from labelrace.measures import PAPER_MEASURES
from labelrace.report.charts import Chart, Ranks, critical_differences
from labelrace.report.runs import mean
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_value, measure_label

# The mean over the paper's five measures.
OVERALL = "overall"
CALIBRATION = "calibration_error"


class RankTable(NamedTuple):
    """Average ranks over datasets, by method, and measure or "overall".

    Friedman's test compares the methods by their mean ranks over measures, dataset by dataset. It needs two datasets
    and three methods.
    """

    title: str
    datasets: tuple[str, ...]
    averages: dict[tuple[str, str], float]
    methods: tuple[str, ...] = ()
    friedman: Friedman | None = None


def average_ranks(
    title: str,
    datasets: Sequence[str],
    methods: Sequence[str],
    measures: Sequence[str],
    values: Mapping[tuple[str, str, str], float | None],
    ties: Literal["min", "average"] = "average",
    digits: int = TIE_DIGITS,
) -> RankTable:
    """Rank methods on each dataset by each measure, and average the ranks over datasets.

    ``values[dataset, method, measure]`` is NaN for a method that has no value and is not ranked, and None for one that
    ranks after all others; where no method has a value, none is ranked. Ties and digits are those of
    `labelrace.evaluation.rank`.
    """
    ranks = np.full((len(datasets), len(measures), len(methods)), np.nan)
    for row, dataset in enumerate(datasets):
        for column, measure in enumerate(measures):
            lower, cells = lower_is_better(measure), [values[dataset, method, measure] for method in methods]
            line = np.array([(np.inf if lower else -np.inf) if value is None else value for value in cells])
            ranked = ~np.isnan(line)
            if np.isfinite(line).any():
                ranks[row, column, ranked] = rank(line[ranked], lower_is_better=lower, ties=ties, digits=digits)
    counted = [column for column, measure in enumerate(measures) if measure in PAPER_MEASURES]
    means = mean(ranks)
    rows = zip([*measures, OVERALL], [*means, mean(means[counted])], strict=True)
    averages = {
        (method, key): float(average)
        for key, row in rows
        for method, average in zip(methods, row, strict=True)
        if not np.isnan(average)
    }
    mean_ranks, test = mean(ranks[:, counted], axis=1), None
    if len(datasets) >= 2 and len(methods) >= 3 and not np.isnan(mean_ranks).any():
        # The mean ranks on a dataset are compared as values are; the digits are those of round-off.
        test = friedman(mean_ranks, lower_is_better=True, digits=9)
    return RankTable(title, tuple(datasets), averages, tuple(methods), test)


def lower_is_better(measure: str) -> bool:
    """Return whether lower values are better: of a measure, or of the calibration error."""
    return measure == CALIBRATION or is_loss(measure)


def rank_records(shown: Iterable[RankTable]) -> list[dict[str, Any]]:
    """Return average ranks as lines of a CSV file."""
    return [
        {
            "whose": ranks.title,
            "datasets": "; ".join(ranks.datasets),
            "method": method,
            "measure": measure,
            "rank": value,
        }
        for ranks in shown
        for (method, measure), value in ranks.averages.items()
    ]


def ranks_table(
    label: str, caption: str, shown: Sequence[RankTable], methods: Sequence[str], measures: Sequence[str]
) -> Table:
    """Return average ranks as a table, a group for each of those shown."""
    keys = (*measures, OVERALL)
    groups = []
    for ranks in shown:
        best = {key: min((v for (_, k), v in ranks.averages.items() if k == key), default=None) for key in keys}
        rows = []
        for method in methods:
            values = {key: ranks.averages.get((method, key)) for key in keys}
            rows.append(
                Row(method, [Cell(as_value(v, 2), best=v is not None and v == best[k]) for k, v in values.items()])
            )
        groups.append(Group(rows, ranks.title[0].upper() + ranks.title[1:], detail=", ".join(ranks.datasets)))
    return Table(label, caption, [Column(measure_label(key), True) for key in keys], groups, "Method")


def rank_charts(name: str, caption: str, shown: Sequence[RankTable]) -> list[Chart]:
    """Return the critical-difference diagrams of those that were tested, in one chart, if there are any."""
    tested = [
        Ranks(
            f"{ranks.title} ({len(ranks.datasets)}): Friedman's χ² = {test.statistic:.1f}, p = {test.p_value:.2g}",
            dict(zip(ranks.methods, test.average_ranks.tolist(), strict=True)),
            test.critical_difference,
        )
        for ranks in shown
        if (test := ranks.friedman) is not None
    ]
    return [Chart(name, caption, critical_differences(tested))] if tested else []
