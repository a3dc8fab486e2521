"""Measures of multi-label predictions: by example, by label, by ranking, and of probabilities."""

from labelrace.measures.calibration import expected_calibration_error, reliability
from labelrace.measures.evaluate import (
    PAPER_MEASURES,
    default_zero_division,
    evaluate,
    is_loss,
    measure_names,
    needs_scores,
    needs_top,
    register_measure,
    uses_zero_division,
)
from labelrace.measures.propensity import propensities, propensity_scored_precision

__all__ = [
    "PAPER_MEASURES",
    "default_zero_division",
    "evaluate",
    "expected_calibration_error",
    "is_loss",
    "measure_names",
    "needs_scores",
    "needs_top",
    "propensities",
    "propensity_scored_precision",
    "register_measure",
    "reliability",
    "uses_zero_division",
]
