"""Formulas as MathML, which browsers draw themselves: no script, no font, no image."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(convert(node.astext()))
    raise SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, which ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
