"""Measures of multi-label predictions: by example, by label and by ranking."""

from labelrace.measures.evaluate import PAPER_MEASURES, evaluate, measure_names

__all__ = ["PAPER_MEASURES", "evaluate", "measure_names"]
