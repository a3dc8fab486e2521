"""The pages of the gallery: what is told of their pictures to those who cannot see them, and no note at the top."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_PICTURE = re.compile(r"sphx_glr_(plot_\w+?)_(?:thumb|\d+)\.")


def _mend(app: Sphinx, page: nodes.document, name: str) -> None:
    """Give pictures the titles of their examples; leave out that one can go to the end of a page."""
    if not name.startswith("gallery/"):
        return
    for one in list(page.findall(nodes.note)):
        if "sphx-glr-download-link-note" in one["classes"]:
            one.parent.remove(one)
    for one in page.findall(lambda node: isinstance(node, nodes.Element) and "uri" in node and "alt" in node):
        if found := _PICTURE.search(one["uri"]):
            one["alt"] = app.env.titles[f"gallery/{found[1]}"].astext()


def setup(app: Sphinx) -> dict[str, Any]:
    """Mend pages before they are written."""
    app.connect("doctree-resolved", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
