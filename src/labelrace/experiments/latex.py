r"""The comparison as LaTeX: one ``tabular`` a table, which need no package."""

from __future__ import annotations

from collections.abc import Sequence

from labelrace.experiments.cells import Block, Cell
from labelrace.experiments.published import Facts
from labelrace.experiments.ranking import OVERALL, RankTable
from labelrace.experiments.sources import SourceFacts
from labelrace.experiments.summary import PaperSummary, PaperTable
from labelrace.report.text import as_significant, measure_label

__all__ = ["latex_tables"]

_DIFFERS = r"$^\ast$"


def latex_tables(summary: PaperSummary) -> str:
    """Return Tables 1 to 4: ours, the paper's in brackets, an asterisk where the two differ."""
    lines = ["% Ours (the paper's). An asterisk marks what differs by more than rounding and chance."]
    lines += [f"% {note}" for note in summary.notes]
    lines += ["", "% Table 1", *_facts(summary.facts)]
    for table in summary.tables:
        lines += ["", f"% Table {table.number}: {table.title}", *_table(table)]
    return "\n".join(lines) + "\n"


def _facts(facts: Sequence[SourceFacts]) -> list[str]:
    titles = ["Dataset", "$|D|$", "$|X|$", "$|L|$", "LC", "LD", "UL"]
    rows = []
    for fact in facts:
        pairs = zip(_fact_texts(fact.measured), _fact_texts(fact.published), strict=True)
        rows.append([_plain(fact.source.title), *(a if fact.source.synthetic else f"{a} ({b})" for a, b in pairs)])
    return _tabular("l" + "r" * 6, titles, [rows])


def _fact_texts(facts: Facts) -> list[str]:
    return [f"{value:.3f}" if isinstance(value, float) else str(value) for value in facts]


def _table(table: PaperTable) -> list[str]:
    titles = ["Dataset", "Method", *(measure_label(measure) for measure in table.measures), "Average rank", "Time (s)"]
    groups = [_block_rows(table, block) for block in table.blocks]
    groups += [_rank_rows(table, ranks) for ranks in table.ranks]
    return _tabular(f"ll|{'c' * len(table.measures)}|c|r", titles, groups)


def _block_rows(table: PaperTable, block: Block) -> list[list[str]]:
    rows = []
    for place, method in enumerate(table.methods):
        average = block.average_rank(method, table.measures)
        row = [_plain(block.source.title) if place == 0 else "", _plain(method)]
        row += [_cell(block.cells[method, measure]) for measure in table.measures]
        rows.append([*row, "--" if average is None else f"{average:.2f}", _time(block, method)])
    return rows


def _cell(cell: Cell) -> str:
    if cell.ours is None:
        return "--"
    text = f"{cell.ours.mean:.3f}" + (f" $\\pm$ {cell.ours.sd:.3f}" if cell.ours.sd is not None else "")
    if cell.paper is not None:
        text += f" ({cell.paper.text})"
    return text + (_DIFFERS if cell.verdict is not None and not cell.verdict.agrees else "")


def _time(block: Block, method: str) -> str:
    ours, theirs = block.seconds[method], block.paper_seconds[method]
    text = as_significant(ours, missing="--")
    return text if theirs is None else f"{text} ({theirs:,.2f})"


def _rank_rows(table: PaperTable, ranks: RankTable) -> list[list[str]]:
    return [
        [
            f"Average rank, {ranks.title}" if place == 0 else "",
            _plain(method),
            *(f"{ranks.averages[method, measure]:.2f}" for measure in (*table.measures, OVERALL)),
            "",
        ]
        for place, method in enumerate(table.methods)
    ]


def _tabular(columns: str, titles: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    lines = [rf"\begin{{tabular}}{{{columns}}}", rf"{' & '.join(titles)} \\ \hline"]
    for group in groups:
        lines += [rf"{' & '.join(row)} \\" for row in group]
        lines.append(r"\hline")
    return [*lines, r"\end{tabular}"]


def _plain(name: str) -> str:
    return name.replace("_", r"\_")
