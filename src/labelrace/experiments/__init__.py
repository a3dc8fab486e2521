"""Experiments: the paper's tables beside ours, the quality of the online models, their speed, and very many labels.

Each experiment has two functions: one runs it and returns a summary, the other turns the summary into a document of
tables, charts and records, which `labelrace.report.document.write_document` writes in all formats.

>>> from labelrace.experiments import paper_document, run_paper
"""

from __future__ import annotations

from labelrace.experiments.extreme import extreme_document, run_extreme
from labelrace.experiments.paper import run_paper
from labelrace.experiments.paper_report import paper_document
from labelrace.experiments.quality import run_quality
from labelrace.experiments.quality_report import quality_document
from labelrace.experiments.speed import run_speed, speed_document

__all__ = [
    "extreme_document",
    "paper_document",
    "quality_document",
    "run_extreme",
    "run_paper",
    "run_quality",
    "run_speed",
    "speed_document",
]
