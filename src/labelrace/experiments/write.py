"""A comparison with the paper -> its files."""

from __future__ import annotations

import os
from pathlib import Path

from labelrace.experiments.latex import latex_tables
from labelrace.experiments.page import render_paper
from labelrace.experiments.summary import PaperSummary
from labelrace.experiments.tables import csv_files
from labelrace.files import write_whole
from labelrace.report.canvas import can_draw

__all__ = ["write_files", "write_paper"]


def write_paper(summary: PaperSummary, out: str | os.PathLike[str]) -> dict[str, Path]:
    """Write page, tables and, where matplotlib is installed, figures.

    Parameters
    ----------
    summary : PaperSummary
        From `run_paper`.
    out : path
        The folder.

    Returns
    -------
    dict
        Name of each file -> its path: ``paper.html``, ``tables.tex``, ``cells.csv``, ….
    """
    contents = {"paper.html": render_paper(summary).encode(), "tables.tex": latex_tables(summary).encode()}
    contents |= {name: text.encode() for name, text in csv_files(summary).items()}
    if can_draw():
        from labelrace.experiments.figures import draw_paper

        contents |= draw_paper(summary)
    return write_files(contents, out)


def write_files(contents: dict[str, bytes], out: str | os.PathLike[str]) -> dict[str, Path]:
    """Write files into a folder, which is made if need be, each whole or not at all."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return {name: folder / name for name in contents}
