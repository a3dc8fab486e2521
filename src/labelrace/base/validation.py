"""What users hand in, checked and named once: a batch of arrays with its schema.

Features are an array, a sparse matrix, a data frame or dicts; labels are an array or sparse matrix of 0 and 1, a data
frame or sets of names (`labelrace.base.labels`). `first_batch` finds out what the columns are, `next_batch` brings a
later batch into the order that is known, with what is new behind it, and `known_rows` does so for rows to be predicted,
where what is new is ignored. Every error names the argument, what was found and what to do; nothing is changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array
from sklearn.utils import check_array

from labelrace.base import limits, naming
from labelrace.base.algorithm import Algorithm
from labelrace.base.feature_kinds import FeatureKinds
from labelrace.base.labels import first_labels, next_labels
from labelrace.base.schema import Batch, Schema
from labelrace.base.sparse import canonical, why_malformed
from labelrace.exceptions import DivergenceError, GrowthError, LimitError
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

_TEXT_HINT = "e.g. with sklearn.preprocessing.OrdinalEncoder"
LARGEST = 1e100
"""Larger features are refused when learning, and clipped when predicting, so that sums of squares do not overflow."""

# Heavier rows than this are refused, as those of weight 1 would be lost beside them; lighter ones do not count.
_HEAVIEST, _LIGHTEST = 1e12, 1e-100
_FLOAT, _INDEX = np.dtype(np.float64), np.dtype(np.int32)


class EstimatorInfo(NamedTuple):
    """Whose input it is: the name of the estimator, for errors, and its algorithm, for what that can take."""

    name: str
    algorithm: Algorithm[Any]


def first_batch(
    X: Any,
    Y: Any,
    estimator: EstimatorInfo,
    *,
    label_names: Any = None,
    categorical_features: Any = None,
    sample_weight: Any = None,
) -> Batch:
    """Check a first batch and find out what its columns are."""
    _check_sparse(X)
    rows, feature_names = _first_features(X, estimator)
    labels = first_labels(Y, rows.shape[0], label_names, allow_missing=estimator.algorithm.learns_missing_labels)
    kinds = categorical_kinds(categorical_features, rows.shape[1], feature_names)
    check_codes(rows, kinds)
    _refuse_huge(rows)
    too_many = estimator.algorithm.why_too_many_labels(labels.matrix.shape[1])
    if too_many:
        raise ValueError(f"y has {labels.matrix.shape[1]} labels, too many for {estimator.name}: {too_many}.")
    kinds, n_labels = kinds.widened(rows), labels.matrix.shape[1]
    schema = Schema(kinds, feature_names, n_labels, labels.names, labels.is_sparse, labels.dtype)
    batch = Batch(rows, labels.matrix, schema)
    return batch if sample_weight is None else _weighted(batch, sample_weight, estimator)


def next_batch(X: Any, Y: Any, schema: Schema, estimator: EstimatorInfo, *, sample_weight: Any = None) -> Batch:
    """Check a later batch and bring it into the order that is known, with what is new behind it."""
    allow_missing = estimator.algorithm.learns_missing_labels
    if _is_canonical(X, schema):
        rows = X
    else:
        _check_sparse(X, schema.n_features)
        rows, schema = _next_features(X, schema, estimator)
    labels = next_labels(Y, rows.shape[0], schema, allow_missing=allow_missing)
    n_labels = labels.matrix.shape[1]
    if n_labels > schema.n_labels:
        reason = estimator.algorithm.why_no_new_labels() or estimator.algorithm.why_too_many_labels(n_labels)
        if reason:
            raise GrowthError(
                f"y has {n_labels} labels, but {estimator.name} has learned with {schema.n_labels} and cannot take new "
                f"labels: {reason}."
            )
    if n_labels > schema.n_labels or labels.names is not schema.label_names:
        schema = schema.replace(n_labels=n_labels, label_names=labels.names)
    batch = Batch(rows, labels.matrix, schema)
    return batch if sample_weight is None else _weighted(batch, sample_weight, estimator)


def _weighted(batch: Batch, sample_weight: Any, estimator: EstimatorInfo) -> Batch:
    """Give the rows of a batch their weights; those of weight 0 are left out, and weights that are all 1 are none."""
    reason = estimator.algorithm.why_no_row_weights()
    if reason:
        raise ValueError(
            f"sample_weight must be None for {estimator.name}, got weights: {reason}. Repeat rows that count more, "
            "leave out those that do not count, or use 'race'."
        )
    weights = _checked_weights(sample_weight, batch.X.shape[0])
    counted = np.flatnonzero(weights)
    if len(counted) < len(weights):
        batch, weights = batch._replace(X=batch.X[counted], Y=batch.Y[counted]), weights[counted]
    return batch if (weights == 1.0).all() else batch._replace(row_weights=weights)


def _checked_weights(sample_weight: Any, n_rows: int) -> FloatArray:
    """Check the weights of rows, as scikit-learn has them."""
    wanted = f"sample_weight must be a list of {n_rows} finite numbers of at least 0, a weight for each row, got"
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{wanted} {sample_weight!r:.80}.") from None
    if weights.shape != (n_rows,):
        raise ValueError(f"{wanted} the shape {weights.shape}.")
    wrong = ~((weights >= 0.0) & (weights < np.inf))
    if wrong.any():
        raise ValueError(f"{wanted} {weights[wrong][0]:g}.")
    if weights.max() > _HEAVIEST:
        raise DivergenceError(
            f"sample_weight must hold numbers up to {_HEAVIEST:g}, got {weights.max():g}: scale them."
        )
    # Such a row has no effect that could be told from round-off.
    counted = np.where(weights < _LIGHTEST, 0.0, weights)
    if not counted.any():
        raise ValueError("sample_weight must be above 0 for at least one row, got only zeros: leave out the batch.")
    return counted


def _is_canonical(X: Any, schema: Schema) -> bool:
    """Return whether features are, at a glance, as a model needs them: numbers, without names, of the columns it knows.

    Most are. All others are checked, and brought into order, step by step.
    """
    kind = type(X)
    if (kind is not csr_array and kind is not np.ndarray) or schema.feature_names is not None:
        return False
    shape = X.shape
    kinds = schema.kinds
    if len(shape) != 2 or 0 in shape or shape[1] != len(kinds.n_values) or not kinds.all_numeric or X.dtype != _FLOAT:
        return False
    if kind is np.ndarray:
        return _is_small(X)
    if X.indices.dtype != _INDEX or why_malformed(X) or not X.has_canonical_format:
        return False
    return len(X.indices) == len(X.data) == X.indptr[-1] and _is_small(X.data)


def known_rows(X: Any, schema: Schema, estimator: EstimatorInfo) -> AnyMatrix:
    """Check rows to be predicted; features that are not known are left out."""
    if _is_canonical(X, schema):
        return X
    _check_sparse(X, schema.n_features)
    rows = naming.feature_dicts(X)
    if rows is not None:
        matrix = naming.aligned(rows, _names(schema), schema.feature_index, grow=False).matrix
        return _clip_huge(_checked(matrix, schema, estimator))
    if _has_new_columns(X, schema, estimator):
        X = X.tocsr()[:, : schema.n_features]
    is_clean = _is_clean_float(X)
    matrix = _checked_array(X, schema, estimator, is_clean)
    return matrix if is_clean else _clip_huge(matrix)


def in_range(X: AnyMatrix, schema: Schema) -> AnyMatrix:
    """Check the values of rows to be predicted whose columns are in order."""
    check_codes(X, schema.kinds)
    return _clip_huge(X)


def _is_huge(X: AnyMatrix) -> bool:
    """Return whether there are numbers above the largest that are learned."""
    values = X.data if scipy.sparse.issparse(X) else X
    return bool(np.fmax.reduce(np.abs(values), axis=None, initial=0.0) > LARGEST)


def _refuse_huge(X: AnyMatrix) -> None:
    if _is_huge(X):
        raise DivergenceError(
            f"X must hold numbers up to {LARGEST:g}, got larger ones: the sums of their squares would overflow. Scale "
            "the features (StandardScaler)."
        )


def _clip_huge(X: AnyMatrix) -> AnyMatrix:
    """Clip numbers to the largest that are learned."""
    if not _is_huge(X):
        return X
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array((np.clip(X.data, -LARGEST, LARGEST), X.indices, X.indptr), shape=X.shape)
    return np.clip(X, -LARGEST, LARGEST)


def feature_columns(columns: Any, n_features: int) -> IntArray:
    """Check the columns of features that are known."""
    given = np.asarray(columns)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"columns must be a list of whole numbers, got {columns!r:.80}.")
    if given.size and not (given.min() >= 0 and given.max() < n_features):
        raise ValueError(f"columns must be numbers of the {n_features} features, got {columns!r:.80}.")
    return given.astype(np.intp)


def _check_sparse(X: Any, n_known: int = 0) -> None:
    """Refuse a sparse matrix whose arrays do not fit, or that is wider than known and than there is memory for."""
    if scipy.sparse.issparse(X):
        reason = why_malformed(X)
        if reason:
            raise ValueError(f"X is not a valid sparse matrix: {reason}.")
        n_features = X.shape[-1]
        if n_features > n_known:
            limits.FEATURES.check(n_features, "X")


def one_row(x: Any) -> Any:
    """Turn what a user gives as one row into rows: a dict, a vector, dense or sparse, or a row of a data frame."""
    if isinstance(x, dict):
        return [x]
    if hasattr(x, "to_frame"):
        # A row of a data frame: its index is the names of the columns.
        return x.to_frame().T
    if scipy.sparse.issparse(x):
        return x.reshape((1, -1)).tocsr() if x.ndim == 1 else x
    is_vector = len(x.shape) == 1 if hasattr(x, "shape") else isinstance(x, (list, tuple)) and not _are_rows(x)
    return [x] if is_vector else x


def _are_rows(values: Sequence[Any]) -> bool:
    return any(isinstance(value, (Mapping, Sequence)) or hasattr(value, "shape") for value in values)


def _first_features(X: Any, estimator: EstimatorInfo) -> tuple[AnyMatrix, Array | None]:
    """Check the features of a first batch; return them with their names or None."""
    rows = naming.feature_dicts(X)
    if rows is None:
        return _as_floats(X, estimator), _frame_names(X)
    if len(rows.names) == 0:
        raise ValueError("X must name at least one feature in a first batch of dicts, got none.")
    check_finite(rows.matrix, allow_missing=estimator.algorithm.skips_missing)
    return rows.matrix, naming.as_array(rows.names)


def _next_features(X: Any, schema: Schema, estimator: EstimatorInfo) -> tuple[AnyMatrix, Schema]:
    """Check the features of a later batch; return them with the schema, which is wider where there are new ones."""
    rows = naming.feature_dicts(X)
    if rows is not None:
        matrix, names = naming.aligned(rows, _names(schema), schema.feature_index)
        if len(names) > schema.n_features:
            schema = _grown(schema, matrix, naming.as_array(names), estimator)
        _checked(matrix, schema, estimator)
        _refuse_huge(matrix)
        return matrix, schema
    n_features = X.shape[-1] if scipy.sparse.issparse(X) else 0
    if n_features > schema.n_features:
        if schema.feature_names is not None:
            raise ValueError(
                f"X has {n_features} features without names, but {estimator.name} has learned with {schema.n_features} "
                "that have names: give rows as dicts, {name: number}, to add features."
            )
        matrix = _as_floats(X, estimator)
        schema = _grown(schema, matrix, None, estimator)
        check_codes(matrix, schema.kinds)
        _refuse_huge(matrix)
        return matrix, schema
    is_clean = _is_clean_float(X)
    matrix = _checked_array(X, schema, estimator, is_clean)
    if not is_clean:
        _refuse_huge(matrix)
    return matrix, schema


def _grown(schema: Schema, X: AnyMatrix, names: Array | None, estimator: EstimatorInfo) -> Schema:
    """Widen a schema by the new features of a batch, if the algorithm can take them."""
    reason = estimator.algorithm.why_no_new_features()
    if reason:
        raise GrowthError(
            f"X has {X.shape[1]} features, but {estimator.name} is expecting {schema.n_features} features as input, "
            f"and it cannot take new ones: {reason}."
        )
    # New features are numbers, or codes where all known ones are nominal.
    new = X[:, schema.n_features :]
    kinds = FeatureKinds(np.full(new.shape[1], 2 if schema.kinds.all_nominal else 0, dtype=np.intp))
    check_codes(new, kinds)
    n_values = np.concatenate([schema.kinds.n_values, kinds.widened(new).n_values])
    return schema.replace(kinds=FeatureKinds(n_values), feature_names=names)


def _has_new_columns(X: Any, schema: Schema, estimator: EstimatorInfo) -> bool:
    """Return whether rows to be predicted have columns without names that the model could learn but does not know."""
    if not scipy.sparse.issparse(X) or X.ndim != 2 or schema.feature_names is not None:
        return False
    return bool(X.shape[1] > schema.n_features and estimator.algorithm.why_no_new_features() is None)


def _names(schema: Schema) -> Array:
    if schema.feature_names is None:
        raise ValueError("X names its features, but the features learned so far have no names: give a matrix, (n, m).")
    return schema.feature_names


def _checked_array(X: Any, schema: Schema, estimator: EstimatorInfo, is_clean: bool) -> AnyMatrix:
    """Check rows without names, or of a data frame, against what is known."""
    checked = _as_floats(X, estimator, is_clean)
    _check_frame_names(X, schema, estimator)
    if checked.shape[1] != schema.n_features:
        raise ValueError(
            f"X has {checked.shape[1]} features, but {estimator.name} is expecting {schema.n_features} features as "
            "input."
        )
    check_codes(checked, schema.kinds)
    return checked


def _checked(matrix: AnyMatrix, schema: Schema, estimator: EstimatorInfo) -> AnyMatrix:
    """Check the values of a matrix whose columns are in order."""
    if matrix.shape[0] == 0:
        raise ValueError("X must have at least one row, got 0.")
    check_finite(matrix, allow_missing=estimator.algorithm.skips_missing)
    check_codes(matrix, schema.kinds)
    return matrix


def _is_clean_float(X: Any) -> bool:
    """Return whether, at a glance, features are floats, dense or in compressed rows, of a size that is learned.

    Most are; scikit-learn's checks, thorough and slow, are for the others.
    """
    is_sparse = type(X) is csr_array or (scipy.sparse.issparse(X) and X.format == "csr")
    if not (is_sparse or type(X) is np.ndarray) or X.dtype != _FLOAT or X.ndim != 2 or 0 in X.shape:
        return False
    return _is_small(X.data if is_sparse else X)


def _is_small(values: Array) -> bool:
    """Return whether all numbers are of a size that is learned, and none is missing."""
    # A sum of squares bounds every number, of NaN it is NaN, and BLAS, which does not warn, is quick at it.
    return bool(np.vdot(values, values) <= LARGEST**2)


def _as_floats(X: Any, estimator: EstimatorInfo, is_clean: bool | None = None) -> AnyMatrix:
    """Turn ``X`` into floats, dense or in compressed rows; ``is_clean`` is `_is_clean_float`, if that is known."""
    if _is_clean_float(X) if is_clean is None else is_clean:
        return canonical(X) if scipy.sparse.issparse(X) else X
    if isinstance(X, Mapping):
        raise TypeError("X must be rows of features, got a dict: give a list of dicts, one for each row.")
    _refuse_text(X)
    X = _without_sparse_columns(X)
    X = unmasked(X)
    finite = "allow-nan" if estimator.algorithm.skips_missing else True
    try:
        # Infinities of both signs are refused, not warned about.
        with np.errstate(invalid="ignore"):
            checked = check_array(
                X,
                accept_sparse="csr",
                dtype=np.float64,
                ensure_all_finite=finite,
                estimator=estimator.name,
                input_name="X",
            )
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"X must hold numbers, got text ({error}): encode it, {_TEXT_HINT}.") from None
        raise
    except OverflowError:
        raise ValueError("X holds a whole number that is too large to be a float.") from None
    return canonical(checked) if scipy.sparse.issparse(checked) else checked


def unmasked(X: Any) -> Any:
    """Make the masked values of a masked array NaN, which is missing; others stay as they are."""
    return np.ma.filled(X.astype(float), np.nan) if np.ma.isMaskedArray(X) else X


def _without_sparse_columns(X: Any) -> Any:
    """Make the sparse columns of a data frame dense where others are: scikit-learn does so too, with a warning."""
    kinds = list(getattr(X, "dtypes", ())) if hasattr(X, "iloc") and hasattr(X, "columns") else []
    sparse = {i: kind.subtype for i, kind in enumerate(kinds) if str(kind).startswith("Sparse")}
    if not 0 < len(sparse) < len(kinds):
        return X
    return X.astype({X.columns[i]: kind for i, kind in sparse.items()})


def check_finite(X: AnyMatrix, *, allow_missing: bool) -> None:
    """Refuse infinities, and NaN unless it is a missing value."""
    values = X.data if scipy.sparse.issparse(X) else X
    if np.isinf(values).any():
        raise ValueError("X contains infinity. Features must be finite numbers.")
    if not allow_missing and np.isnan(values).any():
        raise ValueError("X contains NaN, and this model does not take missing values: fill them, or leave them out.")


def _frame_names(X: Any, known: Array | None = None) -> Array | None:
    """Take the names of a data frame's columns; None if it has none, or if they only count the columns."""
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "shape") else []
    are_text = [isinstance(name, str) for name in names]
    if any(are_text) and not all(are_text):
        raise TypeError(
            "X must have column names that are all of one type: feature names are only supported if all input features "
            "have string names."
        )
    given = naming.column_names(X, known) if names else None
    return None if given is None else naming.as_array(given)


