"""The features of a batch: dense, sparse, a data frame or dicts, with the features that a model meets later.

A later batch to be learned may bring new features, behind those that the model knows: as further columns of a sparse
matrix, or as new names in dicts. In rows to be predicted these are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.exceptions import GrowthError
from labelrace.learners import columns
from labelrace.models import naming, validation
from labelrace.typing import AnyMatrix, Array, IntArray

__all__ = ["asked_features", "first_features", "has_new_columns", "later_features"]


def first_features(model: Any, X: Any) -> AnyMatrix:
    """Check the features of a first batch, and let the model know how many they are and what they are called."""
    rows = naming.feature_dicts(X)
    if rows is None:
        return validation.check_features(model, X, reset=True, allow_missing=model._allows_missing())
    if len(rows.names) == 0:
        raise ValueError("X names no features: a first batch of dicts needs at least one name.")
    model.n_features_in_, model.feature_names_in_ = len(rows.names), naming.as_array(rows.names)
    validation.check_finite(rows.matrix, allow_missing=model._allows_missing())
    return rows.matrix


def asked_features(model: Any, X: Any) -> AnyMatrix:
    """Check rows to be predicted."""
    rows = naming.feature_dicts(X)
    if rows is None:
        known = X.tocsr()[:, : model.n_features_in_] if has_new_columns(model, X) else X
        return _checked_by_scikit_learn(model, known)
    return _checked(model, naming.aligned(rows, _names(model), grow=False).matrix)


def has_new_columns(model: Any, X: Any) -> bool:
    """Tell whether rows to be predicted have columns without names that the model could learn but does not know."""
    if not scipy.sparse.issparse(X) or X.ndim != 2 or hasattr(model, "feature_names_in_"):
        return False
    return bool(X.shape[1] > model.n_features_in_ and model._learned.algorithm.why_no_new_features() is None)


def later_features(model: Any, X: Any) -> AnyMatrix:
    """Check the features of a later batch; the model gets to know those that are new."""
    rows = naming.feature_dicts(X)
    if rows is not None:
        matrix, names = naming.aligned(rows, _names(model))
        if len(names) > model.n_features_in_:
            _refuse_growth(model, len(names))
            _grow(model, matrix)
            model.feature_names_in_ = naming.as_array(names)
        return _checked(model, matrix)
    n_known, n_features = model.n_features_in_, X.shape[-1] if scipy.sparse.issparse(X) else 0
    if n_features > n_known:
        _refuse_growth(model, n_features)
        if hasattr(model, "feature_names_in_"):
            raise ValueError(
                f"X has {n_features} features without names, but {type(model).__name__} has learned with {n_known} "
                "that have names: give rows as dicts, {name: number}, to add features."
            )
        # What is checked next compares with this; a failure puts it back, with all the rest.
        model.n_features_in_ = n_features
        checked = validation.check_features(model, X, reset=False, allow_missing=model._allows_missing())
        _grow(model, checked)
        return _checked(model, checked)
    return _checked_by_scikit_learn(model, X)


def _checked_by_scikit_learn(model: Any, X: Any) -> AnyMatrix:
    checked = validation.check_features(model, X, reset=False, allow_missing=model._allows_missing())
    validation.check_codes(checked, model._n_values)
    return checked


def _checked(model: Any, matrix: AnyMatrix) -> AnyMatrix:
    """Check the values of a matrix whose columns are in order."""
    if matrix.shape[0] == 0:
        raise ValueError("X has 0 rows: give at least one.")
    validation.check_finite(matrix, allow_missing=model._allows_missing())
    validation.check_codes(matrix, model._n_values)
    return matrix


def _names(model: Any) -> Array:
    if not hasattr(model, "feature_names_in_"):
        raise ValueError("X names its features, but the features learned so far have no names: give a matrix, (n, m).")
    return model.feature_names_in_


def _refuse_growth(model: Any, n_features: int) -> None:
    reason = model._learned.algorithm.why_no_new_features()
    if reason:
        raise GrowthError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            f"input, and it cannot take new ones: {reason}."
        )


def _grow(model: Any, X: AnyMatrix) -> None:
    """Let a model know the features of a wider batch."""
    learned, known = model._learned, model._n_values
    n_values = np.concatenate([known, _kinds(known, X[:, len(known) :])])
    model._learned = learned.with_state(learned.algorithm.grow_features(learned.state, n_values))
    model.n_features_in_, model._n_values = X.shape[1], n_values


def _kinds(known: IntArray, new: AnyMatrix) -> IntArray:
    """Take new features for numbers; for codes, with the values that occur, where all known ones are nominal."""
    n_values = np.full(new.shape[1], 2 if columns.all_nominal(known) else 0, dtype=np.intp)
    validation.check_codes(new, n_values)
    return columns.widest_values(n_values, new)
