"""The site that `make docs` has built, read from disk: all of it is there, links lead somewhere, one can search."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from helpers.browser import browser, expect, visiting

__all__ = ["browser"]

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"

pytestmark = pytest.mark.skipif(not (SITE / "search.html").exists(), reason="the site is not built: make docs")

_LOADED = re.compile(r"""<(?:script|link|img|source|iframe)\b[^>]*?\b(?:src|href|srcset)=["']((?:https?:)?//[^"']+)""")
_CANONICAL = re.compile(r"""<link\b[^>]*rel=["']canonical["'][^>]*>""")
_LINK = re.compile(r"""<a\b[^>]*?\bhref=["']([^"']*)["']""")
_ID = re.compile(r"""\b(?:id|name)=["']([^"']*)["']""")


@pytest.fixture(scope="module")
def pages():
    """Read all pages."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(SITE.rglob("*.html"))}


def test_no_page_loads_anything_from_elsewhere(pages):
    found = {path.name: _LOADED.findall(_CANONICAL.sub("", text)) for path, text in pages.items()}
    assert {name: loaded for name, loaded in found.items() if loaded} == {}


def test_links_within_the_site_lead_somewhere(pages):
    places = {path: {unescape(one) for one in _ID.findall(text)} for path, text in pages.items()}
    broken = set()
    for path, text in pages.items():
        if path.name == "404.html":
            continue
        for link in set(map(unescape, _LINK.findall(text))):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (target in places and unquote(parts.fragment) not in places[target] | {""}):
                broken.add((path.relative_to(SITE).as_posix(), link))
    assert sorted(broken) == []


def test_the_page_of_errors_stands_anywhere(pages):
    links = re.findall(r"""<(?:link|script)\b[^>]*?(?:href|src)=["']([^"']+)""", pages[SITE / "404.html"])
    assert links
    assert all(link.startswith(("/", "https://", "http://")) for link in links)


@pytest.mark.slow
def test_one_can_search(browser):
    # From disk a browser fetches no pages, so there are no excerpts of what was found, which it complains of.
    with visiting(browser, SITE.as_uri(), allowed=("console:", "Failed to fetch")) as page:
        page.goto(f"{SITE.as_uri()}/search.html?q=threshold")
        expect(page.locator("#search-results li a").first).to_be_visible()
        assert page.locator("#search-results li").count() > 3
