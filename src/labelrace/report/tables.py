"""One table, many forms: terminal, CSV, Markdown and LaTeX. Pages take the same tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from labelrace.base.formulas import escape_formula
from labelrace.base.notebook import escaped
from labelrace.base.printing import printable
from labelrace.report.text import MISSING


class Column(NamedTuple):
    """A heading; ``lower`` is whether lower is better, None where neither is."""

    title: str
    lower: bool | None = None

    @property
    def arrow(self) -> str:
        """The direction that is better, as a sign."""
        return "" if self.lower is None else "↓" if self.lower else "↑"


class Other(NamedTuple):
    """A value to compare with: whose it is, the number, its deviation and rank, whether the cell differs from it."""

    source: str
    value: str
    detail: str = ""
    differs: bool = False


class Cell(NamedTuple):
    """A value as text, with deviation, rank, a mark for the best, values to compare with, and the number to sort by."""

    value: str = MISSING
    sd: str = ""
    rank: str = ""
    best: bool = False
    others: tuple[Other, ...] = ()
    number: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the value differs from the first one it is compared with."""
        return bool(self.others) and self.others[0].differs


class Row(NamedTuple):
    """A row; ``tag`` is a remark on it, ``color`` its number in the palette."""

    name: str
    cells: Sequence[Cell]
    tag: str = ""
    color: int | None = None


class Group(NamedTuple):
    """Rows that belong together, with a title above them; ``tag`` and ``detail`` are remarks on it."""

    rows: Sequence[Row]
    title: str = ""
    tag: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Table:
    """A table of results; its columns are without the one that names the rows, whose heading is ``first``.

    It is referred to by ``label``, in LaTeX and in a page. There, a click on a heading sorts by it if it is
    ``sortable``, and the last ``overview`` columns come first, where a narrow screen has room for them.
    """

    label: str
    caption: str
    columns: Sequence[Column]
    groups: Sequence[Group]
    first: str = "Model"
    sortable: bool = False
    overview: int = 0
    note: str = ""  # a sentence that the legend ends with

    def on_page(self) -> list[int]:
        """Return the indices of the columns in the order of a page."""
        start = len(self.columns) - self.overview
        return [*range(start, len(self.columns)), *range(start)]

    def cells(self) -> Iterator[Cell]:
        """Yield all cells."""
        return (cell for group in self.groups for row in group.rows for cell in row.cells)

    def legend(
        self, best: str = "bold", others: str = "{}", *, sd: bool = True, rank: bool = True, arrows: bool = True
    ) -> str:
        """Return a sentence for each mark that is shown: of the best, of ranks, of values to compare with."""
        cells = list(self.cells())
        sources = list(dict.fromkeys(other.source for cell in cells for other in cell.others))
        parts = [
            f"Best values are {best}." if any(cell.best for cell in cells) else "",
            "Ranks are in parentheses." if rank and any(cell.rank for cell in cells) else "",
            "± is the standard deviation over runs." if sd and any(cell.sd for cell in cells) else "",
            others.format(" / ".join(sources), sources[0]) if sources else "",
            "↑ higher, ↓ lower is better." if arrows and any(column.arrow for column in self.columns) else "",
            self.note,
        ]
        return " ".join(filter(None, parts))


