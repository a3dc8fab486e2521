"""Measures of multi-label predictions: by example, by label, by ranking, and of probabilities."""

from labelrace.measures.calibration import expected_calibration_error, reliability
from labelrace.measures.evaluate import PAPER_MEASURES, evaluate, measure_names

__all__ = ["PAPER_MEASURES", "evaluate", "expected_calibration_error", "measure_names", "reliability"]
