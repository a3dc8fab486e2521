"""The results as CSV, Markdown and LaTeX, and the grid of cells that these and the terminal's table share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from labelrace.report.collect import PHASES
from labelrace.report.summary import Summary
from labelrace.report.text import as_significant, as_value, printable

__all__ = ["UNFINISHED", "Cell", "Column", "Grid", "csv_table", "grid", "latex_table", "markdown_table"]

UNFINISHED = "†"


class Column(NamedTuple):
    """A heading; ``lower`` is None where neither direction is better."""

    title: str
    lower: bool | None

    @property
    def arrow(self) -> str:
        """Return the direction that is better, as a sign."""
        return "" if self.lower is None else "↓" if self.lower else "↑"


class Cell(NamedTuple):
    """A value as text, its standard deviation and rank where there are any, and whether it is the best."""

    value: str
    sd: str = ""
    rank: str = ""
    best: bool = False


class Grid(NamedTuple):
    """Headings beside the models' names, and the rows under them."""

    columns: list[Column]
    rows: list[tuple[str, list[Cell]]]


def grid(summary: Summary) -> Grid:
    """Return what a table of results shows: a row per model; measures, average rank and running time."""
    measures = summary["measures"]
    columns = [Column(measure["label"], measure["lower"]) for measure in measures]
    columns += [Column("Average rank", True), Column("Time (s)", True)]
    rows = []
    for model in summary["models"]:
        cells = [_measured(model["measures"][measure["name"]], measure["decimals"]) for measure in measures]
        cells += [
            Cell(as_value(model["average_rank"], 2), best=model["best_rank"]),
            Cell(as_significant(model["seconds"]["total"]), best=model["fastest"]),
        ]
        rows.append((shown_name(model), cells))
    return Grid(columns, rows)


def shown_name(model: Mapping[str, Any]) -> str:
    """Return the model's name on one line, marked where its values are not of finished runs."""
    marked = model["runs"]["started"] and not model["ranked"]
    return f"{printable(model['name'])} {UNFINISHED}" if marked else printable(model["name"])


def _measured(cell: Mapping[str, Any], decimals: int) -> Cell:
    sd = "" if cell["sd"] is None else as_value(cell["sd"], decimals)
    rank = "" if cell["rank"] is None else str(cell["rank"])
    return Cell(as_value(cell["mean"], decimals), sd, rank, cell["best"])


def csv_table(summary: Summary) -> str:
    """Return one line per model with all digits, for programs to read."""
    names = [measure["name"] for measure in summary["measures"]]
    log_ratios = next(row["values"] for row in summary["heat"]["rows"] if row["phase"] == "total")
    header = ["source", "model", "runs", "runs_expected"]
    header += [f"{name}{part}" for name in names for part in ("", "_sd", "_rank")]
    header += ["average_rank", *(f"seconds_{phase}" for phase in (*PHASES, "total"))]
    header += ["ms_per_row", "log10_time_ratio", "memory"]
    lines: list[list[Any]] = [header]
    for model, log_ratio in zip(summary["models"], log_ratios, strict=True):
        line = [summary["title"], model["name"], model["runs"]["finished"], model["runs"]["expected"]]
        line += [model["measures"][name][part] for name in names for part in ("mean", "sd", "rank")]
        line += [model["average_rank"], *(model["seconds"][phase] for phase in (*PHASES, "total"))]
        line += [model["ms_per_row"]["total"], log_ratio, model["memory"]]
        lines.append(line)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def markdown_table(summary: Summary) -> str:
    """Return the results as a Markdown document: the sentence, the table, the notes."""
    columns, rows = grid(summary)
    lines = [f"# {_markdown(summary['title'])}", "", _markdown(summary["headline"]), ""]
    lines.append(_piped(["Model", *(f"{column.title} {column.arrow}".rstrip() for column in columns)]))
    lines.append(_piped(["---", *("---:" for _ in columns)]))
    lines += [_piped([_markdown(name), *map(_markdown_cell, cells)]) for name, cells in rows]
    if any(cell.rank for _, cells in rows for cell in cells):
        lines += ["", "Best values are bold, ranks in brackets; ↑ higher, ↓ lower is better."]
    if summary["notes"]:
        lines += ["", *(f"- {_markdown(note)}" for note in summary["notes"])]
    return "\n".join(lines) + "\n"


def _piped(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.value}**" if cell.best else cell.value
    return text + (f" ± {cell.sd}" if cell.sd else "") + (f" ({cell.rank})" if cell.rank else "")


def _markdown(text: str) -> str:
    """Return the text so that Markdown shows it as it is, also inside a table and where HTML is let through."""
    escaped = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def latex_table(summary: Summary) -> str:
    r"""Return the results as a ``tabular`` that needs no package, to ``\input`` into a table."""
    columns, rows = grid(summary)
    arrows = {"↑": r" $\uparrow$", "↓": r" $\downarrow$", "": ""}
    titles = ["Model", *(_latex(column.title) + arrows[column.arrow] for column in columns)]
    measured = len(columns) - 2
    lines = [f"% {printable(summary['headline'])}", *(f"% {printable(note)}" for note in summary["notes"])]
    lines += [rf"\begin{{tabular}}{{l|{'c' * measured}|c|r}}", rf"{' & '.join(titles)} \\ \hline \hline"]
    lines += [" & ".join([_latex(name), *map(_latex_cell, cells)]) + r" \\" for name, cells in rows]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def _latex_cell(cell: Cell) -> str:
    if cell.value == "–":
        return "--"
    text = cell.value + (rf" $\pm$ {cell.sd}" if cell.sd else "")
    return (rf"\textbf{{{text}}}" if cell.best else text) + (f" $({cell.rank})$" if cell.rank else "")


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    '"': r"{''}",
    UNFINISHED: r"$^\dagger$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def _latex(text: str) -> str:
    """Return the text so that LaTeX sets it as it is."""
    return "".join(_LATEX.get(char, char) for char in printable(text))
