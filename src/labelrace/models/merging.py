"""Two models that learned different rows become one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelrace.exceptions import MergeError

__all__ = ["merge"]


def merge(model: Any, other: Any) -> None:
    """Let a model take in what another one has learned; see its method `merge`."""
    check_is_fitted(model)
    if type(other) is not type(model):
        raise MergeError(f"other must be a {type(model).__name__}, got {type(other).__name__}.")
    check_is_fitted(other)
    reason = _why_not(model, other)
    if reason:
        raise MergeError(f"The models cannot be merged exactly: {reason}.")
    learned = model._learned
    model._learned = learned.with_state(learned.algorithm.merge(learned.state, other._learned.state))
    model._n_values = np.maximum(model._n_values, other._n_values)


def _why_not(model: Any, other: Any) -> str | None:
    learned = model._learned
    if learned.algorithm != other._learned.algorithm:
        return "their parameters differ"
    if model.n_features_in_ != other.n_features_in_ or not _same(model._feature_names, other._feature_names):
        return "their features differ"
    if ((model._n_values > 0) != (other._n_values > 0)).any():
        return "a feature is nominal in one of them and numeric in the other"
    if len(model.classes_) != len(other.classes_) or not _same(model.label_names_, other.label_names_):
        return "their labels differ"
    return learned.algorithm.why_unmergeable(learned.state, other._learned.state)


def _same(one: Any, other: Any) -> bool:
    """Compare names, which may be None."""
    return list(one if one is not None else []) == list(other if other is not None else [])
