"""What belongs to the whole site: ``llms.txt``, the site map, and pages that lead from old places to new ones.

``llms.txt`` lists every page with its first sentence, in the order of the menus, what readers need first at the top;
``llms-full.txt`` is the text of the first hour, the guide and the glossary. The site map has addresses, so it is made
only where one is known: where ``LABELRACE_SITE`` is set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="canonical" href="{target}"><meta http-equiv="refresh" content="0; url={target}"></head>
<body><p>This page is now <a href="{target}">{target}</a>.</p></body></html>
"""
# Pages that Sphinx makes beside those of the sources.
_OF_SPHINX = {"404", "genindex", "py-modindex", "search"}
_SECTIONS = {
    "first-hour": "First hour",
    "guide": "Guide",
    "reference": "Reference",
    "gallery": "Gallery",
    "methods": "Methods",
    "in-depth": "In depth",
    "": "More",
    "project": "Project",
}
# Not after an initial.
_SENTENCE_END = re.compile(r"(?<!\b[A-Z]\.)(?<=[.:!?])\s+(?=[A-Z`\[]|labelrace)")
_IN_FULL = re.compile(r"first-hour/|guide/|reference/glossary$")
# What Markdown pages hold for others than readers: comments, and lists of pages.
_NOT_READ = re.compile(r"<!--.*?-->\n*|^(`{3,})\{toctree\}.*?^\1\n*", re.DOTALL | re.MULTILINE)


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    folder, base = Path(app.outdir), app.config.html_baseurl
    pages = list(_in_order(app.env, app.config.root_doc))
    _write_text(folder / "llms.txt", _listed(app.env, pages, base))
    _write_text(folder / "llms-full.txt", _full(app.env, pages))
    if base:
        _write_text(folder / "sitemap.xml", _site_map(pages, base))
    _mend_sources(app, folder)
    for old, new in app.config.site_redirects.items():
        if new not in app.env.found_docs:
            raise ValueError(f"site_redirects leads to {new!r}, which is no page.")
        if old in app.env.found_docs | _OF_SPHINX:
            raise ValueError(f"site_redirects must lead away from places without a page, got {old!r}, which is one.")
        target = Path(os.path.relpath(f"{new}.html", Path(old).parent)).as_posix()
        _write_text(folder / f"{old}.html", _REDIRECT.format(title=escape(new), target=target))


def _mend_sources(app: Sphinx, folder: Path) -> None:
    """Lead from pages of source code to entries that exist: Sphinx takes a file's names for those of one module."""
    entries: dict[str, str] = {}
    for name, _, _, page, anchor, _ in app.env.domains["py"].get_objects():
        entries[f"{page}.html {_own_name(name)}"] = f"{page}.html#{anchor}"
        entries.setdefault(_own_name(name), f"{page}.html#{anchor}")
    for path in folder.glob("_modules/**/*.html"):
        up = "../" * (len(path.relative_to(folder).parts) - 1)

        def mended(link: re.Match[str], up: str = up) -> str:
            name = _own_name(link[2])
            entry = entries.get(f"{link[1].removeprefix(up)} {name}") or entries.get(name)
            return f'href="{up}{entry}">[docs]' if entry else ">"

        text = path.read_text(encoding="utf-8")
        _write_text(path, re.sub(r'href="([^"#]*)#([\w.]+)">\[docs\]', mended, text))


def _own_name(name: str) -> str:
    """Return a name without its modules: that of a class or function, or of a class and its method."""
    words = name.split(".")
    return ".".join(words[-2:] if words[-2:][0][:1].isupper() else words[-1:])


def _in_order(env: BuildEnvironment, name: str, seen: set[str] | None = None) -> Iterator[str]:
    """Yield a page and those below it, in the order of the menus."""
    seen = set() if seen is None else seen
    if name not in seen:
        seen.add(name)
        yield name
        for below in env.toctree_includes.get(name, ()):
            yield from _in_order(env, below, seen)


def _listed(env: BuildEnvironment, pages: list[str], base: str) -> str:
    """List the pages, each with its first sentence."""
    sections: dict[str, list[str]] = {name: [] for name in _SECTIONS}
    for name in pages:
        link, about = f"[{env.titles[name].astext()}]({base}{name}.html)", _first_sentence(env.get_doctree(name))
        sections[name.rpartition("/")[0].partition("/")[0]].append(f"- {link}{about and ': '}{about}")
    lines = ["# labelrace", "", "> Online multi-label classification: streams, many labels, one pass.", ""]
    for name, links in sections.items():
        lines += [f"## {_SECTIONS[name]}", "", *links, ""] if links else []
    return "\n".join(lines)


def _first_sentence(page: nodes.document) -> str:
    """Return the first sentence of a page; nothing if it has none, as a mere list of pages."""
    for one in page.findall(nodes.paragraph):
        if not isinstance(one.parent, nodes.list_item | nodes.entry | addnodes.compact_paragraph | nodes.Admonition):
            return _SENTENCE_END.split(" ".join(one.astext().split()), maxsplit=1)[0]
    return ""


def _full(env: BuildEnvironment, pages: list[str]) -> str:
    """Return the text of what people read first."""
    sources = (env.doc2path(name) for name in pages if _IN_FULL.match(name))
    texts = (_NOT_READ.sub("", Path(one).read_text(encoding="utf-8")).strip() for one in sources)
    return "\n\n".join(texts) + "\n"


def _site_map(pages: list[str], base: str) -> str:
    places = "".join(f"<url><loc>{escape(base + name)}.html</loc></url>\n" for name in sorted(pages))
    head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{places}</urlset>\n"


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the files after the pages."""
    app.add_config_value("site_redirects", {}, "html")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
