"""A run folder -> files of its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from labelrace.evaluation import read_run
from labelrace.files import write_whole
from labelrace.report.page import render_page
from labelrace.report.summary import Summary, summarize
from labelrace.report.tables import csv_table, latex_table, markdown_table

__all__ = ["FORMATS", "write_report"]

_Source: TypeAlias = str | os.PathLike[str] | tuple[Mapping[str, Any], Iterable[Mapping[str, Any]]]

_RENDERERS: dict[str, Callable[[Summary], str]] = {
    "html": render_page,
    "csv": csv_table,
    "md": markdown_table,
    "tex": latex_table,
}
_FIGURES = ("png", "svg")
FORMATS = (*_RENDERERS, *_FIGURES)


def write_report(
    source: _Source,
    out: str | os.PathLike[str] | None = None,
    formats: Sequence[str] = ("html", "csv", "md", "tex"),
) -> dict[str, Path]:
    """Write a report of a run, or of as much of it as there is.

    Parameters
    ----------
    source
        A run folder, or its manifest and records.
    out
        The folder to write into; made if it is not there. The run folder itself if not given.
    formats
        Any of ``html`` (one page that needs nothing else), ``csv``, ``md``, ``tex`` (tables), ``png`` and ``svg``
        (figures; they need ``labelrace[plots]``).

    Returns
    -------
    dict
        Name of each file -> its path: ``report.html``, …, ``curves.png``, ….
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ValueError(f"formats: {', '.join(map(repr, unknown))} is not known; there are {', '.join(FORMATS)}.")
    if isinstance(source, tuple):
        manifest, records = source
    else:
        manifest, records = read_run(source)
    if out is None:
        if isinstance(source, tuple):
            raise ValueError("out: a folder to write into is needed when the source is not a run folder.")
        out = source
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    return _write(summarize(manifest, records), folder, formats)


def _write(summary: Summary, folder: Path, formats: Sequence[str]) -> dict[str, Path]:
    contents = {f"report.{name}": _RENDERERS[name](summary).encode() for name in formats if name in _RENDERERS}
    figures = [name for name in formats if name in _FIGURES]
    if figures:
        from labelrace.report.figures import draw_figures

        contents |= draw_figures(summary, figures)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return {name: folder / name for name in contents}
