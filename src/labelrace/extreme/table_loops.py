"""Compiled loops over the slots of `labelrace.extreme.table`, row by row.

They do what its NumPy forms do, in the same precision, without arrays of non-zeros times candidates. All slots of a row
are computed first, and then read by a loop that does nothing else: its reads, of memory that is in no cache, overlap,
which makes them twice as fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelrace.base.compiled import kernel

# Which of many hash functions labels have, and features: what `mixed` adds for the salts 3 and 4.
_LABELS, _FEATURES = np.uint32(3 * 0x9E3779B9 % 2**32), np.uint32(4 * 0x9E3779B9 % 2**32)


@kernel
def _mixed(number: Any, salt: Any) -> Any:
    """Hash a whole number, as `labelrace.extreme.codes.mixed` does."""
    hashed = np.uint32(np.uint32(number) + salt)
    hashed ^= np.uint32(hashed >> np.uint32(16))
    hashed = np.uint32(hashed * np.uint32(0x85EBCA6B))
    hashed ^= np.uint32(hashed >> np.uint32(13))
    hashed = np.uint32(hashed * np.uint32(0xC2B2AE35))
    return np.uint32(hashed ^ np.uint32(hashed >> np.uint32(16)))


@kernel
def _longest(starts: Any) -> Any:
    """Find how many non-zeros a row has at the most."""
    longest = 0
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    return longest


@kernel
def read_slots(bits: Any, features: Any, labels: Any, places: Any, tags: Any, words: Any) -> None:
    """Compute the slots of a row's features and candidates, features first, and read them."""
    n_slots, width = np.uint64(len(bits)), len(labels)
    of_labels = np.empty(width, np.uint32)
    for c in range(width):
        of_labels[c] = _mixed(labels[c], _LABELS)
    for z in range(len(features)):
        of_feature = _mixed(features[z], _FEATURES)
        for c in range(width):
            hashed = np.uint32(of_labels[c] + of_feature)
            hashed ^= np.uint32(hashed >> np.uint32(15))
            hashed = np.uint32(hashed * np.uint32(0x2C1B3C6D))
            hashed ^= np.uint32(hashed >> np.uint32(12))
            places[z * width + c] = np.uint32((np.uint64(hashed) * n_slots) >> np.uint64(32))
            tags[z * width + c] = hashed & np.uint32(0xFF)
    for slot in range(len(features) * width):
        words[slot] = bits[np.uint64(places[slot])]


@kernel
def add_up(words: Any, tags: Any, values: Any, sums: Any) -> None:
    """Add the weights that a row's candidates own, times the row's values, to ``sums``."""
    weights, width = words.view(np.float32), len(sums)
    for z in range(len(values)):
        for c in range(width):
            slot = z * width + c
            is_owned = (words[slot] & np.uint32(0xFF)) == tags[slot]
            sums[c] += values[z] * (weights[slot] if is_owned else np.float32(0.0))


@kernel
def sum_slots(table: Any, starts: Any, features: Any, values: Any, labels: Any, sums: Any) -> bool:
    """Add the weights of candidates, times the values of their rows, to ``sums``.

    Returns True, which tells whoever reads tables that this was done.

    Parameters
    ----------
    table : (slots, 1) array of float32
    starts, features, values : arrays
        Rows in compressed form.
    labels : (n, c) array
        Candidates.
    sums : (n, c) array of float32
    """
    bits, size = table.reshape(-1).view(np.uint32), _longest(starts) * labels.shape[1]
    places, tags, words = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    for row in range(len(labels)):
        first, last = starts[row], starts[row + 1]
        read_slots(bits, features[first:last], labels[row], places, tags, words)
        add_up(words, tags, values[first:last], sums[row])
    return True


@kernel
def sum_read(starts: Any, values: Any, words: Any, tags: Any, sums: Any) -> None:
    """Sum the weights of slots that have been read: words and tags, (z, c), of the non-zeros of all rows."""
    width = sums.shape[1]
    for row in range(len(sums)):
        inside = slice(starts[row] * width, starts[row + 1] * width)
        add_up(words[inside], tags[inside], values[starts[row] : starts[row + 1]], sums[row])


