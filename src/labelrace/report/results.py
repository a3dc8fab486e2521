"""The report of a run: its summary as a document of results, curves, times and labels."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from labelrace.evaluation import read_run
from labelrace.report.figures import Chart, Mark, Panel, Series, bars, dash, panels
from labelrace.report.page import Document, Section, made_by
from labelrace.report.runs import KINDS, PHASES
from labelrace.report.summary import MAIN_MEASURE, Summary, summarize
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_bytes, as_signed, as_significant, as_value
from labelrace.report.write import print_document, write_document

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNFINISHED = " †"
# Models whose F1 of the best and worst labels is shown.
_COMPARED = 3
# Labels that are drawn, at most.
_DRAWN = 1000


def write_report(
    source: str | os.PathLike[str] | Summary,
    out: str | os.PathLike[str] | None = None,
    formats: Sequence[str] = ("html", "csv", "md", "tex"),
) -> dict[str, Path]:
    """Write a report of a run, which may be incomplete.

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
    return write_document(report_document(summary), str(folder), formats)


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
    labels = Chart("labels", f"{name}: F1 of each label and its frequency", lambda: _labels_figure(summary))
    has_curves = summary["curves"]["rows"] and summary["measures"]
    return Document(
        name="report",
        title=name,
        brand="labelrace report",
        lead=summary["headline"],
        footer=made_by(manifest),
        sections=[
            Section("Results", tables=[_results_table(summary)]),
            Section("Over the stream", charts=curves if has_curves else [], template="curves.html"),
            *([_labels_section(summary, labels)] if summary["extremes"] else []),
            _time_section(summary),
            Section("What exactly was run", template="manifest.html"),
        ],
        records={"report": _records(summary)},
        verdict=summary["verdict"],
        notes=summary["notes"],
        complete=summary["complete"],
        chart_data=_chart_data(summary),
        context={
            "summary": summary,
            "kinds": KINDS,
            "default_measure": MAIN_MEASURE,
            "seconds": _bars(summary),
            "manifest_text": json.dumps(described, indent=2, ensure_ascii=False, default=str),
        },
    )


def _results_table(summary: Summary) -> Table:
    """Return a row per model: measures, average rank and running time."""
    measures = summary["measures"]
    rows = []
    for place, model in enumerate(summary["models"]):
        cells = []
        for measure in measures:
            found, decimals = model["measures"][measure["name"]], measure["decimals"]
            sd, rank = as_value(found["sd"], decimals, ""), "" if found["rank"] is None else str(found["rank"])
            cells.append(Cell(as_value(found["mean"], decimals), sd, rank, found["best"], number=found["mean"]))
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


def _labels_section(summary: Summary, chart: Chart) -> Section:
    """Return the labels that are known best and least, by name, and F1 of all labels by their frequency."""
    labels, models = summary["labels"], summary["models"][:_COMPARED]
    groups = []
    for title, places in (("Best", summary["extremes"]["best"]), ("Worst", summary["extremes"]["worst"])):
        rows = [
            Row(
                labels["names"][label],
                [
                    Cell(f"{100 * labels['frequency'][label]:.3g} %", number=labels["frequency"][label]),
                    *(Cell(as_value(f1[label], 3), number=f1[label]) for f1 in labels["f1"][: len(models)]),
                ],
            )
            for label in places
        ]
        groups += [Group(rows, title)] if rows else []
    columns = [Column("Share of rows"), *(Column(f"F1 of {model['name']}", lower=False) for model in models)]
    caption = f"The labels with the highest and the lowest F1 of {models[0]['name']}."
    hint = (
        "Labels that are in very few rows are left out. In the chart, lines are means over labels of similar frequency."
    )
    return Section("Labels", hint, [Table("labels", caption, columns, groups, first="Label")], [chart], "labels.html")


def _time_section(summary: Summary) -> Section:
    """Return seconds by phase, ratios to the reference and memory, as a table and as bars."""
    models, reference = summary["models"], summary["reference"]
    phases = [phase for phase in PHASES if phase != "features" or any(model["seconds"][phase] for model in models)]
    columns = [Column(f"{phase.capitalize()} (s)", True) for phase in phases]
    columns += [Column("Time per row (ms)", True), Column("log10 ratio", True), Column("Peak memory", True)]
    rows = []
    for place, model in enumerate(models):
        ratio, per_row = model["log10_time_ratio"], model["ms_per_row"]["total"]
        cells = [Cell(as_significant(model["seconds"][phase]), number=model["seconds"][phase]) for phase in phases]
        cells += [Cell(as_significant(per_row), number=per_row), Cell(as_signed(ratio), number=ratio)]
        rows.append(Row(model["name"], [*cells, Cell(as_bytes(model["memory"]), number=model["memory"])], color=place))
    table = Table("times", "Seconds of one run, by phase.", columns, [Group(rows)], sortable=True)
    hint = "Seconds of one run. Measuring is not part of a model's running time; making features of a table is."
    charts = []
    if reference:
        hint += f" Ratios are log10 of the time per row divided by that of {reference}: +1 is ten times slower."
        caption = f"{summary['title']}: seconds of one run"
        charts = [Chart("seconds", caption, lambda: bars(*_seconds(summary)))]
    return Section("Time", hint, [table], charts, "seconds.html", page_only=True)


