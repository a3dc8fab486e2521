"""When two models that learned different rows can become the model that learned them all."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.compression.race import Race
from labelrace.estimators.base import OnlineClassifier

__all__ = ["why_unmergeable"]


def why_unmergeable(one: OnlineClassifier, other: OnlineClassifier) -> str | None:
    """Say why two RACE models cannot be merged exactly; None if they can."""
    race: Race = one._learned.algorithm
    if race != other._learned.algorithm:
        return "their parameters differ"
    if one.n_features_in_ != other.n_features_in_ or not _same(one._feature_names, other._feature_names):
        return "their features differ"
    if len(one.classes_) != len(other.classes_) or not _same(one.label_names_, other.label_names_):
        return "their labels differ"
    if race.encoding == "adaptive":
        return "with adaptive encoding, pseudo labels depend on what was learned before"
    if race.start == "first_batch":
        return "their decoders live in what each one's first batch spans; use start='full'"
    if race.forgetting < 1:
        return "forgetting depends on the order of the batches"
    if race.bank.why_unmergeable:
        return f"their learners are {race.bank!r}, and {race.bank.why_unmergeable}"
    if not all(map(np.array_equal, one._learned.state.encoder, other._learned.state.encoder)):
        return "their encoders differ; start both from one random_state or projection"
    return None


def _same(one: Any, other: Any) -> bool:
    """Compare names, which may be None."""
    return list(one if one is not None else []) == list(other if other is not None else [])
