"""Boolean matrix decomposition: label sets as unions of a few basis sets, ``Y ≈ C ∘ B``.

``B`` has ``k`` rows, each a set of labels; a row of ``C`` says which of them a label set is the union of. Both are
found greedily, by what a basis set adds to a label set that is covered in part: newly covered labels that are there,
less newly covered labels that are not. Rows come with weights, so that distinct label sets with their counts do for all
rows.

References
----------
Miettinen, P., Mielikäinen, T., Gionis, A., Das, G. and Mannila, H.: The discrete basis problem. IEEE Transactions on
Knowledge and Data Engineering 20 (2008).
"""

from __future__ import annotations

import numpy as np

from labelrace.typing import FloatArray, IntArray


def candidates(gram: FloatArray, threshold: float) -> FloatArray:
    """Make a candidate of each label: the labels that are there in more than a share of its rows, (l, l).

    Examples
    --------
    >>> import numpy as np
    >>> candidates(np.array([[4.0, 3.0], [3.0, 8.0]]), 0.5)
    array([[1., 1.],
           [0., 1.]])
    """
    return (gram > threshold * gram.diagonal()[:, None]).astype(float)


def product(C: FloatArray, B: FloatArray) -> FloatArray:
    """Compute the Boolean product: the unions of the basis sets that the rows of ``C`` name."""
    return (C @ B > 0).astype(float)


def greedy_basis(Y: FloatArray, weights: FloatArray, sets: FloatArray, k: int) -> IntArray:
    """Choose, ``k`` times, the candidate that adds most to all rows; of equal ones the first."""
    cover, chosen = np.zeros_like(Y), []
    for _ in range(k):
        gains = _gains(Y, cover, sets)
        best = int((weights @ np.maximum(gains, 0.0)).argmax())
        chosen.append(best)
        cover = np.maximum(cover, np.where(gains[:, best, None] > 0, sets[best], 0.0))
    return np.array(chosen, dtype=np.intp)


def local_basis(Y: FloatArray, weights: FloatArray, sets: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Start from random candidates and replace one at a time by the best for its place, while that adds anything."""
    chosen = rng.choice(len(sets), size=k, replace=False)
    C = encode(Y, sets[chosen], by_density=True)
    improves = True
    while improves:
        improves = False
        for place in rng.permutation(k):
            others = np.delete(np.arange(k), place)
            gains = _gains(Y, product(C[:, others], sets[chosen[others]]), sets)
            totals = weights @ np.maximum(gains, 0.0)
            best = int(totals.argmax())
            held = float(weights @ (gains[:, chosen[place]] * C[:, place]))
            if totals[best] > held:
                chosen[place], improves = best, True
                C[:, place] = gains[:, best] > 0
    return chosen


def encode(Y: FloatArray, B: FloatArray, *, by_density: bool) -> FloatArray:
    """Write label sets as unions of basis sets, (n, k).

    Basis sets are added that cover more labels that are there than labels that are not: one after the other in the
    order of a greedy basis, or always the densest. Then single ones are included where they gain, and excluded where
    nothing is lost, until nothing changes.
    """
    return _flipped(Y, B, _densest_first(Y, B) if by_density else _in_order(Y, B))


def _in_order(Y: FloatArray, B: FloatArray) -> FloatArray:
    """Take each basis set, in order, where it adds anything."""
    C, cover = np.zeros((len(Y), len(B))), np.zeros_like(Y)
    for place, members in enumerate(B):
        C[:, place] = _gains(Y, cover, members[None])[:, 0] > 0
        cover = np.maximum(cover, C[:, place, None] * members)
    return C


def _densest_first(Y: FloatArray, B: FloatArray) -> FloatArray:
    """Take the basis set with the largest share of gain in what it newly covers, as long as there is one."""
    n, k = len(Y), len(B)
    C, cover, rows = np.zeros((n, k)), np.zeros_like(Y), np.arange(n)
    sizes = B.sum(axis=1)
    for _ in range(k):
        gains, covered = _gains(Y, cover, B), sizes - cover @ B.T
        density = np.divide(gains, covered, out=np.full_like(gains, -1.0), where=(covered > 0) & (C == 0))
        best = density.argmax(axis=1)
        takes = density[rows, best] > 0
        if not takes.any():
            break
        C[rows[takes], best[takes]] = 1.0
        cover[takes] = np.maximum(cover[takes], B[best[takes]])
    return C


def _flipped(Y: FloatArray, B: FloatArray, C: FloatArray) -> FloatArray:
    """Include and exclude single basis sets until nothing changes."""
    times, signs = C @ B, 2.0 * Y - 1.0
    for _ in range(10 * len(B) + 10):
        before = C.copy()
        for place, members in enumerate(B):
            without = times - C[:, place, None] * members
            gain = ((without == 0) * signs) @ members
            C[:, place] = gain > 0
            times = without + C[:, place, None] * members
        if (before == C).all():
            break
    return C


def _gains(Y: FloatArray, cover: FloatArray, sets: FloatArray) -> FloatArray:
    """Compute what each set would add to each row: labels newly covered that are there less those that are not."""
    return ((1.0 - cover) * (2.0 * Y - 1.0)) @ sets.T