def text_table(
    label: str, caption: str, titles: Sequence[str], rows: Mapping[str, Sequence[str]], first: str = "Model"
) -> Table:
    """Return a table of texts without marks, a row for each name."""
    made = [Row(name, [Cell(text) for text in texts]) for name, texts in rows.items()]
    return Table(label, caption, [Column(title) for title in titles], [Group(made)], first)


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as the text of a CSV file, with all digits; None is an empty cell.

    Text that a spreadsheet would compute, such as ``=1+1``, has a quote before it.

    >>> print(as_csv([{"model": "obr", "seconds": 0.25}, {"model": "occ", "seconds": None}]), end="")
    model,seconds
    obr,0.25
    occ,
    """
    names = list(records[0])
    return _csv_line(names) + "".join(_csv_line([record.get(name) for name in names]) for record in records)


def _csv_line(cells: Iterable[Any]) -> str:
    text = io.StringIO(newline="")
    # With its own line end, as it quotes only what could be one.
    csv.writer(text, lineterminator="\r\n").writerow(map(escape_formula, cells))
    return text.getvalue().removesuffix("\r\n") + "\n"


# --- Markdown


def markdown_table(table: Table) -> str:
    """Return the table in Markdown, its caption above and its legend below."""
    titles = [table.first, *(f"{column.title} {column.arrow}".rstrip() for column in table.columns)]
    lines = [escape_markdown(table.caption), "", _piped(titles), _piped(["---", *("---:" for _ in table.columns)])]
    for group in table.groups:
        if group.title:
            lines.append(_piped([f"**{escape_markdown(group.title)}**", *("" for _ in table.columns)]))
        lines += [_piped([escape_markdown(row.name), *map(_markdown_cell, row.cells)]) for row in group.rows]
    legend = table.legend(others=r"Values are ours / {0}; \* marks where ours differs.")
    return "\n".join([*lines, *(["", legend] if legend else [])]) + "\n"


def escape_markdown(text: str) -> str:
    """Return the text so that Markdown shows it as it is, also inside a table and where HTML is let through."""
    escaped = re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", printable(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{cell.value}**" if cell.best else cell.value
    text += (r"\*" if cell.differs else "") + (f" ± {cell.sd}" if cell.sd else "")
    return " / ".join([text + (f" ({cell.rank})" if cell.rank else ""), *(other.value for other in cell.others)])


# --- HTML, without what pages do to it


def plain_html(table: Table) -> str:
    """Return the table in HTML for a notebook, its caption above and its legend below."""
    titles = [table.first, *(f"{column.title} {column.arrow}".rstrip() for column in table.columns)]
    lines = [_html_line("".join(f"<th scope=col>{escaped(title)}</th>" for title in titles))]
    for group in table.groups:
        if group.title:
            lines.append(_html_line(f"<th scope=rowgroup colspan={len(titles)}>{escaped(group.title)}</th>"))
        for row in group.rows:
            cells = "".join(f"<td>{_html_cell(cell)}</td>" for cell in row.cells)
            lines.append(_html_line(f"<th scope=row>{escaped(row.name)}</th>{cells}"))
    legend = table.legend(others="Values are ours / {0}; * marks where ours differs.")
    return f"<p>{escaped(table.caption)}</p><table>{''.join(lines)}</table>" + (
        f"<p>{escaped(legend)}</p>" * bool(legend)
    )


def _html_line(cells: str) -> str:
    return f"<tr>{cells}</tr>"


def _html_cell(cell: Cell) -> str:
    text = f"<b>{escaped(cell.value)}</b>" if cell.best else escaped(cell.value)
    text += "*" * cell.differs + (f" ± {escaped(cell.sd)}" if cell.sd else "")
    text += f" ({escaped(cell.rank)})" if cell.rank else ""
    return " / ".join([text, *(escaped(other.value) for other in cell.others)])


# --- LaTeX


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    '"': r"{''}",
    "†": r"$^\dagger$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "−": "$-$",
    MISSING: "--",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def latex_table(table: Table) -> str:
    r"""Return the table as a LaTeX ``table`` with caption and label; it needs the package booktabs.

    >>> table = Table("demo", "Two models.", [Column("Micro F1", lower=False)], [Group([Row("obr", [Cell("0.5")])])])
    >>> print(latex_table(table), end="")
    \begin{table}
      \centering
      \caption{Two models. $\uparrow$ higher, $\downarrow$ lower is better.}
      \label{tab:demo}
      \begin{tabular}{lr}
        \toprule
        Model & Micro F1 $\uparrow$ \\
        \midrule
        obr & 0.5 \\
        \bottomrule
      \end{tabular}
    \end{table}
    """
    legend = table.legend(others="In parentheses: {1}; an asterisk marks where ours differs.")
    titles = [table.first, *(f"{column.title} {column.arrow}".rstrip() for column in table.columns)]
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"  \toprule",
        f"  {_latex_row(map(_latex, titles))}",
    ]
    for group in table.groups:
        lines.append(r"  \midrule")
        if group.title:
            lines.append(rf"  \multicolumn{{{len(titles)}}}{{l}}{{\textit{{{_latex(group.title)}}}}} \\")
        lines += [f"  {_latex_row([_latex(row.name), *map(_latex_cell, row.cells)])}" for row in group.rows]
    lines += [r"  \bottomrule", r"\end{tabular}"]
    caption = _latex(" ".join(filter(None, [table.caption, legend])))
    head = [r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{table.label}}}"]
    return "\n".join([r"\begin{table}", *(f"  {line}" for line in [*head, *lines]), r"\end{table}"]) + "\n"


def _latex_row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _latex_cell(cell: Cell) -> str:
    text = _latex(cell.value) + (rf" $\pm$ {_latex(cell.sd)}" if cell.sd else "")
    text = rf"\textbf{{{text}}}" if cell.best else text
    # Parentheses are either for ranks or for the value to compare with.
    if cell.others:
        return f"{text} ({_latex(cell.others[0].value)})" + (r"$^\ast$" if cell.differs else "")
    return text + (f" ({cell.rank})" if cell.rank else "")


def _latex(text: str) -> str:
    """Return the text so that LaTeX sets it as it is."""
    return "".join(_LATEX.get(char, char) for char in printable(text))


# --- Terminal


class _Form(NamedTuple):
    """How much of a table is shown, and how far apart its columns are."""

    sd: bool
    rank: bool
    short: bool
    gap: int


# From the fullest to the narrowest; only those with short headings are split over several tables.
_FORMS = (
    _Form(sd=True, rank=True, short=False, gap=1),
    _Form(sd=False, rank=True, short=False, gap=1),
    _Form(sd=False, rank=True, short=True, gap=1),
    _Form(sd=False, rank=False, short=True, gap=1),
    _Form(sd=False, rank=False, short=True, gap=0),
)
_SPLIT = _FORMS[2:]
# Titles of groups are folded beyond this width, or that of the longest name.
_GROUP_WIDTH = 24
# Longer words of headings are cut in narrow terminals, unless the cells below are as wide.
_SHORT_WORD = 6


def print_table(table: Table, console: Console) -> None:
    """Print the table, its caption above and its legend below.

    Where the terminal is too narrow the standard deviations are left out first, then headings are shortened, then
    ranks are left out, then columns move together, and at last they are split over several tables.
    """
    console.print()
    console.print(Text(printable(table.caption), style="bold"))
    form, parts = _fitting(table, console)
    for part in parts:
        console.print(part)
    others = "Second line: {1}; ours is red where it differs."
    if legend := table.legend("green", others, sd=form.sd, rank=form.rank, arrows=not form.short):
        console.print(Text(legend, style="dim"))


def _fitting(table: Table, console: Console) -> tuple[_Form, list[RichTable]]:
    """Return the fullest form of the table that fits the console, in one or more parts."""
    count = len(table.columns)
    for form in _FORMS:
        if _fits(whole := _rich(table, form), console):
            return form, [whole]
    for form in _SPLIT:
        for parts in range(2, count + 1):
            size = -(-count // parts)
            tables = [_rich(_columns(table, start, start + size), form) for start in range(0, count, size)]
            if all(_fits(part, console) for part in tables):
                return form, tables
    # Not even one column at a time fits: the console shortens the cells.
    return _FORMS[-1], [_rich(table, _FORMS[-1])]


def _fits(table: RichTable, console: Console) -> bool:
    return Measurement.get(console, console.options.update(width=10_000), table).maximum <= console.width


def _columns(table: Table, start: int, stop: int) -> Table:
    """Return the table with some of its columns only."""
    groups = [
        group._replace(rows=[row._replace(cells=row.cells[start:stop]) for row in group.rows]) for group in table.groups
    ]
    return replace(table, columns=table.columns[start:stop], groups=groups)


def _rich(table: Table, form: _Form) -> RichTable:
    names = [printable(row.name) for group in table.groups for row in group.rows]
    width = max(map(len, [table.first, *names]))
    made = RichTable(box=box.SIMPLE_HEAD, padding=(0, form.gap, 0, 0), pad_edge=False, header_style="bold")
    headings = [_heading(table, index, form) for index in range(len(table.columns))]
    # Titles are on two lines, unless each of them is a single word.
    lines = slice(0 if any(first for first, _ in headings) else 1, 2)
    first = Text("\n".join(["", table.first][lines]))
    made.add_column(first, min_width=width, max_width=max(width, _GROUP_WIDTH), overflow="fold")
    for heading in headings:
        made.add_column(Text("\n".join(heading[lines]), justify="right"), justify="right", no_wrap=True)
    for group in table.groups:
        made.add_section()
        if group.title:
            made.add_row(Text(printable(group.title), style="bold"))
        for row in group.rows:
            made.add_row(Text(printable(row.name)), *(_rich_cell(cell, form) for cell in row.cells))
    return made


def _heading(table: Table, index: int, form: _Form) -> tuple[str, str]:
    """Return the title of a column on two lines, as titles are wider than numbers; the first may be empty."""
    column = table.columns[index]
    *words, last = column.title.split()
    if form.short:
        cells = (row.cells[index] for group in table.groups for row in group.rows)
        width = max([_SHORT_WORD, *(_rich_cell(cell, form).cell_len for cell in cells if not cell.others)])
        *words, last = [word if len(word) <= width else f"{word[: _SHORT_WORD - 2]}." for word in (*words, last)]
        return " ".join(words), last
    first = " ".join(words)
    return (f"{first} {column.arrow}".rstrip(), last) if first else ("", f"{last} {column.arrow}".rstrip())


def _rich_cell(cell: Cell, form: _Form) -> Text:
    style = "bold green" if cell.best else "red" if cell.differs else ""
    text = Text.assemble((printable(cell.value), style), (f" ±{cell.sd}", "dim") if form.sd and cell.sd else "")
    if form.rank and cell.rank:
        text.append(f" ({cell.rank})", style="dim")
    if cell.others:
        text.append(f"\n{cell.others[0].value}", style="dim")
    return text
