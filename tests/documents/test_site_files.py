"""The files of the whole site: what is made of a small one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from documents import ROOT

pytest.importorskip("sphinx", reason="the site needs the extra docs")

CONF = """
import sys
sys.path.insert(0, {extensions!r})
extensions = ["myst_parser", "site_files"]
html_baseurl = {base!r}
site_redirects = {redirects!r}
"""
INDEX = """# Home

Rows come. They go.

```{toctree}
guide/two
first-hour/one
```
"""
PAGES = {
    "index.md": INDEX,
    "guide/two.md": "# Two\n\n<!-- setup:\nx = 1\n-->\nThe `second` page. More of it.\n",
    "first-hour/one.md": "# One\n\nThe first page: short.\n",
}


@pytest.fixture
def build(tmp_path):
    """Return a function that builds the site; it returns its folder and what was said."""

    def run(base="", **redirects):
        for name, text in PAGES.items():
            path = tmp_path / "docs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        conf = CONF.format(extensions=str(ROOT / "docs" / "_ext"), base=base, redirects=redirects)
        (tmp_path / "docs" / "conf.py").write_text(conf)
        words = [sys.executable, "-m", "sphinx", "-q", "-b", "html", tmp_path / "docs", tmp_path / "html"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return tmp_path / "html", done.stderr

    return run


def test_lists_and_redirects(build):
    site, said = build(old="guide/two")
    assert said == ""
    listed = (site / "llms.txt").read_text()
    first, second = "- [One](first-hour/one.html): The first page: short.", "- [Two](guide/two.html): The second page."
    assert listed.index(first) < listed.index(second) < listed.index("- [Home](index.html): Rows come.")
    full = (site / "llms-full.txt").read_text()
    assert full == "# Two\n\nThe `second` page. More of it.\n\n# One\n\nThe first page: short.\n"
    assert 'url=guide/two.html"' in (site / "old.html").read_text()


def test_a_site_map_needs_an_address(build):
    site, _ = build()
    assert not (site / "sitemap.xml").exists()
    site, _ = build("https://example.org/site/")
    assert "<loc>https://example.org/site/guide/two.html</loc>" in (site / "sitemap.xml").read_text()


@pytest.mark.parametrize("place", ["search", "first-hour/one"])
def test_a_redirect_replaces_no_page(build, place):
    site, said = build(**{place: "guide/two"})
    assert f"got '{place}', which is one" in said
    assert "url=guide/two" not in (site / f"{place}.html").read_text()
