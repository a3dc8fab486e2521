"""Codes of labels by hashing: an encoder that is nothing but a function, however many labels there are.

The pseudo labels are cut into two halves. A label has one pseudo label in each, and a sign there, all of them bits of a
hash of its number (Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", 2002). So the projection
``A`` of `labelrace.race.encoder` has two entries of 1 or -1 in each row and is never stored, a label that appears later
has its code already, and encoding costs as much as there are labels present.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows, entry_rows
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

_HALVES = 2


def mixed(numbers: Array, salt: int) -> Array:
    """Hash whole numbers to 32 bits each; ``salt`` chooses one of many functions.

    The finaliser of MurmurHash3 (Appleby, 2011): each bit of the number changes about half of the bits.
    """
    hashed = numbers.astype(np.uint32)
    hashed += np.uint32(salt * 0x9E3779B9 % 2**32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed ^= hashed >> np.uint32(shift)
        hashed *= np.uint32(factor)
    hashed ^= hashed >> np.uint32(16)
    return hashed


def _entries(labels: IntArray, n_components: int) -> tuple[IntArray, FloatArray]:
    """Compute the pseudo labels, (n, 2), and the signs of labels; with one pseudo label, (n, 1)."""
    places, signs, first = [], [], 0
    for half in range(min(_HALVES, n_components)):
        width = (n_components + half) // _HALVES if n_components > 1 else 1
        hashed = mixed(labels, half + 1)
        signs.append(1.0 - 2.0 * (hashed & np.uint32(1)))
        places.append((hashed >> np.uint32(1)).astype(np.intp) % width + first)
        first += width
    return np.stack(places, axis=1), np.stack(signs, axis=1)


def encode(Y: AnyMatrix, n_components: int) -> FloatArray:
    """Compute the pseudo labels of rows, ``Y A``, (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 1], [0, 0, 0]])
    >>> bool((encode(Y, 4) == Y @ matrix(3, 4)).all())
    True
    """
    Y = as_rows(Y)
    n = Y.shape[0]
    places, signs = _entries(Y.indices, n_components)
    rows = entry_rows(Y)
    values = signs * Y.data[:, None]
    flat = rows[:, None] * n_components + places
    codes = np.bincount(flat.ravel(), values.ravel(), minlength=n * n_components).astype(float, copy=False)
    return codes.reshape(n, n_components)


def matrix(n_labels: int, n_components: int) -> AnyMatrix:
    """Write the projection out, a sparse (l, k) array."""
    places, signs = _entries(np.arange(n_labels), n_components)
    starts = np.arange(n_labels + 1) * places.shape[1]
    return scipy.sparse.csr_array((signs.ravel(), places.ravel(), starts), shape=(n_labels, n_components))
