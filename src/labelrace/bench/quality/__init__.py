"""How good and how calibrated the online models are, and how fast, on every dataset that is at hand.

>>> from labelrace.bench.quality import print_quality, run_quality, write_quality
"""

from __future__ import annotations

from labelrace.bench.quality.run import run_quality
from labelrace.bench.quality.terminal import print_quality
from labelrace.bench.quality.write import write_quality

__all__ = ["print_quality", "run_quality", "write_quality"]
