"""The report as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from labelrace.report import palette
from labelrace.report.curves import KINDS
from labelrace.report.shell import render
from labelrace.report.summary import Summary
from labelrace.report.tables import Cell, Column, grid
from labelrace.report.text import as_bytes, as_signed, as_significant

__all__ = ["render_page"]

_SCRIPTS = ("theme.js", "legend.js", "table.js", "chart.js", "curves.js", "labels.js")
_STYLES = ("vendor/uplot/uPlot.min.css", "page.css", "charts.css")
# Shown first, where it was measured.
_DEFAULT_MEASURE = "micro_f1"
_KIND_LABELS = {"batch": "Per batch", "windowed": "Windowed", "cumulative": "Cumulative"}

_Item = TypeVar("_Item")

# Colours of the heat map are full from this ratio on, or from the largest there is.
_LEAST_HEAT_SPAN = 1.0


def render_page(summary: Summary) -> str:
    """Return the whole page as text.

    Parameters
    ----------
    summary
        From `summarize`.
    """
    return render(
        "page.html",
        styles=_STYLES,
        scripts=_SCRIPTS,
        library="vendor/uplot/uPlot.iife.min.js",
        colors=len(summary["models"]),
        notes=summary["notes"],
        notes_title="Note" if summary["complete"] else "Not complete",
        data=_chart_data(summary),
        brand="labelrace report",
        title=summary["title"],
        lead=summary["headline"],
        footer=f"Made by labelrace {summary['version']} from the run of {summary['created']}.",
        summary=summary,
        table=_results(summary),
        bars=_bars(summary["models"]),
        heat=_heat(summary["heat"]),
        kinds=_KIND_LABELS,
        default_measure=_DEFAULT_MEASURE,
        facts=_facts(summary["manifest"]),
        manifest_text=json.dumps(summary["manifest"], indent=2, ensure_ascii=False, default=str),
    )


def _chart_data(summary: Summary) -> dict[str, Any]:
    """Return what the charts draw, with as many digits as can be seen."""
    curves, labels = summary["curves"], summary["labels"]
    values = {
        measure: {
            kind: [[_short(value) for value in line] for line in curves["values"][measure][kind]] for kind in KINDS
        }
        for measure in curves["values"]
    }
    return {
        "models": [
            {"name": model["name"], "dash": palette.dash(place)} for place, model in enumerate(summary["models"])
        ],
        "measures": summary["measures"],
        "curves": {"rows": curves["rows"], "values": values},
        "labels": labels
        and {
            "frequency": [_short(value) for value in labels["frequency"]],
            **{key: [[_short(value) for value in line] for line in labels[key]] for key in ("f1", "trend")},
        },
    }


def _short(value: float | None) -> float | int | None:
    if value is None:
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() else short


def _results(summary: Summary) -> dict[str, Any]:
    """Return the table: headings, and per model its cells with the numbers they are sorted by."""
    columns, rows = grid(summary)
    with_memory = any(model["memory"] is not None for model in summary["models"])
    lines = []
    for model, (name, cells) in zip(summary["models"], rows, strict=True):
        numbers = [model["measures"][measure["name"]]["mean"] for measure in summary["measures"]]
        numbers += [model["average_rank"], model["seconds"]["total"]]
        extra = [(Cell(as_significant(model["ms_per_row"]["total"])), model["ms_per_row"]["total"])]
        if with_memory:
            extra.append((Cell(as_bytes(model["memory"])), model["memory"]))
        paired = _overview_first(list(zip(cells, numbers, strict=True)))
        lines.append({"name": name, "cells": [*paired, *extra], "runs": model["runs"]})
    added = [Column("ms / row", True), *([Column("Peak memory", True)] if with_memory else [])]
    return {
        "columns": [*_overview_first(columns), *added],
        "rows": lines,
        "ranked": any(cell.rank for _, cells in rows for cell in cells),
    }


def _overview_first(cells: list[_Item]) -> list[_Item]:
    """Move rank and time, which end a printed table, to where a narrow screen shows them."""
    return [*cells[-2:], *cells[:-2]]


def _bars(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the length of each phase's bar in percent of the longest, and the seconds to write beside it."""
    longest = max((model["seconds"]["total"] or 0.0 for model in models), default=0.0) or 1.0
    return [
        {
            "name": model["name"],
            "parts": [
                (phase, 100 * (model["seconds"][phase] or 0.0) / longest, as_significant(model["seconds"][phase]))
                for phase in ("predict", "learn")
            ],
            "total": as_significant(model["seconds"]["total"]),
            "measure": as_significant(model["seconds"]["measure"]),
        }
        for model in models
        if model["seconds"]["total"] is not None
    ]


def _heat(heat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the heat map's cells: text, and how strong a colour of which side."""
    sizes = [abs(value) for row in heat["rows"] for value in row["values"] if value is not None]
    span = max([_LEAST_HEAT_SPAN, *sizes])
    rows = [
        {
            **row,
            "cells": [
                (as_signed(value), "slow" if (value or 0) > 0 else "fast", abs(value or 0) / span)
                for value in row["values"]
            ],
        }
        for row in heat["rows"]
    ]
    return {"columns": heat["columns"], "rows": rows, "span": span}


def _facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the fold-out lists before the whole manifest."""
    source, machine = manifest["source"], manifest.get("machine") or {}
    facts = {
        "Source": f"{source['name']} ({source['kind']})",
        "Checksum": source.get("checksum"),
        "Rows × features × labels": " × ".join("?" if source.get(k) is None else f"{source[k]:,}" for k in _SIZES),
        "Protocol": manifest["protocol"],
        "Runs, seed": f"{manifest['runs']}, {manifest['seed']}",
        "Batch size": manifest["batch_size"],
        "Made": f"{manifest['created']}, labelrace {manifest['version']}",
        "Machine": ", ".join(f"{key} {value}" for key, value in machine.items()),
    }
    return [(key, str(value)) for key, value in facts.items() if value not in (None, "")]


_SIZES = ("rows", "features", "labels")
