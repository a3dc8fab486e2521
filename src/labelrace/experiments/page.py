"""The comparison as one HTML page that needs nothing else: no network, no other file. It looks like a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from labelrace.evaluation import is_loss
from labelrace.experiments.charts import rank_charts, scatter_chart, sweep_charts
from labelrace.experiments.published import Facts
from labelrace.experiments.sources import SourceFacts
from labelrace.experiments.summary import HeatRow, PaperSummary
from labelrace.measures import PAPER_MEASURES
from labelrace.report.shell import render
from labelrace.report.text import as_signed, as_significant, listing, measure_label, plural

__all__ = ["FILTERS", "SCRIPTS", "STYLES", "render_paper"]

# What all pages of benchmarks are made with.
STYLES = ("page.css", "charts.css", "experiments:bench.css")
SCRIPTS = ("theme.js", "experiments:scroll.js")
FILTERS: dict[str, Callable[..., Any]] = {
    "measure_label": measure_label,
    "is_loss": is_loss,
    "as_significant": as_significant,
}
_REASONS = ("rounding", "chance", "spread", "differs")
_COLORS = 8


def render_paper(summary: PaperSummary) -> str:
    """Return the page of the comparison with the paper."""
    runs = plural(summary.settings["runs"], "run")
    measured = [fact.source.title for fact in summary.facts]
    machine = summary.settings["machine"]
    return render(
        "paper.html",
        package="experiments",
        styles=STYLES,
        scripts=SCRIPTS,
        colors=_COLORS,
        notes=summary.notes,
        filters=FILTERS,
        brand="labelrace bench",
        title="RACE: the paper and labelrace",
        lead=f"Tables 1 to 4 of arXiv:1804.01491 beside what labelrace measures on {listing(measured)}. Means over "
        f"{runs}; methods without randomness ran once.",
        footer=f"Made by labelrace {summary.settings['version']}, seed {summary.settings['seed']}, begun "
        f"{summary.settings['created']} on {machine['platform']}, {plural(machine['cpus'], 'processor')}.",
        summary=summary,
        bars=_bars(summary),
        scatter=scatter_chart(summary),
        facts=[_facts(fact) for fact in summary.facts],
        charts={table.number: rank_charts(table) for table in summary.tables},
        heat=_heat(summary.heat),
        sweeps=sweep_charts(summary.sweeps),
        sweep_measures=PAPER_MEASURES,
    )


def _bars(summary: PaperSummary) -> list[dict[str, Any]]:
    """Return the counts of verdicts, as bars."""
    counted = {f"Table {table.number}": table.verdicts() for table in summary.tables}
    for table in summary.tables:
        counted[f"Table {table.number}, measures that are in its source only"] = table.verdicts(printed=False)
    for table in summary.tables:
        counted[f"Table {table.number}, the authors' program run again"] = table.rerun_verdicts()
    return [
        {
            "name": name,
            "parts": [(r, 100 * counts[r] / counts.total(), counts[r]) for r in _REASONS if counts[r]],
            "text": ", ".join(f"{reason} {counts[reason]}" for reason in _REASONS),
            "agree": counts.total() - counts["differs"],
            "total": counts.total(),
        }
        for name, counts in counted.items()
        if counts
    ]


def _facts(fact: SourceFacts) -> dict[str, Any]:
    """Return a row of Table 1: counted, and what the paper has where that is not the same."""
    pairs = zip(_texts(fact.measured), _texts(fact.published), strict=True)
    cells = [(ours, "" if fact.source.synthetic or ours == theirs else theirs) for ours, theirs in pairs]
    mark = "synthetic" if fact.source.synthetic else "" if fact.same else "not the paper's"
    return {"name": fact.source.name, "mark": mark, "cells": cells}


def _texts(facts: Facts) -> list[str]:
    return [f"{value:.3f}" if isinstance(value, float) else f"{value:,}" for value in facts]


def _heat(rows: Sequence[HeatRow]) -> dict[str, Any]:
    """Return the heat map's cells: text, and how strong a colour of which side."""
    columns = list(dict.fromkeys(name for row in rows for name in row.ratios))
    sizes = [abs(ratio) for row in rows for ratio in row.ratios.values() if ratio is not None]
    span = max([1.0, *sizes])
    cells = [
        {
            "name": row.source.title,
            "whose": row.whose,
            "cells": [
                (as_signed(ratio), "slow" if (ratio or 0) > 0 else "fast", abs(ratio or 0) / span)
                for ratio in (row.ratios.get(name) for name in columns)
            ],
        }
        for row in rows
    ]
    return {"columns": columns, "rows": cells}
