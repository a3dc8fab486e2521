"""The comparison as one HTML page that needs nothing else: no network, no other file. It looks like a report."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from labelrace.bench.charts import rank_charts, scatter_chart, sweep_charts
from labelrace.bench.published import Facts
from labelrace.bench.sources import SourceFacts
from labelrace.bench.summary import HeatRow, PaperSummary
from labelrace.evaluation import is_loss
from labelrace.measures import PAPER_MEASURES
from labelrace.report import palette
from labelrace.report.text import as_signed, as_significant, listing, measure_label, plural

__all__ = ["render_paper"]

_STYLES = (("report", "page.css"), ("report", "charts.css"), ("bench", "bench.css"))
_SCRIPTS = (("report", "theme.js"), ("bench", "scroll.js"))
_REASONS = ("rounding", "chance", "spread", "differs")
_COLORS = 8


def render_paper(summary: PaperSummary) -> str:
    """Return the page of the comparison with the paper."""
    runs = plural(summary.settings["runs"], "run")
    measured = [fact.source.title for fact in summary.facts]
    machine = summary.settings["machine"]
    script = Markup('(() => {\n"use strict";\n%s\n})();\n') % Markup("\n".join(_static(*place) for place in _SCRIPTS))
    return _template().render(
        style=Markup("\n".join(_static(*place) for place in _STYLES)),
        script=script,
        # The page's policy lets this script run, and no other that a name may smuggle in.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        colors=[(palette.color(place), palette.color(place, dark=True)) for place in range(_COLORS)],
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


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("labelrace.bench"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"measure_label": measure_label, "is_loss": is_loss, "as_significant": as_significant}
    return environment.get_template("paper.html")


def _static(package: str, name: str) -> str:
    return (resources.files(f"labelrace.{package}") / "static" / name).read_text(encoding="utf-8")


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
