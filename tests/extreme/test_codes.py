"""Codes of labels: MurmurHash3's finaliser in whole numbers of Python, and what makes a projection good."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from labelrace.extreme import codes


def murmur(number, salt):
    """Hash a number by the finaliser of 32 bits, as it was published."""
    bits = (number + salt * 0x9E3779B9) % 2**32
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B % 2**32
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35 % 2**32
    return bits ^ (bits >> 16)


@pytest.mark.parametrize("n_components", [1, 2, 7, 16])
def test_a_label_has_a_pseudo_label_in_each_half(n_components):
    A = codes.encoder_matrix(300, n_components).toarray()
    expected = np.zeros((300, n_components))
    first = n_components // 2
    for label in range(300):
        for half, (start, width) in enumerate(((0, first), (first, n_components - first))):
            bits = murmur(label, half + 1)
            if n_components > 1:
                expected[label, start + (bits >> 1) % width] = 1 - 2 * (bits & 1)
            elif half == 0:
                expected[label, 0] = 1 - 2 * (bits & 1)
    np.testing.assert_array_equal(A, expected)


def test_rows_have_the_sum_of_their_labels_codes():
    Y = scipy.sparse.random_array((20, 500), density=0.02, format="csr", rng=np.random.default_rng(0))
    np.testing.assert_allclose(codes.encode(Y, 8), Y @ codes.encoder_matrix(500, 8).toarray())


def test_pseudo_labels_and_signs_are_even():
    A = codes.encoder_matrix(20_000, 40).tocsc()
    assert np.abs(np.diff(A.indptr) / 1000 - 1).max() < 0.15
    assert np.abs(A.sum(axis=0)).max() < 150
