"""Random numbers that belong to a label: the same whenever, and in whatever batch, the label appears.

A number is a hash of a seed, a row and a column (the mixing steps of SplitMix64), so nothing is drawn in order and
nothing has to be kept. What a model draws for its labels is then the same for a model that met a label late as for one
that knew it from the start, which makes growing exact.

References
----------
Steele, G., Lea, D. and Flood, C.: Fast splittable pseudorandom number generators. OOPSLA (2014).
"""

from __future__ import annotations

import numpy as np
import scipy.special

from labelrace.typing import Array, FloatArray

_WORD = 2**64
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniform(seed: int, n_rows: int, n_columns: int) -> FloatArray:
    """Draw numbers uniform in (0, 1), both ends left out, (n_rows, n_columns).

    Examples
    --------
    >>> few, more = uniform(7, 2, 3), uniform(7, 5, 3)
    >>> bool((few == more[:2]).all())
    True
    """
    return uniform_for_keys(seed, np.arange(n_rows), n_columns)


def uniform_for_keys(seed: int, keys: Array, n_columns: int) -> FloatArray:
    """Draw numbers uniform in (0, 1) for rows that have keys, (len(keys), n_columns): those of a key stay the same."""
    return (_words(seed, keys, n_columns) >> np.uint64(12)).astype(np.float64) * 2.0**-52 + 2.0**-53


def normal(seed: int, n_rows: int, n_columns: int) -> FloatArray:
    """Draw standard normal numbers, (n_rows, n_columns)."""
    return scipy.special.ndtri(uniform(seed, n_rows, n_columns))


def signs(seed: int, n_rows: int, n_columns: int) -> FloatArray:
    """Draw -1 or 1 with equal chances, (n_rows, n_columns)."""
    return 1.0 - 2.0 * (_words(seed, np.arange(n_rows), n_columns) >> np.uint64(63)).astype(np.float64)


def _words(seed: int, keys: Array, n_columns: int) -> Array:
    """Hash seed, row and column to 64 bits."""
    start = _mixed(np.array([seed % _WORD, seed // _WORD % _WORD], dtype=np.uint64))
    rows = _mixed(keys.astype(np.uint64) ^ start[0])
    return _mixed(rows[:, None] + _mixed(np.arange(n_columns, dtype=np.uint64) + start[1]))


def _mixed(words: Array) -> Array:
    """Spread every bit of a word over the word; arithmetic is modulo 2⁶⁴."""
    words = words + _STEP
    words = (words ^ (words >> np.uint64(30))) * _FACTORS[0]
    words = (words ^ (words >> np.uint64(27))) * _FACTORS[1]
    return words ^ (words >> np.uint64(31))
