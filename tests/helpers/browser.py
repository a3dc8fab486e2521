"""Browsers for tests: Debian's Chromium, pages that say nothing and ask for nothing elsewhere, and axe."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from importlib import resources

import pytest

__all__ = ["browser"]

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
SECONDS = 30


@pytest.fixture(scope="module")
def browser():
    """Launch a browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM:
        pytest.skip("there is no chromium: put it on PATH or name it in CHROMIUM")
    with playwright.sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        launched = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield launched
        launched.close()


@contextmanager
def visiting(browser, own, width=1280, script="", allowed=(), **settings):
    """Yield a page in a context of its own; at the end it has said nothing, and asked for nothing beside its own.

    `own` is how addresses begin that the page may ask for, `allowed` parts of what it may say.
    """
    heard = []
    context = browser.new_context(viewport={"width": width, "height": 800}, **settings)
    context.set_default_timeout(1000 * SECONDS)
    if script:
        context.add_init_script(script)
    page = context.new_page()
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on(
        "request", lambda request: request.url.startswith((own, "blob:")) or heard.append(f"request: {request.url}")
    )
    try:
        yield page
    finally:
        context.close()
    assert [said for said in heard if not any(part in said for part in allowed)] == []


def expect(found):
    """Return what can be expected of elements, some time later."""
    from playwright.sync_api import expect

    expect.set_options(timeout=1000 * SECONDS)
    return expect(found)


def faults(page):
    """Return what axe finds that is serious or critical: rules, and the first elements of each."""
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(f"() => {{ if (!globalThis.axe) {{ {axe} }} }}")
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