@kernel
def pulls(precision: Any, columns: Any, values: Any) -> Any:
    """Add the squares of a block's values to the precision of their columns, and divide the values by it."""
    for entry in range(len(values)):
        precision[columns[entry]] += np.float64(values[entry]) * np.float64(values[entry])
    found = np.empty(len(values), np.float32)
    for entry in range(len(values)):
        found[entry] = values[entry] / precision[columns[entry]]
    return found


@kernel
def find_changes(
    table: Any,
    starts: Any,
    features: Any,
    values: Any,
    labels: Any,
    base: Any,
    targets: Any,
    pulls: Any,
    slack: Any,
    takes: Any,
) -> Any:
    """List the slots that a block of rows changes: places, tags, steps and words.

    Parameters
    ----------
    table, starts, features, values, labels
        As for `sum_slots`.
    base, targets : (n, c) arrays
        Scores of candidates without the table, and 1, 0 or NaN.
    pulls : array of float32
        Values of these rows, divided by the precision of their columns.
    slack : float32
        Scores up to which an absent label is no error.
    takes : float32
        Share of a slot's weight that a step must have to take it.
    """
    bits, (n_rows, width) = table.reshape(-1).view(np.uint32), base.shape
    size = _longest(starts) * width
    places, tags, words = np.empty(size, np.uint32), np.empty(size, np.uint32), np.empty(size, np.uint32)
    weights = words.view(np.float32)
    known, chosen, scores = np.empty(width, np.int64), np.empty(width, labels.dtype), np.empty(width, np.float32)
    # Places are never negative, and of a type that cannot be: numbers that can are looked at before they are used.
    wrong, errors = np.empty(width, np.uint64), np.empty(width, np.float32)
    room = (starts[n_rows] - starts[0]) * width
    slots, owners = np.empty(room, np.uint32), np.empty(room, np.uint32)
    steps, before = np.empty(room, np.float32), np.empty(room, np.float32)
    found = np.uint64(0)
    for row in range(n_rows):
        first, last, total = starts[row], starts[row + 1], 0.0
        n_known = 0
        for c in range(width):
            known[n_known], chosen[n_known], scores[c] = c, labels[row, c], 0.0
            # Of what is not known, NaN, nothing is learned.
            n_known += targets[row, c] == targets[row, c]
        read_slots(bits, features[first:last], chosen[:n_known], places, tags, words)
        add_up(words, tags, values[first:last], scores[:n_known])
        for z in range(first, last):
            total += values[z] * pulls[z - starts[0]]
        n_wrong = 0
        for c in range(n_known):
            score = base[row, known[c]] + scores[c]
            if targets[row, known[c]] > 0:
                error = max(np.float32(1.0) - score, np.float32(0.0))
            else:
                error = min(slack - score, np.float32(0.0))
            wrong[n_wrong], errors[n_wrong] = c, np.float32(error / (1.0 + total))
            n_wrong += error != 0
        for z in range(last - first):
            pull = pulls[first - starts[0] + z]
            for e in range(n_wrong):
                slot, step = np.uint64(z * n_known) + wrong[e], errors[e] * pull
                is_owned = (words[slot] & np.uint32(0xFF)) == tags[slot]
                slots[found], owners[found] = places[slot], tags[slot]
                steps[found], before[found] = step, weights[slot]
                # Nothing is changed in slots with a larger weight of another pair.
                found += np.uint64((abs(step) > takes * abs(weights[slot])) | (is_owned & (step != 0)))
    return slots[:found], owners[:found], steps[:found], before[:found]


@kernel
def add_steps(table: Any, places: Any, tags: Any, steps: Any, before: Any, new: Any) -> None:
    """Add steps to slots; those that are taken begin anew. Of several that take one slot, the last has it."""
    weights, owners = table.reshape(-1), before.view(np.uint32)
    bits = weights.view(np.uint32)
    for s in range(len(places)):
        if (owners[s] & np.uint32(0xFF)) != tags[s]:
            bits[np.uint64(places[s])] = tags[s] | new
    for s in range(len(places)):
        place = np.uint64(places[s])
        if (bits[place] & np.uint32(0xFF)) == tags[s]:
            weights[place] += steps[s]
            # The sum has run into the bits of the tag.
            bits[place] = (bits[place] & np.uint32(0xFFFFFF00)) | tags[s]