def _seconds(summary: Summary) -> tuple[list[str], dict[str, list[float]], list[str]]:
    """Return the models that have a time, seconds of each phase that counts in it, and the sums as texts."""
    timed = [model for model in summary["models"] if model["seconds"]["total"] is not None]
    parts = {phase: [model["seconds"][phase] or 0.0 for model in timed] for phase in PHASES if phase != "measure"}
    totals = [f"{as_significant(model['seconds']['total'])} s" for model in timed]
    return [model["name"] for model in timed], {name: part for name, part in parts.items() if any(part)}, totals


def _bars(summary: Summary) -> dict[str, Any]:
    """Return the bars of the page: for each model the length of each phase, in percent of the longest bar."""
    names, parts, totals = _seconds(summary)
    lengths = list(zip(*parts.values(), strict=True))
    longest = max(map(sum, lengths), default=1.0)
    shares = [[f"{100 * length / longest:.4g}" for length in part] for part in lengths]
    rows = [{"name": n, "shares": s, "total": t} for n, s, t in zip(names, shares, totals, strict=bool(shares))]
    return {"phases": list(parts), "bars": rows if summary["reference"] else []}


def _curves_figure(summary: Summary) -> Figure:
    """Draw windowed means over the stream, one panel per measure."""
    rows, values, events = summary["curves"]["rows"], summary["curves"]["values"], summary["events"]
    places = {model["name"]: place for place, model in enumerate(summary["models"])}
    marks = [Mark(row, places[one["model"]]) for one in events["drifts"] for row in one["rows"]]
    marks += [Mark(one["row"]) for one in events["labels"]]
    shown = [
        Panel(
            f"{measure['label']} {'↓' if measure['lower'] else '↑'}",
            [Series(name, rows, values[measure["name"]]["windowed"][place], place) for name, place in places.items()],
            "rows of the stream",
            marks=marks,
            end_names=True,
        )
        for measure in summary["measures"]
    ]
    return panels(shown, across=2, size=(5.6, 3.0 + 0.06 * len(summary["models"])))


def _labels_figure(summary: Summary) -> Figure:
    """Draw F1 of each label, of the first model, against how often it occurs, and the trend of each model."""
    points = _label_points(summary)
    x, models = points["frequency"], summary["models"]
    series = [Series("", x, points["f1"], 0, line=False, marker=".", tips=points["names"])]
    for place, (model, trend) in enumerate(zip(models, points["trend"], strict=True)):
        # One point for labels that are equally frequent.
        line = {often: value for often, value in zip(x, trend, strict=True) if value is not None}
        series.append(Series(model["name"], list(line), list(line.values()), place))
    y_range = (-0.03, 1.03)
    text = "share of rows with the label"
    panel = Panel("", series, text, "F1 of the label", "x", None, y_range, percent=True, end_names=True)
    return panels([panel], size=(8.0, 4.2))


def _label_points(summary: Summary) -> dict[str, Any]:
    """Return the labels to draw, rare ones first: names, frequency, F1 of the first model, and each model's trend."""
    labels = summary["labels"]
    # A logarithmic scale has no place for labels that never occurred.
    order = sorted((often, place) for place, often in enumerate(labels["frequency"]) if often)
    order = order[:: -(-len(order) // _DRAWN)]
    return {
        "names": [labels["names"][label] for _, label in order],
        "frequency": [often for often, _ in order],
        "f1": [labels["f1"][0][label] for _, label in order],
        "trend": [[trend[label] for _, label in order] for trend in labels["trend"]],
    }


def _chart_data(summary: Summary) -> dict[str, Any]:
    """Return what the charts of the page draw, with as many digits as can be seen."""
    curves, places = summary["curves"], {model["name"]: place for place, model in enumerate(summary["models"])}
    drifts = [{**one, "model": places[one["model"]]} for one in summary["events"]["drifts"]]
    return {
        "models": [{"name": model["name"], "dash": dash(place)} for place, model in enumerate(summary["models"])],
        "measures": summary["measures"],
        "curves": {"rows": curves["rows"], "values": _short(curves["values"])},
        "events": {"labels": summary["events"]["labels"], "drifts": drifts},
        "labels": _short(_label_points(summary)) if summary["extremes"] else None,
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
        records.append(record | {"log10_time_ratio": model["log10_time_ratio"]})
    return records
