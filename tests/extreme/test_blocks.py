"""The products of a block of sparse rows against those of the dense matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from labelrace.extreme.blocks import CompiledSparseBlock


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([0.0, 0.1, 0.6]))
def test_products_are_those_of_the_dense_matrix(seed, n, density):
    rng = np.random.default_rng(seed)
    Z = scipy.sparse.random_array((n, 20), density=density, format="csr", dtype=np.float32, rng=rng)
    dense, block = Z.toarray().astype(float), CompiledSparseBlock(Z)
    touched = np.flatnonzero((dense != 0).any(axis=0))
    np.testing.assert_array_equal(block.touched, touched)
    np.testing.assert_allclose(block.squares, np.square(dense).sum(axis=0)[touched], rtol=1e-6)
    variance, A = rng.random(20), rng.random((n, n))
    inverse = (A + A.T).astype(np.float32)
    expected = dense @ np.diag(variance) @ dense.T
    np.testing.assert_allclose(block.gram(variance[touched]), np.tril(expected), atol=1e-5)
    quadratic = (dense.T @ inverse @ dense).diagonal()[touched]
    np.testing.assert_allclose(block.quadratic(inverse), quadratic, atol=1e-5)
    out, right = rng.random((20, 4)).astype(np.float32), rng.random((n, 4)).astype(np.float32)
    after = out + variance[:, None] * (dense.T @ right)
    block.add_transposed(out, variance[touched], right)
    np.testing.assert_allclose(out, after, atol=1e-5)
