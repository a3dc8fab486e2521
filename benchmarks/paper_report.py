"""The comparison with the paper as tables, figures and a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.paper import TABLES, PaperSummary
from benchmarks.plan import Record
from benchmarks.published import REASONS, Facts
from benchmarks.ranking import OVERALL, rank_charts, ranks_table
from labelrace.evaluation import is_loss
from labelrace.report.charts import Chart, Panel, Panels, Series, heat_map, panels
from labelrace.report.document import Document, Section, made_by
from labelrace.report.tables import Cell, Column, Group, Other, Row, Table, text_table
from labelrace.report.text import as_significant, as_value, listing, macro_note, measure_label, plural

# The original's Majority predicts arbitrary labels, as many as a row has, instead of the most frequent ones.
_MISTAKEN, _MISTAKEN_MARK = "majority", "s"
# The method that times are compared with.
_REFERENCE = "race-cls-adaptive"


def paper_document(summary: PaperSummary) -> Document:
    """Return the comparison as sections of tables and charts."""
    return Document(
        name="paper",
        title="RACE: the paper and labelrace",
        lead=f"Tables 1 to 4 of arXiv:1804.01491 beside what labelrace measures on {listing(summary.datasets)}. "
        f"Means over {plural(summary.manifest['runs'], 'run')}; methods without randomness ran once.",
        footer=made_by(summary.manifest),
        sections=[
            *_agreement(summary),
            Section(
                "Table 1: the datasets",
                "As counted here. Where the paper has another number it stands below.",
                [_facts_table(summary)],
            ),
            *(_table_section(summary, number) for number in summary.ranks),
            *_times(summary),
            *_sweeps(summary),
        ],
        records=summary.records,
        notes=summary.notes,
    )


def _name(number: str) -> str:
    """Return what to call a table."""
    return f"Table {number}" if number.isdigit() else TABLES[number].title


def _agreement(summary: PaperSummary) -> list[Section]:
    """Return how many values agree, and each of them against the paper's."""
    kinds = (
        ("", True, "reason"),
        (", measures in its source only", False, "reason"),
        (", authors' program rerun", True, "rerun_reason"),
    )
    counted: dict[str, Counter[str]] = {}
    for kind, printed, reason in kinds:
        for cell in summary.records["cells"]:
            if cell["printed"] == printed and cell[reason]:
                counted.setdefault(f"{_name(cell['table'])}{kind}", Counter())[cell[reason]] += 1
    if not counted:
        return [Section("Agreement", "Nothing here can be compared with the paper.")]
    agree = {name: f"{counts.total() - counts['differs']} of {counts.total()}" for name, counts in counted.items()}
    rows = {name: [agree[name], *(str(counts[reason]) for reason in REASONS)] for name, counts in counted.items()}
    columns = ["Agree", *(reason.capitalize() for reason in REASONS)]
    charts = []
    if cells := _compared(summary):
        agreeing = sum(cell["verdict"] == "agrees" for cell in cells)
        caption = f"{agreeing} of {len(cells)} printed values agree"
        charts.append(Chart("scatter", caption, _scatter(cells)))
    hint = (
        "How many values round to the printed one (rounding), are within two standard errors of it (chance), are "
        "within the paper's standard deviation over runs (spread), or differ. The authors' Majority predicts arbitrary "
        "labels, as many as a row has, and their OECC has five chains in the same order: neither mistake is copied."
    )
    values = text_table("agreement", "Values that agree with the paper.", columns, rows, "Values")
    return [Section("Agreement", hint, [values], charts)]


def _compared(summary: PaperSummary) -> list[Record]:
    """Return the printed cells that have a verdict; Table 3's repeats of Table 2 are left out."""
    cells: dict[tuple[Any, ...], Record] = {}
    for cell in summary.records["cells"]:
        if cell["printed"] and cell["verdict"]:
            cells.setdefault((cell["table"] == "4", cell["dataset"], cell["method"], cell["measure"]), cell)
    return list(cells.values())


