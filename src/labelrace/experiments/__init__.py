"""Experiments: the paper's tables beside ours, the quality of the online models, and their speed.

>>> from labelrace.experiments import run_paper, run_quality, run_speed
"""

from __future__ import annotations

from labelrace.experiments.paper import run_paper
from labelrace.experiments.paper_report import paper_records, print_paper, write_paper
from labelrace.experiments.quality import run_quality
from labelrace.experiments.quality_report import print_quality, quality_records, write_quality
from labelrace.experiments.speed import print_speed, run_speed, speed_records, write_speed

__all__ = [
    "paper_records",
    "print_paper",
    "print_quality",
    "print_speed",
    "quality_records",
    "run_paper",
    "run_quality",
    "run_speed",
    "speed_records",
    "write_paper",
    "write_quality",
    "write_speed",
]