def _check_frame_names(X: Any, schema: Schema, estimator: EstimatorInfo) -> None:
    """Compare the names of a data frame's columns with those that are known, as scikit-learn does."""
    known = schema.feature_names
    given = _frame_names(X, known)
    if known is None:
        naming.refuse_shuffled(given, "X")
    if (given is None) != (known is None):
        reason = "X does not have valid feature names, but {} was fitted with feature names"
        if known is None:
            reason = "X has feature names, but {} was fitted without feature names"
        warnings.warn(reason.format(estimator.name), UserWarning, stacklevel=2)
    elif given is not None and known is not None and list(given) != list(known):
        unseen, missing = sorted(set(given) - set(known)), sorted(set(known) - set(given))
        message = "The feature names should match those that were passed during fit.\n"
        for title, names in (("unseen at fit time", unseen), ("seen at fit time, yet now missing", missing)):
            if names:
                some = [*names[:5], *(["..."] if len(names) > 5 else [])]
                message += f"Feature names {title}:\n" + "".join(f"- {name}\n" for name in some)
        if not (unseen or missing):
            message += "Feature names must be in the same order as they were in fit.\n"
        raise ValueError(message)


def _refuse_text(X: Any) -> None:
    """Name the columns that hold text, or have one name, which the conversion to floats would only stumble over."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        if len(set(X.columns)) < len(X.columns):
            raise ValueError("X must have columns with distinct names, got a name twice: rename or drop one.")
        text = [str(name) for i, name in enumerate(X.columns) if not _is_number_like(X.dtypes.iloc[i], X, i)]
        if text:
            raise ValueError(
                f"X must hold numbers, got text in a numeric column: {', '.join(map(repr, text[:5]))}. Encode such "
                f"columns as numbers, {_TEXT_HINT}, and name them in categorical_features."
            )
    elif isinstance(X, np.ndarray) and X.dtype.kind in "US" and X.size:
        raise ValueError(f"X must hold numbers, got text: encode it, {_TEXT_HINT}.")


def _is_number_like(dtype: Any, X: Any, column: int) -> bool:
    """Return whether a data frame's column can be turned into floats."""
    if not isinstance(dtype, np.dtype) or dtype.kind != "O":
        return getattr(dtype, "kind", "O") in "biuf" or getattr(dtype, "_is_numeric", False)
    try:
        X.iloc[:, column].to_numpy().astype(float)
    except (TypeError, ValueError):
        return False
    return True


