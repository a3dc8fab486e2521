"""Average ranks over datasets and whether they differ by more than chance: values, table and diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelrace.evaluation import Friedman, friedman
from labelrace.measures import PAPER_MEASURES
from labelrace.report.figures import Chart, Ranks, critical_differences
from labelrace.report.runs import mean
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_value, measure_label
from labelrace.typing import FloatArray

# The mean over the paper's five measures.
OVERALL = "overall"


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
    title: str, datasets: Sequence[str], ranks: FloatArray, methods: Sequence[str], measures: Sequence[str]
) -> RankTable:
    """Average ranks, of shape (datasets, measures, methods), over datasets; NaN is a method that is not ranked."""
    counted = [place for place, measure in enumerate(measures) if measure in PAPER_MEASURES]
    means = mean(ranks)
    rows = zip([*measures, OVERALL], [*means, mean(means[counted])], strict=True)
    averages = {
        (method, key): float(value)
        for key, row in rows
        for method, value in zip(methods, row, strict=True)
        if not np.isnan(value)
    }
    # The mean ranks on a dataset are compared as values are; the digits are those of round-off.
    mean_ranks, test = mean(ranks[:, counted], axis=1), None
    if len(datasets) >= 2 and len(methods) >= 3 and not np.isnan(mean_ranks).any():
        test = friedman(mean_ranks, lower_is_better=True, digits=9)
    return RankTable(title, tuple(datasets), averages, tuple(methods), test)


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
    return [Chart(name, caption, lambda: critical_differences(tested))] if tested else []
