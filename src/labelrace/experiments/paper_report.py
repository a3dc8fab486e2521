"""The comparison with the paper as tables, figures and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labelrace.evaluation import is_loss
from labelrace.experiments.datasets import Source
from labelrace.experiments.paper import Cell, PaperSummary, PaperTable
from labelrace.experiments.published import REASONS, Facts, Verdict, paper_datasets
from labelrace.experiments.ranking import OVERALL, rank_charts, ranks_table
from labelrace.measures import PAPER_MEASURES
from labelrace.report import tables as report
from labelrace.report.figures import Chart, Panel, Series, bars, heat_map, panels
from labelrace.report.page import Document, Section, made_by
from labelrace.report.tables import Column, Group, Other, Row, Table, text_table
from labelrace.report.text import MISSING, as_significant, as_value, listing, measure_label, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The original's Majority predicts arbitrary labels, as many as a row has, instead of the most frequent ones.
_MISTAKEN, _MISTAKEN_MARK = "majority", "s"


def paper_document(summary: PaperSummary) -> Document:
    """Return the comparison as sections of tables and charts."""
    measured = listing(source.title for source in summary.facts)
    return Document(
        name="paper",
        title="RACE: the paper and labelrace",
        lead=f"Tables 1 to 4 of arXiv:1804.01491 beside what labelrace measures on {measured}. Means over "
        f"{plural(summary.manifest['runs'], 'run')}; methods without randomness ran once.",
        footer=made_by(summary.manifest),
        sections=[
            *_agreement(summary),
            Section(
                "Table 1: the datasets",
                "As counted here. Where the paper has another number it stands below.",
                [_facts_table(summary)],
            ),
            *(_table_section(table) for table in summary.tables),
            *_times(summary),
            *_sweeps(summary),
        ],
        records=_records(summary),
        notes=summary.notes,
    )


def _agreement(summary: PaperSummary) -> list[Section]:
    """Return how many values agree, and each of them against the paper's."""
    kinds: dict[str, Callable[[Cell], Verdict | None]] = {
        "": lambda cell: cell.verdict if cell.printed else None,
        ", measures in its source only": lambda cell: None if cell.printed else cell.verdict,
        ", authors' program rerun": lambda cell: cell.rerun_verdict if cell.printed else None,
    }
    counted = {
        f"{table.name}{kind}": counts
        for kind, verdict in kinds.items()
        for table in summary.tables
        if (counts := Counter(found.reason for cell in table.cells.values() if (found := verdict(cell))))
    }
    if not counted:
        return [Section("Agreement", "Nothing here can be compared with the paper.")]
    agree = {name: f"{counts.total() - counts['differs']} of {counts.total()}" for name, counts in counted.items()}
    rows = {name: [agree[name], *(str(counts[reason]) for reason in REASONS)] for name, counts in counted.items()}
    columns = ["Agree", *(reason.capitalize() for reason in REASONS)]
    shares: dict[str, list[float]] = {
        reason: [100 * c[reason] / c.total() for c in counted.values()] for reason in REASONS
    }
    charts = [Chart("agreement", "Shares of the values", lambda: bars(list(counted), shares, list(agree.values())))]
    if cells := _compared(summary):
        agreeing = sum(cell.verdict.agrees for cell in cells if cell.verdict)
        caption = f"{agreeing} of {len(cells)} printed values agree"
        charts.append(Chart("scatter", caption, lambda: _scatter(cells)))
    hint = (
        "How many values round to the printed one (rounding), are within two standard errors of it (chance), are "
        "within the paper's standard deviation over runs (spread), or differ. The authors' Majority predicts arbitrary "
        "labels, as many as a row has, and their OECC has five chains in the same order: neither mistake is copied."
    )
    values = text_table("agreement", "Values that agree with the paper.", columns, rows, "Values")
    return [Section("Agreement", hint, [values], charts)]


def _compared(summary: PaperSummary) -> list[Cell]:
    """Return the printed cells that have a verdict; Table 3's repeats of Table 2 are left out."""
    cells: dict[tuple[str, ...], Cell] = {}
    for table in summary.tables:
        for cell in table.cells.values():
            if cell.printed and cell.verdict is not None:
                protocol = "holdout" if table.number == "4" else "prequential"
                cells.setdefault((protocol, cell.source.name, cell.method, cell.measure), cell)
    return list(cells.values())


