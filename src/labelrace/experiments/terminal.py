"""The comparison in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelrace.experiments.cells import Cell
from labelrace.experiments.ranking import OVERALL
from labelrace.experiments.summary import PaperSummary, PaperTable
from labelrace.report.text import as_significant, measure_label, plural

__all__ = ["print_paper"]

# Columns of a terminal from which on tables need not be narrow.
_ROOMY = 90


def print_paper(summary: PaperSummary, console: Console | None = None) -> None:
    """Print Tables 2 to 4, ours beside the paper's, and how much agrees."""
    console = console or Console()
    for table in summary.tables:
        console.print(Text(f"\nTable {table.number}: {table.title}", style="bold"))
        console.print(_table(table, console.width))
        console.print(Text(_verdicts(table)))
    console.print(
        Text("\nours over the paper's; red where they differ by more than rounding and chance", style="dim"), end="\n\n"
    )
    for note in summary.notes:
        console.print(Text(f"! {note}", style="yellow"))


def _table(table: PaperTable, width: int) -> Table:
    gap = 1 if width >= _ROOMY else 0
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("\nMethod", no_wrap=True)
    for title in (*map(measure_label, table.measures), "Average rank", "Time (s)"):
        first, _, rest = title.rpartition(" ")
        grid.add_column(Text(f"{first}\n{rest}", justify="right"), justify="right", no_wrap=True)
    for block in table.blocks:
        grid.add_row(Text(block.source.title, style="bold"))
        for method in table.methods:
            average = block.average_rank(method, table.measures)
            times = f"{as_significant(block.seconds[method])}\n{as_significant(block.paper_seconds[method], '')}"
            grid.add_row(
                method,
                *(_cell(block.cells[method, measure]) for measure in table.measures),
                "–" if average is None else f"{average:.2f}",
                times,
            )
        grid.add_section()
    if table.ranks:
        ranks = table.ranks[0]
        grid.add_row(Text(f"Average rank, {ranks.title}", style="bold"))
        for method in table.methods:
            values = [f"{ranks.averages[method, measure]:.2f}" for measure in (*table.measures, OVERALL)]
            grid.add_row(method, *values, "")
    return grid


def _cell(cell: Cell) -> Text:
    if cell.ours is None:
        return Text("–")
    style = "red" if cell.verdict is not None and not cell.verdict.agrees else ""
    theirs = "" if cell.paper is None else f"\n{cell.paper.text}"
    return Text.assemble((f"{cell.ours.mean:.3f}", style), (theirs, "dim"))


def _verdicts(table: PaperTable) -> str:
    counts = table.verdicts()
    if not counts:
        return "Nothing here can be compared with the paper."
    agree = counts.total() - counts["differs"]
    text = f"{agree} of {plural(counts.total(), 'value')} agree with the paper"
    again = table.rerun_verdicts()
    if again:
        text += f"; {again.total() - again['differs']} of {again.total()} with its program, run again"
    return f"{text}."
