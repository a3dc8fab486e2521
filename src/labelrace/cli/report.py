"""``labelrace report``: the report of a run, as a page, tables and charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelrace.cli import options

# Those of `labelrace.report.FORMATS`, which a help text must not import.
REPORT_FORMATS = ("html", "csv", "md", "tex", "png", "svg", "pdf")


def report(
    folder: Annotated[Path, options.argument(help="The folder of a run, as given to 'labelrace run --out'.")],
    out: Annotated[Path | None, options.option(help="The folder to write to; by default that of the run.")] = None,
    formats: Annotated[
        list[str] | None,
        options.option("--format", "-f", help=f"A format: {', '.join(REPORT_FORMATS)}. Repeatable."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write the report of a run, also of one that is not finished.

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
