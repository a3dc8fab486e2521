"""What a tagger knows beside its model, as a value."""

from __future__ import annotations

from typing import NamedTuple

from labelrace.features.table import FeatureState
from labelrace.tagger.tags import TagCounts, TagNames

__all__ = ["TaggerState"]


class TaggerState(NamedTuple):
    """Everything a tagger knows beside its model.

    Attributes
    ----------
    features : FeatureState
        What the columns hold, and the words.
    separator : str or None
        What separates the tags of a row that are one text; None if that has not been seen yet.
    names : TagNames
        Tags that were renamed, merged and retired.
    counts : dict of TagCounts by tag
    n_rows, n_tested : int
        Rows learned, and rows predicted before they were learned.
    sum_f1 : float
        Sum of the F measures of the rows predicted before they were learned.
    """

    features: FeatureState
    separator: str | None
    names: TagNames
    counts: dict[str, TagCounts]
    n_rows: int
    n_tested: int
    sum_f1: float
