"""The shuffle of a Java program, so that its results can be reproduced."""

from __future__ import annotations

import numpy as np

from labelrace.typing import IntArray

__all__ = ["shuffled"]

_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1


class _Random:
    """The 48-bit linear congruential generator that the Java platform prescribes."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _next31(self) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> 17

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to ``bound - 1``."""
        if bound & (bound - 1) == 0:
            return (bound * self._next31()) >> 31
        while True:
            bits = self._next31()
            value = bits % bound
            # Rejects the incomplete last range, where Java's 32-bit sum overflows.
            if bits - value + bound - 1 < 1 << 31:
                return value


def shuffled(n: int, seed: int) -> IntArray:
    """Return the order in which Weka's ``Instances.randomize`` puts ``n`` rows.

    Examples
    --------
    >>> shuffled(5, seed=1)
    array([2, 3, 1, 4, 0])
    """
    random = _Random(seed)
    order = np.arange(n)
    for j in range(n - 1, 0, -1):
        i = random.below(j + 1)
        order[[i, j]] = order[[j, i]]
    return order
