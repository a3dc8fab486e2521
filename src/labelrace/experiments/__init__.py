"""Experiments: the paper's tables beside ours, the quality of the online models, their speed, and very many labels.

Each is run by one function; what comes out is a document of tables and charts, and records for programs to read.

>>> from labelrace.experiments import paper_document, run_paper
"""

from __future__ import annotations

from labelrace.experiments.extreme import extreme_document, extreme_records, run_extreme
from labelrace.experiments.paper import run_paper
from labelrace.experiments.paper_report import paper_document, paper_records
from labelrace.experiments.quality import run_quality
from labelrace.experiments.quality_report import quality_document, quality_records
from labelrace.experiments.speed import run_speed, speed_document, speed_records

__all__ = [
    "extreme_document",
    "extreme_records",
    "paper_document",
    "paper_records",
    "quality_document",
    "quality_records",
    "run_extreme",
    "run_paper",
    "run_quality",
    "run_speed",
    "speed_document",
    "speed_records",
]
