"""The results as a table in the terminal, fitted to its width."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from labelrace.report.summary import Summary
from labelrace.report.tables import Cell, Column, Grid, grid
from labelrace.report.text import printable

__all__ = ["print_table"]

# Average rank and running time, which follow the measures.
_TRAILING = 2


def print_table(summary: Summary, console: Console | None = None) -> None:
    """Print what was run, the results and the notes.

    Where the terminal is too narrow the standard deviations go first; then the measures are split over several tables.

    Parameters
    ----------
    summary
        From `summarize`.
    console
        Where to print to; standard output if not given.
    """
    console = console or Console()
    console.print(Text(printable(summary["headline"])))
    for table in _fitting(grid(summary), console):
        console.print()
        console.print(table)
    if any(cell["rank"] for model in summary["models"] for cell in model["measures"].values()):
        console.print(Text("best in green, ranks in brackets; ↑ higher, ↓ lower is better", style="dim"))
    for note in summary["notes"]:
        console.print(Text(f"! {printable(note)}", style="yellow"))


def _fitting(whole: Grid, console: Console) -> list[Table]:
    """Return the fullest form of the table that fits the console."""
    for with_sd in (True, False):
        table = _table(whole, with_sd)
        if _fits(table, console):
            return [table]
    measured = len(whole.columns) - _TRAILING
    for parts in range(2, measured + 1):
        size = -(-measured // parts)
        tables = [_table(_part(whole, start, start + size), False) for start in range(0, measured, size)]
        if all(_fits(table, console) for table in tables):
            return tables
    # Not even one measure at a time: let the console fold the cells.
    return [_table(whole, False)]


def _fits(table: Table, console: Console) -> bool:
    return Measurement.get(console, console.options.update(width=10_000), table).maximum <= console.width


def _part(whole: Grid, start: int, stop: int) -> Grid:
    """Return the table with some of the measures only, and the ranks and times in the last part."""
    measured = len(whole.columns) - _TRAILING
    places = [*range(start, min(stop, measured)), *(range(measured, len(whole.columns)) if stop >= measured else ())]
    return Grid(
        [whole.columns[place] for place in places],
        [(name, [cells[place] for place in places]) for name, cells in whole.rows],
    )


def _table(part: Grid, with_sd: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("\nModel", no_wrap=True)
    for column in part.columns:
        table.add_column(_heading(column), justify="right", no_wrap=True)
    for name, cells in part.rows:
        table.add_row(Text(name), *(_cell(cell, with_sd) for cell in cells))
    return table


def _heading(column: Column) -> Text:
    """Return the title on two lines, as titles are wider than numbers."""
    first, _, rest = column.title.rpartition(" ")
    return Text(f"{first} {column.arrow}\n{rest}" if first else f"\n{rest} {column.arrow}", justify="right")


def _cell(cell: Cell, with_sd: bool) -> Text:
    text = Text(cell.value, style="bold green" if cell.best else "", end="")
    text = Text.assemble(text, (f" ±{cell.sd}", "dim") if with_sd and cell.sd else "")
    if cell.rank:
        text.append(f" ({cell.rank})", style="dim")
    return text
