"""Checks of what users give: each error names the argument, what was wrong with it and what to do.

Only shells call these, once a batch; the core takes what it gets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from labelrace.parameters import check_choice
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

__all__ = [
    "canonical",
    "categorical_values",
    "check_codes",
    "check_features",
    "check_finite",
    "check_projection",
    "component_count",
    "generator",
]

# Codes beyond this are not codes but identifiers or noise: a table of so many values would not fit anywhere.
_MOST_VALUES = 2**24
_TEXT_HINT = "e.g. with sklearn.preprocessing.OrdinalEncoder"


def generator(random_state: Any) -> np.random.Generator:
    """Make a random generator of what scikit-learn's users give as a ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={random_state!r} does not do: give a whole number of at least 0, a Generator, "
            "a RandomState or None."
        ) from None


def check_features(estimator: Any, X: Any, *, reset: bool, allow_missing: bool) -> AnyMatrix:
    """Turn ``X`` into floats, dense or in compressed rows, and check its columns against the ones learned before."""
    if not reset and _is_as_before(estimator, X):
        return X if isinstance(X, np.ndarray) else canonical(X)
    _refuse_text(X)
    if np.ma.isMaskedArray(X):
        X = np.ma.filled(X.astype(float), np.nan)
    try:
        # Infinities of both signs are refused, not warned about.
        with np.errstate(invalid="ignore"):
            checked = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=np.float64,
                ensure_all_finite="allow-nan" if allow_missing else True,
            )
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"X holds text, not numbers: {error}. Encode it, {_TEXT_HINT}.") from None
        raise
    return canonical(checked) if scipy.sparse.issparse(checked) else checked


def check_finite(X: AnyMatrix, *, allow_missing: bool) -> None:
    """Refuse infinities, and NaN unless it is a missing value."""
    values = X.data if scipy.sparse.issparse(X) else X
    if np.isinf(values).any():
        raise ValueError("X contains infinity. Features must be finite numbers.")
    if not allow_missing and np.isnan(values).any():
        raise ValueError("X contains NaN, and this model does not take missing values: fill them, or leave them out.")


def _is_as_before(estimator: Any, X: Any) -> bool:
    """Tell at a glance that a batch is in order: floats, all finite, as many columns as ever, no names to compare.

    Most batches are; scikit-learn's checks, thorough and slow, are for the others.
    """
    is_sparse = scipy.sparse.issparse(X) and X.format == "csr"
    if not (is_sparse or type(X) is np.ndarray) or X.dtype != np.float64 or hasattr(estimator, "feature_names_in_"):
        return False
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != estimator.n_features_in_:
        return False
    # A sum of squares is finite only if every number is, and BLAS is quick at it.
    values = X.data if is_sparse else X
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.vdot(values, values)))


def canonical(X: AnyMatrix) -> AnyMatrix:
    """Return a sparse array in compressed rows, without duplicates; the caller's matrix stays as it is."""
    X = scipy.sparse.csr_array(X)
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) <= np.iinfo(np.int32).max:
        # Many of scikit-learn's learners take no wider indices.
        X = scipy.sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _refuse_text(X: Any) -> None:
    """Name the columns that hold text, which the conversion to floats would only stumble over."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        # By position: two columns may have one name.
        text = [str(name) for i, name in enumerate(X.columns) if not _is_number_like(X.dtypes.iloc[i], X, i)]
        if text:
            raise ValueError(
                f"X has text in a numeric column: {', '.join(map(repr, text[:5]))}. Encode such columns as numbers, "
                f"{_TEXT_HINT}, and name them in categorical_features."
            )
    elif isinstance(X, np.ndarray) and X.dtype.kind in "US" and X.size:
        raise ValueError(f"X holds text, not numbers. Encode it, {_TEXT_HINT}.")


def _is_number_like(dtype: Any, X: Any, column: int) -> bool:
    """Tell whether a data frame's column can be turned into floats."""
    if not isinstance(dtype, np.dtype) or dtype.kind != "O":
        return getattr(dtype, "kind", "O") in "biuf" or getattr(dtype, "_is_numeric", False)
    try:
        X.iloc[:, column].to_numpy().astype(float)
    except (TypeError, ValueError):
        return False
    return True


def categorical_values(categorical: Any, n_features: int, feature_names: Array | None) -> IntArray:
    """Turn ``categorical_features`` into the number of values of each feature, 0 for a numeric one.

    A nominal feature of which no more is known starts with two values, and gets more as they occur.
    """
    n_values = np.zeros(n_features, dtype=np.intp)
    if categorical is None:
        return n_values
    declared = getattr(categorical, "n_values", None)
    chosen = np.atleast_1d(np.asarray(categorical))
    if chosen.dtype.kind == "b":
        if chosen.shape != (n_features,):
            raise ValueError(
                f"categorical_features is a mask of shape {chosen.shape}, but X has {n_features} features."
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
        raise ValueError("categorical_features must be a mask, indices or names of features.")
    return n_values


def check_codes(X: AnyMatrix, n_values: IntArray) -> None:
    """Refuse nominal columns that hold anything but codes: whole numbers from 0."""
    if not n_values.any():
        return
    columns = X if n_values.all() else X[:, np.flatnonzero(n_values)]
    values = columns.data if scipy.sparse.issparse(columns) else columns
    wrong = (values < 0) | (values >= _MOST_VALUES) | (values != np.rint(values)) & ~np.isnan(values)
    if wrong.any():
        raise ValueError(
            f"X holds {values[wrong].flat[0]:g} in a column of categorical_features: such columns hold codes "
            "0, 1, 2, … of their values. Use sklearn.preprocessing.OrdinalEncoder."
        )


def component_count(n_components: Any, n_labels: int) -> int:
    """Compute the number of pseudo labels."""
    log2 = max(1, math.ceil(math.log2(n_labels)))
    if isinstance(n_components, str):
        check_choice("n_components", n_components, ("log2", "log2_squared"))
        # The square of a small logarithm can exceed the number of labels, beyond which there is nothing to compress.
        return log2 if n_components == "log2" else min(log2**2, n_labels)
    if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)) or n_components < 1:
        raise ValueError(f"n_components={n_components!r} does not do: give 'log2', 'log2_squared' or a whole number.")
    _refuse_too_many(int(n_components), n_labels, "n_components")
    return int(n_components)


def check_projection(projection: Any, n_labels: int) -> tuple[FloatArray, FloatArray]:
    """Check a given encoder: ``A`` of shape (labels, pseudo labels) and a bias."""
    try:
        A, bias = (np.array(part, dtype=np.float64) for part in projection)
    except (TypeError, ValueError):
        raise ValueError("projection must be a pair (A, b) of arrays of shapes (labels, k) and (k,).") from None
    if A.ndim != 2 or bias.ndim != 1 or A.shape != (n_labels, len(bias)) or len(bias) == 0:
        raise ValueError(
            f"projection must be a pair (A, b) of shapes ({n_labels}, k) and (k,) for {n_labels} labels, "
            f"got {A.shape} and {bias.shape}."
        )
    if not (np.isfinite(A).all() and np.isfinite(bias).all()):
        raise ValueError("projection contains NaN or infinity.")
    _refuse_too_many(len(bias), n_labels, "projection")
    return A, bias


def _refuse_too_many(n_components: int, n_labels: int, name: str) -> None:
    if n_components > n_labels:
        raise ValueError(
            f"Y has fewer labels ({n_labels}) than there are components ({n_components}): label compression needs "
            f"at most as many pseudo labels as labels. Give a smaller {name}."
        )
