"""The residual table against a dictionary of pairs, which knows no collisions."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.extreme import residual_table

M, L, C = 40, 30, 7


def some_rows(seed, n):
    rng = np.random.default_rng(seed)
    Z = scipy.sparse.random_array((n, M), density=0.15, format="csr", dtype=np.float32, rng=rng)
    labels = np.argsort(rng.random((n, L)), axis=1)[:, :C]
    targets = rng.choice([0.0, 1.0, np.nan], size=(n, C), p=[0.6, 0.3, 0.1])
    return Z, labels, rng.normal(0.2, 0.3, size=(n, C)).astype(np.float32), targets


class Naive:
    """One weight for each pair of a feature and a label; each label's system of a block is solved as it is written."""

    def __init__(self):
        self.weights = np.zeros((M, L))

    def scores(self, Z, labels):
        return np.take_along_axis(Z.toarray() @ self.weights, labels, axis=1)

    def learn(self, Z, labels, base, targets, precision):
        Z = Z.toarray()
        score = base + np.take_along_axis(Z @ self.weights, labels, axis=1)
        error = np.where(targets == 1, np.maximum(1 - score, 0), np.where(targets == 0, np.minimum(0.06 - score, 0), 0))
        squares = np.square(Z).sum(axis=0)
        # A column that is alike in more than a fourth of the rows takes no step.
        is_common = Z.sum(axis=0) ** 2 > 0.25 * len(Z) * squares
        variance = np.where(is_common, 0.0, 1.0 / (precision + squares))
        for label in range(L):
            rows, places = np.nonzero((labels == label) & (error != 0))
            M_of_rows = (Z[rows] * variance) @ Z[rows].T + np.eye(len(rows))
            self.weights[:, label] += variance * (Z[rows].T @ np.linalg.solve(M_of_rows, error[rows, places]))


def test_without_collisions_each_pair_has_its_weight():
    table, naive, precision = residual_table.init(1 << 24), Naive(), np.full(M, 2.0)
    first = table
    for seed in range(5):
        Z, labels, base, targets = some_rows(seed, 20)
        table = residual_table.learn(table, Z, labels, base, targets, precision)
        naive.learn(Z, labels, base, targets, precision)
        np.testing.assert_allclose(residual_table.scores(table, Z, labels), naive.scores(Z, labels), atol=1e-3)
    features, wanted = np.array([0, 3, 39]), np.array([2, 5])
    expected = naive.weights[np.ix_(features, wanted)]
    np.testing.assert_allclose(residual_table.weights_of(table, features, wanted), expected, atol=1e-3)
    # The table that all of this began with has learned nothing.
    assert not residual_table.scores(first, Z, labels).any()


def test_columns_that_move_together_do_not_add_up():
    """As three signatures of many words, one below each text: the errors become smaller, whatever they are."""
    rng = np.random.default_rng(0)
    for n_copies in (1, 40, 200):
        kind, labels = rng.integers(0, 5, 128), np.tile(np.arange(3), (128, 1))
        Z = np.hstack([np.repeat(np.eye(5)[kind], n_copies, axis=1), rng.random((128, 20)) < 0.1]).astype(np.float32)
        Z = scipy.sparse.csr_array(Z / np.linalg.norm(Z, axis=1, keepdims=True))
        targets = (rng.random((128, 3)) < 0.3).astype(float)
        base, table = np.full((128, 3), 0.3, np.float32), residual_table.init(1 << 20)
        for _ in range(3):
            table = residual_table.learn(table, Z, labels, base, targets, np.full(Z.shape[1], 0.05))
            assert np.abs(base + residual_table.scores(table, Z, labels)).max() < 1.5


def test_many_rows_are_learned_in_blocks():
    """Rows of a block do not see what the others teach: 500 at once would go far too far where labels are few."""
    Z, labels, base, targets = some_rows(9, 512)
    precision = np.full(M, 2.0)
    whole = residual_table.learn(residual_table.init(1 << 24), Z, labels, base, targets, precision)
    parts = residual_table.init(1 << 24)
    for start in range(0, 512, 128):
        here = slice(start, start + 128)
        parts = residual_table.learn(parts, Z[here], labels[here], base[here], targets[here], precision)
        precision = precision + np.square(Z[here].toarray(), dtype=float).sum(axis=0)
    found = (residual_table.scores(table, Z, labels) for table in (whole, parts))
    np.testing.assert_allclose(*found, atol=1e-5)


def test_pairs_that_collide_do_not_add_up():
    """Of 1,200 pairs in 64 slots few have one, the largest: the others have no weight rather than another's."""
    rng = np.random.default_rng(0)
    features, labels = (part.ravel() for part in np.meshgrid(np.arange(M), np.arange(L), indexing="ij"))
    values = rng.standard_cauchy(len(features)).astype(np.float32)
    table = residual_table.added(residual_table.init(64), features, labels, values)
    kept = residual_table.weights_of(table, np.arange(M), np.arange(L))
    exact = np.isclose(kept, values.reshape(M, L), rtol=1e-2)
    assert exact[kept != 0].mean() > 0.85
    assert 50 < exact.sum() <= 70
    assert np.abs(values).max() == np.float32(np.abs(values[exact.ravel()]).max())


def test_rows_without_features():
    table = residual_table.init(1024)
    Z, labels = scipy.sparse.csr_array((3, M), dtype=np.float32), np.arange(3 * C).reshape(3, C)
    table = residual_table.learn(table, Z, labels, np.zeros((3, C)), np.ones((3, C)), np.ones(M))
    assert not np.asarray(table).any()
    assert residual_table.scores(table, Z, labels).shape == (3, C)
