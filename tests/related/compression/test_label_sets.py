"""Counts of distinct label sets: against a counter of tuples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from labelrace.related.compression import label_sets


def counted(sets, n_labels):
    rows = label_sets.matrix(sets, n_labels).toarray().astype(int)
    return Counter({tuple(row): count for row, count in zip(rows.tolist(), sets.counts.tolist(), strict=True)})


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 1)] * 5), min_size=1, max_size=40),
    cut=st.integers(0, 40),
    sparse=st.booleans(),
)
def test_counts_are_exact_whatever_the_batches(rows, cut, sparse):
    Y = np.array(rows, dtype=float)
    make = scipy.sparse.csr_array if sparse else np.asarray
    # The last label is not known at first.
    Y[:cut, 4] = 0
    first = label_sets.add(label_sets.empty(), make(Y[:cut, :4]), 100)
    table = label_sets.add(first, make(Y[cut:]), 100)
    assert counted(table, 5) == Counter(tuple(row) for row in Y.astype(int).tolist())
    merged = label_sets.merge(label_sets.of_rows(make(Y[cut:])), first, 100)
    assert counted(merged, 5) == counted(table, 5)
    assert counted(label_sets.scale(table, 0.5), 5) == Counter({key: n / 2 for key, n in counted(table, 5).items()})


def test_beyond_the_capacity_counts_are_bounded_below():
    rng = np.random.default_rng(0)
    Y = (rng.random((3000, 12)) < np.linspace(0.02, 0.5, 12)).astype(float)
    table = label_sets.empty()
    for start in range(0, 3000, 100):
        table = label_sets.add(table, Y[start : start + 100], 60)
    truth = Counter(tuple(row) for row in Y.astype(int).tolist())
    assert len(truth) > 150
    assert 10 < len(table.keys) <= 60
    for row, count in counted(table, 12).items():
        assert truth[row] - 3000 / 60 <= count <= truth[row]
    most_common = [row for row, count in truth.items() if count > 3000 / 60]
    assert most_common
    assert set(most_common) <= set(counted(table, 12))
