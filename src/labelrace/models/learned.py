"""What a classifier has learned: an algorithm, its state, and what predicting needs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from labelrace.core.algorithm import Algorithm
from labelrace.typing import AnyMatrix

__all__ = ["Learned"]


class Learned:
    """An algorithm of the core and its state; immutable but for what is derived once."""

    algorithm: Any

    def __init__(self, algorithm: Algorithm[Any], state: Any) -> None:
        self.algorithm = algorithm
        self.state = state

    @cached_property
    def derived(self) -> Any:
        """What predicting needs."""
        return self.algorithm.derive(self.state)

    def with_state(self, state: Any) -> Learned:
        """Return the same algorithm with another state."""
        return Learned(self.algorithm, state)

    def updated(self, X: AnyMatrix, Y: AnyMatrix) -> Learned:
        """Learn a checked batch; what has been derived already is passed on for algorithms that can use it."""
        at_hand = self.__dict__.get("derived")
        return self.with_state(self.algorithm.update(self.state, X, Y, at_hand))
