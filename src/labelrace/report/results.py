"""The report of a run: its summary as a document of results, curves, times and labels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from labelrace.evaluation import read_run
from labelrace.report.curves import KINDS
from labelrace.report.figures import Chart, Panel, Series, bars, dash, heat_map, panels
from labelrace.report.page import Document, Section, made_by
from labelrace.report.runs import PHASES
from labelrace.report.summary import Summary, summarize
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_bytes, as_signed, as_significant, as_value
from labelrace.report.write import print_document, write_document

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNFINISHED = " †"
# Shown first, if it was measured.
_DEFAULT_MEASURE = "micro_f1"


def write_report(
    source: str | os.PathLike[str] | Summary,
    out: str | os.PathLike[str] | None = None,
    formats: Sequence[str] = ("html", "csv", "md", "tex"),
) -> dict[str, Path]:
    """Write a report of a run, or of as much of it as there is.

    Parameters
    ----------
    source : path or dict
        A run folder, or what `summarize` returned.
    out : path, default=None
        The folder to write into; it is made if it does not exist. None for the run folder itself.
    formats : sequence of str, default=("html", "csv", "md", "tex")
        Any of ``html`` (one page that needs nothing else), ``csv``, ``md``, ``tex`` (tables), ``png`` and ``svg``
        (figures; they need ``labelrace[plots]``).

    Returns
    -------
    dict
        Name of each file -> its path: ``report.html``, …, ``curves.png``, ….
    """
    if out is None and isinstance(source, dict):
        raise ValueError("out must be a folder to write into if the source is a summary, got None.")
    summary = source if isinstance(source, dict) else summarize(*read_run(source))
    folder = source if out is None and not isinstance(source, dict) else out
    return write_document(report_document(summary), str(folder), "report", {"report": _records(summary)}, formats)


def print_report(summary: Summary, console: Console | None = None) -> None:
    """Print what was run, the results and the notes.

    Parameters
    ----------
    summary : dict
        What `summarize` returned.
    console : rich.console.Console, default=None
        Where to print; None for standard output.
    """
    print_document(report_document(summary), console)


def report_document(summary: Summary) -> Document:
    """Return what a summary says, as sections of tables and charts."""
    name, manifest = summary["title"], summary["manifest"]
    # Names of labels may be many; the chart of the labels has them.
    described = manifest | {"source": {key: v for key, v in manifest["source"].items() if key != "label_names"}}
    curves = [Chart("curves", f"{name}: measures over the stream, windowed", lambda: _curves_figure(summary))]
    labels = [Chart("labels", f"{name}: F1 of each label and its frequency", lambda: _labels_figure(summary))]
    has_curves = summary["curves"]["rows"] and summary["measures"]
    return Document(
        title=name,
        brand="labelrace report",
        lead=summary["headline"],
        footer=made_by(manifest),
        sections=[
            Section("Results", tables=[_results_table(summary)]),
            Section("Over the stream", charts=curves if has_curves else [], template="curves.html"),
            _time_section(summary),
            *(
                [Section("Rare and frequent labels", charts=labels, template="labels.html")]
                if summary["labels"]
                else []
            ),
            Section("What exactly was run", template="manifest.html"),
        ],
        notes=summary["notes"],
        complete=summary["complete"],
        chart_data=_chart_data(summary),
        context={
            "summary": summary,
            "kinds": KINDS,
            "default_measure": _DEFAULT_MEASURE,
            "manifest_text": json.dumps(described, indent=2, ensure_ascii=False, default=str),
        },
    )


def _results_table(summary: Summary) -> Table:
    """Return a row per model: measures, average rank and running time."""
    measures = summary["measures"]
    rows = []
    for place, model in enumerate(summary["models"]):
        cells = [_measured(model["measures"][measure["name"]], measure["decimals"]) for measure in measures]
        rank, seconds = model["average_rank"], model["seconds"]["total"]
        cells.append(Cell(as_value(rank, 2), best=model["best_rank"], number=rank))
        cells.append(Cell(as_significant(seconds), best=model["fastest"], number=seconds))
        runs = model["runs"]
        tag = "" if runs["finished"] == runs["expected"] else f"{runs['finished']} of {runs['expected']} runs"
        unfinished = runs["started"] and not model["ranked"]
        rows.append(Row(model["name"] + (_UNFINISHED if unfinished else ""), cells, tag, place))
    columns = [Column(measure["label"], measure["lower"]) for measure in measures]
    columns += [Column("Average rank", True), Column("Time (s)", True)]
    return Table("results", f"Results on {summary['title']}.", columns, [Group(rows)], sortable=True, overview=2)


def _measured(cell: Mapping[str, Any], decimals: int) -> Cell:
    sd = "" if cell["sd"] is None else as_value(cell["sd"], decimals)
    rank = "" if cell["rank"] is None else str(cell["rank"])
    return Cell(as_value(cell["mean"], decimals), sd, rank, cell["best"], number=cell["mean"])


def _time_section(summary: Summary) -> Section:
    """Return seconds by phase, ratios to the reference and memory: a table, bars and a heat map."""
    name, models, reference = summary["title"], summary["models"], summary["reference"]
    columns = [Column(f"{phase.capitalize()} (s)", True) for phase in PHASES]
    columns += [Column("Time per row (ms)", True), Column("log10 ratio", True), Column("Peak memory", True)]
    rows = []
    for place, model in enumerate(models):
        ratio, per_row = model["log10_time_ratio"]["total"], model["ms_per_row"]["total"]
        cells = [Cell(as_significant(model["seconds"][phase]), number=model["seconds"][phase]) for phase in PHASES]
        cells += [Cell(as_significant(per_row), number=per_row), Cell(as_signed(ratio), number=ratio)]
        rows.append(Row(model["name"], [*cells, Cell(as_bytes(model["memory"]), number=model["memory"])], color=place))
    table = Table("times", "Seconds of one run, by phase.", columns, [Group(rows)], sortable=True)
    hint = "Seconds of one run. Measuring is not part of a model's running time."
    charts = []
    if reference:
        hint += f" Ratios are log10 of the time per row divided by that of {reference}: +1 is ten times slower."
        charts = [
            Chart("seconds", f"{name}: seconds of one run, to predict and to learn", lambda: _seconds_figure(summary)),
            Chart("time", f"{name}: log10 of the time per row against {reference}", lambda: _ratios_figure(summary)),
        ]
    return Section("Time", hint, [table], charts, page_only=True)


def _seconds_figure(summary: Summary) -> Figure:
    timed = [model for model in summary["models"] if model["seconds"]["total"] is not None]
    parts = {phase: [model["seconds"][phase] for model in timed] for phase in ("predict", "learn")}
    totals = [f"{as_significant(model['seconds']['total'])} s" for model in timed]
    return bars([model["name"] for model in timed], parts, totals)


def _ratios_figure(summary: Summary) -> Figure:
    """Draw time ratios: models across, phases down."""
    models = summary["models"]
    phases = list(models[0]["log10_time_ratio"])
    values = [[model["log10_time_ratio"][phase] for model in models] for phase in phases]
    return heat_map([model["name"] for model in models], phases, values)


def _curves_figure(summary: Summary) -> Figure:
    """Draw windowed means over the stream, one panel per measure."""
    rows, values = summary["curves"]["rows"], summary["curves"]["values"]
    shown = [
        Panel(
            f"{measure['label']} {'↓' if measure['lower'] else '↑'}",
            [
                Series(model["name"], rows, values[measure["name"]]["windowed"][place], place)
                for place, model in enumerate(summary["models"])
            ],
            "rows of the stream",
        )
        for measure in summary["measures"]
    ]
    return panels(shown)


def _labels_figure(summary: Summary) -> Figure:
    """Draw F1 of each label against how often it occurs, and the trend of each model."""
    labels, series = summary["labels"], []
    # A logarithmic scale has no place for labels that never occurred.
    order = sorted((often, place) for place, often in enumerate(labels["frequency"]) if often)
    x = [often for often, _ in order]
    for place, model in enumerate(summary["models"]):
        f1, trend = ([labels[key][place][label] for _, label in order] for key in ("f1", "trend"))
        series.append(Series("", x, f1, place, line=False, marker="."))
        series.append(Series(model["name"], x, trend, place))
    panel = Panel("", series, "share of rows with the label", "F1 of the label", "x", None, (-0.03, 1.03), percent=True)
    return panels([panel], size=(6.4, 3.6), columns=3)


def _chart_data(summary: Summary) -> dict[str, Any]:
    """Return what the charts of the page draw, with as many digits as can be seen."""
    curves, labels = summary["curves"], summary["labels"]
    return {
        "models": [{"name": model["name"], "dash": dash(place)} for place, model in enumerate(summary["models"])],
        "measures": summary["measures"],
        "curves": {"rows": curves["rows"], "values": _short(curves["values"])},
        "labels": labels and _short(labels),
    }


def _short(value: Any) -> Any:
    """Return the numbers in a nest of lists and dicts with five significant digits."""
    if isinstance(value, dict):
        return {key: _short(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    if not isinstance(value, float):
        return value
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() else short


def _records(summary: Summary) -> list[dict[str, Any]]:
    """Return one record per model with all digits, for programs to read."""
    records = []
    for model in summary["models"]:
        record = {
            "source": summary["title"],
            "model": model["name"],
            "runs": model["runs"]["finished"],
            "runs_expected": model["runs"]["expected"],
        }
        for name, cell in model["measures"].items():
            record |= {name: cell["mean"], f"{name}_sd": cell["sd"], f"{name}_rank": cell["rank"]}
        record["average_rank"] = model["average_rank"]
        record |= {f"seconds_{phase}": model["seconds"][phase] for phase in (*PHASES, "total")}
        record |= {"ms_per_row": model["ms_per_row"]["total"], "memory": model["memory"]}
        records.append(record | {"log10_time_ratio": model["log10_time_ratio"]["total"]})
    return records