def _scatter(cells: Sequence[Record]) -> Panels:
    """Return every compared value against the paper's: a colour for each dataset, rings for values that differ."""
    grouped: dict[tuple[str, bool, bool], list[tuple[float, float, float, str]]] = {}
    for cell in cells:
        dataset, method, ours, paper = (cell[key] for key in ("dataset", "method", "ours", "paper"))
        tip = f"{dataset}, {method}, {measure_label(cell['measure'])}: {ours:.3f}, paper {paper}"
        error = 2 * (cell["ours_sd"] or 0.0) / cell["runs"] ** 0.5
        group = (dataset, cell["verdict"] == "agrees", method == _MISTAKEN)
        grouped.setdefault(group, []).append((float(paper), ours, error, tip))
    datasets = list(dict.fromkeys(name for name, *_ in grouped))
    series = [Series(name, [], [], color, line=False, marker="o") for color, name in enumerate(datasets)]
    series.append(Series("differs", [], [], None, line=False, marker="o", hollow=True))
    if any(mistaken for *_, mistaken in grouped):
        label = "Majority, which the original gets wrong"
        series.append(Series(label, [], [], None, line=False, marker=_MISTAKEN_MARK, hollow=True))
    for (name, agrees, mistaken), points in grouped.items():
        x, y, errors, tips = (list(part) for part in zip(*points, strict=True))
        mark = _MISTAKEN_MARK if mistaken else "o"
        color = datasets.index(name)
        series.append(Series("", x, y, color, errors, line=False, marker=mark, hollow=not agrees, tips=tips))
    top = max(max(x, y) for points in grouped.values() for x, y, *_ in points)
    span = (-0.02 * top, 1.06 * top)
    panel = Panel("", series, "printed in the paper", "measured, ± two standard errors", "", span, span, diagonal=True)
    return panels([panel], size=(5.4, 5.0), columns=3)


def _facts_table(summary: PaperSummary) -> Table:
    rows = []
    for record in summary.records["datasets"]:
        if record["found"] == "no":
            continue
        cells = []
        for name in Facts._fields:
            ours, theirs = (
                f"{v:.3f}" if isinstance(v, float) else f"{v:,}" for v in (record[name], record[f"paper_{name}"])
            )
            cells.append(Cell(ours, others=() if ours == theirs else (Other("paper", theirs, differs=True),)))
        tag = "not the paper's" if record["found"] == "another" else ""
        rows.append(Row(record["dataset"], cells, tag))
    columns = [Column(name.replace("_", " ").capitalize()) for name in Facts._fields]
    return Table("datasets", "Table 1: the datasets.", columns, [Group(rows)], "Dataset")


def _table_section(summary: PaperSummary, number: str) -> Section:
    """Return one of Tables 2 to 4: ours beside the paper's, average ranks, and critical differences."""
    _, title, _, measures = TABLES[number]
    columns = [Column(measure_label(name), is_loss(name)) for name in measures]
    columns += [Column("Average rank", True), Column("Time (s)", True)]
    cells = {
        (cell["dataset"], cell["method"], cell["measure"]): cell
        for cell in summary.records["cells"]
        if cell["table"] == number
    }
    times = {(time["dataset"], time["method"]): time for time in summary.records["times"] if time["table"] == number}
    methods = list(dict.fromkeys(method for _, method in times))
    groups = []
    for dataset in summary.datasets:
        rows = []
        for method in methods:
            line = [cells[dataset, method, measure] for measure in measures]
            rows.append(Row(method, [*map(_cell, line), *_last_cells(line, times[dataset, method])]))
        groups.append(Group(rows, dataset))
    name, ranks = _name(number), summary.ranks[number]
    title = title if name == title else f"{name}: {title}"
    note = macro_note(measures, 1.0)
    tables = [Table(f"table-{number}", f"{title}.", columns, groups, "Method", note=note)]
    hint = (
        "Ours, then the paper's value and, where it is known, that of the authors' program run again. Marked values "
        "are further from the paper's than rounding and chance explain. Times are seconds of one run: ours on this "
        "machine, the paper's on its own."
    )
    if number == "related":
        hint = (
            "Methods that the paper names, or could, and does not run; each batch is tested, then learned. Notes tell "
            "what was left out and what it would take. Means are over at most three runs. Ranks are those of methods "
            "that ran on all datasets."
        )
    if ranks:
        ranked = [method for method in methods if any((method, OVERALL) in of.averages for of in ranks)]
        tables.append(ranks_table(f"ranks-{number}", f"Average ranks, {name}.", ranks, ranked, measures))
    if number in "23":
        hint += " Ranks are of values rounded to two digits, as in the paper; methods that tie share the better rank."
    caption = f"Average ranks and critical differences, {name}"
    if charts := rank_charts(f"ranks-table-{number}", caption, ranks):
        hint += (
            " The diagrams take each dataset's mean rank over the measures, with ties shared evenly; bars join methods "
            "that Nemenyi's test does not tell apart at the 5 % level."
        )
    return Section(title, hint, tables, charts)