def categorical_kinds(categorical: Any, n_features: int, feature_names: Array | None) -> FeatureKinds:
    """Turn ``categorical_features`` into the kinds of features.

    A nominal feature of which no more is known starts with two values, and gets more as they occur.
    """
    n_values = np.zeros(n_features, dtype=np.intp)
    if categorical is None:
        return FeatureKinds(n_values)
    declared = getattr(categorical, "n_values", None)
    chosen = np.atleast_1d(np.asarray(categorical))
    if chosen.dtype.kind == "b":
        if chosen.shape != (n_features,):
            raise ValueError(
                f"categorical_features must be a mask with an entry for each of the {n_features} features of X, got "
                f"shape {chosen.shape}."
            )
        n_values[chosen] = 2 if declared is None else np.maximum(declared[chosen], 2)
    elif chosen.dtype.kind in "iu" or chosen.size == 0:
        if chosen.size and not (-n_features <= chosen.min() and chosen.max() < n_features):
            raise ValueError(f"categorical_features has an index out of range: X has {n_features} features.")
        n_values[chosen.astype(np.intp)] = 2
    elif chosen.dtype.kind in "UO":
        if feature_names is None:
            raise ValueError("categorical_features has names, but X has none: give a data frame, indices or a mask.")
        unknown = sorted(set(map(str, chosen)) - set(feature_names))
        if unknown:
            raise ValueError(f"categorical_features names columns that X does not have: {', '.join(unknown[:5])}.")
        n_values[np.isin(feature_names, chosen)] = 2
    else:
        raise ValueError(f"categorical_features must be a mask, indices or names of features, got {categorical!r}.")
    limits.VALUES.check(int(n_values.max(initial=0)), "X")
    return FeatureKinds(n_values)


def check_codes(X: AnyMatrix, kinds: FeatureKinds) -> None:
    """Refuse nominal columns that hold anything but codes: whole numbers from 0."""
    if kinds.all_numeric:
        return
    coded = kinds.nominal(X)
    values = coded.data if scipy.sparse.issparse(coded) else coded
    wrong = (values < 0) | ((values != np.rint(values)) & ~np.isnan(values))
    if wrong.any():
        raise ValueError(
            f"X must hold codes 0, 1, 2, … in a column of categorical_features, got {values[wrong].flat[0]:g}: use "
            "sklearn.preprocessing.OrdinalEncoder."
        )
    highest = np.fmax.reduce(values, axis=None, initial=0.0)
    if highest >= limits.VALUES.value:
        raise LimitError(
            f"X must hold codes 0, 1, 2, … below {limits.VALUES.value:,} in a column of categorical_features, got "
            f"{highest:g}, which is rather an identifier: leave it out, or set the environment variable "
            f"{limits.VALUES.variable} to allow for more."
        )
