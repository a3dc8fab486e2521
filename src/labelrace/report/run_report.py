"""The report of a run: a summary -> a document of tables and charts -> files, or the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from labelrace.evaluation import read_run
from labelrace.report.charts import Chart, Mark, Panel, Panels, Series, bars, panels
from labelrace.report.document import Details, Document, Section, made_by, print_document, write_document
from labelrace.report.runs import KINDS, PHASES
from labelrace.report.summary import MAIN_MEASURE, Summary, summarize
from labelrace.report.tables import Cell, Column, Group, Row, Table
from labelrace.report.text import as_bytes, as_signed, as_significant, as_value, macro_note, plural

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
        Any of ``html`` (one page that needs nothing else), ``csv``, ``md``, ``tex`` (tables), ``png``, ``svg``
        and ``pdf`` (figures; they need ``labelrace[plots]``).

    Returns
    -------
    dict
        Name of each file -> its path: ``report.html``, …, ``curves.png``, ….

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from labelrace.evaluation import run
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=10, n_labels=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run(stream, ["majority", "obr"], out=Path(folder, "run"), jobs=1, batch_size=100)
    ...     written = write_report(Path(folder, "run"), formats=["html", "csv"])
    ...     print(*written)
    report.html report.csv
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

    Examples
    --------
    >>> import tempfile
    >>> from rich.console import Console
    >>> from labelrace.evaluation import run
    >>> from labelrace.report import summarize
    >>> from labelrace.streams.synthetic import SyntheticStream
    >>> stream = SyntheticStream(n_rows=300, n_features=10, n_labels=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run(stream, ["majority", "obr"], out=folder, jobs=1, batch_size=100)
    >>> print_report(summarize(*found), Console(width=80))
    obr won on synthetic...
    """
    print_document(report_document(summary), console)


def report_document(summary: Summary) -> Document:
    """Return what a summary says, as sections of tables and charts."""
    manifest = summary["manifest"]
    return Document(
        name="report",
        title=summary["title"],
        brand="labelrace report",
        lead=summary["headline"],
        footer=made_by(manifest),
        sections=[
            Section("Results", tables=[_results_table(summary)]),
            _curves_section(summary),
            *([_labels_section(summary)] if summary["extremes"] else []),
            _time_section(summary),
            Section("What exactly was run", details=_details(summary)),
        ],
        records={"report": _records(summary)},
        verdict=summary["verdict"],
        notes=summary["notes"],
        complete=summary["complete"],
    )


