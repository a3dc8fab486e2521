"""Codes of labels by hashing: an encoder that is a function and not stored, however many labels there are.

The code of a label is its row of the encoder, and that of a row of data the sum of its labels' codes: its pseudo
labels. These are cut into two halves. A label has one pseudo label in each, and a sign there, all of them bits of a
hash of its index (Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", 2002). So the projection
``A`` of `labelrace.race.encoder` has two entries of 1 or -1 in each row and is never stored, a label that appears later
has its code already, and encoding costs as much as there are labels present.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows, entry_rows
from labelrace.extreme.kernels import kernel
from labelrace.typing import AnyMatrix, FloatArray, IntArray

_HALVES = 2


@kernel()
def hash32(number: Any, seed: Any) -> Any:
    """Hash an integer to 32 bits; ``seed`` chooses one of many hash functions.

    The finaliser of MurmurHash3 (Appleby, 2011): each bit of the number changes about half of the bits.
    """
    bits = np.uint32(np.uint32(number) + np.uint32(seed) * np.uint32(0x9E3779B9))
    bits ^= np.uint32(bits >> np.uint32(16))
    bits = np.uint32(bits * np.uint32(0x85EBCA6B))
    bits ^= np.uint32(bits >> np.uint32(13))
    bits = np.uint32(bits * np.uint32(0xC2B2AE35))
    return np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))


@kernel("void(int64[::1], int64[::1], int64[:, ::1], float64[:, ::1])")
def _hash_codes(labels: Any, widths: Any, columns: Any, signs: Any) -> None:
    """Hash labels to one pseudo label in each part, of these widths, and a sign, which are written; (n, parts) each."""
    first = 0
    for part in range(len(widths)):
        for i in range(len(labels)):
            bits = hash32(labels[i], part + 1)
            columns[i, part] = first + np.int64(bits >> np.uint32(1)) % widths[part]
            signs[i, part] = 1.0 - 2.0 * (bits & np.uint32(1))
        first += widths[part]


@kernel("float64[:, ::1](float32[:, ::1], int32[::1], int32[::1], float32[::1], float32[::1])")
def predicted_codes(weights: Any, indptr: Any, features: Any, values: Any, intercepts: Any) -> Any:
    """Predict the pseudo labels of rows, which are CSR arrays, by linear learners, (n, k)."""
    U, row_codes = np.empty((len(indptr) - 1, len(intercepts))), np.empty(len(intercepts), weights.dtype)
    for row in range(len(U)):
        row_codes[:] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            value, feature = values[entry], features[entry]
            for j in range(len(row_codes)):
                row_codes[j] += value * weights[feature, j]
        U[row] = row_codes + intercepts
    return U


def _code_entries(labels: IntArray, n_components: int) -> tuple[IntArray, FloatArray]:
    """Compute the pseudo labels, (n, 2), and the signs of labels; with one pseudo label, (n, 1)."""
    parts = range(min(_HALVES, n_components))
    widths = np.array([(n_components + part) // len(parts) for part in parts], np.int64)
    columns, signs = np.empty((len(labels), len(parts)), np.int64), np.empty((len(labels), len(parts)))
    _hash_codes(labels.astype(np.int64, copy=False), widths, columns, signs)
    return columns, signs


def encode(Y: AnyMatrix, n_components: int) -> FloatArray:
    """Compute the pseudo labels of rows, ``Y A``, (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 1], [0, 0, 0]])
    >>> bool((encode(Y, 4) == Y @ encoder_matrix(3, 4)).all())
    True
    """
    Y = as_rows(Y)
    n = Y.shape[0]
    columns, signs = _code_entries(Y.indices, n_components)
    rows = entry_rows(Y)
    values = signs * Y.data[:, None]
    flat = rows[:, None] * n_components + columns
    codes = np.bincount(flat.ravel(), values.ravel(), minlength=n * n_components).astype(float, copy=False)
    return codes.reshape(n, n_components)


def encoder_matrix(n_labels: int, n_components: int) -> AnyMatrix:
    """Compute the encoder, or projection, ``A`` as a sparse (l, k) array."""
    columns, signs = _code_entries(np.arange(n_labels), n_components)
    starts = np.arange(n_labels + 1) * columns.shape[1]
    return scipy.sparse.csr_array((signs.ravel(), columns.ravel(), starts), shape=(n_labels, n_components))
