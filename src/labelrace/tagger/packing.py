"""Compression of the weights of many words and tags in a file, and unpacking on demand.

A tagger of 2¹⁸ words and 700 tags has 183 million weights of 734 MB, nearly all of them close to zero. A file holds the
largest quarter of them in eight bits each, and one bit for each weight that says whether it is among these; the others
are replaced by their mean, word by word. This takes three bits for a weight instead of 32. A loaded tagger unpacks the
weights of a word when the word first occurs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelrace.learners.table import Table
from labelrace.typing import Array, IntArray

Singles = npt.NDArray[np.float32]

# Up to this size, weights are saved exactly.
EXACT_BYTES = 1 << 26
# Share of the weights that are kept above that.
_KEPT = 0.25
_LEVELS = 127
# Number of rows that are packed at a time.
_ROWS = 4096


class PackedWeights(NamedTuple):
    """A compressed matrix in single precision: its largest entries and the means of the others.

    ``levels`` are the entries that are kept, row by row: the square roots of their ratios to the largest one, in
    127ths, with their signs. Square roots, as the entries of a row differ by orders of magnitude.
    """

    is_kept: npt.NDArray[np.uint8]  # (m, ceil(l / 8)), a bit for each entry
    largest: Singles  # absolute value in each row
    others: Singles  # mean of the entries of each row that are not kept
    levels: npt.NDArray[np.int8]


def pack(weights: Singles) -> PackedWeights:
    """Compress a matrix: keep the largest quarter of its entries.

    Examples
    --------
    >>> weights = np.array([[0, 0.001, -2, 0, 0.01, 0, 0, 1], [0] * 8], np.float32)
    >>> np.asarray(table_of(pack(weights), 8), float)[0].round(3).tolist()
    [0.0, 0.001, -2.0, 0.0, 0.01, 0.0, 0.0, 1.004]
    """
    least, parts = _least_kept(weights), []
    for start in range(0, len(weights), _ROWS):
        part = weights[start : start + _ROWS]
        sizes = np.abs(part)
        is_kept = sizes >= least
        n_kept, largest = is_kept.sum(axis=1), sizes.max(axis=1)
        kept, among = part[is_kept], np.repeat(largest, n_kept)
        others = np.where(is_kept, np.float32(0.0), part).sum(axis=1) / np.maximum(part.shape[1] - n_kept, 1)
        levels = np.maximum(np.rint(np.sqrt(np.abs(kept) / among) * _LEVELS), 1.0)
        signed = np.copysign(levels, kept).astype(np.int8)
        parts.append((np.packbits(is_kept, axis=1), largest, others.astype(np.float32), signed))
    return PackedWeights(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _least_kept(weights: Singles) -> np.float32:
    """Return the absolute value from which entries are kept, so that they are at most a quarter, and none is 0."""
    # The bits of positive numbers have the order of the numbers, so the first sixteen bits are bins of a histogram.
    counts = np.zeros(1 << 16, dtype=np.int64)
    for start in range(0, len(weights), _ROWS):
        bins = np.abs(weights[start : start + _ROWS]).view(np.uint32) >> np.uint32(16)
        counts += np.bincount(bins.ravel(), minlength=len(counts))
    above = np.cumsum(counts[::-1])[::-1]
    first = max(1, int(np.searchsorted(-above, -_KEPT * weights.size)))
    return np.array([first << 16], dtype=np.uint32).view(np.float32)[0]


def table_of(packed: PackedWeights, width: int) -> Table:
    """Return a table of packed weights whose rows are unpacked on first access."""
    is_kept, largest, others, levels = packed
    if [part.dtype.str[1:] for part in packed] != ["u1", "f4", "f4", "i1"] or levels.ndim != 1:
        raise ValueError("its weights are not of the types that weights have")
    if is_kept.shape != (len(largest), -(-width // 8)) or largest.shape != others.shape:
        raise ValueError("its weights do not fit its tags")
    ends = np.cumsum(np.bitwise_count(is_kept).sum(axis=1, dtype=np.int64))
    if int(ends[-1:].sum()) != len(levels) or not np.isfinite(largest + others).all():
        raise ValueError("its weights do not fit one another")

    def rows_at(places: IntArray) -> Array:
        kept = np.unpackbits(is_kept[places], axis=1, count=width).astype(bool)
        counts = kept.sum(axis=1)
        # The positions of the levels of each row.
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        level = levels[np.repeat(ends[places] - counts, counts) + within].astype(np.float32) / np.float32(_LEVELS)
        rows: Any = np.repeat(others[places][:, None], width, axis=1)
        rows[kept] = level * np.abs(level) * np.repeat(largest[places], counts)
        return np.asarray(rows)

    return Table.filled_by(rows_at, (len(largest), width), np.float32)
