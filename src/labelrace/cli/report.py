"""``labelrace report``: tables and a page of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelrace.cli.options import REPORT_FORMATS


def report(
    folder: Annotated[Path, typer.Argument(help="What 'labelrace run --out' was given.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Where to write; by default the same folder.", show_default=False)
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help=f"One of {', '.join(REPORT_FORMATS)}; repeatable.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON instead of a table.")] = False,
) -> None:
    """Write the report of a run, or of as much of it as there is.

    [dim]Example:[/dim] labelrace report labelrace-runs/demo-1 -f html -f png
    """
    from labelrace.evaluation import read_run
    from labelrace.report import print_report, summarize, write_report

    summary = summarize(*read_run(folder))
    written = write_report(summary, out or folder, formats or ("html", "csv", "md", "tex"))
    if as_json:
        typer.echo(json.dumps(summary))
        return
    console = Console()
    print_report(summary, console)
    for path in written.values():
        console.print(str(path), highlight=False, soft_wrap=True, markup=False)
