"""What belongs to the whole site: ``llms.txt``, the site map, and pages that lead from old places to new ones."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from sphinx.application import Sphinx

_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="canonical" href="{target}"><meta http-equiv="refresh" content="0; url={target}"></head>
<body><p>This page is now <a href="{target}">{target}</a>.</p></body></html>
"""


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    names = sorted(name for name in app.env.found_docs if not name.startswith("_"))
    _write_llms(app, folder, names)
    if app.config.html_baseurl:
        _write_site_map(app, folder, names)
    for old, new in app.config.site_redirects.items():
        if new not in app.env.found_docs:
            raise ValueError(f"site_redirects leads to {new!r}, which is no page.")
        target = Path(os.path.relpath(f"{new}.html", Path(old).parent)).as_posix()
        (folder / f"{old}.html").write_text(_REDIRECT.format(title=escape(new), target=target), encoding="utf-8")


def _write_llms(app: Sphinx, folder: Path, names: list[str]) -> None:
    """List all pages with their titles, and put the text of what people read first into one file."""
    base = app.config.html_baseurl
    lines = ["# labelrace", "", "> Online multi-label classification: streams, many labels, one pass.", ""]
    sections: dict[str, list[str]] = {}
    for name in names:
        section = name.partition("/")[0] if "/" in name else "labelrace"
        title = app.env.titles[name].astext()
        sections.setdefault(section, []).append(f"- [{title}]({base}{name}.html)")
    for section, links in sections.items():
        lines += [f"## {section.replace('-', ' ').capitalize()}", "", *links, ""]
    (folder / "llms.txt").write_text("\n".join(lines), encoding="utf-8")


def _write_site_map(app: Sphinx, folder: Path, names: list[str]) -> None:
    places = "".join(f"<url><loc>{escape(app.config.html_baseurl + name)}.html</loc></url>\n" for name in names)
    text = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    (folder / "sitemap.xml").write_text(f"{text}{places}</urlset>\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the files after the pages."""
    app.add_config_value("site_redirects", {}, "html")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