def run_document(manifest: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> Document:
    """Return the report of what `labelrace.evaluation.run` returned."""
    return report_document(summarize(manifest, records))


def _results_table(summary: Summary) -> Table:
    """Return a row per model: measures, average rank and running time."""
    measures = summary["measures"]
    rows = []
    for color, model in enumerate(summary["models"]):
        cells = []
        for measure in measures:
            values, decimals = model["measures"][measure["name"]], measure["decimals"]
            sd, rank = as_value(values["sd"], decimals, ""), "" if values["rank"] is None else str(values["rank"])
            cells.append(Cell(as_value(values["mean"], decimals), sd, rank, values["best"], number=values["mean"]))
        rank, seconds = model["average_rank"], model["seconds"]["total"]
        cells.append(Cell(as_value(rank, 2), best=model["best_rank"], number=rank))
        cells.append(Cell(as_significant(seconds), best=model["fastest"], number=seconds))
        runs = model["runs"]
        tag = "" if runs["finished"] == runs["expected"] else f"{runs['finished']} of {runs['expected']} runs"
        unfinished = runs["started"] and not model["ranked"]
        rows.append(Row(model["name"] + (_UNFINISHED if unfinished else ""), cells, tag, color))
    columns = [Column(measure["label"], measure["lower"]) for measure in measures]
    columns += [Column("Average rank", True), Column("Time (s)", True)]
    note = macro_note([measure["name"] for measure in measures], summary["manifest"].get("zero_division", 1.0))
    caption = f"Results on {summary['title']}."
    return Table("results", caption, columns, [Group(rows)], sortable=True, overview=2, note=note)


def _curves_section(summary: Summary) -> Section:
    """Return the curves of every measure over the stream, one panel each, in three kinds of averages."""
    curves, measures = summary["curves"], summary["measures"]
    if not curves["rows"] or not measures:
        return Section("Over the stream", "No batch was tested.")
    models = [model["name"] for model in summary["models"]]
    views = {}
    for kind, title in KINDS.items():
        views[title] = [
            Panel(
                f"{measure['label']} {'↓' if measure['lower'] else '↑'}",
                [
                    Series(name, curves["rows"], line, color)
                    for color, (name, line) in enumerate(
                        zip(models, curves["values"][measure["name"]][kind], strict=True)
                    )
                ],
                "rows of the stream",
                decimals=measure["decimals"],
            )
            for measure in measures
        ]
    names = [measure["name"] for measure in measures]
    content = Panels(
        views,
        KINDS["windowed"],
        across=2,
        size=(5.6, 3.0),
        marks=_marks(summary, models),
        choose="Measure",
        chosen=names.index(MAIN_MEASURE) if MAIN_MEASURE in names else 0,
        position="At row {}",
    )
    hint = (
        f"Means over runs. Windowed: the last {curves['window']} batches; cumulative: all batches so far. "
        "Drag to zoom, double-click to show all."
    )
    caption = f"{summary['title']}: measures over the stream"
    return Section("Over the stream", charts=[Chart("curves", caption, content, hint)])


def _marks(summary: Summary, models: Sequence[str]) -> list[Mark]:
    """Return where labels appeared, and the alarms of models and the drifts that they confirmed."""
    marks = []
    for appeared in summary["events"]["labels"]:
        count, names = appeared["count"], appeared["names"]
        listed = f"{', '.join(names)}{', …' if count > len(names) else ''}"
        text = f"{'label' if count == 1 else plural(count, 'label')} appeared: {listed}"
        marks.append(Mark(appeared["row"], meaning="labels appeared", text=text))
    for what, meaning, hollow in (
        ("alarms", "errors of a model of this colour grew, an alarm", True),
        ("drifts", "a model of this colour confirmed a drift", False),
    ):
        for found in summary["events"][what]:
            color, text = models.index(found["model"]), f"{what[:-1]}{' confirmed' * (not hollow)}: {found['model']}"
            marks += [Mark(row, color, meaning, text, hollow) for row in found["rows"]]
    return marks


def _labels_section(summary: Summary) -> Section:
    """Return the labels with the highest and the lowest F1, by name, and F1 of all labels by their frequency."""
    labels, models = summary["labels"], summary["models"][:_COMPARED]
    groups = []
    for title, columns in (("Best", summary["extremes"]["best"]), ("Worst", summary["extremes"]["worst"])):
        rows = [
            Row(
                labels["names"][label],
                [
                    Cell(f"{100 * labels['frequency'][label]:.3g} %", number=labels["frequency"][label]),
                    *(Cell(as_value(f1[label], 3), number=f1[label]) for f1 in labels["f1"][: len(models)]),
                ],
            )
            for label in columns
        ]
        groups += [Group(rows, title)] if rows else []
    headings = [Column("Share of rows"), *(Column(f"F1 of {model['name']}", lower=False) for model in models)]
    caption = f"The labels with the highest and the lowest F1 of {models[0]['name']}."
    hint = "Labels that are in very few rows are left out."
    table = Table("labels", caption, headings, groups, first="Label")
    return Section("Labels", hint, [table], [_labels_chart(summary)])


def _labels_chart(summary: Summary) -> Chart:
    """Return F1 of each label, of the first model, against how often it occurs, and the trend of each model."""
    labels, models = summary["labels"], [model["name"] for model in summary["models"]]
    # A logarithmic scale has no room for labels that never occurred.
    order = sorted((share, label) for label, share in enumerate(labels["frequency"]) if share)
    order = order[:: -(-len(order) // _DRAWN)]
    f1 = [labels["f1"][0][label] for _, label in order]
    tips = [
        f"{labels['names'][label]}, in {100 * share:.3g} % of rows: {models[0]} has F1 {as_value(value, 3)}"
        for (share, label), value in zip(order, f1, strict=True)
    ]
    series = [Series("", [share for share, _ in order], f1, 0, line=False, marker=".", tips=tips)]
    for color, (name, trend) in enumerate(zip(models, labels["trend"], strict=True)):
        # One point for labels that are equally frequent.
        line = {share: trend[label] for share, label in order if trend[label] is not None}
        series.append(Series(name, list(line), list(line.values()), color))
    panel = Panel("", series, "share of rows with the label", "F1 of the label", "x", None, (-0.03, 1.03), percent=True)
    caption = f"{summary['title']}: F1 of each label and its frequency"
    hint = f"Dots are labels, with the F1 of {models[0]}; lines are means over labels of similar frequency."
    return Chart("labels", caption, panels([panel], size=(8.0, 4.2)), hint)


def _time_section(summary: Summary) -> Section:
    """Return seconds by phase, ratios to the reference and memory, as a table and as bars."""
    models, reference = summary["models"], summary["reference"]
    phases = [phase for phase in PHASES if phase != "features" or any(model["seconds"][phase] for model in models)]
    columns = [Column(f"{phase.capitalize()} (s)", True) for phase in phases]
    columns += [Column("Time per row (ms)", True), Column("log10 ratio", True), Column("Peak memory", True)]
    rows = []
    for color, model in enumerate(models):
        ratio, per_row = model["log10_time_ratio"], model["ms_per_row"]["total"]
        cells = [Cell(as_significant(model["seconds"][phase]), number=model["seconds"][phase]) for phase in phases]
        cells += [Cell(as_significant(per_row), number=per_row), Cell(as_signed(ratio), number=ratio)]
        rows.append(Row(model["name"], [*cells, Cell(as_bytes(model["memory"]), number=model["memory"])], color=color))
    table = Table("times", "Seconds of one run, by phase.", columns, [Group(rows)], sortable=True)
    hint = "Seconds of one run. Measuring is not part of a model's running time; making features of a table is."
    charts = []
    if reference:
        hint += f" Ratios are log10 of the time per row divided by that of {reference}: +1 is ten times slower."
        charts = [Chart("seconds", f"{summary['title']}: seconds of one run", bars(*_seconds(summary)))]
    return Section("Time", hint, [table], charts, page_only=True)


def _seconds(summary: Summary) -> tuple[list[str], dict[str, list[float]], list[str]]:
    """Return the models that have a time, seconds of each phase that counts in it, and the sums as texts."""
    timed = [model for model in summary["models"] if model["seconds"]["total"] is not None]
    parts = {phase: [model["seconds"][phase] or 0.0 for model in timed] for phase in PHASES if phase != "measure"}
    totals = [f"{as_significant(model['seconds']['total'])} s" for model in timed]
    return [model["name"] for model in timed], {name: part for name, part in parts.items() if any(part)}, totals


def _details(summary: Summary) -> Details:
    """Return models with their parameters, and the manifest."""
    facts = {}
    for model in summary["models"]:
        given = [f"{key}={value}" for key, value in model["parameters"].items()] or ["default parameters"]
        facts[model["name"]] = [*([model["kind"]] if model["kind"] != model["name"] else []), *given]
    manifest = summary["manifest"]
    # Names of labels may be many; the chart of the labels has them.
    source = {key: value for key, value in manifest["source"].items() if key != "label_names"}
    text = json.dumps(manifest | {"source": source}, indent=2, ensure_ascii=False, default=str)
    return Details("Data, models and their parameters, machine", facts, text)


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
