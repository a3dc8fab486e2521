"""A comparison -> its files."""

from __future__ import annotations

import os
from pathlib import Path

from labelrace.experiments.quality.page import render_quality
from labelrace.experiments.quality.summary import QualitySummary
from labelrace.experiments.quality.tables import csv_files
from labelrace.experiments.write import write_files

__all__ = ["write_quality"]


def write_quality(summary: QualitySummary, out: str | os.PathLike[str]) -> dict[str, Path]:
    """Write ``quality.html``, ``quality.csv``, ``ranks.csv`` and ``reliability.csv``; return their paths by name."""
    contents = {"quality.html": render_quality(summary).encode()}
    contents |= {name: text.encode() for name, text in csv_files(summary).items()}
    return write_files(contents, out)
