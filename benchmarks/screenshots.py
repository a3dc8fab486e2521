"""The pictures of docs/in-depth/service.md and of the README: a service that has learned from generated tickets.

They need Playwright and a Chromium (``CHROMIUM``, or ``chromium`` on the path).
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelrace.base.files import write_atomic
from labelrace.streams.demo import demo_tickets

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Rows that are sent, those of them that nobody has tagged, and rows of a request.
_ROWS, _WAITING, _REQUEST = 6000, 12, 50
_HEIGHTS = {"inbox": 760, "service-quality": 920}


def screenshots(folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path("docs/images")) -> None:
    """Take the pictures of docs/in-depth/service.md."""
    from playwright.sync_api import sync_playwright

    from labelrace.serve.demo import free_port, running

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise ValueError("There is no chromium: put it on PATH or name it in CHROMIUM.")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as temporary,
        running(Path(temporary), free_port(0)) as url,
        sync_playwright() as started,
    ):
        teach(url)
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, path, show in (("inbox", "/", show_inbox), ("service-quality", "/quality", show_quality)):
            page = browser.new_page(viewport={"width": 1280, "height": _HEIGHTS[name]}, device_scale_factor=1.5)
            page.add_init_script("localStorage.setItem('labelrace.name', 'Ann')")
            page.goto(url + path)
            show(page)
            write_atomic(folder / f"{name}.png", as_palette(page.screenshot(animations="disabled")))
            print(folder / f"{name}.png")
            page.close()
        browser.close()


def teach(url: str) -> None:
    """Send tickets to a service, and say what is right of all but the last ones."""
    from labelrace import Client

    tickets = [{"id": row.pop("ticket"), **row} for row in demo_tickets(_ROWS)]
    asked = [{name: cell for name, cell in row.items() if name != "tags"} for row in tickets]
    with Client(url, user="Ben") as client:
        for start in range(0, _ROWS, _REQUEST):
            client.predict(asked[start : start + _REQUEST])
            right = tickets[start : min(start + _REQUEST, _ROWS - _WAITING)]
            if right:
                client.feedback([{"id": row["id"], "tags": row["tags"]} for row in right])


def show_inbox(page: Page) -> None:
    """Accept a row, and look at another one with its marked words; somebody else has one open further down."""
    page.locator("#live[data-state=live]").wait_for()
    waiting = page.request.get(f"{page.url}v1/rows", params={"limit": 6}).json()["rows"]
    page.request.post(f"{page.url}v1/rows/{waiting[4]['id']}/open", data={"who": "Chloé"})
    page.locator(".open-by").wait_for()
    page.keyboard.press("Enter")
    page.locator(".toast").wait_for()
    page.locator(".item").nth(2).click()
    page.locator("#row mark").first.wait_for()
    page.locator("#waiting", has_text=str(_WAITING - 1)).wait_for()


def show_quality(page: Page) -> None:
    """Wait for the charts."""
    page.locator("#live[data-state=live]").wait_for()
    page.locator("#chart-rows canvas").wait_for()


def as_palette(picture: bytes) -> bytes:
    """Return a picture with 256 colours, which is small."""
    from PIL import Image

    opened, small = Image.open(io.BytesIO(picture)).convert("RGB"), io.BytesIO()
    opened.quantize(method=Image.Quantize.MAXCOVERAGE, kmeans=2).save(small, "png", optimize=True)
    return small.getvalue()
