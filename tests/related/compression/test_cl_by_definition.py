"""Compressed labeling beside a version written straight from the definition, set by set."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from labelrace import CompressedLabelingClassifier


def as_sets(Y):
    return [frozenset(np.flatnonzero(row).tolist()) for row in np.asarray(Y)]


def distilled(rows, n_labels):
    """Take the set with the most occurrences in all out of the rows, again and again; then single labels.

    Of equally good sets the first in the order of their indicators is taken. Labels that no row has are no sets.
    """
    rest, found = list(rows), []
    while True:
        worth = {}
        for each in set(rest) - {frozenset()}:
            count = sum(each <= row for row in rest)
            if count >= 2:
                worth[each] = count * len(each)
        if not worth:
            break
        best = min(worth, key=lambda each: (-worth[each], [label in each for label in range(n_labels)]))
        found += [best] * (best not in found)
        rest = [row - best if best <= row else row for row in rest]
    single = [frozenset([label]) for label in range(n_labels) if any(label in row for row in rows)]
    return found + [each for each in single if each not in found]


def agreement(one, other):
    """Return the probability that a random bit of two sets is the same."""
    cosine = len(one & other) / math.sqrt(len(one) * len(other)) if one and other else 0.0
    return 1 - math.acos(min(cosine, 1.0)) / math.pi


def times_log(share, one, other):
    return share * math.log(one / other) if share and one else -math.inf if share else 0.0


def naive_evidence(X, Y, encoder, rows, penalty=0.1):
    """Return the distilled sets, the log likelihood ratio of each in each row, and their prior log odds."""
    sets, k = as_sets(Y), encoder.shape[1]
    with_one = np.column_stack([np.ones(len(X)), X])
    bits = np.where(Y @ encoder >= 0, 1.0, -1.0)
    weights = np.linalg.solve(with_one.T @ with_one + penalty * np.eye(with_one.shape[1]), with_one.T @ bits)
    codes = np.column_stack([np.ones(len(rows)), rows]) @ weights
    tests, evidence, odds = distilled(sets, Y.shape[1]), [], []
    for each in tests:
        inside = [agreement(own, each) for own in sets if each <= own]
        outside = [agreement(own, each) for own in sets if not each <= own]
        p1, p0 = np.mean(inside), np.mean(outside) if outside else 0.5
        code = sum(encoder[label] for label in each) >= 0
        shares = [float(np.mean((row >= 0) == code)) for row in codes]
        evidence.append([k * (times_log(q, p1, p0) + times_log(1 - q, 1 - p1, 1 - p0)) for q in shares])
        prior = (len(inside) + 1) / (len(sets) + 2)
        odds.append(math.log(prior / (1 - prior)))
    return tests, np.array(evidence).T, np.array(odds), codes


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_decoding_by_definition(odd_rows, sparse, seed):
    (X, Y), form = odd_rows(seed), scipy.sparse.csr_array if sparse else np.asarray
    encoder = np.random.default_rng(seed).normal(size=(Y.shape[1], 11))
    # Two bits are the same for all rows.
    encoder[:, 0], encoder[:, 1] = 0.0, np.abs(encoder[:, 1])
    tests, evidence, odds, codes = naive_evidence(X[:40], Y[:40], encoder, X[40:])
    clear_row = (np.abs(codes) > 1e-9).all(axis=1)
    for prior in (False, True):
        model = CompressedLabelingClassifier.paper(encoder=encoder, prior=prior)
        # The first batches have one row each.
        for start, stop in ((0, 1), (1, 2), (2, 25), (25, 40)):
            model.partial_fit(form(X[start:stop]), form(Y[start:stop]))
        total = evidence + odds if prior else evidence
        for row in np.flatnonzero(clear_row):
            predicted = model.predict(form(X[40 + row : 41 + row]))
            predicted = set(np.flatnonzero(predicted.toarray() if sparse else predicted).tolist())
            unclear = set().union(*(each for each, value in zip(tests, total[row], strict=True) if abs(value) < 1e-9))
            accepted = (each for each, value in zip(tests, total[row], strict=True) if value > 0)
            assert predicted - unclear == set().union(*accepted) - unclear
