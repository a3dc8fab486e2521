"""Documents: sections of tables and charts, written as page, tables, records and figures, or printed."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from labelrace.base.files import write_atomic
from labelrace.base.notebook import escaped, page
from labelrace.base.printing import printable
from labelrace.report.charts import Chart
from labelrace.report.matplotlib_figures import as_file, can_draw, draw
from labelrace.report.page import render_page
from labelrace.report.tables import Table, as_csv, escape_markdown, latex_table, markdown_table, plain_html, print_table
from labelrace.report.text import plural

_FIGURES = ("png", "svg", "pdf")
# Columns of a document as text.
_WIDTH = 100


@dataclass(frozen=True)
class Details:
    """What a page folds away: facts, each a name and its values, and a text to be shown as it is."""

    title: str
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a document: a hint on how to read it, tables and charts, and details.

    Tables that are ``page_only`` are left out of terminal, Markdown and LaTeX.
    """

    title: str
    hint: str = ""
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    details: Details | None = None
    page_only: bool = False


@dataclass(frozen=True)
class Document:
    """What is written about a run or a benchmark, whatever the format.

    Page and tables are written to files called ``name``, and ``records``, with all digits, to CSV files of their own
    names. ``verdict`` is the main result, in a sentence; ``notes`` are what a reader must know before relying on the
    rest; ``complete`` is whether everything that was to be run is in it.
    """

    name: str
    title: str
    lead: str
    footer: str
    sections: Sequence[Section]
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    brand: str = "labelrace benchmarks"
    verdict: str = ""
    notes: Sequence[str] = ()
    complete: bool = True

    def tables(self) -> Iterator[Table]:
        """Yield the tables for terminal, Markdown and LaTeX."""
        return (table for section in self.sections if not section.page_only for table in section.tables)

    def __repr__(self) -> str:
        printed = io.StringIO()
        print_document(self, Console(file=printed, width=_WIDTH, force_jupyter=False))
        return printed.getvalue().rstrip()

    def _repr_html_(self) -> str:
        """Return what notebooks show: the tables, and the charts if matplotlib is installed."""
        told = [*filter(None, (self.verdict, self.lead)), *self.notes]
        sections = [section for section in self.sections if not section.page_only]
        charts = [chart for section in sections for chart in section.charts] if can_draw() else []
        return page(
            self.title,
            *(f"<p>{escaped(text)}</p>" for text in told),
            *map(plain_html, self.tables()),
            *map(_as_image, charts),
        )

    def charts(self) -> Iterator[Chart]:
        """Yield all charts."""
        return (chart for section in self.sections for chart in section.charts)


def made_by(manifest: Mapping[str, Any]) -> str:
    """Return which version made the runs of a manifest, when and on which machine, for a footer."""
    machine = manifest.get("machine") or {}
    return (
        f"Made by labelrace {manifest['version']} from runs started {manifest['created']} with seed {manifest['seed']} "
        f"on {machine.get('platform', 'an unknown platform')}, {plural(machine.get('cpus') or 1, 'processor')}."
    )


def write_document(
    document: Document, out: str | os.PathLike[str], formats: Sequence[str] | None = None
) -> dict[str, Path]:
    """Write a document in some formats, each file whole or not at all.

    Parameters
    ----------
    document : Document
    out : path
        The folder; it is made if it does not exist.
    formats : sequence of str or None, default=None
        Some of `FORMATS`; None for page, tables and, if matplotlib is installed, figures as PNG.

    Returns
    -------
    dict
        Name of each file -> its path.
    """
    if formats is None:
        formats = (*_TEXTS, "csv", *(["png"] if can_draw() else []))
    if unknown := [form for form in formats if form not in FORMATS]:
        raise ValueError(f"formats must be some of {', '.join(FORMATS)}, got {', '.join(map(repr, unknown))}.")
    contents = {f"{document.name}.{form}": _TEXTS[form](document).encode() for form in formats if form in _TEXTS}
    if "csv" in formats:
        contents |= {f"{name}.csv": as_csv(records).encode() for name, records in document.records.items() if records}
    for form in (form for form in formats if form in _FIGURES):
        contents |= {f"{chart.name}.{form}": as_file(draw(chart), form, chart.title) for chart in document.charts()}
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomic(folder / name, content)
    return {name: folder / name for name in contents}


def print_document(document: Document, console: Console | None = None) -> None:
    """Print lead, tables and notes, fitted to the width of the console; to standard output if none is given."""
    console = console or Console()
    if document.verdict:
        console.print(Text(printable(document.verdict), style="bold"))
    console.print(Text(printable(document.lead)))
    for table in document.tables():
        print_table(table, console)
    if document.notes:
        console.print()
    for note in document.notes:
        console.print(Text(f"! {printable(note)}", style="yellow"))


def _as_image(chart: Chart) -> str:
    """Return a chart as a picture that stands in the HTML itself."""
    content = base64.b64encode(as_file(draw(chart), "png", chart.title)).decode()
    return f'<p><img alt="{escaped(chart.title)}" src="data:image/png;base64,{content}"></p>'


def _markdown(document: Document) -> str:
    opening = filter(None, (document.verdict, document.lead))
    parts = [f"# {escape_markdown(document.title)}\n", *(f"{escape_markdown(text)}\n" for text in opening)]
    parts += map(markdown_table, document.tables())
    if document.notes:
        parts.append("".join(f"- {escape_markdown(note)}\n" for note in document.notes))
    return "\n".join(parts)


def _latex(document: Document) -> str:
    comments = [
        r"Tables need \usepackage{booktabs}.",
        *filter(None, (document.verdict, document.lead)),
        *document.notes,
    ]
    head = "".join(f"% {printable(comment)}\n" for comment in comments)
    return "\n".join([head, *map(latex_table, document.tables())])


_TEXTS: dict[str, Callable[[Document], str]] = {"html": render_page, "md": _markdown, "tex": _latex}
FORMATS = ("html", "csv", "md", "tex", *_FIGURES)
