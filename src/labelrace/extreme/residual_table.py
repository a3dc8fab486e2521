"""A hash table of weights for pairs of a feature and a label: what compressed labels have lost.

Compressed labels share their learners, so a word that raises the score of one label raises those of all with the same
code. For a short list of labels of each row, its candidates, a table learns the difference:

    score_j ← score_j + Σ_f x_f T[h(f, j)].

The error of a candidate is its label minus the score, by the squared hinge loss of `labelrace.linear.rls`, and the step
that of the same learners with a block's precisions ``d``: ``T[h(f, j)] += e_j x_f / d_f / (1 + Σ x_f² / d_f)``. Absent
labels with scores that are hardly above 0 are no error, so that most pairs never need a weight.

A slot is a number of 32 bits, at an index that is computed from a hash of the pair:

    sign, exponent and 15 bits of the mantissa: the weight │ 8 bits: the tag of the pair that owns it

*Slots have owners.* A plain hash table adds up the weights of pairs that collide. Here the last eight bits of a
weight's mantissa, which a weight does not need, are a tag of the pair that owns the slot. For other pairs the slot
counts as empty, and they take it over where their step is at least half as large as the weight in it. On a stream of
34,764 labels, with an eighth of the slots that are in use without a limit, nDCG@5 falls from .482 to .478, and to
.466 with a plain hash table (docs/in-depth/extreme.md).

State: the table, (slots, 1), a `VersionedRows` of single precision. Costs: a row with ``z`` non-zeros and ``c``
candidates reads ``z c`` slots. All slots of a row are computed first, and then read by a loop that does nothing else:
its reads, which miss the cache, overlap, which makes them twice as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from labelrace.base.sparse import as_rows
from labelrace.extreme.codes import hash32
from labelrace.extreme.kernels import kernel
from labelrace.linear.versioned_rows import VersionedRows, read_all
from labelrace.typing import AnyMatrix, Array, FloatArray, IntArray

# Types of kernels' arguments: the table, and what `_room` makes.
_TABLE, _CHANGES = "float32[:, ::1]", "uint32[::1], uint32[::1], float32[::1], float32[::1]"
# Seeds of the hash functions of labels and features; those of the codes are 1 and 2.
_LABEL_SEED, _FEATURE_SEED = 3, 4
# Mask of the bits that are the owner's tag, and the bits of the weight, nearly 0, of a slot that was just taken over.
_TAG_BITS, _NEW_WEIGHT = np.uint32(0xFF), np.uint32(0x0D000000)
# Share of a slot's weight that the step of another pair must exceed to take it over.
_TAKEOVER_SHARE = np.float32(0.5)
# Scores up to which an absent label is no error.
_ABSENT_MARGIN = np.float32(0.06)
# Largest number of slots that are read at once.
_MAX_SLOTS_AT_ONCE = 1 << 17
# Largest number of rows of a block. Its errors are all computed before any step: with 500 rows the steps overshoot
# where labels are few.
_MAX_BLOCK_ROWS = 128
# Share of a block's rows that a column must have alike to be the intercept's, and rows that this takes.
_COMMON_SHARE, _FEWEST_COMPARED = 0.5, 8


def init(n_slots: int) -> Any:
    """Make a table without weights."""
    return VersionedRows.taking(np.zeros((n_slots, 1), np.float32))


def scores(table: VersionedRows, Z: AnyMatrix, labels: IntArray) -> Array:
    """Compute what the table adds to the scores of candidates ``labels``, (n, c)."""
    Z = as_rows(Z)
    sums: Array = read_all((table,), _sum_slots, Z.indptr, Z.indices, Z.data, labels)
    return sums


def learn(
    table: VersionedRows,
    Z: AnyMatrix,
    labels: IntArray,
    decoder_scores: Array,
    targets: FloatArray,
    precision: FloatArray,
    columns: IntArray | None = None,
    n_known: int | None = None,
) -> VersionedRows:
    """Learn the errors of candidates, block by block.

    Parameters
    ----------
    table : VersionedRows
    Z : (n, m) sparse array
        The transformed rows, in compressed form.
    labels : (n, c) array
        Candidates; no row has a label twice.
    decoder_scores, targets : (n, c) arrays
        Their scores without the table, and 1, 0, or NaN where nothing is to be learned.
    precision : (m,) array
        Precision of the learners' columns before these rows, or of those that occur.
    columns : array of int or None
        The index of each non-zero in ``precision``; None where that has all columns.
    n_known : int or None
        Number of labels of which something is known in these rows; None for all. Others make blocks no smaller.
    """
    precision, columns = precision.copy(), Z.indices if columns is None else columns
    blocks = _blocks(Z, labels.shape[1] if n_known is None else min(n_known, labels.shape[1]))
    # One for all blocks: the system takes longer to provide memory than the loops to write to it.
    most = max((Z.indptr[block.stop] - Z.indptr[block.start] for block in blocks), default=0)
    changes = _room(int(most) * labels.shape[1])
    for block in blocks:
        rows = Z.indptr[block.start : block.stop + 1], Z.indices, Z.data
        of_block = labels[block], decoder_scores[block], targets[block]
        n_changes = read_all((table,), _find_changes, *rows, *of_block, precision, columns, *changes)
        table = _changed(table, n_changes, *changes)
    return table


def _blocks(Z: AnyMatrix, width: int) -> list[slice]:
    """Cut rows into blocks of a bounded number of slots, and of rows."""
    size = min(_MAX_BLOCK_ROWS, max(1, _MAX_SLOTS_AT_ONCE // max(1, width * (Z.nnz // max(Z.shape[0], 1) + 1))))
    return [slice(first, min(first + size, Z.shape[0])) for first in range(0, Z.shape[0], size)]


def _room(size: int) -> tuple[Array, Array, Array, Array]:
    """Make arrays for changes of the table: slots, tags, steps, and the weights now."""
    return np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.float32), np.empty(size, np.float32)


def _changed(table: VersionedRows, n: int, slots: Array, tags: Array, steps: Array, before: Array) -> VersionedRows:
    """Make the first ``n`` of some changes; what the table keeps is copied."""
    slots, before = slots[:n].copy(), before[:n].copy()
    return table.changed(slots, before[:, None], _add_steps, slots, tags[:n], steps[:n], before)


def added(table: VersionedRows, features: IntArray, labels: IntArray, weights: Array) -> VersionedRows:
    """Add weights of single pairs of a feature and a label; where they collide, the largest takes the slot over."""
    order = np.argsort(np.abs(weights), kind="stable")
    pairs = features[order], labels[order], weights[order].astype(np.float32)
    changes = _room(len(order))
    return _changed(table, read_all((table,), _find_additions, *pairs, *changes), *changes)


def weights_of(table: VersionedRows, features: IntArray, labels: IntArray) -> Array:
    """Read the weights of all pairs of some features and labels, (F, L)."""
    parts = np.ones(len(features), np.float32), features, np.arange(len(features) + 1)
    one_each = scipy.sparse.csr_array(parts, shape=(len(features), int(features.max(initial=0)) + 1))
    return scores(table, one_each, np.tile(labels, (len(features), 1)))


def merged(one: Any, other: Any) -> Any:
    """Join two tables of the same size: the mean of weights of the same pair, else three quarters of the larger.

    Half of a weight that only one table has would be right where the other table has seen the pair and did not need it,
    and all of it where it has never seen the pair; three quarters is half-way, as learners are joined.
    """
    weights = [np.asarray(table)[:, 0] for table in (one, other)]
    bits = [part.view(np.uint32) for part in weights]
    is_same = (bits[0] & _TAG_BITS) == (bits[1] & _TAG_BITS)
    is_same &= (weights[0] != 0) & (weights[1] != 0)
    is_first = np.abs(weights[0]) >= np.abs(weights[1])
    larger = np.where(is_first, *weights)
    joint = np.where(is_same, 0.5 * (weights[0] + weights[1]), 0.75 * larger).astype(np.float32)
    tags = np.where(is_first, *bits) & _TAG_BITS
    # An unused slot stays without a tag.
    whole = np.where(joint == 0, 0, (joint.view(np.uint32) & ~_TAG_BITS) | tags).astype(np.uint32)
    return VersionedRows.taking(whole.view(np.float32)[:, None])


@kernel()
def _hash_of_pair(feature_hash: Any, label_hash: Any) -> Any:
    """Hash a pair by the hashes of both: its last bits are the tag, its first ones give the slot."""
    # With the sum alone, two labels that collide for one feature would collide for all.
    bits = np.uint32(label_hash + feature_hash)
    bits ^= np.uint32(bits >> np.uint32(15))
    bits = np.uint32(bits * np.uint32(0x2C1B3C6D))
    return np.uint32(bits ^ np.uint32(bits >> np.uint32(12)))


@kernel()
def _slot(bits: Any, n_slots: Any) -> Any:
    """Compute the slot of a pair from its hash."""
    return np.uint32((np.uint64(bits) * n_slots) >> np.uint64(32))


@kernel()
def _read_slots(table: Any, features: Any, labels: Any, slots: Any, tags: Any, raw: Any) -> None:
    """Compute the slots and tags of all pairs of a row's features and candidates, and read the slots as bits."""
    n_slots, width = np.uint64(len(table)), len(labels)
    label_hashes = np.empty(width, np.uint32)
    for c in range(width):
        label_hashes[c] = hash32(labels[c], _LABEL_SEED)
    for z in range(len(features)):
        feature_hash = hash32(np.int64(features[z]), _FEATURE_SEED)
        for c in range(width):
            bits = _hash_of_pair(feature_hash, label_hashes[c])
            slots[z * width + c] = _slot(bits, n_slots)
            tags[z * width + c] = bits & _TAG_BITS
    for i in range(len(features) * width):
        raw[i] = table[np.uint64(slots[i])]


