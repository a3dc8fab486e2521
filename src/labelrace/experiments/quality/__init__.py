"""How good and how calibrated the online models are, and how fast, on every dataset that is at hand.

>>> from labelrace.experiments.quality import print_quality, run_quality, write_quality
"""

from __future__ import annotations

from labelrace.experiments.quality.run import run_quality
from labelrace.experiments.quality.terminal import print_quality
from labelrace.experiments.quality.write import write_quality

__all__ = ["print_quality", "run_quality", "write_quality"]
