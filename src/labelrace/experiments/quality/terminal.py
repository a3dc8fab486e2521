"""The comparison in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelrace.experiments.quality.models import REFERENCE
from labelrace.experiments.quality.rows import CALIBRATION, MEASURES, QualityBlock, QualityRow
from labelrace.experiments.quality.summary import QualitySummary, places
from labelrace.experiments.ranking import OVERALL
from labelrace.report.text import as_significant, plural, printable

__all__ = ["print_quality"]

_TITLES = {
    "example_accuracy": "Ex.\nacc.",
    "example_f1": "Ex.\nF1",
    "hamming_loss": "Ham.\nloss",
    "macro_f1": "Macro\nF1",
    "micro_f1": "Micro\nF1",
    CALIBRATION: "Calib\nerror",
}


def print_quality(summary: QualitySummary, console: Console | None = None) -> None:
    """Print the values of each dataset, what drift does, and average ranks."""
    console = console or Console()
    console.print(_values(summary))
    console.print(Text(f"× fast: time against {REFERENCE}, in the same run; best values are bold", style="dim"))
    drifting = [block for block in summary.blocks if block.source.synthetic]
    if drifting:
        console.print(Text("\nExample F1 just before and just after a drift, on synthetic streams", style="bold"))
        console.print(_drifts(summary, drifting))
    if summary.ranks:
        console.print(Text("\nAverage ranks", style="bold"))
        console.print(_ranks(summary))
    for note in summary.notes:
        console.print(Text(f"! {printable(note)}", style="yellow"))


def _values(summary: QualitySummary) -> Table:
    table = _table("Model", *_TITLES.values(), "Time\n(s)", "×\nfast")
    for block in summary.blocks:
        mark = " (synthetic)" if block.source.synthetic and "synthetic" not in block.source.title else ""
        table.add_row(Text(f"{printable(block.source.title)}{mark}", style="bold"))
        best = {
            measure: {model for model, place in ranks.items() if place == min(ranks.values())}
            for measure in MEASURES
            if (ranks := places(block, summary.models, measure))
        }
        for row in block.rows.values():
            cells = [_cell(row, measure, row.model in best.get(measure, ())) for measure in MEASURES]
            times = (as_significant(row.seconds), _ratio(row.ratio))
            table.add_row(Text(row.model, style="dim" if row.model == REFERENCE else ""), *cells, *times)
        table.add_section()
    return table


def _cell(row: QualityRow, measure: str, best: bool) -> Text:
    value = row.values[measure]
    return Text("–" if value is None else f"{value.mean:.3f}", style="bold" if best else "")


def _ratio(ratio: float | None) -> str:
    # Two decimals at most: the table has to fit into eighty columns.
    if ratio is None:
        return "–"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"


def _drifts(summary: QualitySummary, blocks: list[QualityBlock]) -> Table:
    table = _table("Model", *(block.source.drift or "" for block in blocks))
    for model in (*summary.models, REFERENCE):
        rows = [block.rows[model] for block in blocks]
        table.add_row(model, *(_change(row) for row in rows))
    return table


def _change(row: QualityRow) -> str:
    return "–" if row.before is None or row.after is None else f"{row.before:.2f}→{row.after:.2f}"


def _ranks(summary: QualitySummary) -> Table:
    table = _table("Model", *_TITLES.values(), "All\nfive")
    for ranks in summary.ranks:
        table.add_row(Text(f"over {plural(len(ranks.datasets), ranks.kind)}", style="bold"))
        ordered = sorted(summary.models, key=lambda model: ranks.averages.get((model, OVERALL), len(summary.models)))
        for model in ordered:
            values = [ranks.averages.get((model, measure)) for measure in (*MEASURES, OVERALL)]
            table.add_row(model, *("–" if value is None else f"{value:.2f}" for value in values))
        table.add_section()
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(f"\n{first}", overflow="fold")
    for title in others:
        table.add_column(Text(title, justify="right"), justify="right", no_wrap=True)
    return table
