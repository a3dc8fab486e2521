"""Limits for data from outside, checked before memory is allocated; environment variables can raise them.

A file of a few bytes can claim to hold billions of labels, or unpack to more than fits into memory. Exceeding a limit
is an error that names the variable.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from labelrace.exceptions import LimitError


class Limit(NamedTuple):
    """A limit: what is counted, the environment variable that sets it, and its default.

    Examples
    --------
    >>> LABELS.check(100, "y")
    >>> LABELS.check(2_000_000_000, "y")
    Traceback (most recent call last):
    ...
    labelrace.exceptions.LimitError: y must have at most 10,000,000 labels, got 2,000,000,000: set the environment
    variable LABELRACE_MAX_LABELS to allow for more.
    """

    what: str
    variable: str
    default: int

    @property
    def value(self) -> int:
        """The limit, from the environment variable if it is set."""
        text = os.environ.get(self.variable, "")
        if text and not text.isdecimal():
            raise ValueError(f"{self.variable} must be a whole number, got {text!r}.")
        return int(text) if text else self.default

    def check(self, found: int, where: str, hint: str = "") -> None:
        """Raise `LimitError` above the limit; ``hint`` says what to do instead."""
        if found > self.value:
            raise LimitError(
                f"{where} must have at most {self.value:,} {self.what}, got {found:,}: {hint + ' ' if hint else ''}set "
                f"the environment variable {self.variable} to allow for more."
            )


LABELS = Limit("labels", "LABELRACE_MAX_LABELS", 10_000_000)
FEATURES = Limit("features", "LABELRACE_MAX_FEATURES", 100_000_000)
VALUES = Limit("values in a column of categorical_features", "LABELRACE_MAX_VALUES", 2**16)
BYTES = Limit("bytes that are in memory at once", "LABELRACE_MAX_BYTES", 8 * 2**30)
LINE = Limit("bytes in a line", "LABELRACE_MAX_LINE", 2**28)
SCORES = Limit("scores", "LABELRACE_MAX_SCORES", 2**27)
# Applies to compressed files that unpack to more than a few megabytes.
RATIO = Limit("times its size when unpacked", "LABELRACE_MAX_RATIO", 500)