def _cell(cell: Record) -> Cell:
    others = []
    if cell["paper"] is not None:
        detail = "" if cell["paper_sd"] is None else f" ± {cell['paper_sd']:.2f}"
        detail += f" ({cell['paper_rank']})" if cell["paper_rank"] else ""
        others.append(Other("paper", cell["paper"], detail, cell["verdict"] == "differs"))
    if cell["rerun"] is not None:
        others.append(Other("rerun", cell["rerun"], "", cell["rerun_verdict"] == "differs"))
    value, sd = as_value(cell["ours"], 3), as_value(cell["ours_sd"], 3, "")
    return Cell(value, sd, str(cell["rank"] or ""), others=tuple(others), number=cell["ours"])


def _last_cells(line: Sequence[Record], time: Record) -> list[Cell]:
    """Return a method's mean rank over the printed measures, as in the paper's last column but one, and its time."""
    ranks = [cell["rank"] for cell in line]
    average = float(np.mean(ranks)) if all(ranks) else None
    printed = time["paper_seconds"]
    others = () if printed is None else (Other("paper", as_significant(printed)),)
    return [Cell(as_value(average, 2)), Cell(as_significant(time["seconds"]), others=others)]


def _times(summary: PaperSummary) -> list[Section]:
    rows: dict[str, dict[str, float | None]] = {}
    for time in summary.records["times"]:
        for whose, key in (("ours", "seconds"), ("the paper's", "paper_seconds")):
            # The paper has times of all methods on its datasets, and none on others.
            if time["table"] in "23" and (whose == "ours" or time[key]):
                rows.setdefault(f"{time['dataset']}, {whose}", {})[time["method"]] = time[key]
    if not rows:
        return []
    methods = list(dict.fromkeys(method for row in rows.values() for method in row))
    values = []
    for row in rows.values():
        base, times = row.get(_REFERENCE), [row.get(method) for method in methods]
        values.append([math.log10(time / base) if time and base else None for time in times])
    caption = f"log10 of running time against {_REFERENCE}: +1 is ten times slower"
    return [Section("Running times", charts=[Chart("time", caption, heat_map(methods, list(rows), values))])]


def _sweeps(summary: PaperSummary) -> list[Section]:
    lines: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for record in summary.records["sweep"]:
        of = lines.setdefault((record["dataset"], record["method"]), {})
        of.setdefault(record["measure"], []).append(record)
    if not lines:
        return []
    shown = []
    for (dataset, method), by_measure in lines.items():
        series = []
        for color, (measure, line) in enumerate(by_measure.items()):
            counts, means, sds = ([record[key] for record in line] for key in ("pseudo_labels", "mean", "sd"))
            series.append(Series(measure_label(measure), counts, means, color, sds, marker="o"))
        title = f"{dataset}: {method}"
        shown.append(Panel(title, series, "pseudo labels", y_range=(0, None), x_ticks=counts))
    caption = "The number of pseudo labels: means and deviations over runs"
    chart = Chart("sweep", caption, panels(shown, across=2, size=(3.7, 2.5), columns=5))
    hint = "From ⌈log2 l⌉ to its square. The paper shows this as a figure, without numbers."
    return [Section("The number of pseudo labels", hint, charts=[chart])]
