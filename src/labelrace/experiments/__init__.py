"""Benchmarks: the paper's tables beside ours, and the speed of the models.

>>> from labelrace.experiments import run_paper, run_speed, write_paper, write_speed
"""

from __future__ import annotations

from labelrace.experiments.paper import run_paper
from labelrace.experiments.speed import run_speed
from labelrace.experiments.speed_report import print_speed, write_speed
from labelrace.experiments.terminal import print_paper
from labelrace.experiments.write import write_paper

__all__ = ["print_paper", "print_speed", "run_paper", "run_speed", "write_paper", "write_speed"]
