"""Measures of multi-label predictions: by example, by label, by ranking, and of probabilities."""

from labelrace.measures.calibration import expected_calibration_error, reliability
from labelrace.measures.evaluate import PAPER_MEASURES, evaluate, is_loss, measure_names, needs_scores, needs_top
from labelrace.measures.propensity import propensities, propensity_scored_precision

__all__ = [
    "PAPER_MEASURES",
    "evaluate",
    "expected_calibration_error",
    "is_loss",
    "measure_names",
    "needs_scores",
    "needs_top",
    "propensities",
    "propensity_scored_precision",
    "reliability",
]
