"""The page of a document: one HTML file that works offline, with charts that answer to pointer and keys.

Templates make text and diagrams; ``static/charts.js`` draws panels from their descriptions, which stand in the page as
JSON, with uPlot.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from labelrace.base.printing import printable
from labelrace.report.charts import PALETTE, Color, Panel, Panels, Series, dash

if TYPE_CHECKING:
    from labelrace.report.document import Document

_SCRIPTS = ("theme.js", "table.js")
# For documents with panels.
_CHART_SCRIPT = "charts.js"
_UPLOT = "vendor/uplot/uPlot.iife.min.js"
_STYLES = ("vendor/uplot/uPlot.min.css", "page.css", "charts.css")


def render_page(document: Document) -> str:
    """Return the whole page as text."""
    charts = {
        chart.name: panels_data(chart.content) for chart in document.charts() if isinstance(chart.content, Panels)
    }
    script = page_script(charts=bool(charts))
    return (
        make_environment("labelrace.report")
        .get_template("page.html")
        .render(
            document=document,
            script=Markup(script),
            # The page's policy allows this script and no other, so that script in a name does not run.
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            style=Markup(page_style()),
            data=as_json(charts),
        )
    )


def make_environment(*packages: str) -> jinja2.Environment:
    """Return the templates of packages, those of the first that has one; what they show is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # Names are shown without control characters, such as those that change the direction of text.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    environment.filters |= {"paint": paint, "swatch": swatch}
    return environment


def page_script(*, charts: bool) -> str:
    """Return the script of a page: its theme and tables; with ``charts`` also what draws panels."""
    library = f"{_static(_UPLOT)}\n" if charts else ""
    scripts = [*_SCRIPTS, *([_CHART_SCRIPT] if charts else [])]
    return f'{library}(() => {{\n"use strict";\n{chr(10).join(map(_static, scripts))}\n}})();\n'


def page_style() -> str:
    """Return the styles of a page, with the colours of the charts in both themes."""
    colors = [f"  --color-{i}: light-dark({light}, {dark});" for i, (light, dark) in enumerate(PALETTE)]
    return "\n".join([*map(_static, _STYLES), ":root {", *colors, "}"])


def panels_data(content: Panels) -> dict[str, Any]:
    """Return panels as JSON for the script: each list of x once, and numbers with as many digits as can be seen."""
    xs: dict[tuple[float | None, ...], int] = {}
    entries = content.legend()

    def entry(series: Series) -> int | None:
        """Return the entry of the legend that shows and hides a series: that of its name, or else of its colour."""
        for index, (name, shown) in enumerate(entries.items()):
            if name == series.name or (not series.name and shown.color == series.color):
                return index
        return None

    def series_data(series: Series) -> dict[str, Any]:
        return {
            "entry": entry(series),
            "name": printable(series.name),
            "x": xs.setdefault(tuple(_short(series.x)), len(xs)),
            "y": _short(series.y),
            "color": _color_index(series.color),
            "dash": dash(series.color),
            "spread": None if series.spread is None else _short(series.spread),
            "line": series.line,
            "marker": series.marker,
            "hollow": series.hollow,
            "tips": list(map(printable, series.tips)),
        }

    def panel_data(panel: Panel) -> dict[str, Any]:
        axes = ("x_label", "y_label", "log", "x_range", "y_range", "x_ticks", "x_names")
        names = (*axes, "percent", "diagonal", "decimals")
        return {name: getattr(panel, name) for name in names} | {"series": list(map(series_data, panel.series))}

    views = {name: list(map(panel_data, shown)) for name, shown in content.views.items()}
    marks = [mark._asdict() | {"color": _color_index(mark.color)} for mark in content.marks]
    return {
        "views": list(views.values()),
        "view": list(views).index(content.view),
        "xs": list(xs),
        "marks": marks,
        "across": content.across,
        "aspect": content.size[1] / content.size[0],
        "choose": bool(content.choose),
        "chosen": content.chosen,
        "position": content.position,
        "entries": len(entries),
    }


def paint(color: Color | None) -> str:
    """Return a colour as a style, in which the page's theme decides."""
    return f"var(--color-{color % len(PALETTE)})" if isinstance(color, int) else f"var(--{color or 'muted'})"


def swatch(series: Series) -> Markup:
    """Return the class and style of a sample of a series: the pattern of its line, or its marker."""
    style = f"--swatch: {paint(series.color)}"
    if not series.line:
        kind = {"s": " square"}.get(series.marker, " dot") + (" hollow" if series.hollow else "")
        return Markup(f'class="swatch{kind}" style="{style}"')
    if pattern := dash(series.color):
        stroke, gap = pattern[:2]
        stops = f"var(--swatch) 0 {stroke}px, transparent {stroke}px {stroke + gap}px"
        style += f"; background: repeating-linear-gradient(90deg, {stops})"
    return Markup(f'class="swatch" style="{style}"')


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


def _color_index(color: int | None) -> int | None:
    return None if color is None else color % len(PALETTE)


def _short(values: Sequence[float | None]) -> list[float | None]:
    """Return numbers with five significant digits; whole ones with all."""
    short = [value if value is None or isinstance(value, int) else float(f"{value:.5g}") for value in values]
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in short]


def _static(name: str) -> str:
    return (resources.files("labelrace.report") / "static" / name).read_text(encoding="utf-8")
