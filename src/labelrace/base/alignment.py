"""Bringing the labels and features of two models into the same columns, by name.

The columns of the first model stay; what only the second one knows comes behind them. Where columns have no names,
equal columns are the same, unless a caller knows better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from labelrace.base import growth
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.schema import Schema
from labelrace.exceptions import MergeError
from labelrace.typing import Array, IntArray

if TYPE_CHECKING:
    from labelrace.base.fitted import Fitted


def align(one: Fitted, other: Fitted, columns: IntArray | None = None) -> tuple[Fitted, Fitted]:
    """Give two models the same labels and features, in the order of the first one.

    Parameters
    ----------
    one, other : Fitted
    columns : array, default=None
        As in `Fitted.merge`.

    Raises
    ------
    MergeError
        Where the columns of one have names and those of the other have none, where a feature is nominal in one and
        numeric in the other, or where a model that lacks some cannot take new ones.
    """
    schema, labels, features = join_schemas(one.schema, other.schema, columns)
    one, other = _grow(one, schema), _move(other, schema, labels, features)
    # To grow may have made one of them its successor.
    check_same_algorithm(one, other)
    if ((one.schema.kinds.n_values > 0) != (other.schema.kinds.n_values > 0)).any():
        raise MergeError("The models cannot be merged exactly: a feature is nominal in one and numeric in the other.")
    return one, other


def check_same_algorithm(one: Fitted, other: Fitted) -> None:
    """Refuse to merge models of other parameters, or of which one alone has become its successor."""
    if one.algorithm == other.algorithm:
        return
    for first, second in ((one, other), (other, one)):
        if first.algorithm.successor is not None and first.algorithm.successor == second.algorithm:
            raise MergeError(f"The models cannot be merged: {first.algorithm.outgrown}.")
    raise MergeError("The models cannot be merged: their parameters differ.")


def join_schemas(one: Schema, other: Schema, columns: IntArray | None = None) -> tuple[Schema, IntArray, IntArray]:
    """Append to a schema what only another one knows.

    Returns
    -------
    schema : Schema
    labels, features : arrays
        The columns that those of the other schema have in it.

    Raises
    ------
    MergeError
        Where the columns of one have names and those of the other have none, or ``columns`` are not columns.
    """
    labels = _columns("labels", one.label_names, other.label_names, other.n_labels)
    if columns is None:
        features = _columns("features", one.feature_names, other.feature_names, other.n_features)
    else:
        features = np.asarray(columns)
        _check_columns(features, other.n_features)
    n_labels = max(one.n_labels, int(labels.max(initial=-1)) + 1)
    n_values = np.zeros(max(one.n_features, int(features.max(initial=-1)) + 1), dtype=one.kinds.n_values.dtype)
    n_values[features] = other.kinds.n_values
    n_values[: one.n_features] = one.kinds.n_values
    schema = one.replace(
        kinds=FeatureKinds(n_values),
        feature_names=_join_names(one.feature_names, other.feature_names, features, len(n_values)),
        n_labels=n_labels,
        label_names=_join_names(one.label_names, other.label_names, labels, n_labels),
    )
    return schema, labels, features


def _columns(what: str, known: Array | None, others: Array | None, n_others: int) -> IntArray:
    """Find the column of each of the other model's labels or features: that of its name, or the next free one."""
    if (known is None) != (others is None):
        raise MergeError(f"The models cannot be merged: the {what} of one of them have no names; name them in both.")
    if known is None or others is None:
        return np.arange(n_others)
    index = {name: column for column, name in enumerate(known)}
    return np.array([index.setdefault(name, len(index)) for name in others], dtype=np.intp)


def _check_columns(columns: IntArray, n_features: int) -> None:
    are_columns = columns.shape == (n_features,) and columns.dtype.kind in "iu" and (columns >= 0).all()
    if not are_columns or len(np.unique(columns)) < n_features:
        raise MergeError(
            f"columns must be {n_features} different whole numbers from 0, one for each feature of other, got "
            f"{columns!r:.80}."
        )


def _join_names(known: Array | None, others: Array | None, columns: IntArray, size: int) -> Array | None:
    if known is None or others is None:
        return known
    names = np.empty(size, dtype=object)
    names[columns] = others
    names[: len(known)] = known
    return names


def _move(fitted: Fitted, schema: Schema, labels: IntArray, features: IntArray) -> Fitted:
    """Give a model's labels and features the columns that they have in a wider schema."""
    # A model grows behind what it knows; then all is put in order.
    labels = np.append(labels, np.setdiff1d(np.arange(schema.n_labels), labels))
    features = np.append(features, np.setdiff1d(np.arange(schema.n_features), features))
    grown = schema.take(labels, features)
    grown = grown.replace(kinds=fitted.schema.kinds.extended(grown.kinds))
    fitted = _grow(fitted, grown)
    labels, features = np.argsort(labels), np.argsort(features)
    if np.array_equal(labels, np.arange(len(labels))) and np.array_equal(features, np.arange(len(features))):
        return fitted
    moves = growth.to_reorder(fitted.state, features, l=labels)
    return fitted.replace(grown.take(labels, features), fitted.algorithm.take(fitted.state, moves))


def _grow(fitted: Fitted, schema: Schema) -> Fitted:
    """Grow a model, if it can."""
    old, algorithm = fitted.schema, fitted.algorithm
    reason = None
    if schema.n_labels > old.n_labels:
        reason = algorithm.why_no_new_labels() or algorithm.why_too_many_labels(schema.n_labels)
    if reason is None and schema.n_features > old.n_features:
        reason = algorithm.why_no_new_features()
    if reason:
        raise MergeError(
            f"The models cannot be merged: they know different columns, and one cannot take them: {reason}."
        )
    return fitted.grow(schema)
