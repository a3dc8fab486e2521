"""Boolean matrix decomposition beside a version written straight from the definition, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from labelrace import BinaryRelevanceClassifier, BMaDClassifier
from labelrace.related.compression import bmad


def as_sets(Y):
    return [frozenset(np.flatnonzero(row).tolist()) for row in np.asarray(Y)]


def as_array(sets, n_labels):
    return np.array([[float(label in each) for label in range(n_labels)] for each in sets]).reshape(-1, n_labels)


def naive_candidates(rows, n_labels, threshold):
    """Return for each label those that more than a share of its rows have."""
    counts = [[sum({a, b} <= row for row in rows) for b in range(n_labels)] for a in range(n_labels)]
    return [frozenset(b for b in range(n_labels) if counts[a][b] > threshold * counts[a][a]) for a in range(n_labels)]


def gain(row, cover, each):
    new = each - cover
    return len(new & row) - len(new - row)


def naive_basis(rows, options, k):
    """Take the candidate with the largest gain, k times; of equally good ones that of the first label."""
    covers, chosen = [frozenset()] * len(rows), []
    for _ in range(k):
        totals = [
            sum(max(0, gain(row, cover, each)) for row, cover in zip(rows, covers, strict=True)) for each in options
        ]
        best = totals.index(max(totals))
        chosen.append(best)
        covers = [
            cover | options[best] if gain(row, cover, options[best]) > 0 else cover
            for row, cover in zip(rows, covers, strict=True)
        ]
    return chosen


def naive_code(row, basis, by_density):
    """Choose the basis sets of a row: by density, then by changing one at a time."""
    used = [False] * len(basis)

    def cover(without=None):
        return frozenset().union(
            *(each for i, (each, use) in enumerate(zip(basis, used, strict=True)) if use and i != without)
        )

    while by_density:
        densities = [gain(row, cover(), each) / len(each - cover()) if each - cover() else 0.0 for each in basis]
        if max(densities) <= 0:
            break
        used[densities.index(max(densities))] = True
    before = None
    while used != before:
        before = list(used)
        for i, each in enumerate(basis):
            used[i] = gain(row, cover(without=i), each) > 0
    return used


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 7])
def test_basis_codes_and_predictions_by_definition(odd_rows, seed, k):
    """The basis comes from the first 30 rows; codes with a greedy basis are found by single changes alone."""
    X, Y = odd_rows(seed, 50, 7)
    rows, n_labels = as_sets(Y[:40]), Y.shape[1]
    options = naive_candidates(rows[:30], n_labels, 0.5)
    basis = [options[label] for label in naive_basis(rows[:30], options, min(k, n_labels))]
    codes = {density: [naive_code(row, basis, density) for row in rows] for density in (False, True)}
    for density, expected in codes.items():
        found = bmad.encode(Y[:40], as_array(basis, n_labels), by_density=density)
        np.testing.assert_array_equal(found, expected)
    learners = BinaryRelevanceClassifier().fit(X[:40], np.array(codes[False], dtype=float))
    united = [frozenset().union(*(basis[i] for i in each)) for each in as_sets(learners.predict(X[40:]))]
    for form in (np.asarray, scipy.sparse.csr_array):
        model = BMaDClassifier(n_components=k, warm_up=30)
        for start, stop in ((0, 1), (1, 2), (2, 30), (30, 40)):
            model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
        np.testing.assert_array_equal(model.basis_, as_array(basis, n_labels))
        predicted = scipy.sparse.csr_array(model.predict(form(X[40:]))).toarray()
        np.testing.assert_array_equal(predicted, as_array(united, n_labels))