@kernel()
def _add_up(raw: Any, tags: Any, values: Any, sums: Any) -> None:
    """Add the weights of slots that a row's pairs own, times the row's values, to ``sums``."""
    weights, width = raw.view(np.float32), len(sums)
    for z in range(len(values)):
        for c in range(width):
            i = z * width + c
            is_owned = (raw[i] & _TAG_BITS) == tags[i]
            sums[c] += values[z] * (weights[i] if is_owned else np.float32(0.0))


@kernel()
def add_weights(table: Any, features: Any, values: Any, labels: Any, sums: Any) -> None:
    """Add the weights of a row's candidates, times the row's values, to ``sums``."""
    size = len(features) * len(labels)
    slots, tags, raw = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    _read_slots(table.reshape(-1).view(np.uint32), features, labels, slots, tags, raw)
    _add_up(raw, tags, values, sums)


@kernel()
def _sum_slots(table: Any, indptr: Any, features: Any, values: Any, labels: Any) -> Any:
    """Sum the weights of the candidates of rows, (n, c), times the rows' values; rows are CSR arrays."""
    sums = np.zeros(labels.shape, np.float32)
    for row in range(len(labels)):
        here = slice(indptr[row], indptr[row + 1])
        add_weights(table, features[here], values[here], labels[row], sums[row])
    return sums


