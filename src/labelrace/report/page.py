"""The one page that all reports share: sections of tables and figures in one HTML file that needs no other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from labelrace.report.figures import PALETTE, Chart, can_draw, inline_svg
from labelrace.report.tables import Table
from labelrace.report.text import plural, printable

_SCRIPTS = ("theme.js", "table.js")
# Interactive charts, for documents that have data for them.
_CHART_SCRIPTS = ("legend.js", "curves.js", "labels.js")
_UPLOT = "vendor/uplot/uPlot.iife.min.js"
_STYLES = ("vendor/uplot/uPlot.min.css", "page.css", "charts.css")
_NO_FIGURES = "Figures are left out, because they need matplotlib: pip install 'labelrace[plots]'."


@dataclass(frozen=True)
class Section:
    """A part of a document: a hint on how to read it, tables and charts.

    A page shows its ``template`` instead of its charts, if it has one; ``page_only`` tables are left out of terminal,
    Markdown and LaTeX.
    """

    title: str
    hint: str = ""
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    template: str = ""
    page_only: bool = False


@dataclass(frozen=True)
class Document:
    """What is written about a run or a benchmark, whatever the format.

    Page and tables are written to files called ``name``, and ``records``, with all digits, to CSV files of their own
    names. ``verdict`` is the main result, in a sentence; ``notes`` are what a reader must know before relying on the
    rest; ``complete`` tells whether everything that was to be run is in it. ``chart_data`` is for the interactive
    charts of the page, and ``context`` for the templates of sections.
    """

    name: str
    title: str
    lead: str
    footer: str
    sections: Sequence[Section]
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    brand: str = "labelrace bench"
    verdict: str = ""
    notes: Sequence[str] = ()
    complete: bool = True
    chart_data: dict[str, Any] | None = None
    context: Mapping[str, Any] = field(default_factory=dict)

    def tables(self) -> Iterator[Table]:
        """Yield the tables for terminal, Markdown and LaTeX."""
        return (table for section in self.sections if not section.page_only for table in section.tables)

    def charts(self) -> Iterator[Chart]:
        """Yield all charts."""
        return (chart for section in self.sections for chart in section.charts)


def render_page(document: Document) -> str:
    """Return the whole page as text.

    Charts of sections without a template are drawn by matplotlib. Without it the page has everything but these, and a
    note says so. Importing it takes longer than a short run, so where no chart asks for it, it is not imported.
    """
    wanted = [chart for section in document.sections if not section.template for chart in section.charts]
    drawn = {
        chart.name: inline_svg(chart.draw(), chart.caption, f"figure-{number}")
        for number, chart in enumerate(wanted)
        if can_draw()
    }
    tables = [table for section in document.sections for table in section.tables]
    colored = [row.color for table in tables for group in table.groups for row in group.rows if row.color is not None]
    interactive = document.chart_data is not None
    scripts = [*_SCRIPTS, *(_CHART_SCRIPTS if interactive else ())]
    library = f"{_static(_UPLOT)}\n" if interactive else ""
    script = Markup(f'{library}(() => {{\n"use strict";\n{chr(10).join(map(_static, scripts))}\n}})();\n')
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("labelrace.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # Names are shown without control characters, such as those that change the direction of text.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    return environment.get_template("page.html").render(
        document=document,
        notes=[*document.notes, *([_NO_FIGURES] if len(drawn) < len(wanted) else [])],
        figures=drawn,
        script=script,
        # The page's policy allows this script and no other, so that script in a name does not run.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup("\n".join(map(_static, _STYLES))),
        colors=[PALETTE[place % len(PALETTE)] for place in range(1 + max(colored, default=-1))],
        palette=PALETTE,
        data=as_json(document.chart_data or {}),
        **document.context,
    )


def as_json(data: Any) -> Markup:
    r"""Return data as JSON that cannot end the script element it stands in.

    Examples
    --------
    >>> print(as_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def made_by(manifest: Mapping[str, Any]) -> str:
    """Return which version made the runs of a manifest, when and on which machine, for a footer."""
    machine = manifest.get("machine") or {}
    return (
        f"Made by labelrace {manifest['version']} from runs started {manifest['created']} with seed {manifest['seed']} "
        f"on {machine.get('platform', 'an unknown platform')}, {plural(machine.get('cpus') or 1, 'processor')}."
    )


def _static(name: str) -> str:
    return (resources.files("labelrace.report") / "static" / name).read_text(encoding="utf-8")