def _scatter(cells: Sequence[Cell]) -> Figure:
    """Draw every compared value against the paper's: a colour for each dataset, rings for values that differ."""
    grouped: dict[tuple[str, bool, bool], list[tuple[float, float, float, str]]] = {}
    for cell in cells:
        if cell.ours is None or cell.paper is None or cell.verdict is None:
            continue
        tip = f"{cell.source.name}, {cell.method}, {measure_label(cell.measure)}: {cell.ours.mean:.3f}, "
        error = 2 * (cell.ours.sd or 0.0) / cell.ours.runs**0.5
        point = (cell.paper.value, cell.ours.mean, error, f"{tip}paper {cell.paper.text}")
        grouped.setdefault((cell.source.name, cell.verdict.agrees, cell.method == _MISTAKEN), []).append(point)
    datasets = list(dict.fromkeys(name for name, *_ in grouped))
    series = [Series(name, [], [], place, line=False, marker="o") for place, name in enumerate(datasets)]
    series.append(Series("differs", [], [], None, line=False, marker="o", hollow=True))
    if any(mistaken for *_, mistaken in grouped):
        label = "Majority, which the original gets wrong"
        series.append(Series(label, [], [], None, line=False, marker=_MISTAKEN_MARK, hollow=True))
    for (name, agrees, mistaken), points in grouped.items():
        x, y, errors, tips = (list(part) for part in zip(*points, strict=True))
        mark = _MISTAKEN_MARK if mistaken else "o"
        place = datasets.index(name)
        series.append(Series("", x, y, place, errors, line=False, marker=mark, hollow=not agrees, tips=tips))
    top = max(max(x, y) for points in grouped.values() for x, y, *_ in points)
    span = (-0.02 * top, 1.06 * top)
    panel = Panel("", series, "printed in the paper", "measured, ± two standard errors", "", span, span, diagonal=True)
    return panels([panel], size=(5.4, 5.0), columns=3)


def _facts_table(summary: PaperSummary) -> Table:
    rows = []
    for source, counted in summary.facts.items():
        printed = _fact_texts(paper_datasets()[source.name][0])
        cells = [
            report.Cell(
                ours, others=() if source.synthetic or ours == theirs else (Other("paper", theirs, differs=True),)
            )
            for ours, theirs in zip(_fact_texts(counted), printed, strict=True)
        ]
        rows.append(
            Row(source.title, cells, "" if source.synthetic or summary.is_papers(source) else "not the paper's")
        )
    columns = [Column(name.replace("_", " ").capitalize()) for name in Facts._fields]
    return Table("datasets", "Table 1: the datasets.", columns, [Group(rows)], "Dataset")


def _fact_texts(facts: Facts) -> list[str]:
    return [f"{value:.3f}" if isinstance(value, float) else f"{value:,}" for value in facts]


def _table_section(table: PaperTable) -> Section:
    """Return one of Tables 2 to 4: ours beside the paper's, average ranks, and critical differences."""
    columns = [Column(measure_label(name), is_loss(name)) for name in table.measures]
    columns += [Column("Average rank", True), Column("Time (s)", True)]
    groups = [
        Group(
            [Row(method, _cells(table, source, method)) for method in table.methods],
            source.title,
            "synthetic" if source.synthetic else "",
        )
        for source in dict.fromkeys(source for source, *_ in table.cells)
    ]
    title = table.title if table.name == table.title else f"{table.name}: {table.title}"
    tables = [Table(f"table-{table.number}", f"{title}.", columns, groups, "Method")]
    hint = (
        "Ours, then the paper's value and, where it is known, that of the authors' program run again. Marked values "
        "are further from the paper's than rounding and chance explain. Times are seconds of one run: ours on this "
        "machine, the paper's on its own."
    )
    if table.number == "related":
        hint = (
            "Methods that the paper names, or could, and does not run; each batch is tested, then learned. Notes tell "
            "what was left out and what it would take. Means are over at most three runs. Ranks are those of methods "
            "that ran on all datasets."
        )
    if table.ranks:
        ranked = [method for method in table.methods if any((method, OVERALL) in of.averages for of in table.ranks)]
        ranks = f"Average ranks, {table.name}."
        tables.append(ranks_table(f"ranks-{table.number}", ranks, table.ranks, ranked, table.measures))
    if table.number in "23":
        hint += " Ranks are of values rounded to two digits, as in the paper; methods that tie share the better rank."
    caption = f"Average ranks and critical differences, {table.name}"
    if charts := rank_charts(f"ranks-table-{table.number}", caption, table.ranks):
        hint += (
            " The diagrams take each dataset's mean rank over the measures, with ties shared evenly; bars join methods "
            "that Nemenyi's test does not tell apart at the 5 % level."
        )
    return Section(title, hint, tables, charts)


def _cells(table: PaperTable, source: Source, method: str) -> list[report.Cell]:
    average = table.average_rank(source, method)
    seconds, printed = table.seconds[source, method]
    others = () if printed is None else (Other("paper", as_significant(printed)),)
    return [
        *(_cell(table.cells[source, method, measure]) for measure in table.measures),
        report.Cell(as_value(average, 2)),
        report.Cell(as_significant(seconds), others=others),
    ]