@kernel()
def _step_sizes(precision: Any, columns: Any, values: Any, n_rows: Any) -> Any:
    """Add the squares of a block's values to the precision of their columns, and divide the values by it.

    A column that is much the same in most rows has no step: it is the intercept's, and the steps of all rows, which go
    the same way, would add up to more than the error.
    """
    sums, squares = np.zeros(len(precision)), np.zeros(len(precision))
    for entry in range(len(values)):
        sums[columns[entry]] += values[entry]
        squares[columns[entry]] += np.float64(values[entry]) * np.float64(values[entry])
    least = _COMMON_SHARE * n_rows if n_rows >= _FEWEST_COMPARED else np.inf
    for column in range(len(precision)):
        precision[column] += squares[column]
        if sums[column] * sums[column] > least * squares[column]:
            squares[column] = -1.0
    steps = np.empty(len(values), np.float32)
    for entry in range(len(values)):
        column = columns[entry]
        steps[entry] = 0.0 if squares[column] < 0 else values[entry] / precision[column]
    return steps


@kernel(
    f"int64({_TABLE}, int32[::1], int32[::1], float32[::1], int64[:, ::1], float32[:, ::1], float64[:, ::1],"
    f"float64[::1], int32[::1], {_CHANGES})"
)
def _find_changes(
    table: Any,
    indptr: Any,
    features: Any,
    values: Any,
    labels: Any,
    decoder_scores: Any,
    targets: Any,
    precision: Any,
    columns: Any,
    changed: Any,
    owners: Any,
    steps: Any,
    before: Any,
) -> Any:
    """List the slots that a block of rows changes; return how many there are.

    Parameters
    ----------
    table : (slots, 1) array of float32
    indptr : (n + 1,) array
        Where the rows of the block start, and the last one ends.
    features, values : arrays
        CSR arrays of all rows.
    labels, decoder_scores, targets : (n, c) arrays
        Candidates, their scores without the table, and 1, 0 or NaN.
    precision, columns : arrays
        As for `learn`; the precision is updated by the block.
    changed, owners, steps, before : arrays
        To be written: slots, tags, steps and weights before.
    """
    bits, (n_rows, width) = table.reshape(-1).view(np.uint32), decoder_scores.shape
    start, stop = indptr[0], indptr[n_rows]
    step_sizes = _step_sizes(precision, columns[start:stop], values[start:stop], n_rows)
    size = np.diff(indptr).max() * width
    slots, tags, raw = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    weights = raw.view(np.float32)
    known, chosen, sums = np.empty(width, np.int64), np.empty(width, labels.dtype), np.empty(width, np.float32)
    # Unsigned, as Numba checks whether signed indices are negative, which takes time.
    wrong, errors = np.empty(width, np.uint64), np.empty(width, np.float32)
    n_changed = np.uint64(0)
    for row in range(n_rows):
        first, last, total = indptr[row], indptr[row + 1], 0.0
        n_known = 0
        for c in range(width):
            known[n_known], chosen[n_known], sums[c] = c, labels[row, c], 0.0
            # NaN, which differs from itself, is not learned.
            n_known += targets[row, c] == targets[row, c]
        _read_slots(bits, features[first:last], chosen[:n_known], slots, tags, raw)
        _add_up(raw, tags, values[first:last], sums[:n_known])
        for z in range(first, last):
            total += values[z] * step_sizes[z - start]
        n_wrong = 0
        for c in range(n_known):
            score = decoder_scores[row, known[c]] + sums[c]
            if targets[row, known[c]] > 0:
                error = max(np.float32(1.0) - score, np.float32(0.0))
            else:
                error = min(_ABSENT_MARGIN - score, np.float32(0.0))
            wrong[n_wrong], errors[n_wrong] = c, np.float32(error / (1.0 + total))
            n_wrong += error != 0
        for z in range(last - first):
            step_size = step_sizes[first - start + z]
            for e in range(n_wrong):
                i, step = np.uint64(z * n_known) + wrong[e], errors[e] * step_size
                is_owned = (raw[i] & _TAG_BITS) == tags[i]
                changed[n_changed], owners[n_changed] = slots[i], tags[i]
                steps[n_changed], before[n_changed] = step, weights[i]
                # Slots with a larger weight of another pair are not changed.
                n_changed += np.uint64((abs(step) > _TAKEOVER_SHARE * abs(weights[i])) | (is_owned & (step != 0)))
    return np.int64(n_changed)


