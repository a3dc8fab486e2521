"""What every page has, whatever it shows: head, policy, colours, notes and footer, in one file that needs no other.

Here for the report's page and for the benchmarks'.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from labelrace.report import palette

__all__ = ["as_json", "render", "static"]


def render(
    template: str,
    *,
    package: str = "report",
    styles: Sequence[str],
    scripts: Sequence[str],
    library: str = "",
    colors: int,
    notes: Sequence[str] = (),
    notes_title: str = "Note",
    data: Any = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **content: Any,
) -> str:
    """Return a page as text.

    Parameters
    ----------
    template : str
        Extends ``base.html``.
    package : {"report", "experiments"}
        Whose template it is.
    styles, scripts : sequence of str
        Files for `static`. The scripts share a scope of their own.
    library : str
        A script that goes before them, outside of that scope.
    colors : int
        How many models, or what else has colours, there are.
    notes : sequence of str
        What a reader must know before believing the rest.
    notes_title : str
    data : optional
        What the scripts draw, for JSON.
    filters : mapping, optional
        Functions for the template.
    **content
        ``brand``, ``title``, ``lead`` and ``footer``, and what else the template shows.
    """
    ours = "\n".join(map(static, scripts))
    before = f"{static(library)}\n" if library else ""
    script = Markup(f'{before}(() => {{\n"use strict";\n{ours}\n}})();\n')
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(f"labelrace.{name}") for name in (package, "report")]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= filters or {}
    return environment.get_template(template).render(
        script=script,
        # The page's policy lets this script run, and no other that a name may smuggle in.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup("\n".join(map(static, styles))),
        colors=[(palette.color(place), palette.color(place, dark=True)) for place in range(colors)],
        notes=notes,
        notes_title=notes_title,
        data=as_json({} if data is None else data),
        **content,
    )


def static(name: str) -> str:
    """Return the text of a file below ``static``: the report's, or with ``bench:`` in front the benchmarks'."""
    package, _, path = name.rpartition(":")
    return (resources.files(f"labelrace.{package or 'report'}") / "static" / path).read_text(encoding="utf-8")


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
