"""The pages where a team teaches the tagger: inbox, quality, tags, and a place to try it.

A page is a template without data: its scripts get their data from the API, as any other client does, with
the token of the reader. Charts are those of the report: `figures` describes them, and the report's script draws
them. `files` reads and writes the tables that people drop on a page. There is no request to any other host.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request, Response

from labelrace.report.charts import Panels
from labelrace.report.page import as_json, make_environment, page_script, page_style, panels_data
from labelrace.serve.pages import files
from labelrace.serve.pages.figures import quality_figures

if TYPE_CHECKING:
    from labelrace.serve.service import Service

PAGES = {"/": "inbox", "/quality": "quality", "/tags": "tags", "/try": "try"}
"""The addresses of the pages, and their templates. They hold nothing that a token would have to guard."""

# Rows from which the columns of the service are known, the most columns that a form has room for, and characters of a
# cell from which it has several lines.
_ROWS, _COLUMNS, _LONG = 5, 12, 40


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages, their files below ``/static``, and their data below ``/pages``."""
    environment = make_environment("labelrace.serve.pages", "labelrace.report")
    # One file at a time: each may take a few hundred megabytes.
    one_file = CapacityLimiter(1)

    for path, name in PAGES.items():
        text = environment.get_template(f"{name}.html").render(page=name, most_megabytes=files.MAX_BYTES // 10**6)
        app.add_api_route(path, _file(text.encode(), "text/html"), include_in_schema=False)
    for name, content in _static_files().items():
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        app.add_api_route(f"/static/{name}", _file(content, kind), include_in_schema=False)

    @app.get("/pages/quality", include_in_schema=False)
    def show_quality() -> Response:
        """Return the part of the page that shows the quality of the tagger."""
        figures = quality_figures(service.quality())
        charts = {
            chart.name: panels_data(chart.content) for chart in figures.charts if isinstance(chart.content, Panels)
        }
        text = environment.get_template("figures.html").render(figures=figures, data=as_json(charts))
        # The policy of the pages allows no style in their text, but what a script sets. Names hold no such attribute:
        # their quotes are escaped.
        text = text.replace(' style="', ' data-style="')
        return Response(text, media_type="text/html", headers={"Cache-Control": "no-store"})

    @app.get("/pages/columns", include_in_schema=False)
    def list_columns() -> dict[str, dict[str, str]]:
        """Return the columns of the newest rows, and the kind of form field for each."""
        return {"columns": columns_of([row["cells"] for row in service.rows(state="all", limit=_ROWS)["rows"]])}

    @app.post("/pages/table", include_in_schema=False)
    async def read_table(request: Request, name: str, tags: str | None = None) -> Response:
        """Return the rows of a file as JSON."""
        content = await files.receive(request)
        found = await run_sync(files.read_rows, name, content, tags, limiter=one_file)
        return Response(found, media_type="application/json")

    @app.post("/pages/file", include_in_schema=False)
    async def write_table(request: Request, name: str) -> Response:
        """Return rows, which are given as JSON, as a file."""
        content = await files.receive(request)
        written = await run_sync(files.write_rows, name, content, limiter=one_file)
        return Response(written, media_type="application/octet-stream")


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the columns of rows as ``number``, ``text`` or ``long``; there is a long one.

    Examples
    --------
    >>> columns_of([{"title": "Oven", "body": "Too hot", "price": 5}, {"title": "Door", "body": 60 * "x"}])
    {'title': 'text', 'body': 'long', 'price': 'number'}
    """
    cells = dict[str, list[Any]]()
    for row in rows:
        for name, cell in row.items():
            cells.setdefault(name, []).append(cell)
    kinds = {name: _kind(found) for name, found in list(cells.items())[:_COLUMNS]}
    texts = [name for name, kind in kinds.items() if kind != "number"]
    if texts and "long" not in kinds.values():
        # The last one is most often that with the most words.
        kinds[texts[-1]] = "long"
    return kinds


def _kind(cells: Sequence[Any]) -> str:
    known = [cell for cell in cells if cell is not None]
    if known and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known):
        return "number"
    return "long" if any(isinstance(cell, str) and len(cell) > _LONG for cell in known) else "text"


def _static_files() -> dict[str, bytes]:
    """Return the files of the pages, by name."""
    folder = resources.files("labelrace.serve.pages") / "static"
    own = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    return own | {
        "report.css": page_style().encode(),
        "report.js": page_script(charts=True).encode(),
        "theme.js": page_script(charts=False).encode(),
    }


def _file(content: bytes, kind: str) -> Callable[[Request], Response]:
    """Return the route of a file; a browser that has it gets 304."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}

    def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return serve
