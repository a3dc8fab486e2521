"""Documents as files, and in the terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from labelrace.base.files import write_whole
from labelrace.report.figures import as_file, can_draw
from labelrace.report.page import Document, render_page
from labelrace.report.tables import as_csv, escape_markdown, latex_table, markdown_table, print_table
from labelrace.report.text import printable

_FIGURES = ("png", "svg")


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
        contents |= {f"{chart.name}.{form}": as_file(chart.draw(), form, chart.caption) for chart in document.charts()}
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content)
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