@kernel()
def _find_additions(
    table: Any, features: Any, labels: Any, weights: Any, slots: Any, tags: Any, steps: Any, before: Any
) -> Any:
    """List the slots that weights of single pairs change, with their tags, these weights, and those before."""
    bits, n_slots, n_changed, raw = table.reshape(-1).view(np.uint32), np.uint64(len(table)), 0, before.view(np.uint32)
    for i in range(len(features)):
        pair = _hash_of_pair(hash32(features[i], _FEATURE_SEED), hash32(labels[i], _LABEL_SEED))
        slot, tag = _slot(pair, n_slots), np.uint32(pair & _TAG_BITS)
        slots[n_changed], tags[n_changed], steps[n_changed] = slot, tag, weights[i]
        raw[n_changed] = bits[np.uint64(slot)]
        is_owned = (raw[n_changed] & _TAG_BITS) == tag
        n_changed += is_owned | (abs(weights[i]) > _TAKEOVER_SHARE * abs(before[n_changed]))
    return n_changed


@kernel(f"void({_TABLE}, {_CHANGES})")
def _add_steps(table: Any, slots: Any, tags: Any, steps: Any, before: Any) -> None:
    """Add steps to slots; those that are taken over start from 0. Of several that take one over, the last gets it."""
    weights, owners = table.reshape(-1), before.view(np.uint32)
    bits = weights.view(np.uint32)
    for i in range(len(slots)):
        if (owners[i] & _TAG_BITS) != tags[i]:
            bits[np.uint64(slots[i])] = tags[i] | _NEW_WEIGHT
    for i in range(len(slots)):
        slot = np.uint64(slots[i])
        if (bits[slot] & _TAG_BITS) == tags[i]:
            weights[slot] += steps[i]
            # The sum has changed the bits of the tag.
            bits[slot] = (bits[slot] & ~_TAG_BITS) | tags[i]