def _cell(cell: Cell) -> report.Cell:
    others = []
    if cell.paper is not None:
        detail = "" if cell.paper.sd is None else f" ± {cell.paper.sd:.2f}"
        detail += f" ({cell.paper.rank})" if cell.paper.rank else ""
        others.append(Other("paper", cell.paper.text, detail, cell.verdict is not None and not cell.verdict.agrees))
    if cell.rerun is not None:
        differs = cell.rerun_verdict is not None and not cell.rerun_verdict.agrees
        others.append(Other("rerun", cell.rerun.text, "", differs))
    if cell.ours is None:
        return report.Cell(MISSING, others=tuple(others))
    sd = as_value(cell.ours.sd, 3, "")
    return report.Cell(f"{cell.ours.mean:.3f}", sd, str(cell.rank or ""), others=tuple(others), number=cell.ours.mean)


def _times(summary: PaperSummary) -> list[Section]:
    ratios = summary.time_ratios()
    if not ratios:
        return []
    methods = list(dict.fromkeys(name for *_, by_method in ratios for name in by_method))
    values = [[by_method.get(name) for name in methods] for *_, by_method in ratios]
    names = [f"{source.title}, {whose}" for source, whose, _ in ratios]
    caption = "log10 of running time against race-cls-adaptive: +1 is ten times slower"
    return [Section("Running times", charts=[Chart("time", caption, lambda: heat_map(methods, names, values))])]


def _sweeps(summary: PaperSummary) -> list[Section]:
    if not summary.sweeps:
        return []
    shown = []
    for sweep in summary.sweeps:
        series = [
            Series(measure_label(name), sweep.counts, sweep.means[name], place, sweep.deviations[name], marker="o")
            for place, name in enumerate(PAPER_MEASURES)
        ]
        title = f"{sweep.source.title}: {sweep.method}"
        shown.append(Panel(title, series, "pseudo labels", y_range=(0, None), x_ticks=sweep.counts))
    caption = "The number of pseudo labels: means and deviations over runs"
    chart = Chart("sweep", caption, lambda: panels(shown, across=2, size=(3.7, 2.5), columns=5))
    hint = "From ⌈log2 l⌉ to its square. The paper shows this as a figure, without numbers."
    return [Section("The number of pseudo labels", hint, charts=[chart])]


def _records(summary: PaperSummary) -> dict[str, list[dict[str, Any]]]:
    """Return what programs read, with all digits: cells, datasets, ranks, times and the sweep."""
    datasets = []
    for source, counted in summary.facts.items():
        found = "synthetic" if source.synthetic else "yes" if summary.is_papers(source) else "another"
        datasets.append(_dataset(source.name, found, counted._asdict()))
    shown = {source.name for source in summary.facts}
    datasets += [_dataset(name, "no", {}) for name in summary.missing if name not in shown]
    return {
        "cells": [_cell_record(cell) for table in summary.tables for cell in table.cells.values()],
        "datasets": datasets,
        "ranks": [
            {"table": table.number, "whose": ranks.title, "datasets": " ".join(ranks.datasets)}
            | {"method": method, "measure": measure, "average_rank": value}
            for table in summary.tables
            for ranks in table.ranks
            for (method, measure), value in ranks.averages.items()
        ],
        "times": [
            {"table": table.number, "dataset": source.name, "synthetic": source.synthetic}
            | {"method": method, "seconds": ours, "paper_seconds": theirs}
            for table in summary.tables
            for (source, method), (ours, theirs) in table.seconds.items()
        ],
        "sweep": [
            {"dataset": sweep.source.name, "synthetic": sweep.source.synthetic, "method": sweep.method}
            | {"pseudo_labels": count, "measure": measure, "mean": mean, "sd": sd}
            for sweep in summary.sweeps
            for measure, means in sweep.means.items()
            for count, mean, sd in zip(sweep.counts, means, sweep.deviations[measure], strict=True)
        ],
    }


def _dataset(name: str, found: str, counted: Mapping[str, Any]) -> dict[str, Any]:
    printed = paper_datasets()[name][0]._asdict()
    record = {"dataset": name, "found": found} | {key: counted.get(key) for key in Facts._fields}
    return record | {f"paper_{key}": value for key, value in printed.items()}


def _cell_record(cell: Cell) -> dict[str, Any]:
    ours, paper, rerun = cell.ours, cell.paper, cell.rerun
    return {
        "table": cell.table,
        "dataset": cell.source.name,
        "synthetic": cell.source.synthetic,
        "method": cell.method,
        "measure": cell.measure,
        "printed": cell.printed,
        "ours": ours and ours.mean,
        "ours_sd": ours and ours.sd,
        "runs": ours and ours.runs,
        "rank": cell.rank,
        "paper": paper and paper.text,
        "paper_sd": paper and paper.sd,
        "paper_rank": paper and paper.rank,
        **_verdict("", cell.verdict),
        "rerun": rerun and rerun.text,
        "rerun_sd": rerun and rerun.sd,
        **_verdict("rerun_", cell.rerun_verdict),
    }


def _verdict(prefix: str, verdict: Verdict | None) -> dict[str, Any]:
    names = [f"{prefix}{name}" for name in ("difference", "verdict", "reason")]
    if verdict is None:
        return dict.fromkeys(names)
    values = (verdict.difference, "agrees" if verdict.agrees else "differs", verdict.reason)
    return dict(zip(names, values, strict=True))
