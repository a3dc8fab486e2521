"""Compiled loops for what a block of sparse rows teaches the learners of `labelrace.linear.rls`.

They do what `labelrace.linear.steps` does with the products of `labelrace.linear.blocks`, for targets that are no
labels and have one precision. The entries of a block are sorted by column once: a column that occurs in ``c`` of its
rows costs ``c²`` for ``Z D⁻¹ Zᵀ`` and for ``diag(Zᵀ M⁻¹ Z)``, and most columns of sparse rows occur in few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.compiled import kernel


@kernel
def in_order_of_use(columns: Any, n_columns: Any) -> Any:
    """List the columns of entries, each once, in the order of first use; and where in the list each entry's is."""
    # Not set at first, as columns may be many: a place counts only if it is in the list, and the column is there.
    place_of, n_found = np.empty(n_columns, np.uint32), 0
    found, places = np.empty(len(columns), columns.dtype), np.empty(len(columns), columns.dtype)
    for entry in range(len(columns)):
        column = columns[entry]
        place = place_of[column]
        if place >= n_found or found[place] != column:
            place_of[column], found[n_found], place = n_found, column, n_found
            n_found += 1
        places[entry] = place
    return found[:n_found], places


@kernel
def _by_column(starts: Any, columns: Any, values: Any, n_columns: Any) -> Any:
    """Sort entries by column: where each column begins, and the rows and values of its entries, by rising row."""
    ends = np.zeros(n_columns + 1, np.int64)
    for entry in range(starts[0], starts[-1]):
        ends[columns[entry] + 1] += 1
    for column in range(n_columns):
        ends[column + 1] += ends[column]
    size, filled = ends[n_columns], ends[:-1].copy()
    rows, sorted_values = np.empty(size, np.int64), np.empty(size, values.dtype)
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            place = filled[columns[entry]]
            rows[place], sorted_values[place] = row, values[entry]
            filled[columns[entry]] = place + 1
    return ends, rows, sorted_values


@kernel
def begin(block: Any, targets: Any, weights: Any, gained: Any, intercepts: Any, alpha: Any, freedom: Any) -> Any:
    """Compute the errors of a block and its matrix ``M = Z D⁻¹ Zᵀ + 1/d_b + I``.

    Parameters
    ----------
    block : (starts, columns, values)
        The rows in compressed form.
    targets : (n, k) array
    weights, gained, intercepts : arrays
        Of `labelrace.linear.steps.Work`.
    alpha : float
        The penalty.
    freedom : float
        One over the precision of the intercepts.

    Returns
    -------
    errors : (n, k) array
    matrix : (n, n) array
        Its lower triangle; the rest is not set.
    by_column : (ends, rows, sorted_values)
        The entries, column by column.
    """
    starts, columns, values = block
    n_rows, k = targets.shape
    errors = targets - intercepts
    for row in range(n_rows):
        for entry in range(starts[row], starts[row + 1]):
            value, column = values[entry], columns[entry]
            for j in range(k):
                errors[row, j] -= value * weights[column, j]
    ends, rows, sorted_values = _by_column(starts, columns, values, len(weights))
    matrix = np.full((n_rows, n_rows), values.dtype.type(freedom))
    for row in range(n_rows):
        matrix[row, row] += values.dtype.type(1.0)
    for column in range(len(weights)):
        first, last = ends[column], ends[column + 1]
        if first == last:
            continue
        variance = values.dtype.type(1.0 / (alpha + gained[column, 0]))
        for one in range(first, last):
            scaled = sorted_values[one] * variance
            for other in range(first, one + 1):
                matrix[rows[one], rows[other]] += scaled * sorted_values[other]
    return errors, matrix, (ends, rows, sorted_values)


@kernel
def end(block: Any, by_column: Any, inverse: Any, pull: Any, weights: Any, gained: Any, alpha: Any) -> None:
    """Write into weights and precisions what a block has taught.

    Parameters
    ----------
    block, by_column : tuples
        The rows in compressed form, and their entries as `begin` returns them.
    inverse : (n, n) array
        ``M⁻¹``.
    pull : (n, k) array
        ``M⁻¹`` times the errors.
    weights, gained : arrays
        Of `labelrace.linear.steps.Work`; are changed.
    alpha : float
    """
    (starts, columns, values), (ends, rows, sorted_values) = block, by_column
    variances = np.empty(len(weights), values.dtype)
    for column in range(len(weights)):
        first, last = ends[column], ends[column + 1]
        if first == last:
            continue
        precision, q, squares = alpha + gained[column, 0], 0.0, 0.0
        variances[column] = 1.0 / precision
        for one in range(first, last):
            squares += sorted_values[one] * sorted_values[one]
            q += sorted_values[one] * sorted_values[one] * inverse[rows[one], rows[one]]
            for other in range(first, one):
                q += 2.0 * sorted_values[one] * sorted_values[other] * inverse[rows[one], rows[other]]
        # As `labelrace.linear.steps.marginal`.
        share = 1.0 - q / precision
        left = precision / share if share > 0 else np.inf
        gained[column, 0] = min(max(left, precision), precision + squares) - alpha
    for row in range(len(pull)):
        for entry in range(starts[row], starts[row + 1]):
            column = columns[entry]
            scaled = values[entry] * variances[column]
            for j in range(pull.shape[1]):
                weights[column, j] += scaled * pull[row, j]
